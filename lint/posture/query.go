package posture

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/resolve"
)

// Query asks about all calls of one target at once: is there one like
// this with that outcome? An invariant is a query whose answer has to be
// no: "never allowed" asks for the outcome allow, "always asked" for
// allow and for deny.
type Query struct {
	// Call selects the target; for Over, its names may be globs. Its arguments are ignored. Its
	// annotations are used; nil means any. Its moment is used; the zero time means any, and none.
	Call resolve.Call
	// Where is a condition on the call, see ParseWhere. It is nil for every call. Calls for which
	// the condition is unknown are not considered.
	Where *condition.Expr
	// Outcome is the outcome to look for, if Goal is nil.
	Outcome resolve.Outcome
	// Goal is what approvals must require: the query looks for a call that breaks it.
	Goal *Goal
	// NoHistory means that the calls have no past calls, and that this is known. Otherwise calls with
	// any past calls are meant.
	NoHistory bool
}

// Answer is the answer to a query. If it is Yes, Witness is such a call in
// the form that `assent decide` reads, and the plan has decided it with
// the outcome of the query.
type Answer struct {
	Found   condition.Verdict
	Witness json.RawMessage
	Why     string // why it is Undecided
	Instead string // how the witness breaks the goal of the query
	Agent   string // the file of the agent that it is about, if the caller sets it
}

// MarshalJSON writes {"found": "yes|no|undecided", "witness", "why"}.
func (a Answer) MarshalJSON() ([]byte, error) {
	return jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Member("found", a.Found.String())
		w.Optional("agent", a.Agent)
		if len(a.Witness) > 0 {
			w.Name("witness").Raw(a.Witness)
		}
		w.Optional("why", a.Why)
		w.Optional("instead", a.Instead)
	})
}

// Ask answers a query about a plan. A delegation to an alias that names both a local and a remote
// agent is checked in each reading.
func (q Query) Ask(plan *resolve.Plan) Answer {
	open := Answer{}
	for _, reading := range q.readings(plan) {
		switch a := reading.ask(plan); a.Found {
		case condition.Yes:
			return a
		case condition.Undecided:
			open = a
		}
	}
	return open
}

// readings returns the query itself, and one for each kind of agent if
// its alias names both and the query does not say which is meant.
func (q Query) readings(plan *resolve.Plan) []Query {
	all := []Query{q}
	if q.Call.Kind != resolve.Delegation || q.Call.Remote != resolve.RemoteUnstated {
		return all
	}
	for _, remote := range []resolve.Remote{resolve.RemoteNo, resolve.RemoteYes} {
		one := q
		one.Call.Remote = remote
		for _, r := range plan.Decide(&one.Call).Reasons {
			if r.Code == resolve.NotDeclared {
				return []Query{q}
			}
		}
		all = append(all, one)
	}
	return all
}

func (q Query) ask(plan *resolve.Plan) Answer {
	target := plan.Target(&q.Call)
	if target == nil {
		return Answer{Found: condition.Undecided, Why: "the query names no kind of call"}
	}

	classes, ok := classesOf(target, target)
	if !ok {
		return Answer{Found: condition.Undecided, Why: whyHints()}
	}
	if q.Call.Annotations != nil {
		classes = []map[string]bool{q.Call.Annotations}
	}

	open := Answer{}
	for _, class := range classes {
		s := &Side{Plan: plan}
		p := pair{
			comparer: &comparer{
				old: *s, new: *s,
				cmp:  condition.NewComparison(0),
				keys: map[*condition.Expr]string{},
			},
			call: q.Call,
			old:  sideOf(*s, target, class),
		}
		p.call.Annotations = class
		if !q.Call.At.IsZero() {
			p.old = p.old.fixed(q.Call.At)
		}
		p.new = p.old
		switch a := q.among(p); a.Found {
		case condition.Yes:
			return a
		case condition.Undecided:
			open = a
		}
	}

	return open
}

