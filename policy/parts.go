package policy

import "slices"

// Part is one field of Require. The table of parts drives IsZero, Join
// and Tighter, and the aspects of posture. A test of internal/assenttest
// names every other place that a part is missing from.
type Part struct {
	Name string // its key in `require` of a policy file
	// Order describes which requirement is tighter.
	Order string

	// The functions take values, because pointers would move both requirements to the heap.
	isZero  func(a Require) bool
	join    func(out, a, b Require) Require // sets the field of out
	tighter func(a, b Require) bool
	value   func(a Require) any
}

// Parts is the table of the fields of Require, in the order of the
// fields.
func Parts() []Part { return slices.Clone(parts[:]) }

// parts is that table. A new field of Require needs a row here.
var parts = [...]Part{
	{
		Name: "stages",
		Order: "more people, of more groups, have to agree, and fewer groups may stand in for them, " +
			"or later",
		isZero: func(a Require) bool { return len(a.Stages) == 0 },
		join: func(out, a, b Require) Require {
			out.Stages = normalStages(slices.Concat(a.Stages, b.Stages), lookers(a.Escalate, b.Escalate))
			return out
		},
		tighter: func(a, b Require) bool { return each(b.Stages, a.Stages, Stage.tighter) },
		value:   func(a Require) any { return a.Stages },
	},
	{
		Name:   "within",
		Order:  "the deadline is shorter; none is the longest",
		isZero: func(a Require) bool { return a.Within == 0 },
		join: func(out, a, b Require) Require {
			out.Within = lower(a.Within, b.Within)
			return out
		},
		tighter: func(a, b Require) bool { return atMost(a.Within, b.Within) },
		value:   func(a Require) any { return span(a.Within) },
	},
	{
		Name:   "on_timeout",
		Order:  "deny before escalate before approve before nothing said",
		isZero: func(a Require) bool { return a.OnTimeout == "" },
		join: func(out, a, b Require) Require {
			out.OnTimeout = stricter(a.OnTimeout, b.OnTimeout)
			return out
		},
		tighter: func(a, b Require) bool { return rank(a.OnTimeout) >= rank(b.OnTimeout) },
		value:   func(a Require) any { return a.OnTimeout },
	},
	{
		Name:   "escalate",
		Order:  "more groups are called in, sooner, only to look rather than to approve",
		isZero: func(a Require) bool { return len(a.Escalate) == 0 },
		join: func(out, a, b Require) Require {
			out.Escalate = normalEscalations(slices.Concat(a.Escalate, b.Escalate))
			return out
		},
		tighter: func(a, b Require) bool { return each(b.Escalate, a.Escalate, Escalation.tighter) },
		value:   func(a Require) any { return a.Escalate },
	},
	{
		Name: "grants",
		Order: "standing approvals are forbidden, or bound to the session, a shorter age, fewer uses " +
			"and fewer arguments that may vary",
		isZero: func(a Require) bool { return a.Grants.noOpinion() },
		join: func(out, a, b Require) Require {
			out.Grants = a.Grants.join(b.Grants)
			return out
		},
		tighter: func(a, b Require) bool { return a.Grants.tighter(b.Grants) },
		value:   func(a Require) any { return a.Grants },
	},
	{
		Name:   "arguments",
		Order:  "more is hidden from those who approve, or nothing hidden may be approved",
		isZero: func(a Require) bool { return len(a.Arguments.Redact) == 0 && !a.Arguments.ForbidHidden },
		join: func(out, a, b Require) Require {
			out.Arguments = a.Arguments.join(b.Arguments)
			return out
		},
		tighter: func(a, b Require) bool { return a.Arguments.tighter(b.Arguments) },
		value:   func(a Require) any { return a.Arguments },
	},
	{
		Name:   "any_of",
		Order:  "fewer alternatives, or alternatives that require more; every further list of them requires more",
		isZero: func(a Require) bool { return len(a.AnyOf) == 0 },
		join: func(out, a, b Require) Require {
			out.AnyOf = normalAnyOf(slices.Concat(a.AnyOf, b.AnyOf), lookers(a.Escalate, b.Escalate))
			return out
		},
		tighter: func(a, b Require) bool { return each(b.AnyOf, a.AnyOf, AnyOf.tighter) },
		value:   func(a Require) any { return a.AnyOf },
	},
	{
		Name:   "reason",
		Order:  "a reason is required, and it must match more patterns",
		isZero: func(a Require) bool { return a.Reason.IsZero() },
		join: func(out, a, b Require) Require {
			out.Reason = a.Reason.join(b.Reason)
			return out
		},
		tighter: func(a, b Require) bool { return a.Reason.tighter(b.Reason) },
		value:   func(a Require) any { return a.Reason },
	},
}

// IsZero reports whether a requires nothing of this part.
func (p Part) IsZero(a Require) bool { return p.isZero(a) }

// Tighter reports whether a requires at least what b requires in this part.
func (p Part) Tighter(a, b Require) bool { return p.tighter(a, b) }

// Value returns the value of this part in the form of a policy file and of JSON.
func (p Part) Value(a Require) any { return p.value(a) }

// each reports whether the list has a tighter entry for every entry of the other.
func each[T any](demands, list []T, tighter func(a, b T) bool) bool {
	for _, d := range demands {
		if !slices.ContainsFunc(list, func(x T) bool { return tighter(x, d) }) {
			return false
		}
	}
	return true
}
