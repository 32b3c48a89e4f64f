package policytest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testtier"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// drawn is a random agent of one tool with a policy over it, and an
// invariant. Every bound lies on 1 or 2.
type drawn struct{ *rand.Rand }

func (d drawn) pick(texts ...string) string { return texts[d.IntN(len(texts))] }

func (d drawn) condition() string {
	matcher := func() string {
		return d.pick("1", "x", "true", "{gt: 1}", "{gte: 1, lt: 2}", "{ne: x}", "{in: [x, 2]}", "{not_in: [x]}",
			"{pattern: '^x'}", "{lte: 1}")
	}
	groups := make([]string, 1+d.IntN(2))
	for i := range groups {
		groups[i] = "{args_match: {" + d.pick("k", "l") + ": " + matcher() + "}}"
		if d.IntN(2) == 0 {
			groups[i] = "{args_match: {k: " + matcher() + ", l: " + matcher() + "}}"
		}
	}

	return "{condition: [" + strings.Join(groups, ", ") + "]}"
}

func (d drawn) files() memory {
	tool := "{alias: pay"
	if d.IntN(3) > 0 {
		tool += ", approval: " + d.condition()
	}
	agent := "schema_version: \"1.0.0\"\nmetadata: {id: desk, name: D, version: \"1.0.0\", description: D}\n" +
		"interface: {input: {type: object}, output: {type: object}}\n" +
		"execution_policy: {id: agf.react, config: {instructions: T., model: any}}\n" +
		"action_space: {local_tools: [" + tool + "}]}\n"
	rule := "{id: r, match: {targets: [pay]" + d.pick("", "", ", annotations: {readOnlyHint: true}") + "}, " +
		d.pick("approval: ", "deny: no, approval: ") + d.condition() + "}"
	text := "schema_version: \"1.0.0\"\npolicy_ref: p\napplies: implicit\nrules:\n  - " + rule + "\n"
	m := memory{}
	for name, text := range map[string]string{"a.agf.yaml": agent, "p/p.policy.yaml": text} {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}

	return m
}

func (d drawn) invariant() string {
	where := d.pick("", "k>1", "k<=1", "l=x", "k!=1,l=true", "k>=1,k<2", `k~"^x"`, "k=2,l!=x", "k>2,k<1")
	text := "{tool: pay, outcome: " + d.pick("allow", "ask", "deny")
	if where != "" {
		text += ", where: '" + where + "'"
	}

	return text + "}"
}

// smallDomain returns every call with two arguments at and next to the bounds.
func smallDomain(t *testing.T) []*resolve.Call {
	t.Helper()
	values := []string{"", "null", "0", "1", "1.5", "2", "3", `"x"`, `"xy"`, `"y"`, "true", "false", "[]"}
	var out []*resolve.Call
	for _, k := range values {
		for _, l := range values {
			var args []string
			if k != "" {
				args = append(args, `"k":`+k)
			}
			if l != "" {
				args = append(args, `"l":`+l)
			}
			for _, hint := range []string{"", `,"annotations":{"readOnlyHint":true}`} {
				line := `{"kind":"tool","tool":"pay","args":{` + strings.Join(args, ",") + "}" + hint + "}"
				c, err := resolve.ParseCall([]byte(line), value.Limits{})
				must.Do(t, err)
				out = append(out, c)
			}
		}
	}

	return out
}

// meant reports whether a call is one that an invariant is about.
func (v *Invariant) meant(t *testing.T, c *resolve.Call) bool {
	t.Helper()
	if v.where == nil {
		return true
	}
	doc, err := value.Parse(c.Args, value.Limits{})
	must.Do(t, err)
	truth, err := condition.Evaluate(condition.Governance, condition.Semantics{}, v.where, doc)
	must.Do(t, err)

	return truth == condition.True
}

