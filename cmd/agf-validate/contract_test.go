package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
)

func TestContractsNameEveryFlag(t *testing.T) {
	testfiles.CheckFlags(t, "agf-validate.md", program{}.command().Flags().FlagUsages())
}

func TestValidateContractNamesEveryFormat(t *testing.T) {
	text := testfiles.Contract(t, "agf-validate.md")
	for _, format := range diag.Formats() {
		if !strings.Contains(text, "`"+format+"`") {
			t.Errorf("format %s is not in the contract", format)
		}
	}
}

// TestValidateContractNamesEveryField: every field of the JSON format
// has its row.
func TestValidateContractNamesEveryField(t *testing.T) {
	agent := testfiles.Write(
		t,
		filepath.Join(t.TempDir(), "a.agf.yaml"),
		testfiles.Agent+"metadatas: {}\nx: 1 # agf-validate: ignore unknown-field -- a test\n",
	)
	twice := testfiles.Write(
		t,
		filepath.Join(t.TempDir(), "b.agf.yaml"),
		strings.Replace(testfiles.Agent, "alias: quote", "alias: trade", 1),
	)
	var out bytes.Buffer
	if code := (program{
		Streams: term.Streams{Out: &out, Err: &out},
	}).Run([]string{"--format", "json", agent, twice}); code != term.ExitFindings {
		t.Fatalf("exit %d\n%s", code, out.String())
	}
	text := testfiles.Contract(t, "agf-validate.md")
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`"([a-z_]+)":`).FindAllStringSubmatch(out.String(), -1) {
		seen[m[1]] = true
		if !strings.Contains(text, "`"+m[1]+"`") {
			t.Errorf("the field %s is not in docs/contracts/agf-validate.md", m[1])
		}
	}

	for _, field := range []string{"nearest", "stops", "related", "suppressed", "reason", "end_column"} {
		if !seen[field] {
			t.Errorf("nothing here has the field %s\n%s", field, out.String())
		}
	}
}

// TestPolicyContract: the page names every field of the JSON Schema,
// and its example is clean.
func TestPolicyContract(t *testing.T) {
	text := testfiles.Contract(t, "policy.md")
	var walk func(node any)
	walk = func(node any) {
		fields, _ := node.(map[string]any)
		properties, _ := fields["properties"].(map[string]any)
		for name := range properties {
			if !strings.Contains(text, "`"+name+"`") {
				t.Errorf("the field %s is not in docs/contracts/policy.md", name)
			}
		}
		for _, child := range fields {
			walk(child)
		}
	}
	var root any
	if err := json.Unmarshal(policy.JSON(), &root); err != nil {
		t.Fatal(err)
	}
	walk(root)
	_, after, _ := strings.Cut(text, "```yaml\n")
	example, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatal("the contract shows no policy")
	}
	var out bytes.Buffer
	path := testfiles.Write(t, filepath.Join(t.TempDir(), "p.policy.yaml"), example)
	if code := (program{
		Streams: term.Streams{Out: &out, Err: &out},
	}).Run([]string{"--fail-on", "info", path}); code != term.ExitOK {
		t.Errorf("exit %d\n%s", code, out.String())
	}
}

// TestExplainKnowsEveryRule: each rule has a page, and the semantics
// have theirs.
func TestExplainKnowsEveryRule(t *testing.T) {
	var list bytes.Buffer
	if code := (program{Streams: term.Streams{Out: &list, Err: &list}}).Run([]string{"rules"}); code != term.ExitOK {
		t.Fatalf("exit %d: %s", code, list.String())
	}
	lines := strings.Split(strings.TrimSpace(list.String()), "\n")
	if len(lines) < 40 {
		t.Fatalf("only %d rules", len(lines))
	}
	for _, line := range lines {
		id := strings.Fields(line)[0]
		var out, errOut bytes.Buffer
		if code := (program{
			Streams: term.Streams{Out: &out, Err: &errOut},
		}).Run([]string{"explain", id}); code != term.ExitOK ||
			!strings.HasPrefix(out.String(), id+" (") {
			t.Errorf("explain %s: exit %d, %q %q", id, code, out.String(), errOut.String())
		}

		for _, line := range strings.Split(out.String(), "\n")[1:] {
			prose := strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "    ")
			if prose && utf8.RuneCountInString(line) > 80 {
				t.Errorf("explain %s does not fit 80 columns: %s", id, line)
			}
		}
	}

	var out bytes.Buffer
	if code := (program{Streams: term.Streams{Out: &out}}).Run([]string{"explain", "semantics"}); code != term.ExitOK ||
		!strings.Contains(out.String(), "OnMissing") {
		t.Errorf("explain semantics: %s", out.String())
	}
	var errOut bytes.Buffer
	if code := (program{
		Streams: term.Streams{Out: &out, Err: &errOut},
	}).Run([]string{"explain", "unknown-feild"}); code != term.ExitFailure ||
		!strings.Contains(errOut.String(), "unknown-field") {
		t.Errorf("a near miss: exit %d, %s", code, errOut.String())
	}

	if code := (program{
		Streams: term.Streams{Out: &out, Err: &errOut},
	}).Run([]string{"explain", "zzzzzz"}); code != term.ExitFailure {
		t.Errorf("an unknown rule: exit %d", code)
	}
}

func TestSchemaCommand(t *testing.T) {
	for _, kind := range []string{"agent", "policy", "people"} {
		var out bytes.Buffer
		if code := (program{Streams: term.Streams{Out: &out}}).Run([]string{"schema", kind}); code != term.ExitOK ||
			!strings.Contains(out.String(), "https://json-schema.org/draft/2020-12/schema") {
			t.Errorf("schema %s: exit %d, %.80s", kind, code, out.String())
		}
	}
}
