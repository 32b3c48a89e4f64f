package resolve

import (
	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
)

// Trace is the result of evaluating one rule that applies to a call, whether it asked or not.
type Trace struct {
	Source       Source
	Policy, Rule string // as in Reason
	File         string
	Range        diag.Range    // where Reason has its place
	Use          condition.Use // what the keys of Condition name
	Truth        condition.Truth
	// Condition is the condition that was evaluated, or nil for an unconditional rule. Groups are
	// the results of its groups.
	Condition *condition.Expr
	Groups    []condition.GroupTruth
}

// Trace evaluates in full every rule that applies to a call, to measure which conditions the calls
// exercise. It omits rules whose document can't be read, and returns nothing for a call without a
// known kind.
func (p *Plan) Trace(c *Call) []Trace {
	t := p.find(c)
	if t == nil {
		return nil
	}
	view := &condition.View{At: c.At, Declared: c.Declared, Past: p.history(c, t)}
	e := explanation{plan: p, call: c, target: t, view: view}
	e.parse()
	var out []Trace
	for i := range t.rules {
		if r := &t.rules[i]; r.meets(c) && e.readable(&t.gates[r.gate]) {
			out = append(out, r.trace(t, e.view))
		}
	}

	return out
}

func (r *rule) trace(t *target, v *condition.View) Trace {
	out := Trace{
		Use:    useOf(t.gates[r.gate].kind),
		Source: r.source,
		Policy: r.policy,
		Rule:   r.id,
		File:   r.file,
		Range:  r.at,
		Truth:  condition.True,
	}
	if r.source == FromPolicy {
		out.Use = governance(t.gates)
	}
	if r.when != nil {
		out.Condition = r.when.Expr()
		out.Truth, out.Groups = r.when.Truths(v)
	}

	return out
}
