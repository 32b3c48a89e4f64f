package resolve_test

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// The generators below draw small inputs: an agent with a few names, policies over the same names,
// and calls that match them or not. There are few names, so that they often coincide.

func names() *rapid.Generator[string] { return rapid.SampledFrom([]string{"a", "b", "ab"}) }

func matcherText(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		"1",
		`"x"`,
		"true",
		"{gt: 1}",
		"{gte: 1, lt: 3}",
		`{ne: "x"}`,
		`{in: ["x", 2]}`,
		`{not_in: ["x"]}`,
		"{pattern: '^x'}",
		"{}",
		"{in: []}",
	}).Draw(t, "matcher")
}

// conditionText writes an OR of ANDs in flow style, its groups and keys
// in the order drawn.
func conditionText(t *rapid.T, keys []string) []string {
	groups := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 2, rapid.ID[string]).Draw(t, "keys")
		parts := make([]string, len(chosen))
		for i, k := range chosen {
			parts[i] = k + ": " + matcherText(t)
		}
		return "{args_match: {" + strings.Join(parts, ", ") + "}}"
	}), 1, 2).Draw(t, "groups")
	return groups
}

func approvalText(t *rapid.T, keys []string) string {
	switch rapid.IntRange(0, 4).Draw(t, "form") {
	case 0:
		return "true"
	case 1:
		return "false"
	case 2:
		return "{message_template: m}"
	default:
		return "{condition: [" + strings.Join(conditionText(t, keys), ", ") + "]}"
	}
}

var argKeys = []string{"k", "l", "parent.input.k"}
var pathKeys = []string{"parent.input.k", "parent.input.l", "parent.output.k", "k"}

func optional(t *rapid.T, field string, text func() string) string {
	if rapid.Bool().Draw(t, "has "+field) {
		return ", " + field + ": " + text()
	}
	return ""
}

// entry writes a list entry under one name, with its approval perhaps.
func entry(t *rapid.T, key, name string, keys []string) string {
	return "{" + key + ": " + name + optional(t, "approval", func() string { return approvalText(t, keys) }) + "}"
}

