package resolve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// TestAPolicyAboutSkillsReadsTheParentsInput checks that the arguments of a call can't replace the
// input of the calling agent.
func TestAPolicyAboutSkillsReadsTheParentsInput(t *testing.T) {
	const agent = "action_space: {remote_agents: [{alias: payments, allowed_skills: [pay]}]}\n"
	for _, match := range []string{
		"kinds: [skill]",
		"targets: [pay]",
		"kinds: [skill], targets: [pay], servers: [payments]",
		"servers: [payments]",
	} {
		p := plan(
			t,
			resolve.Options{},
			agent,
			policyText(
				"p",
				[]string{
					"{id: risky, match: {" + match +
						"}, approval: {condition: {args_match: {parent.input.risk: high}}}}",
				},
			),
		)
		for _, c := range []struct{ args, parent, want string }{
			{`{}`, `{"risk":"high"}`, "ask condition_true"},
			{`{"parent.input.risk":"low"}`, `{"risk":"high"}`, "ask condition_true"},
			{`{"parent":{"input":{"risk":"low"}}}`, `{"risk":"high"}`, "ask condition_true"},
			{`{"parent.input":{"risk":"low"}}`, `{"risk":"high"}`, "ask condition_true"},
			{`{"parent.input.risk":"high"}`, `{"risk":"low"}`, "allow "},
			{`{}`, `{"risk":"low"}`, "allow "},
			{`{"parent.input.risk":"low"}`, `{}`, "ask condition_unknown"},
			{`{"parent.input.risk":"low"}`, ``, "ask condition_unknown"},
		} {
			call := &resolve.Call{Kind: resolve.Skill, Agent: "payments", Skill: "pay", Args: []byte(c.args)}
			if c.parent != "" {
				call.ParentInput = []byte(c.parent)
			}
			if got := codes(p.Decide(call)); got != c.want {
				t.Errorf("{%s}: args %s, parent %s: %s, want %s", match, c.args, c.parent, got, c.want)
			}
		}
	}
}

// TestAnAgentsFileReadsNoParentFromArguments checks that a test of the parent's input is unknown,
// and asks, if there is no parent's input.
func TestAnAgentsFileReadsNoParentFromArguments(t *testing.T) {
	const approval = "approval: {condition: {args_match: {parent.input.risk: high}}}"
	p := plan(t, resolve.Options{}, `action_space:
  local_tools: [{alias: t, `+approval+`}]
  mcp_servers: [{alias: s, `+approval+`}]
  remote_agents: [{alias: a, allowed_skills: [{id: k, `+approval+`}]}]
`)
	for _, args := range []string{`{}`, `{"parent.input.risk":"low"}`, `{"parent":{"input":{"risk":"low"}}}`} {
		for _, call := range []resolve.Call{
			{Kind: resolve.Tool, Tool: "t"}, {Kind: resolve.MCPTool, Server: "s", Tool: "x"},
			{Kind: resolve.Skill, Agent: "a", Skill: "k", ParentInput: []byte(`{"risk":"low"}`)},
		} {
			call.Args = []byte(args)
			if got := p.Decide(&call); codes(got) != "ask condition_unknown" ||
				!strings.HasSuffix(got.Reasons[0].Detail, "no parent here") {
				t.Errorf("%s with %s: %s", call.Kind, args, codes(got))
			}
		}
	}
}

// TestOneViewOfACall checks that plain keys read the arguments and parent.input the parent's input,
// at every gate. A pure delegation has no arguments to read, even if the call contains some.
func TestOneViewOfACall(t *testing.T) {
	const agent = "action_space: {remote_agents: [{alias: payments}], local_agents: [{alias: sub, source: " +
		"s.agf.yaml}]}\n"
	cond := "approval: {condition: {args_match: {amount: {gt: 10}, parent.input.risk: high}}}}"
	for _, match := range []string{
		"kinds: [skill]",
		"kinds: [delegation]",
		"kinds: [skill, delegation]",
		"targets: [payments]",
		"targets: [pay]",
	} {
		p := plan(t, resolve.Options{}, agent, policyText("p", []string{"{id: r, match: {" + match + "}, " + cond}))
		for _, c := range []struct{ args, parent, want string }{
			{`{"amount":11}`, `{"risk":"high"}`, "ask condition_true"},
			{`{"amount":9}`, `{"risk":"high"}`, "allow "},
			{`{"amount":11}`, `{"risk":"low"}`, "allow "},
			{`{}`, `{"risk":"high","amount":11}`, "ask condition_unknown"},
		} {
			call := &resolve.Call{
				Kind:        resolve.Skill,
				Agent:       "payments",
				Skill:       "pay",
				Args:        []byte(c.args),
				ParentInput: []byte(c.parent),
			}
			if got := codes(p.Decide(call)); got != c.want {
				t.Errorf("{%s}: args %s, parent %s: %s, want %s", match, c.args, c.parent, got, c.want)
			}
		}
	}

	p := plan(t, resolve.Options{}, agent, policyText("p", []string{"{id: r, match: {kinds: [delegation]}, " + cond}))
	for parent, want := range map[string]string{
		`{"risk":"high"}`: "ask condition_unknown",
		`{"risk":"low"}`:  "allow ",
	} {
		call := &resolve.Call{
			Kind:        resolve.Delegation,
			Agent:       "sub",
			Args:        []byte(`{"amount":9}`),
			ParentInput: []byte(parent),
		}
		if got := codes(p.Decide(call)); got != want {
			t.Errorf("a delegation with parent %s: %s, want %s", parent, got, want)
		}
	}
}

