package resolve_test

import (
	"slices"
	"testing"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
)

// TestTargetsTellTheirGates checks that Target lists every rule that a call can meet, with its
// condition and requirements.
func TestTargetsTellTheirGates(t *testing.T) {
	p := plan(t, resolve.Options{CaseSensitive: []string{"skill pay/refund"}}, `action_space:
  remote_agents:
    - alias: pay
      approval: {message_template: "Hand over?"}
      allowed_skills: [{id: refund, approval: {condition: [{args_match: {amount: {gt: 5}}}]}}]
`, `schema_version: "1.0.0"
policy_ref: acme.p
applies: implicit
rules:
  - {id: hints, match: {annotations: {readOnlyHint: true, destructiveHint: false}}, approval: true, require: {within: 1h}}
  - {id: never, match: {targets: [x]}, deny: "no"}
`)
	if p.Target(&resolve.Call{Kind: "none"}) != nil {
		t.Error("a call of no kind has a target")
	}
	target := p.Target(&resolve.Call{Kind: resolve.Skill, Agent: "pay", Skill: "refund"})
	var told []string
	for _, g := range target.Gates {
		told = append(told, string(g.Source)+" "+g.Rule+" "+g.Outcome.String())
	}
	want := []string{"agent remote_agents.pay.refund ask", "policy hints ask", "agent remote_agents.pay ask"}
	if !slices.Equal(told, want) || !target.CaseSensitive {
		t.Fatalf("%v, want %v; case-sensitive %v", told, want, target.CaseSensitive)
	}

	own, hints := target.Gates[0], target.Gates[1]
	over := target.Gates[2]
	if own.Use != condition.SkillArgs || own.When == nil || over.When != nil || over.Template != "Hand over?" {
		t.Errorf("%+v\n%+v", own, over)
	}
	if got := hints.Annotations(); !slices.Equal(got, []string{"destructiveHint", "readOnlyHint"}) ||
		own.Annotations() != nil {
		t.Errorf("annotations %v, %v", got, own.Annotations())
	}
	if hints.Meets(nil) ||
		!hints.Meets(map[string]bool{"readOnlyHint": true, "destructiveHint": false}) || !own.Meets(nil) {
		t.Error("annotations decide otherwise than in calls")
	}
	d := target.Demand([]int{0, 1})
	if d.Gate != -1 || d.Template != "" || d.Shown != resolve.Skill || d.Require == nil ||
		d.Require.Within.Hours() != 1 {
		t.Errorf("%+v", d)
	}
	if d = target.Demand([]int{0, 2}); d.Gate != 2 || d.Template != "Hand over?" ||
		d.Shown != resolve.Delegation || d.Require != nil {
		t.Errorf("%+v", d)
	}

	denied := p.Target(&resolve.Call{Kind: resolve.Skill, Agent: "pay", Skill: "x"})
	var outcomes []resolve.Outcome
	for _, g := range denied.Gates {
		outcomes = append(outcomes, g.Outcome)
	}
	if !slices.Contains(outcomes, resolve.Deny) || denied.CaseSensitive {
		t.Errorf("%v", outcomes)
	}
	if p.Stopped() != nil || p.Agent().Metadata.ID == "" || len(p.Policies()) != 1 ||
		len(p.Options().CaseSensitive) != 1 {
		t.Errorf("%v %v %v", p.Stopped(), p.Policies(), p.Options())
	}
}