func listOf(t *rapid.T, write func(name string) string) string {
	chosen := rapid.SliceOfNDistinct(names(), 0, 3, rapid.ID[string]).Draw(t, "names")
	parts := make([]string, len(chosen))
	for i, n := range chosen {
		parts[i] = write(n)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// agentText draws an action space.
func agentText(t *rapid.T) string {
	allow := func(key string) func() string {
		return func() string {
			return listOf(t, func(n string) string { return entry(t, key, n, argKeys) })
		}
	}
	return "action_space:\n  local_tools: " + listOf(t, func(n string) string {
		return entry(t, "alias", n, argKeys)
	}) +
		"\n  mcp_servers: " + listOf(t, func(n string) string {
		return "{alias: " + n + optional(t, "approval", func() string {
			return approvalText(t, argKeys)
		}) + optional(t, "allowed_tools", allow("name")) + "}"
	}) +
		"\n  local_agents: " + listOf(t, func(n string) string {
		return "{source: s.agf.yaml, " + entry(t, "alias", n, pathKeys)[1:]
	}) +
		"\n  remote_agents: " + listOf(t, func(n string) string {
		return "{alias: " + n + optional(t, "approval", func() string {
			return approvalText(t, pathKeys)
		}) + optional(t, "allowed_skills", allow("id")) + "}"
	}) + "\n"
}

// ruleText draws one policy rule; its parts are returned so that a
// property can weaken or repeat them.
func ruleText(t *rapid.T, id string) string {
	glob := rapid.SampledFrom([]string{"a", "b", "a*", "*", "*b"})
	text := "{id: " + id
	var match []string
	if rapid.Bool().Draw(t, "kinds") {
		match = append(
			match,
			"kinds: ["+rapid.SampledFrom([]string{
				"tool",
				"mcp_tool",
				"skill",
				"delegation",
				"tool, delegation",
				"skill, delegation",
			}).
				Draw(t, "kind")+
				"]",
		)
	}

	if rapid.Bool().Draw(t, "targets") {
		match = append(match, `targets: ["`+glob.Draw(t, "target")+`"]`)
	}
	if rapid.IntRange(0, 3).Draw(t, "servers") == 0 {
		match = append(match, `servers: ["`+glob.Draw(t, "server")+`"]`)
	}
	if rapid.IntRange(0, 3).Draw(t, "annotated") == 0 {
		match = append(
			match,
			"annotations: {"+rapid.SampledFrom([]string{
				"destructiveHint: true",
				"readOnlyHint: true",
				"readOnlyHint: false",
			}).
				Draw(t, "hint")+
				"}",
		)
	}

	if len(match) > 0 {
		text += ", match: {" + strings.Join(match, ", ") + "}"
	}
	return text + ", " + bodyText(t)
}

// bodyText draws the rest of a rule: what it does with the calls that it matches.
func bodyText(t *rapid.T) string {
	if rapid.IntRange(0, 5).Draw(t, "denies") == 0 {
		return "deny: no}"
	}
	return "approval: " + rapid.Custom(func(t *rapid.T) string {
		for {
			if a := approvalText(t, append(pathKeys, argKeys...)); a != "false" {
				return a
			}
		}
	}).Draw(t, "approval") + fmt.Sprintf(
		", require: {stages: [{group: g, people: %d}], within: %dm}}",
		rapid.IntRange(1, 3).Draw(t, "people"),
		rapid.IntRange(1, 9).Draw(t, "minutes"),
	)
}

func policyText(ref string, rules []string) string {
	return "policy_ref: " + ref + "\napplies: implicit\nrules: [" + strings.Join(rules, ",\n  ") + "]\n"
}

func policiesText(t *rapid.T) []string {
	n := rapid.IntRange(0, 3).Draw(t, "policies")
	out := make([]string, n)
	for i := range out {
		rules := make([]string, rapid.IntRange(1, 2).Draw(t, "rules"))
		for j := range rules {
			rules[j] = ruleText(t, fmt.Sprintf("r%d", j))
		}
		out[i] = policyText(fmt.Sprintf("p%d", i), rules)
	}

	return out
}

func argsText(t *rapid.T) string {
	val := rapid.SampledFrom([]string{"1", "2", "3", `"x"`, `"y "`, `"xyz"`, "true", "null", "[]", "{}"})
	return "{" + strings.Join([]string{
		`"other": 1`,
		rapid.SampledFrom([]string{`"k": `, `"z": `}).Draw(t, "key k") + val.Draw(t, "k"),
		rapid.SampledFrom([]string{`"l": `, `"y": `}).Draw(t, "key l") + val.Draw(t, "l"),
	}, ", ") + "}"
}

func callOf(t *rapid.T) *resolve.Call {
	c := &resolve.Call{Kind: rapid.SampledFrom(policy.Kinds()).Draw(t, "kind")}
	pick := rapid.SampledFrom([]string{"a", "b", "ab", "zz"})
	switch c.Kind {
	case resolve.Tool:
		c.Tool = pick.Draw(t, "tool")
	case resolve.MCPTool:
		c.Server, c.Tool = pick.Draw(t, "server"), pick.Draw(t, "tool")
	case resolve.Skill:
		c.Agent, c.Skill = pick.Draw(t, "agent"), pick.Draw(t, "skill")
	default:
		c.Agent = pick.Draw(t, "agent")
		c.Remote = resolve.Remote(rapid.IntRange(0, 2).Draw(t, "remote"))
	}

	if rapid.IntRange(0, 5).Draw(t, "no args") > 0 {
		c.Args = []byte(argsText(t))
	}
	if rapid.IntRange(0, 3).Draw(t, "no parent") > 0 {
		c.ParentInput = []byte(argsText(t))
	}
	if rapid.Bool().Draw(t, "annotated") {
		c.Annotations = map[string]bool{
			"destructiveHint": rapid.Bool().Draw(t, "destructive"),
			"readOnlyHint":    rapid.Bool().Draw(t, "read only"),
		}
	}

	return c
}

// spoke lists the rules that spoke, without their order.
func spoke(d resolve.Decision) []string {
	out := []string{}
	for _, r := range d.Reasons {
		out = append(out, fmt.Sprintf("%s %s %s %s", r.Source, r.Policy, r.Rule, r.Code))
	}
	sort.Strings(out)
	return out
}

func contains(all, some []string) bool {
	count := map[string]int{}
	for _, s := range all {
		count[s]++
	}
	for _, s := range some {
		if count[s]--; count[s] < 0 {
			return false
		}
	}
	return true
}

// TestMorePoliciesNeverLoosen checks that adding a policy keeps every reason, never loosens the
// outcome, and only tightens the requirements.
func TestMorePoliciesNeverLoosen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		agent := agentText(rt)
		policies := policiesText(rt)
		call := callOf(rt)
		extra := policyText("q", []string{ruleText(rt, "r")})
		before := plan(t, resolve.Options{}, agent, policies...).Decide(call)
		after := plan(t, resolve.Options{}, agent, append(policies, extra)...).Decide(call)
		if after.Outcome > before.Outcome || !contains(spoke(after), spoke(before)) {
			rt.Fatalf("%v %v became %v %v", before.Outcome, spoke(before), after.Outcome, spoke(after))
		}
		if after.Outcome == resolve.Ask && before.Require != nil && !policy.Tighter(*after.Require, *before.Require) {
			rt.Fatalf("require %+v became %+v", before.Require, after.Require)
		}
	})
}

