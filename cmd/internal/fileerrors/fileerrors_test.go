package fileerrors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// TestEveryErrorHasAnEffect: the table has a row for each rule that is
// an error, and no other.
func TestEveryErrorHasAnEffect(t *testing.T) {
	table := AtRunTimes()
	for _, r := range lint.Infos(rules.All()) {
		row, ok := table[r.ID]
		switch {
		case r.Severity != diag.Error && ok:
			t.Errorf("%s is no error, and has a row", r.ID)
		case r.Severity == diag.Error && (row.Effect == "" || row.How == ""):
			t.Errorf("nothing says what %s does at run time", r.ID)
		}
		delete(table, r.ID)
	}
	for id := range table {
		t.Errorf("%s has a row, and is no rule", id)
	}
}

// TestPageIsFresh: the page shows the table.
func TestPageIsFresh(t *testing.T) {
	golden.Equal(t, "../../../../docs/reference/errors-at-run-time.md", Page())
}

// TestEffectsAreTrue holds the rows against files that break the rules:
// what the table calls refused stops the load, and nothing else does.
func TestEffectsAreTrue(t *testing.T) {
	table := AtRunTimes()
	seen := map[string]bool{}
	hold := func(file string, findings []diag.Finding) {
		for _, f := range findings {
			if f.Severity != diag.Error || f.Rule == schema.UnknownField { // an error in policies alone
				continue
			}
			seen[f.Rule] = true
			if row := table[f.Rule]; (row.Effect == Refuses) != f.Stops {
				t.Errorf("%s: %s stops the load: %v, and the table says %s", file, f.Rule, f.Stops, row.Effect)
			}
		}
	}
	for _, file := range samples(t, "../../../schema/testdata/bad/*.yaml", "../../../lint/rules/*/bad*.agf.yaml") {
		_, findings := schema.Parse(file, read(t, file))
		hold(file, findings)
		hold(file, Find([]Agent{{Path: file}}, nil, resolve.Options{}))
	}
	for _, file := range samples(t, "../../../policy/testdata/bad/*.yaml", "../../../lint/rules/*/bad*.policy.yaml") {
		_, findings := policy.Parse(file, read(t, file))
		hold(file, findings)
	}
	if len(seen) < 40 {
		t.Errorf("only %d rules were tried", len(seen))
	}
}

// TestErrorsThatAskDo: for every rule that asks, its call asks.
func TestErrorsThatAskDo(t *testing.T) {
	const head = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Works.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Work., model: any}}
action_space:
`
	tool := &resolve.Call{Kind: resolve.Tool, Tool: "a", Args: []byte(`{"n":1}`)}
	remote := &resolve.Call{Kind: resolve.MCPTool, Server: "s", Tool: "a"}
	hand := &resolve.Call{Kind: resolve.Delegation, Agent: "p", ParentInput: []byte(`{"risk":"low"}`)}
	tried := map[string]struct {
		text string
		call *resolve.Call
	}{
		"approval-misplaced":       {"  local_tools: [{alias: a, aproval: false}]", tool},
		"renamed-field":            {"  mcp_servers: [{alias: s, allow_tools: [a]}]", remote},
		"tool-list-unread":         {"  mcp_servers: [{alias: s, allowedTools: [a]}]", remote},
		"group-without-args-match": {"  local_tools: [{alias: a, approval: {condition: {arg_match: {n: 5}}}}]", tool},
		"argument-key":             {"  local_tools: [{alias: a, approval: {condition: {args_match: {parent.input.n: 5}}}}]", tool},
		"delegation-key":           {"  remote_agents: [{alias: p, approval: {condition: {args_match: {risk: high}}}}]", hand},
		"tool-listed-twice": {
			"  mcp_servers: [{alias: s, allowed_tools: [{name: a, approval: false}, {name: a, approval: " +
				"true}]}]", remote,
		},
	}
	for id, row := range AtRunTimes() {
		if row.Effect != Asks {
			continue
		}
		c, ok := tried[id]
		if !ok {
			t.Errorf("no file is tried for %s", id)
			continue
		}
		text := []byte(head + c.text + "\n")
		found := false
		for _, f := range Find([]Agent{{Path: "a.agf.yaml", Text: text}}, nil, resolve.Options{}) {
			found = found || f.Rule == id
		}
		if !found {
			t.Errorf("%s is not reported:\n%s", id, text)
		}
		agent, findings := schema.Parse("a.agf.yaml", text)
		if agent == nil {
			t.Fatalf("%s: %v", id, findings)
		}
		plan, err := resolve.Compile(agent, nil, resolve.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d := plan.Decide(c.call); d.Outcome != resolve.Ask {
			t.Errorf("%s: %s", id, d.Outcome)
		}
	}
}

// TestFindReadsPolicies: errors of policies are found, unless the owner
// wants what they are about.
func TestFindReadsPolicies(t *testing.T) {
	dir := t.TempDir()
	text := `schema_version: "1.0.0"
policy_ref: acme.silence
rules:
  - {id: a, approval: true, require: {within: 1h, on_timeout: approve}}
`
	if err := os.WriteFile(filepath.Join(dir, "a.policy.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	found := Find(nil, []string{dir}, resolve.Options{})
	if len(found) != 1 || found[0].Rule != policy.RuleTimeoutApproves {
		t.Errorf("%+v", found)
	}
	if found := Find(nil, []string{dir}, resolve.Options{AllowTimeoutApprove: true}); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	if err := Refuse(found); err == nil || !strings.Contains(err.Error(), "a.policy.yaml:4:") {
		t.Errorf("%v", err)
	}
}

// TestSuppressedGateIsStillTold: a comment silences agf-validate, and
// not what reading the file found.
func TestSuppressedGateIsStillTold(t *testing.T) {
	text := []byte(`schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Works.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Work., model: any}}
action_space:
  local_tools:
    - {alias: a, aproval: true} # agf-validate: ignore approval-misplaced -- we know
`)
	if found := Find([]Agent{{Path: "a.agf.yaml", Text: text}}, nil, resolve.Options{}); len(found) != 0 {
		t.Errorf("the comment silences nothing: %+v", found)
	}
	_, findings := schema.Parse("a.agf.yaml", text)
	found := Merge(nil, Usable(findings))
	if len(found) != 1 || Merge(found, found)[0].Rule != "approval-misplaced" || len(Merge(found, found)) != 1 {
		t.Errorf("%+v", found)
	}
	const want = `a.agf.yaml:7:18: "aproval" is no field of this entry, so it gates nothing; did you mean "approval"? (expected ` +
		`approval: true, or an object with a condition; until then every call of this entry asks) [approval-misplaced]`
	if got := Line(found[0]); got != want {
		t.Errorf("%s", got)
	}
}

func samples(t *testing.T, patterns ...string) (out []string) {
	t.Helper()
	for _, p := range patterns {
		files, err := filepath.Glob(p)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", p, err)
		}
		out = append(out, files...)
	}
	return out
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
