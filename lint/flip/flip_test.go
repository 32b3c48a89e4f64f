package flip

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// compiled compiles a plan from an agent's action space and the rules of an implicit policy.
func compiled(t interface{ Fatal(...any) }, space, rules string) *resolve.Plan {
	const head = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
action_space:
`
	agent, findings := schema.Parse("a.agf.yaml", []byte(head+space))
	if agent == nil {
		t.Fatal(findings)
	}
	var all []*policy.Policy
	if rules != "" {
		p, findings := policy.Parse("p.policy.yaml", []byte(
			"schema_version: \"1.0.0\"\npolicy_ref: p\napplies: implicit\nrules:\n"+rules))
		if p == nil {
			t.Fatal(findings)
		}
		all = append(all, p)
	}

	set, _ := policy.NewSet(all...)
	plan, err := resolve.Compile(agent, set, resolve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// shown writes an answer on one line.
func shown(a Answer) string {
	if a.Changes == nil {
		return a.Why
	}
	var out []string
	for _, c := range a.Changes {
		text := func(v value.Value) string {
			if v.Kind == value.Absent {
				return "none"
			}
			return string(v.AppendJSON(nil))
		}
		out = append(out, c.Key+" "+text(c.Old)+" → "+text(c.New))
	}

	return a.To.String() + " with " + strings.Join(out, ", ")
}

func TestOf(t *testing.T) {
	const space = `  local_tools:
    - {alias: free}
    - {alias: always, approval: true}
    - {alias: pay, approval: {condition: {args_match: {amount: {gt: 100.50}}}}}
    - alias: ship
      approval: {condition: [{args_match: {to: {pattern: "^DE-"}, weight: {gte: 20}}}, {args_match: {express: true}}]}
    - {alias: note, approval: {condition: {args_match: {order.total: {lt: 5}, tag: {in: [a, b]}}}}}
    - {alias: odd, approval: {condition: {args_match: {x: {}}}}}
    - {alias: huge, approval: {condition: {args_match: {x: {gt: 1e300}}}}}
  mcp_servers: [{alias: files}]
  local_agents:
    - {alias: clerk, source: ./c.agf.yaml, approval: {condition: {args_match: {parent.input.risk: {gt: 3}}}}}
  remote_agents:
    - {alias: bank, approval: {condition: {args_match: {parent.input.risk: {gt: 3}}}}}
`
	const rules = `  - id: parents
    match: {targets: [pay]}
    approval: {condition: {args_match: {parent.input.risk: high, amount: {gt: 50}}}}
  - id: destructive
    match: {servers: [files], annotations: {destructiveHint: true}}
    approval: {condition: {args_match: {path: /}}}
  - {id: never, match: {targets: [wire]}, deny: Never.}
`
	const alwaysAsks = "no other arguments would change that: local_tools.always asks about every call"
	plan := compiled(t, space, rules)
	for line, want := range map[string]string{
		`{"kind":"tool","tool":"free","args":{"a":1}}`:      "no rule looks at its arguments",
		`{"kind":"tool","tool":"always"}`:                   alwaysAsks,
		`{"kind":"tool","tool":"wire"}`:                     "no other arguments would change that",
		`{"kind":"tool","tool":"pay","args":{"a":1,"a":2}}`: "what can't be read is always denied",

		`{"kind":"tool","tool":"ship","args":{"to":"DE-1","weight":25,"express":false}}`: `allow with to "DE-1" → "x"`,
		`{"kind":"tool","tool":"ship","args":{"to":"FR-1","weight":25,"express":true}}`:  "allow with express true → false",
		`{"kind":"tool","tool":"ship","args":{"to":"FR-1","weight":25,"express":false}}`: `ask with to "FR-1" → "DE-"`,
		`{"kind":"tool","tool":"ship","args":{"to":"DE-1","weight":5,"express":false}}`:  "ask with weight 5 → 20",
		`{"kind":"tool","tool":"ship","args":{"to":"DE-1","weight":25,"express":true}}`:  `allow with to "DE-1" → "x", express true → false`,
		`{"kind":"tool","tool":"ship"}`:                                               `allow with to none → "x", express none → false`,
		`{"kind":"tool","tool":"note","args":{"order":{"total":1,"id":7},"tag":"a"}}`: "allow with order.total 1 → 5",
		`{"kind":"tool","tool":"note","args":{"order":{"total":9},"tag":"a"}}`:        "ask with order.total 9 → 4",
		`{"kind":"tool","tool":"note","args":{"order.total":9,"tag":"a"}}`:            "ask with order.total 9 → 4",
		`{"kind":"tool","tool":"note","args":{"order":7,"tag":"c"}}`:                  `ask with tag "c" → "a"`,
		`{"kind":"tool","tool":"odd","args":{"x":1}}`:                                 "no other arguments would change that",
		`{"kind":"tool","tool":"huge","args":{"x":1e301}}`:                            "allow with x 1e301 → 1e300",
		`{"kind":"mcp_tool","server":"files","tool":"rm","args":{"path":"/"}}`:        `allow with path "/" → "x"`,
		`{"kind":"mcp_tool","server":"files","tool":"rm","args":{"path":"a"}}`:        `ask with path "a" → "/"`,
		`{"kind":"delegation","agent":"clerk","parent":{"input":{"risk":7}}}`:         "allow with parent.input.risk 7 → 3",
		`{"kind":"delegation","agent":"clerk","parent":{"input":{"risk":1}}}`:         "ask with parent.input.risk 1 → 4",
		`{"kind":"delegation","agent":"clerk"}`:                                       "allow with parent.input.risk none → 3",
		`{"kind":"delegation","agent":"clerk","parent":{"input":7}}`:                  "its arguments are no object",
		`{"kind":"skill","agent":"bank","skill":"x","parent":{"input":{"risk":7}}}`:   "no rule looks at its arguments",
	} {
		call, err := resolve.ParseCall([]byte(line), value.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := shown(Of(plan, condition.Semantics{}, call)); got != want {
			t.Errorf("%s\n%s, expected %s", line, got, want)
		}
	}

	// The parent's input isn't an argument, so its part of the decision doesn't change.
	for parent, want := range map[string]string{
		`{"risk":"low"}`:  "ask with amount 60 → 100.6",
		`{"risk":"high"}`: "allow with amount 60 → 50",
	} {
		call := &resolve.Call{
			Kind:        resolve.Tool,
			Tool:        "pay",
			Args:        []byte(`{"amount":60}`),
			ParentInput: []byte(parent),
		}
		if got := shown(Of(plan, condition.Semantics{}, call)); got != want {
			t.Errorf("under %s: %s, expected %s", parent, got, want)
		}
	}
}

// TestTooLargeIsSaid: an analysis that is too large isn't reported as impossible.
func TestTooLargeIsSaid(t *testing.T) {
	pattern := "(a|b)*a" + strings.Repeat("(a|b)", 20) + "$"
	plan := compiled(t, `  local_tools: [{alias: x, approval: {condition: [{args_match: {k: {pattern: "`+pattern+
		`"}}}, {args_match: {k: {pattern: "^[^a]*$"}}}, {args_match: {k: {pattern: "a"}}}]}}]`+"\n", "")
	got := shown(Of(plan, condition.Semantics{}, &resolve.Call{
		Kind: resolve.Tool,
		Tool: "x",
		Args: []byte(`{"k":"a"}`),
	}))
	if !strings.HasPrefix(got, "allow with k") && !strings.HasPrefix(got, "whether other arguments would change that") {
		t.Error(got)
	}
}

// values returns the small set of values that the property test uses.
func values() []string {
	return []string{
		"", "null", "true", "false", "0", "1", "2", "3", "4", "5", "2.5",
		`"a"`, `"b"`, `"ab"`, `"x"`, `""`, "[]", "{}",
	}
}

func condText(t *rapid.T) string {
	tests := []string{
		"{gt: 2}", "{gte: 3}", "{lt: 2}", "{lte: 1}", "{gt: 1, lt: 4}", "a", "2", "true", "{ne: a}",
		"{in: [a, 3]}", "{not_in: [b, 1]}", "{pattern: ^a}", "{pattern: b}", "{}",
	}
	var groups []string
	for range rapid.IntRange(1, 3).Draw(t, "groups") {
		var matchers []string
		for _, key := range []string{"p", "q", "r"} {
			if rapid.Bool().Draw(t, "tested") {
				matchers = append(matchers, key+": "+rapid.SampledFrom(tests).Draw(t, "test"))
			}
		}
		groups = append(groups, "{args_match: {"+strings.Join(matchers, ", ")+"}}")
	}

	return "[" + strings.Join(groups, ", ") + "]"
}

func argsOf(of map[string]string) []byte {
	var members []string
	for _, key := range []string{"p", "q", "r"} {
		if of[key] != "" {
			members = append(members, fmt.Sprintf("%q:%s", key, of[key]))
		}
	}
	return []byte("{" + strings.Join(members, ",") + "}")
}

// TestOneChangeIsFoundWhereBruteForceFindsOne: if brute force finds a change of one argument,
// Of finds one too. A change that Of finds has the outcome, and no part of the change does.
func TestOneChangeIsFoundWhereBruteForceFindsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := compiled(t,
			"  local_tools: [{alias: x, approval: {condition: "+condText(t)+"}}]\n",
			"  - {id: a, match: {targets: [x]}, approval: {condition: "+condText(t)+"}}\n")
		args := map[string]string{}
		for _, key := range []string{"p", "q", "r"} {
			args[key] = rapid.SampledFrom(values()).Draw(t, key)
		}
		decided := func(of map[string]string) resolve.Outcome {
			outcome, _ := plan.Weigh(&resolve.Call{Kind: resolve.Tool, Tool: "x", Args: argsOf(of)}, nil)
			return outcome
		}
		now := decided(args)
		single, any := false, false
		for _, p := range values() {
			for _, q := range values() {
				for _, r := range values() {
					other := map[string]string{"p": p, "q": q, "r": r}
					if decided(other) == now {
						continue
					}
					any = true
					same := 0
					for key := range other {
						if other[key] == args[key] {
							same++
						}
					}
					single = single || same == 2
				}
			}
		}

		got := Of(plan, condition.Semantics{}, &resolve.Call{Kind: resolve.Tool, Tool: "x", Args: argsOf(args)})
		if any && got.Changes == nil || single && len(got.Changes) != 1 {
			t.Fatalf("%s of %s: %s, brute force finds any %v, single %v", now, argsOf(args), shown(got), any, single)
		}
		for leave := range len(got.Changes) + 1 {
			other := map[string]string{"p": args["p"], "q": args["q"], "r": args["r"]}
			for i, c := range got.Changes {
				if i == leave {
					continue
				}
				other[c.Key] = ""
				if c.New.Kind != value.Absent {
					other[c.Key] = string(c.New.AppendJSON(nil))
				}
			}

			if whole := leave == len(got.Changes); got.Changes != nil && (decided(other) == got.To) != whole {
				t.Fatalf("%s of %s: %s, without change %d it is %s", now, argsOf(args), shown(got), leave, decided(other))
			}
		}
	})
}