// TestMoreRulesNeverLoosen checks the same for a rule added to an existing policy.
func TestMoreRulesNeverLoosen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		agent, call := agentText(rt), callOf(rt)
		rules := []string{ruleText(rt, "r0")}
		before := plan(t, resolve.Options{}, agent, policyText("p", rules)).Decide(call)
		after := plan(t, resolve.Options{}, agent, policyText("p", append(rules, ruleText(rt, "r1")))).Decide(call)
		if after.Outcome > before.Outcome || !contains(spoke(after), spoke(before)) {
			rt.Fatalf("%v %v became %v %v", before.Outcome, spoke(before), after.Outcome, spoke(after))
		}
	})
}

// TestMoreStagesNeverLoosen checks that a stage added to a rule is part of the requirements, and
// that nothing else becomes weaker.
func TestMoreStagesNeverLoosen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		agent, call := agentText(rt), callOf(rt)
		rule := ruleText(rt, "r")
		more := strings.Replace(rule, "stages: [", "stages: [{group: extra, people: 1}, ", 1)
		before := plan(t, resolve.Options{}, agent, policyText("p", []string{rule})).Decide(call)
		after := plan(t, resolve.Options{}, agent, policyText("p", []string{more})).Decide(call)
		if after.Outcome != before.Outcome {
			rt.Fatalf("a stage changed %v to %v", before.Outcome, after.Outcome)
		}
		if before.Require != nil && !policy.Tighter(*after.Require, *before.Require) {
			rt.Fatalf("require %+v became %+v", before.Require, after.Require)
		}
	})
}

// TestParentsOnlyTighten checks that a child's decision is never looser under any parent.
func TestParentsOnlyTighten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		policies, call := policiesText(rt), callOf(rt)
		child, parent := agentText(rt), agentText(rt)
		alone := plan(t, resolve.Options{}, child, policies...).Decide(call)
		under := plan(
			t,
			resolve.Options{Parent: plan(t, resolve.Options{}, parent, policies...)},
			child,
			policies...).Decide(call)
		if under.Outcome > alone.Outcome || !contains(spoke(under), spoke(alone)) {
			rt.Fatalf("%v %v became %v %v", alone.Outcome, spoke(alone), under.Outcome, spoke(under))
		}
	})
}

