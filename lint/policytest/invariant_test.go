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
	for _, id := range []string{"s", "t"} {
		rule += "\n  - {id: " + id + ", approval: " + d.condition() + ", require: {stages: [{group: " +
			d.pick("g", "h") + ", people: " + d.pick("1", "2", "3") + "}]}}"
	}
	text := "schema_version: \"1.0.0\"\npolicy_ref: p\napplies: implicit\nrules:\n  - " + rule + "\n"
	m := memory{}
	for name, text := range map[string]string{"a.agf.yaml": agent, "p/p.policy.yaml": text} {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}

	return m
}

func (d drawn) invariant() string {
	where := d.pick("", "k>1", "k<=1", "l=x", "k!=1,l=true", "k>=1,k<2", `k~"^x"`, "k=2,l!=x", "k>2,k<1")
	text := "{tool: pay, " + d.pick("outcome: allow", "outcome: ask", "outcome: deny",
		"at_least: {g: 1}", "at_least: {g: 3}")
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

// breaks reports whether a decision breaks the invariant.
func (v *Invariant) breaks(d resolve.Decision) bool {
	if v.Goal == nil {
		return (d.Outcome == v.Outcome) == (v.field == never)
	}
	people := 0
	if d.Require != nil {
		for _, s := range d.Require.Stages {
			if s.Group == "g" {
				people += s.People
			}
		}
	}
	required := d.Outcome == resolve.Ask && people >= v.Goal.AtLeast["g"]
	if v.field == never {
		return required
	}
	return d.Outcome != resolve.Deny && !required
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
				if v.breaks(b.Plan.Decide(c)) {
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
		if !v.breaks(b.Plan.Decide(c)) || !v.meant(t, c) {
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

// Invariants about directories of agents, patterns of names, requirements and moments. Each row is an
// invariant and the beginning of its failure, if it fails.
func TestInvariantsOfManyAgents(t *testing.T) {
	agent := func(id, tools string) string {
		return "schema_version: \"1.0.0\"\nmetadata: {id: " + id + ", name: D, version: \"1.0.0\", description: D}\n" +
			"interface: {input: {type: object}, output: {type: object}}\n" +
			"execution_policy: {id: agf.react, config: {instructions: T., model: any}}\naction_space: {" + tools + "}\n"
	}
	m := memory{}
	for name, text := range map[string]string{
		"agents/a.agf.yaml":     agent("a", "local_tools: [{alias: pay}, {alias: pay_later, approval: true}]"),
		"agents/sub/b.agf.yaml": agent("b", "mcp_servers: [{alias: bank}]"),
		"p/p.policy.yaml": `schema_version: "1.1.0"
policy_ref: p
applies: implicit
rules:
  - {id: big, when: {args_match: {amount: {gt: 5000}}}, approval: true,
    require: {stages: [{group: finance, people: 2}], within: 1h}}
  - {id: huge, when: {args_match: {amount: {gt: 9000}}}, approval: true,
    require: {any_of: [[{group: cfo}], [{group: finance, people: 4}]]}}
  - {id: night, match: {targets: ["pay*"]}, when: {time: {outside: {zone: UTC, hours: ["08:00-18:00"]}}}, deny: "no"}
`,
	} {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	const all = "agents: agents, "
	for _, c := range []struct{ field, invariant, want string }{
		{always, all + "where: amount>5000, at_least: {finance: 2}, within_at_most: 1h", ""},
		{always, all + "where: amount>5000, at_least: {finance: 3}",
			`agents/a.agf.yaml: outcome ask for {"kind":"tool","tool":"pay","args":{"amount":9001},"at":` +
				`"2026-01-05T12:00:00Z"}: 1 of cfo and 2 of finance are enough`},
		{always, all + "where: amount>5000, within_at_most: 30m", "agents/a.agf.yaml: outcome ask for"},
		{always, all + "where: amount>9000, at_least: {cfo: 1}", "agents/a.agf.yaml: outcome ask for"},
		{always, all + "where: amount>4999, at_least: {finance: 1}", "agents/a.agf.yaml: outcome allow for"},
		{never, all + "where: amount<=9000, at_least: {finance: 3}", ""},
		{never, all + "at_least: {finance: 2}", "agents/a.agf.yaml: outcome ask for"},
		{never, all + `tool: "pay*", outcome: allow, at: "2026-11-28T20:00:00Z"`, ""},
		{never, all + `tool: "pay*", outcome: allow, at: "2026-11-28T12:00:00Z"`, "agents/a.agf.yaml: outcome allow for"},
		{always, all + `server: "b*", tool: "create_*", where: amount>5000, outcome: ask`, ""},
		{always, "agents: [agents/a.agf.yaml], tool: pay_later, outcome: ask, at: \"2026-11-28T12:00:00Z\"", ""},
		{always, all + "tool: pay_nothing, outcome: ask", "nothing is protected: no agent has such a target"},
		{always, all + "where: 'amount>5,amount<4', at_least: {finance: 2}", "nothing is protected: no call can meet"},
	} {
		text := "schema_version: \"1.0.0\"\npolicies: [p]\n" + c.field + ": [{" + c.invariant + "}]\n"
		f, b := prepared(t, "x.test.yaml", []byte(text), m)
		r, got := f.Run(b, every)[0], ""
		if !r.Passed() {
			got = r.Failures[0].Got
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.field, c.invariant, got, c.want)
		}
	}
	for _, bad := range []string{
		"agents: agents, outcome: ask, at_least: {a: 1}", "agents: agents", "agents: agents, at_least: {}",
		"agents: agents, at_least: {a: 0}", "agents: agents, within_at_most: 60", "agents: [], outcome: ask",
		"outcome: ask", "tool: pay, outcome: ask", "agents: agents, outcome: ask, at: now",
	} {
		if f, _ := Parse("x.test.yaml", []byte("schema_version: \"1.0.0\"\nalways: [{"+bad+"}]\n")); f != nil {
			t.Errorf("%s is read", bad)
		}
	}
	for _, bad := range []string{"", "calls: [{name: a, call: {kind: tool, tool: pay}, expect: {outcome: ask}}]"} {
		if f, _ := Parse("x.test.yaml", []byte("schema_version: \"1.0.0\"\n"+bad+"\n")); f != nil {
			t.Errorf("%q is read without an agent", bad)
		}
	}
}
