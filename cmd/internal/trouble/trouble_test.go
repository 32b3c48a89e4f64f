package trouble

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/openapi"
)

func TestPageIsFresh(t *testing.T) {
	golden.Equal(t, "../../../../docs/troubleshooting.md", Page())
}

// TestEveryProblemHasAFix compares the table with the codes of the API.
func TestEveryProblemHasAFix(t *testing.T) {
	table := fixes()
	for _, m := range openapi.Meanings() {
		if table[m.Code] == "" {
			t.Errorf("nothing says what to do about %s", m.Code)
		}
		delete(table, m.Code)
	}
	for code := range table {
		t.Errorf("%s has an entry, and is no code", code)
	}
}

// TestEveryReasonHasAnEntry compares the table with the constants of type Code in the package resolve.
func TestEveryReasonHasAnEntry(t *testing.T) {
	entries := map[string]bool{}
	for _, e := range Reasons() {
		if e.Meaning == "" || e.Fix == "" || entries[e.Message] {
			t.Errorf("%s lacks a meaning or a fix, or has two entries", e.Message)
		}
		entries[e.Message] = true
	}
	file := must.Get(parser.ParseFile(token.NewFileSet(), "../../../resolve/resolve.go", nil, 0))(t)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != "Code" {
			return true
		}
		code := must.Get(strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value))(t)
		if !entries[code] {
			t.Errorf("nothing says what to do about the reason %s", code)
		}
		delete(entries, code)
		return true
	})
	for code := range entries {
		t.Errorf("%s has an entry, and is no code of a reason", code)
	}
}

// TestEveryAnswerHasAnEntry compares the table with the texts that all clients produce.
func TestEveryAnswerHasAnEntry(t *testing.T) {
	var texts []struct{ Text string }
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile("../../../client/testdata/texts.json"))(t), &texts))
	used := map[string]bool{}
	for _, each := range texts {
		if !strings.HasPrefix(each.Text, "Not run") {
			continue // the text of a problem
		}
		found := false
		for _, e := range Answers() {
			if strings.Contains(each.Text, e.Message) {
				found, used[e.Message] = true, true
			}
		}
		if !found {
			t.Errorf("nothing says what to do about %q", each.Text)
		}
	}
	for _, e := range Answers() {
		if !used[e.Message] {
			t.Errorf("no client produces %q", e.Message)
		}
	}
}

// TestEveryPartHasAnEntry compares the table with the checks of the service.
func TestEveryPartHasAnEntry(t *testing.T) {
	entries := map[string]bool{}
	for _, e := range parts() {
		entries[e.Message] = true
	}
	name := regexp.MustCompile(`(?:\{Name: |^\s+Name: +|h\.worker\(|^const part\w+ = |^\t[A-Z]\w+ += )"(\w+)"`)
	found := 0
	for _, file := range []string{
		"server/health.go",
		"server/plans/plans.go",
		"cmd/assent/serve.go",
		"cmd/assent/files.go",
		"cmd/assent/candidate.go",
	} {
		for line := range strings.Lines(string(must.Get(os.ReadFile("../../../" + file))(t))) {
			for _, m := range name.FindAllStringSubmatch(line, -1) {
				if m[1] == "server" { // before the first check has run
					continue
				}
				if !entries[m[1]] {
					t.Errorf("%s: nothing says what to do about the part %s", file, m[1])
				}
				delete(entries, m[1])
				found++
			}
		}
	}
	if found < 8 {
		t.Errorf("only %d names of parts are in the sources", found)
	}
	for part := range entries {
		t.Errorf("%s has an entry, and no check has this name", part)
	}
}