// TestOrderNeverMatters reorders policy files, the agent's lists and the keys of arguments. The
// same rules must apply with the same outcome and requirements.
func TestOrderNeverMatters(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		agent := agentText(rt)
		policies := policiesText(rt)
		call := callOf(rt)
		want := plan(t, resolve.Options{}, agent, policies...).Decide(call)
		mixed := rapid.Permutation(policies).Draw(rt, "order")
		other := *call
		other.Args, other.ParentInput = turned(call.Args), turned(call.ParentInput)
		got := plan(t, resolve.Options{}, agent, mixed...).Decide(&other)
		if got.Outcome != want.Outcome || got.Binding != want.Binding ||
			fmt.Sprint(got.Reasons) != fmt.Sprint(want.Reasons) ||
			fmt.Sprintf("%+v", got.Require) != fmt.Sprintf("%+v", want.Require) {
			rt.Fatalf("order changed the decision:\n%+v\n%+v", want, got)
		}
	})
}

// turned writes a drawn object with its members in reverse.
func turned(doc []byte) []byte {
	if doc == nil {
		return nil
	}
	parts := strings.Split(strings.Trim(string(doc), "{}"), ", ")
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	text := "{ " + strings.Join(parts, " ,\n") + " }"
	// Trim also removed the braces of an empty object at the end of the text.
	return []byte(
		strings.NewReplacer(`: }`, `: {} }`, `:  ,`, `: {} ,`).Replace(strings.Replace(text, ": \n", ": {}\n", 1)),
	)
}

// TestDenyBeatsAskBeatsAllow checks that the outcome is the strictest one of the reasons.
func TestDenyBeatsAskBeatsAllow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := plan(t, resolve.Options{}, agentText(rt), policiesText(rt)...).Decide(callOf(rt))
		want := resolve.Allow
		for _, r := range d.Reasons {
			switch r.Code {
			case resolve.Denied,
				resolve.NotDeclared,
				resolve.NotAllowed,
				resolve.UnreadableArguments,
				resolve.UnreadableCall,
				resolve.PolicyUnresolved:
				want = resolve.Deny
			default:
				want = min(want, resolve.Ask)
			}
		}

		if d.Outcome != want {
			rt.Fatalf("outcome %v with reasons %v", d.Outcome, spoke(d))
		}
	})
}

// TestRawAndDecodedAgree checks that the same arguments as bytes and as Go values get the same
// decision, including the binding.
func TestRawAndDecodedAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		call := callOf(rt)
		p := plan(t, resolve.Options{}, agentText(rt), policiesText(rt)...)
		raw := p.Decide(call)
		decoded := *call
		decoded.Args, decoded.Values = nil, decode(rt, call.Args)
		got := p.Decide(&decoded)
		if got.Outcome != raw.Outcome || got.Binding != raw.Binding ||
			fmt.Sprint(spoke(got)) != fmt.Sprint(spoke(raw)) {
			rt.Fatalf("raw %+v\ndecoded %+v", raw, got)
		}
	})
}

// TestOrderInsideFilesNeverMatters reverses tools, servers, list entries, OR groups, matchers,
// operators and policy rules. The same rules must apply with the same outcome and requirements.
func TestOrderInsideFilesNeverMatters(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := agentText(rt)
		texts := policiesText(rt)
		call := callOf(rt)
		want := plan(t, resolve.Options{}, text, texts...).Decide(call)

		agent := parseAgent(t, "agent.agf.yaml", text)
		reverse(agent)
		var policies []*policy.Policy
		for _, text := range texts {
			pol := parsePolicy(t, "p.policy.yaml", text)
			turn(pol.Rules)
			for i := range pol.Rules {
				reverseCondition(pol.Rules[i].Approval)
			}
			policies = append(policies, pol)
		}

		turn(policies)
		set, _ := policy.NewSet(policies...)
		p, err := resolve.Compile(agent, set, resolve.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		got := p.Decide(call)
		if got.Outcome != want.Outcome || fmt.Sprint(spoke(got)) != fmt.Sprint(spoke(want)) ||
			fmt.Sprintf("%+v", got.Require) != fmt.Sprintf("%+v", want.Require) {
			rt.Fatalf("order changed the decision:\n%+v\n%+v", want, got)
		}
	})
}
