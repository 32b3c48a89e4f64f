package resolve

import (
	"maps"
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
)

// Target is what a plan holds ready for the calls of one target, for
// those who read plans. Nothing of it may be changed.
type Target struct {
	// Gates are the rules that a call can meet, agents' files before
	// policies at each place.
	Gates []Gate
}

// Gate is one rule of a target.
type Gate struct {
	Source Source
	Policy string // policy_ref, for FromPolicy
	Rule   string // as in Reason
	File   string
	Range  diag.Range
	// Code is the code of an unconditional rule; "" when a condition
	// decides.
	Code Code
	// Outcome is what the rule makes of a call that it meets, Ask or
	// Deny. Only what asks has a condition.
	Outcome Outcome
	Use     condition.Use
	When    *condition.Expr // nil: every call that it meets
	Require *policy.Require // nil: nothing

	rule *rule
}

// Target returns what a call meets; nil when it is of no kind. Its
// arguments, parent's input and annotations do not matter.
func (p *Plan) Target(c *Call) *Target {
	t := p.find(c)
	if t == nil {
		return nil
	}
	out := &Target{}
	for i := range t.rules {
		r := &t.rules[i]
		g := Gate{
			Source:  r.source,
			Policy:  r.policy,
			Rule:    r.id,
			File:    r.file,
			Range:   r.at,
			Code:    r.code,
			Outcome: p.says(r),
			Use:     r.use,
			Require: r.require,
			rule:    r,
		}
		if r.approval != nil && r.approval.Form == schema.Conditional {
			g.When = r.approval.Condition
		}
		out.Gates = append(out.Gates, g)
	}

	return out
}

// Annotations names those that decide whether the rule meets a call, in
// order.
func (g *Gate) Annotations() []string {
	if g.rule.match == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(g.rule.match.Annotations))
}

// Stopped lists why the plan denies every call; nil when it doesn't.
func (p *Plan) Stopped() []Reason { return slices.Clone(p.stop) }
