package resolve

import (
	"maps"
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
)

// Target is a compiled target of a plan, for comparing plans. Callers must not change any of it.
type Target struct {
	plan *Plan
	t    *target
	// Gates are the rules that a call can meet, agents' files before
	// policies at each place.
	Gates []Gate
	// CaseSensitive is set if keys of the arguments may differ only in case, see
	// Options.CaseSensitive.
	CaseSensitive bool
}

// Derived returns how facts are derived from the target's arguments, or nil if none are. Calls
// never contain these facts themselves.
func (t *Target) Derived() *Derived { return t.t.derived }

// Gate is one rule of a target.
type Gate struct {
	Source Source
	Policy string // policy_ref, for FromPolicy
	Rule   string // as in Reason
	// Layer is the agent whose file has the rule: 0 is the plan's own, followed by its parents. It
	// has no meaning for FromPolicy.
	Layer int
	File  string
	Range diag.Range
	// Code is the code of an unconditional rule. It is empty if the rule has a condition.
	Code Code
	// Outcome is the outcome of the rule for a matching call, Ask or Deny.
	Outcome Outcome
	// Certain means that the rule has its outcome only if When is true. Otherwise it has it if When
	// is unknown too.
	Certain bool
	Use     condition.Use
	// When is the condition of the rule, with the arguments that a call must have. It is nil if the
	// rule applies to every call that it meets.
	When *condition.Expr
	// Template is the text of the rule's message template. It may be empty.
	Template string
	Require  *policy.Require // nil: nothing

	rule *rule
}

// Target returns the compiled target of a call, or nil if the call has no known kind. The call's
// arguments, parent's input and annotations don't matter.
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
		if g.Certain = r.speaks == ifTrue; r.when != nil {
			g.When = r.when.Expr()
		}
		if r.template != nil {
			g.Template = r.approval.Template.Text
		}
		out.Gates = append(out.Gates, g)
	}

	return out
}

// Meets reports whether the rule applies to a call whose server reported these annotations.
func (g *Gate) Meets(annotations map[string]bool) bool {
	return g.rule.meets(&Call{Annotations: annotations})
}

// Annotations returns the sorted names of the annotations that decide whether the rule applies to a
// call.
func (g *Gate) Annotations() []string {
	if g.rule.match == nil && g.rule.except == nil {
		return nil
	}
	names := map[string]bool{}
	if g.rule.match != nil {
		maps.Copy(names, g.rule.match.Annotations)
	}
	maps.Copy(names, g.Excepted())
	return slices.Sorted(maps.Keys(names))
}

// Demand is the requirements and the message of an approval.
type Demand struct {
	Require *policy.Require // nil: nothing, see Decision
	// Template is the text of the message's template, or empty for the default message. Gate is the
	// index in Target.Gates of the rule that has the template, or -1.
	Template string
	Gate     int
	// Shown is the kind of call that the message is about: that of a
	// delegation gate where such a gate's template is shown.
	Shown Kind
}

// Demand joins the requirements of the gates with these indexes, as if they were the ones that ask.
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

// Stopped returns the reasons for which the plan denies every call, or nil if it doesn't.
func (p *Plan) Stopped() []Reason { return slices.Clone(p.stop) }

// Agent returns the agent from which the plan was compiled.
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

// Options returns the options with which the plan was compiled. Its Semantics are those of the
// outermost agent of the chain.
func (p *Plan) Options() Options { return p.opt }
