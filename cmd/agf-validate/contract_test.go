package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
)

func TestContractsNameEveryFlag(t *testing.T) {
	testfiles.CheckFlags(t, "agf-validate.md", program{}.command().Flags().FlagUsages())
	usages := ""
	for _, cmd := range []*cobra.Command{
		program{}.testCommand(), program{}.createCommand(), program{}.mutateCommand(),
	} {
		usages += cmd.Flags().FlagUsages()
	}
	testfiles.CheckFlags(t, "tests.md", usages)
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
	out, errOut, code := validated(t, "--format", "json", agent, twice)
	if code != term.ExitFindings {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	text := testfiles.Contract(t, "agf-validate.md")
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`"([a-z_]+)":`).FindAllStringSubmatch(out, -1) {
		seen[m[1]] = true
		if !strings.Contains(text, "`"+m[1]+"`") {
			t.Errorf("the field %s is not in docs/contracts/agf-validate.md", m[1])
		}
	}

	for _, field := range []string{"nearest", "stops", "related", "suppressed", "reason", "end_column"} {
		if !seen[field] {
			t.Errorf("nothing here has the field %s\n%s", field, out)
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
	must.Do(t, json.Unmarshal(policy.JSON(), &root))
	walk(root)
	_, after, _ := strings.Cut(text, "```yaml\n")
	example, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatal("the contract shows no policy")
	}
	path := testfiles.Write(t, filepath.Join(t.TempDir(), "p.policy.yaml"), example)
	if out, errOut, code := validated(t, "--fail-on", "info", path); code != term.ExitOK {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

// TestExplainKnowsEveryRule: each rule has a page, and so do the semantics.
func TestExplainKnowsEveryRule(t *testing.T) {
	list, errOut, code := validated(t, "rules")
	if code != term.ExitOK {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	lines := strings.Split(strings.TrimSpace(list), "\n")
	if len(lines) < 40 {
		t.Fatalf("only %d rules", len(lines))
	}
	for _, line := range lines {
		id := strings.Fields(line)[0]
		out, errOut, code := validated(t, "explain", id)
		if code != term.ExitOK || !strings.HasPrefix(out, id+" (") {
			t.Errorf("explain %s: exit %d, %q %q", id, code, out, errOut)
		}

		for _, line := range strings.Split(out, "\n")[1:] {
			prose := strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "    ")
			if prose && utf8.RuneCountInString(line) > 80 {
				t.Errorf("explain %s does not fit 80 columns: %s", id, line)
			}
		}
	}

	for name, c := range map[string]struct {
		code int
		want string
	}{
		"semantics":     {term.ExitOK, "OnMissing"},
		"unknown-feild": {term.ExitFailure, "unknown-field"},
		"zzzzzz":        {term.ExitFailure, ""},
	} {
		out, errOut, code := validated(t, "explain", name)
		says := map[int]string{term.ExitOK: out, term.ExitFailure: errOut}[code]
		if code != c.code || !strings.Contains(says, c.want) {
			t.Errorf("explain %s: exit %d, %q %q", name, code, out, errOut)
		}
	}
}

func TestSchemaCommand(t *testing.T) {
	for _, kind := range []string{"agent", "policy", "people", "decisions", "test"} {
		if out, _, code := validated(t, "schema", kind); code != term.ExitOK ||
			!strings.Contains(out, "https://json-schema.org/draft/2020-12/schema") {
			t.Errorf("schema %s: exit %d, %.80s", kind, code, out)
		}
	}
}

// TestContractOfTestsRuns: the example of the page is a test file that passes, and the page
// documents every field of the JSON format.
func TestContractOfTestsRuns(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples", "trading-desk"))))
	text := testfiles.Contract(t, "tests.md")
	_, example, _ := strings.Cut(text, "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	file := testfiles.Write(t, filepath.Join(dir, "contract.test.yaml"), example)
	out, errOut, code := validated(t, "test", "--coverage", "--format", "json", file)
	if code != term.ExitOK {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	failing := testfiles.Write(t, filepath.Join(dir, "f.test.yaml"), strings.Replace(example, "10001,", "9,", 1))
	failed, errOut, code := validated(t, "test", "--format", "json", failing, filepath.Join(dir, "gone.test.yaml"))
	if code != term.ExitFailure {
		t.Fatalf("exit %d\n%s%s", code, failed, errOut)
	}
	names := regexp.MustCompile(`"([a-z_]+)":`).FindAllStringSubmatch(out+failed, -1)
	if len(names) < 20 {
		t.Fatalf("only %d fields", len(names))
	}
	for _, m := range names {
		if !strings.Contains(text, "`"+m[1]+"`") {
			t.Errorf("the field %s is not in docs/contracts/tests.md", m[1])
		}
	}
}

// TestTestsOfTheExamplesPass: what the examples promise holds.
func TestTestsOfTheExamplesPass(t *testing.T) {
	out, errOut, code := validated(t, "test", filepath.Join("..", "..", "examples"))
	if code != term.ExitOK || errOut != "" || !strings.Contains(out, " tests in 13 files: ") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

// TestMadeTestsNoticeChanges: the tests that create-tests writes for the
// examples try everything, and notice at least 95 of 100 changes, those
// included that make no difference.
func TestMadeTestsNoticeChanges(t *testing.T) {
	examples := t.TempDir()
	must.Do(t, os.CopyFS(examples, os.DirFS(filepath.Join("..", "..", "examples"))))
	travel := os.DirFS(filepath.Join("..", "..", "agent", "examples", "travel"))
	must.Do(t, os.CopyFS(filepath.Join(examples, "travel"), travel))
	changes, noticed := 0, 0
	for agent, flag := range map[string][2]string{
		"trading-desk/agent.agf.yaml":      {"--policies", "trading-desk/policies"},
		"customer-support/agent.agf.yaml":  {"--policies", "customer-support/policies"},
		"platform-operator/agent.agf.yaml": {"--decisions", "platform-operator/decisions.yaml"},
		"travel/travel.agf.yaml":           {"--policies", "travel/policies"},
	} {
		agent = filepath.Join(examples, agent)
		made := filepath.Join(filepath.Dir(agent), "made.test.yaml")
		out, errOut, code := validated(
			t, "create-tests", flag[0], filepath.Join(examples, flag[1]), "--output", made, agent,
		)
		if code != term.ExitOK {
			t.Fatalf("%s: exit %d\n%s%s", agent, code, out, errOut)
		}
		if out, errOut, code := validated(t, "test", "--min", "100", made); code != term.ExitOK {
			t.Errorf("%s: exit %d\n%s%s", agent, code, out, errOut)
		}
		out, errOut, _ = validated(t, "mutate", "--format", "json", made)
		var score struct{ Changes, Noticed, Percent int }
		if err := json.Unmarshal([]byte(out), &score); err != nil {
			t.Fatalf("%v\n%s%s", err, out, errOut)
		}
		if score.Percent < 95 {
			t.Errorf("%s: %d%% of what makes a difference is noticed\n%s", agent, score.Percent, out)
		}
		changes += score.Changes
		noticed += score.Noticed
	}

	if changes < 300 || noticed*100 < changes*95 {
		t.Errorf("%d of %d changes are noticed", noticed, changes)
	}
}
