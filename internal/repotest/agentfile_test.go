package repotest

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/schema"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestAgentFilePageShowsAFile checks that the page's file has no finding of
// the schema.
func TestAgentFilePageShowsAFile(t *testing.T) {
	page := readText(t, filepath.Join(top, "docs/reference/agent-file.md"))
	text := yamlBlock.FindStringSubmatch(page)[1]
	agent, findings := schema.Parse("desk.agf.yaml", []byte(text))
	if agent == nil || len(findings) > 0 {
		t.Errorf("%v", findings)
	}
}

// TestAgentFilePageHasEveryField checks that the page about .agf.yaml has a row for every field of the official schema
// and of ours: a row whose first cells name the field.
func TestAgentFilePageHasEveryField(t *testing.T) {
	page := readText(t, filepath.Join(top, "docs/reference/agent-file.md"))
	var document any
	text := readText(t, filepath.Join(top, "schema/agent.schema.json"))
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	names := propertyNames(document)
	if len(names) < 60 {
		t.Fatalf("the schema has only %d properties", len(names))
	}
	official := strings.Fields(readText(t, filepath.Join(top, "schema/testdata/official-names.golden")))
	if len(official) < 60 {
		t.Fatalf("the official schema has only %d names", len(official))
	}
	for _, name := range official {
		names[name] = true
	}
	for name := range names {
		if !regexp.MustCompile("(?m)^\\| `[^|]*\\b" + regexp.QuoteMeta(name) + "\\b[^|]*` \\|").MatchString(page) {
			t.Errorf("docs/reference/agent-file.md has no row for the field %s", name)
		}
	}
}

// propertyNames returns the names of all properties of a JSON Schema and of
// its parts.
func propertyNames(document any) map[string]bool {
	out := map[string]bool{}
	switch s := document.(type) {
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		for name := range properties {
			out[name] = true
		}
		for _, part := range s {
			for name := range propertyNames(part) {
				out[name] = true
			}
		}
	case []any:
		for _, part := range s {
			for name := range propertyNames(part) {
				out[name] = true
			}
		}
	}

	return out
}