// Vacuous explains why the query is about no call at all, so that the
// answer No would prove nothing: its target is not declared, all calls of
// the agent are denied for another reason, or no call can satisfy Where.
// It returns an empty string if the query is about some call. Calls that
// an allow-list excludes count as calls if Outcome is deny.
func (q Query) Vacuous(plan *resolve.Plan) string {
	for _, r := range plan.Decide(&q.Call).Reasons {
		switch {
		case r.Code == resolve.PolicyUnresolved:
			return "every call of the agent is denied: " + r.Detail
		case r.Code == resolve.NotDeclared, r.Code == resolve.NotAllowed && q.Outcome != resolve.Deny:
			return r.Detail
		}
	}
	if q.Where == nil {
		return ""
	}
	if why := q.OtherCase(plan); why != "" {
		return why
	}

	q.Goal = nil
	for _, outcome := range []resolve.Outcome{resolve.Allow, resolve.Ask, resolve.Deny} {
		q.Outcome = outcome
		if q.Ask(plan).Found != condition.No {
			return ""
		}
	}
	return "no call can satisfy where"
}

// OtherCase explains that Where names an argument which the rules read in
// other case. A call has one of both names only, so an answer would be about
// calls without the argument that is meant. It returns an empty string
// otherwise.
func (q Query) OtherCase(plan *resolve.Plan) string {
	target := plan.Target(&q.Call)
	if q.Where == nil || target == nil || target.CaseSensitive {
		return ""
	}
	var read []string
	for i := range target.Gates {
		read = append(read, keysOf(target.Gates[i].When)...)
	}
	for _, key := range keysOf(q.Where) {
		at := slices.IndexFunc(read, func(k string) bool { return strings.EqualFold(k, key) })
		if at >= 0 && !slices.Contains(read, key) {
			return fmt.Sprintf("the rules read %q, and a call that has %q instead does not have it; write %s",
				read[at], key, read[at])
		}
	}

	return ""
}

// keysOf lists the keys that a condition tests.
func keysOf(e *condition.Expr) []string {
	var out []string
	for i := 0; e != nil && i < len(e.Groups); i++ {
		for _, m := range e.Groups[i].Matchers {
			if !m.IsFact() {
				out = append(out, m.Key)
			}
		}
	}
	return out
}

// among checks calls of one set of annotations, with a parent's input and without.
func (q Query) among(p pair) Answer {
	p.world = condition.Calls{
		NoParent: true, CaseSensitive: p.old.target.CaseSensitive, NoPast: q.NoHistory,
	}
	first := q.in(p)
	if first.Found == condition.Yes || !p.readsParent() && !mentionsParent(q.Where) {
		return first
	}
	p.world.NoParent = false
	if second := q.in(p); second.Found != condition.No {
		return second
	}

	return first
}

func mentionsParent(e *condition.Expr) bool {
	return e != nil && readsParent(&resolve.Gate{Use: condition.Governance, When: e})
}

// in checks either the calls with a parent's input or those without.
func (q Query) in(p pair) Answer {
	if q.Goal != nil {
		return q.breaking(p)
	}
	cells, ok := p.cmp.Cells(p.world, q.within(p), p.old.gates(p.old.denies), p.old.gates(p.old.asks))
	if !ok {
		return Answer{Found: condition.Undecided, Why: condition.WhyTooLarge}
	}
	open := Answer{}
	for _, cell := range cells {
		switch {
		case p.old.decided(cell.Asks[0], cell.Asks[1]) != q.Outcome:
		case cell.Found != condition.Yes:
			open = Answer{Found: condition.Undecided, Why: condition.WhyTooHard}
		default:
			return q.shown(p, cell)
		}
	}

	return open
}

// within returns the gate that limits the calls to those for which Where is true.
func (q Query) within(p pair) []condition.Gate {
	if q.Where == nil {
		return nil
	}
	return []condition.Gate{{Use: condition.Governance, Sem: p.old.sem, When: q.Where, Certain: true}}
}

// shown returns the answer for a cell, after the plan has decided its witness.
func (q Query) shown(p pair, cell condition.Cell) Answer {
	var c Change
	out := Answer{Found: condition.Yes}
	p.witness(&c, cell, func(decided, _ resolve.Decision) bool {
		if q.Goal == nil {
			return decided.Outcome == q.Outcome
		}
		out.Instead = q.Goal.breaks(decided.Outcome, decided.Require)
		return out.Instead != ""
	})
	if out.Witness = c.Witness; c.Witness == nil {
		return Answer{Found: condition.Undecided, Why: c.Why}
	}

	return out
}