// TestInvariantsAgreeWithBruteForce draws random rules and tries all calls of a small domain. An
// invariant must fail exactly if some call breaks it, or if it is about no call, and the call that
// it names must break it.
func TestInvariantsAgreeWithBruteForce(t *testing.T) {
	all := smallDomain(t)
	came := map[string]int{}
	for seed := range uint64(testtier.Count(400)) {
		d := drawn{rand.New(rand.NewPCG(seed, 13))}
		field := d.pick(never, always)
		text := "schema_version: \"1.0.0\"\nagent: a.agf.yaml\n" +
			"policies: [p]\n" + field + ": [" + d.invariant() + "]\n"
		f, b := prepared(t, "x.test.yaml", []byte(text), d.files())
		v := &append(f.Never, f.Always...)[0]
		meant, broken := 0, 0
		for _, c := range all {
			if v.meant(t, c) {
				meant++
				if (b.Plan.Decide(c).Outcome == v.Outcome) == (field == never) {
					broken++
				}
			}
		}

		r := f.Run(b, every)[0]
		if expected := broken == 0 && meant > 0; r.Passed() != expected {
			t.Fatalf("seed %d: of %d calls %d break it: %+v\n%s", seed, meant, broken, r.Failures, text)
		}
		what := fmt.Sprint(field, r.Passed(), meant > 0)
		came[what]++
		if r.Passed() || meant == 0 {
			continue
		}
		c, err := resolve.ParseCall([]byte(r.Failures[0].Witness), value.Limits{})
		must.Do(t, err)
		if (b.Plan.Decide(c).Outcome == v.Outcome) != (field == never) || !v.meant(t, c) {
			t.Fatalf("seed %d: %+v does not break it\n%s", seed, r.Failures, text)
		}
	}

	if len(came) < 6 {
		t.Errorf("too little was tried: %v", came)
	}
}

// TestInvariantsOfOtherTargets checks invariants on servers, skills and delegations. Each fails
// with a call as an example.
func TestInvariantsOfOtherTargets(t *testing.T) {
	desk := string(testWorld(t)["desk.agf.yaml"].Data)
	files := testWorld(t, "desk.agf.yaml", strings.Replace(desk, "action_space:\n",
		"action_space:\n  mcp_servers: [{alias: bank}]\n"+
			"  local_agents: [{alias: clerk, source: c.agf.yaml}]\n"+
			"  remote_agents: [{alias: broker, allowed_skills: [{id: sell, approval: true}]}]\n", 1))
	f, b := prepared(t, "x.test.yaml", []byte(`schema_version: "1.0.0"
agent: desk.agf.yaml
policies: [policies]
never:
  - {server: bank, tool: pay, outcome: allow}
  - {agent: clerk, outcome: allow}
  - {agent: broker, skill: buy, outcome: allow}
  - {agent: broker, skill: sell, outcome: allow}
`), files)
	var got []string
	for _, r := range f.Run(b, every) {
		text := r.Name
		if !r.Passed() {
			text += " | " + r.Failures[0].Got
		}
		got = append(got, text)
	}

	want := []string{
		`never allow: mcp_tool bank/pay | outcome allow for {"kind":"mcp_tool","tool":"pay","server":"bank","args":{}}`,
		`never allow: delegation clerk | outcome allow for {"kind":"delegation","agent":"clerk","args":{}}`,
		`never allow: skill broker/buy | nothing is protected: `,
		"never allow: skill broker/sell",
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got %s, expected %s", got[i], want[i])
		}
	}
}

// TestInvariantsOfAWorldThatDeniesAll checks a missing policy. Every call is then denied, which
// proves nothing about the rules.
func TestInvariantsOfAWorldThatDeniesAll(t *testing.T) {
	f, b := prepared(t, "x.test.yaml", []byte(`schema_version: "1.0.0"
agent: desk.agf.yaml
never: [{tool: trade, outcome: allow}]
always: [{tool: trade, outcome: deny}]
`), testWorld(t))
	for _, r := range f.Run(b, every) {
		if r.Passed() || !strings.Contains(r.Failures[0].Got, "acme.trades") {
			t.Errorf("%s: %+v", r.Name, r.Failures)
		}
	}
}