// forged draws members that look like the parent's input, which a model
// could add to its arguments.
func forged(t *rapid.T) string {
	val := rapid.SampledFrom([]string{"1", "2", `"x"`, "true", "null", "{}"})
	k, l := val.Draw(t, "forged k"), val.Draw(t, "forged l")
	return rapid.SampledFrom([]string{
		`"parent.input.k": ` + k,
		`"parent.input.k": ` + k + `, "parent.input.l": ` + l,
		`"parent": {"input": {"k": ` + k + `, "l": ` + l + `}}`,
		`"parent": {"input.k": ` + k + `, "output": {"k": ` + l + `}}`,
		`"parent.input": {"k": ` + k + `, "l": ` + l + `}`,
		`"parent.output.k": ` + k,
		`"parent": ` + k,
		`"parent.": {"input": {"k": ` + k + `}}`,
	}).Draw(t, "forged")
}

// TestNoArgumentStandsInForTheParent checks that no argument named parent…, literal or nested,
// changes any decision.
func TestNoArgumentStandsInForTheParent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := plan(t, resolve.Options{}, agentText(rt), policiesText(rt)...)
		honest := callOf(rt)
		if honest.Args == nil {
			honest.Args = []byte("{}")
		}
		added := forged(rt)
		if string(honest.Args) != "{}" {
			added += ", "
		}
		lying := *honest
		lying.Args = []byte(strings.Replace(string(honest.Args), "{", "{"+added, 1))
		want, got := p.Decide(honest), p.Decide(&lying)
		if got.Outcome != want.Outcome || fmt.Sprint(got.Reasons) != fmt.Sprint(want.Reasons) ||
			fmt.Sprintf("%+v", got.Require) != fmt.Sprintf("%+v", want.Require) {
			rt.Fatalf("%s changed\n%+v\n%+v", added, want, got)
		}
	})
}

// matched is a rule whose match can be widened.
type matched struct {
	kinds, targets, servers []string
	hint, body              string
}

func matchedRule(t *rapid.T) matched {
	globs := rapid.SampledFrom([]string{"a", "b", "a*", "ab"})
	some := func(g *rapid.Generator[string], name string) []string {
		return rapid.SliceOfNDistinct(g, 0, 2, rapid.ID[string]).Draw(t, name)
	}
	return matched{
		kinds:   some(rapid.SampledFrom([]string{"tool", "mcp_tool", "skill", "delegation"}), "kinds"),
		targets: some(globs, "targets"),
		servers: some(globs, "servers"),
		hint:    rapid.SampledFrom([]string{"", "destructiveHint: true", "readOnlyHint: true"}).Draw(t, "hint"),
		body:    bodyText(t),
	}
}

func (m matched) text() string {
	var match []string
	for _, f := range []struct {
		name string
		list []string
	}{{"kinds", m.kinds}, {"targets", m.targets}, {"servers", m.servers}} {
		if len(f.list) > 0 {
			match = append(match, f.name+`: ["`+strings.Join(f.list, `", "`)+`"]`)
		}
	}

	if m.hint != "" {
		match = append(match, "annotations: {"+m.hint+"}")
	}
	return "{id: r, match: {" + strings.Join(match, ", ") + "}, " + m.body
}

// widened lets the rule meet more calls in one of the ways that an
// author has.
func (m matched) widened(t *rapid.T) matched {
	more := func(list []string, name string) []string {
		if len(list) == 0 {
			return nil // that is all already
		}
		return append(slices.Clone(list), name)
	}
	switch rapid.IntRange(0, 5).Draw(t, "widen") {
	case 0:
		m.kinds = nil
	case 1:
		m.kinds = more(
			m.kinds,
			rapid.SampledFrom([]string{"tool", "mcp_tool", "skill", "delegation"}).Filter(func(k string) bool {
				return !slices.Contains(m.kinds, k)
			}).Draw(t, "kind"),
		)
	case 2:
		m.targets = nil
	case 3:
		m.targets = more(m.targets, "*")
	case 4:
		m.servers = nil
	default:
		m.hint = ""
	}

	return m
}

// TestWideningAMatchNeverLoosens checks that a rule that matches more calls decides the previous
// ones as before, with the same requirements.
func TestWideningAMatchNeverLoosens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		agent := agentText(rt)
		call := callOf(rt)
		rule := matchedRule(rt)
		wide := rule.widened(rt)
		before := plan(t, resolve.Options{}, agent, policyText("p", []string{rule.text()})).Decide(call)
		after := plan(t, resolve.Options{}, agent, policyText("p", []string{wide.text()})).Decide(call)
		if after.Outcome > before.Outcome || !contains(spoke(after), spoke(before)) {
			rt.Fatalf(
				"%s\n%s\n%v %v became %v %v",
				rule.text(),
				wide.text(),
				before.Outcome,
				spoke(before),
				after.Outcome,
				spoke(after),
			)
		}

		if after.Outcome == resolve.Ask && before.Require != nil && !policy.Tighter(*after.Require, *before.Require) {
			rt.Fatalf("require %+v became %+v", before.Require, after.Require)
		}
	})
}
