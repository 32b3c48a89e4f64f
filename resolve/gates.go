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
// those who compare plans. Nothing of it may be changed.
type Target struct {
	plan *Plan
	t    *target
	// Gates are the rules that a call can meet, agents' files before
	// policies at each place.
	Gates []Gate
	// CaseSensitive says that keys of the arguments may differ in case
	// alone, see Options.CaseSensitive.
	CaseSensitive bool
}

// Derived returns how facts are read out of the target's arguments; nil
// if none are. Calls never bring these facts themselves.
func (t *Target) Derived() *Derived { return t.t.derived }

// Gate is one rule of a target.
type Gate struct {
	Source Source
	Policy string // policy_ref, for FromPolicy
	Rule   string // as in Reason
	// Layer is the agent whose file has the rule: 0 is the plan's own, then
	// its parents. It means nothing for FromPolicy.
	Layer int
	File  string
	Range diag.Range
	// Code is the code of an unconditional rule; "" when a condition
	// decides.
	Code Code
	// Outcome is what the rule makes of a call that it meets, Ask or
	// Deny. Only what asks has a condition.
	Outcome Outcome
	Use     condition.Use
	When    *condition.Expr // nil: every call that it meets
	// Template is the text of the rule's message template, "" for none.
	Template string
	Require  *policy.Require // nil: nothing

	rule *rule
}

// Target returns what a call meets; nil when it is of no kind. Its
// arguments, parent's input and annotations do not matter.
func (p *Plan) Target(c *Call) *Target {
	t := p.find(c)
	if t == nil {
		return nil
	}
	out := &Target{plan: p, t: t, CaseSensitive: !t.limits.FoldKeys}
	for i := range t.rules {
		r := &t.rules[i]
		g := Gate{
			Source:  r.source,
			Policy:  r.policy,
			Rule:    r.id,
			Layer:   r.layer,
			File:    r.file,
			Range:   r.at,
			Code:    r.code,
			Outcome: Ask,
			Use:     r.use,
			Require: r.require,
			rule:    r,
		}
		if p.denies(r.code) {
			g.Outcome = Deny
		}
		if r.approval != nil && r.approval.Form == schema.Conditional {
			g.When = r.approval.Condition
		}
		if r.template != nil {
			g.Template = r.approval.Template.Text
		}
		out.Gates = append(out.Gates, g)
	}

	return out
}

// Meets reports whether the rule concerns a call whose server reported
// these annotations.
func (g *Gate) Meets(annotations map[string]bool) bool {
	return g.rule.meets(&Call{Annotations: annotations})
}

// Annotations names those that decide whether the rule meets a call, in
// order.
func (g *Gate) Annotations() []string {
	if g.rule.match == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(g.rule.match.Annotations))
}

// Demand is what an approval comes to.
type Demand struct {
	Require *policy.Require // nil: nothing, see Decision
	// Template is the text that the message is made of, "" for the
	// default one; Gate is whose it is, an index in Target.Gates, -1 for
	// nobody's.
	Template string
	Gate     int
	// Shown is the kind of call that the message is about: that of a
	// delegation gate where such a gate's template is shown.
	Shown Kind
}

// Demand joins what gates demand, given by their index, when it is they
// who ask.
func (t *Target) Demand(asking []int) Demand {
	e := explanation{plan: t.plan, target: t.t}
	for _, i := range asking {
		e.asked = append(e.asked, t.Gates[i].rule)
	}
	d := Demand{Require: e.require(), Gate: -1, Shown: t.t.gates[0].kind}
	if chosen := e.template(); chosen != nil {
		d.Gate = slices.IndexFunc(t.Gates, func(g Gate) bool { return g.rule == chosen })
		d.Template, d.Shown = t.Gates[d.Gate].Template, t.t.gates[chosen.gate].kind
	}

	return d
}

// Stopped lists why the plan denies every call; nil when it doesn't.
func (p *Plan) Stopped() []Reason { return slices.Clone(p.stop) }

// Agent is the agent that the plan was compiled of.
func (p *Plan) Agent() *schema.Agent { return p.agent }

// Policies lists the policies that apply to the agent and to those that
// delegate to it, ordered by reference.
func (p *Plan) Policies() []*policy.Policy {
	var all []*policy.Policy
	for i := range p.layers {
		all = append(all, p.layers[i].policies...)
	}
	return byRef(all)
}

// Options are those that the plan was compiled under; its Semantics are
// those of the outermost agent of the chain.
func (p *Plan) Options() Options { return p.opt }
