package resolve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/resolve"
)

// TestWeighIsDecide checks that Weigh returns the outcome of Decide, and that the gates are its
// reasons, for random plans and calls.
func TestWeighIsDecide(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var opt resolve.Options
		if rapid.Bool().Draw(rt, "undeclared asks") {
			opt.Semantics.Undeclared = resolve.UndeclaredAsk
		}
		p := plan(t, opt, agentText(rt), policiesText(rt)...)
		call := callOf(rt)
		d, gates := p.Decide(call), p.Target(call).Gates
		outcome, indexes := p.Weigh(call, nil)
		if outcome != d.Outcome {
			rt.Fatalf("weighed as %v, decided as %v", outcome, d)
		}
		var want, got []string
		for _, r := range d.Reasons {
			if r.Source != resolve.FromArguments {
				want = append(want, fmt.Sprintf("%s %s %s %d:%d", r.Source, r.Policy, r.Rule, r.Line, r.Column))
			}
		}
		for _, i := range indexes {
			g, at := gates[i], gates[i].Range.Start
			got = append(got, fmt.Sprintf("%s %s %s %d:%d", g.Source, g.Policy, g.Rule, at.Line, at.Column))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			rt.Fatalf("weighed %q, decided %q", got, want)
		}
	})
}

// TestWeighDeniesWhatDecideDenies covers denials that happen before any rule is evaluated.
func TestWeighDeniesWhatDecideDenies(t *testing.T) {
	sound := plan(t, resolve.Options{}, deskTools)
	agent := parseAgent(t, "a.agf.yaml", "constraints: {governance_policies: [{policy_ref: x}]}\n"+deskTools)
	stopped, err := resolve.Compile(agent, nil, resolve.Options{})
	if stopped == nil {
		t.Fatal(err)
	}
	if got := stopped.Stopped(); len(got) != 1 || !strings.Contains(got[0].Detail, "the required policy x") {
		t.Errorf("stopped by %v", got)
	}
	if got := sound.Stopped(); got != nil {
		t.Errorf("stopped by %v", got)
	}
	for name, tt := range map[string]struct {
		plan *resolve.Plan
		call *resolve.Call
	}{
		"no kind":      {sound, &resolve.Call{}},
		"no policy":    {stopped, tool("free", "{}")},
		"no arguments": {sound, tool("free", `{"a":1,"a":2}`)},
		"no parent input": {sound, &resolve.Call{
			Kind:        resolve.Skill,
			Agent:       "payments",
			Skill:       "list",
			ParentInput: []byte("{"),
		}},
	} {
		outcome, _ := tt.plan.Weigh(tt.call, nil)
		if d := tt.plan.Decide(tt.call); outcome != resolve.Deny || d.Outcome != resolve.Deny {
			t.Errorf("%s: weighed as %v, decided as %v", name, outcome, d.Outcome)
		}
	}

	if at := sound.Target(&resolve.Call{}); at != nil {
		t.Errorf("no kind of call meets %v", at)
	}
}

// TestTargetsAreWhatIsDeclared checks the targets from a file and its lists, and for an open server
// those that policies name.
func TestTargetsAreWhatIsDeclared(t *testing.T) {
	const rules = `schema_version: "1.0.0"
policy_ref: p
applies: implicit
rules:
  - {id: deletes, match: {kinds: [mcp_tool], targets: ["delete_*", drop], annotations: {destructiveHint: true}}, deny: Never.}
  - {id: elsewhere, match: {servers: [other], targets: [sell]}, approval: true}
  - {id: all, description: Each., match: {targets: ["*"]}, approval: true, require: {within: 5m}}
`
	agent := deskTools + "  local_agents:\n    - {alias: clerk, source: ./clerk.agf.yaml}\n"
	for _, tt := range []struct {
		empty resolve.EmptyAllowList
		want  string
	}{
		{resolve.EmptyAllowsNone, "tool trade, tool free, mcp_tool open/delete_*, mcp_tool open/drop, mcp_tool open/*, " +
			"delegation clerk, delegation payments, skill payments/list, skill payments/plain"},
		{resolve.EmptyIsAbsent, "tool trade, tool free, mcp_tool open/delete_*, mcp_tool open/drop, mcp_tool open/*, " +
			"mcp_tool empty/delete_*, mcp_tool empty/drop, mcp_tool empty/*, " +
			"delegation clerk, delegation payments, skill payments/list, skill payments/plain"},
	} {
		p := plan(t, resolve.Options{Semantics: resolve.Semantics{EmptyAllowList: tt.empty}}, agent, rules)
		var got []string
		targets := p.Targets()
		for i := range targets {
			got = append(got, targets[i].Target())
		}
		if list := strings.Join(got, ", "); list != tt.want {
			t.Errorf("listed %s\nexpected %s", list, tt.want)
		}
		gates := p.Target(&targets[2]).Gates
		if len(gates) != 3 || gates[0].When == nil || gates[0].Annotations() != nil ||
			!slices.Equal(gates[1].Annotations(), []string{"destructiveHint"}) || !destructive(&gates[1]) ||
			gates[1].Outcome != resolve.Deny || gates[1].Detail() != "Never." ||
			gates[2].Description() != "Each." || gates[2].Outcome != resolve.Ask ||
			gates[2].Require.Within != 5*time.Minute {
			t.Errorf("%s meets %+v", targets[2].Target(), gates)
		}
	}
}

func destructive(g *resolve.Gate) bool {
	hint, required := g.Hint("destructiveHint")
	return hint && required
}
