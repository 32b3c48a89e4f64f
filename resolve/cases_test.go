package resolve_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// TestCases runs every case in testdata: an agent, its policies, calls, and the decisions that they
// must get. The text at the top of a file says what it proves. Files named parent.agf.yaml are
// compiled first, as the parent of the agent.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runCase(t, file) })
	}
}

func runCase(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	must.Do(t, err)
	c := readCase(t, archive)
	got := c.decide(t)
	if golden.Update() {
		c.store(t, archive, file, got)
		return
	}
	if want := c.text["decisions.jsonl"]; string(got) != want {
		t.Errorf("decisions differ (go test ./resolve -update rewrites them)\ngot:\n%s\nwant:\n%s", got, want)
	}
	if want := c.text["findings.txt"]; c.findings != want {
		t.Errorf("findings differ\ngot:\n%s\nwant:\n%s", c.findings, want)
	}
}

// story is one case: the files of its archive and the findings of compiling it.
type story struct {
	text     map[string]string
	policies []*policy.Policy
	findings string
}

func readCase(t *testing.T, a *txtar.Archive) *story {
	t.Helper()
	c := &story{text: map[string]string{}}
	for _, f := range a.Files {
		c.text[f.Name] = string(f.Data)
		if strings.HasSuffix(f.Name, ".policy.yaml") {
			c.policies = append(c.policies, parsePolicy(t, f.Name, string(f.Data)))
		}
	}

	return c
}

func (c *story) decide(t *testing.T) []byte {
	t.Helper()
	opt := resolve.Options{}
	if _, ok := c.text["parent.agf.yaml"]; ok {
		opt.Parent = c.compile(t, "parent.agf.yaml", resolve.Options{})
	}
	plan := c.compile(t, "agent.agf.yaml", opt)
	for _, f := range plan.Findings() {
		c.findings += f.Severity.String() + " " + f.Rule + ": " + f.Message + "\n"
	}
	var out bytes.Buffer
	for _, line := range strings.Split(strings.TrimSpace(c.text["calls.jsonl"]), "\n") {
		out.Write(answer(t, plan, line))
	}
	return out.Bytes()
}

func (c *story) compile(t *testing.T, name string, opt resolve.Options) *resolve.Plan {
	t.Helper()
	set, findings := policy.NewSet(c.policies...)
	if set == nil {
		t.Fatalf("policies: %v", findings)
	}
	plan, err := resolve.Compile(parseAgent(t, name, c.text[name]), set, opt)
	if plan == nil {
		t.Fatalf("compile %s: %v", name, err)
	}
	return plan
}

// answer decides one line and checks what holds for every decision.
func answer(t *testing.T, plan *resolve.Plan, line string) []byte {
	t.Helper()
	call, err := resolve.ParseCall([]byte(line), value.Limits{})
	var d resolve.Decision
	if err != nil {
		d = resolve.Unreadable(err)
	} else {
		d = plan.Decide(call)
		if d.Outcome == resolve.Ask && d.Binding == "" {
			t.Errorf("%s: asks without a binding", line)
		}
	}

	if (d.Outcome == resolve.Allow) != (len(d.Reasons) == 0) {
		t.Errorf("%s: outcome %v with %d reasons", line, d.Outcome, len(d.Reasons))
	}
	d.Binding = "" // depends on the text of every file; TestBinding looks at it
	for i := range d.Reasons {
		d.Reasons[i].Matchers = nil // their own test is TestMatchers
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	must.Do(t, e.Encode(d))
	return b.Bytes()
}

func (c *story) store(t *testing.T, a *txtar.Archive, file string, got []byte) {
	t.Helper()
	kept := a.Files[:0]
	for _, f := range a.Files {
		if f.Name != "decisions.jsonl" && f.Name != "findings.txt" {
			kept = append(kept, f)
		}
	}
	a.Files = append(kept, txtar.File{Name: "decisions.jsonl", Data: got})
	if c.findings != "" {
		a.Files = append(a.Files, txtar.File{Name: "findings.txt", Data: []byte(c.findings)})
	}
	must.Do(t, os.WriteFile(file, txtar.Format(a), 0o644))
}

// head is the beginning of every agent in the tests; the text after it adds sections.
const head = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades, namespace: acme.finance, labels: {tier: prod}}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
`

func parseAgent(t testing.TB, file, text string) *schema.Agent {
	t.Helper()
	if !strings.Contains(text, "schema_version:") {
		text = head + text
	}
	agent, findings := schema.Parse(file, []byte(text))
	if agent == nil {
		t.Fatalf("%s: %v", file, findings)
	}
	return agent
}

func parsePolicy(t testing.TB, file, text string) *policy.Policy {
	t.Helper()
	if !strings.Contains(text, "schema_version:") {
		text = "schema_version: \"1.0.0\"\n" + text
	}
	pol, findings := policy.Parse(file, []byte(text))
	if pol == nil {
		t.Fatalf("%s: %v", file, findings)
	}
	return pol
}

// plan compiles an agent with policies for a test.
func plan(t testing.TB, opt resolve.Options, agent string, policies ...string) *resolve.Plan {
	t.Helper()
	var parsed []*policy.Policy
	for _, text := range policies {
		parsed = append(parsed, parsePolicy(t, "p.policy.yaml", text))
	}
	set, findings := policy.NewSet(parsed...)
	if set == nil {
		t.Fatalf("policies: %v", findings)
	}
	p, err := resolve.Compile(parseAgent(t, "agent.agf.yaml", agent), set, opt)
	if p == nil {
		t.Fatal(err)
	}
	return p
}
