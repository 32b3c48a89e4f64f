package posture

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// Goal describes what approvals must require.
type Goal struct {
	// AtLeast is the number of distinct members of each group, by its name, without whom no approval is
	// possible.
	AtLeast map[string]int
	// Within is the longest time after which an undecided request must have ended. 0 means any time.
	Within time.Duration
	// Exclude means that no call may require it. Otherwise every call must be denied or require it.
	Exclude bool
}

// Unmet describes how an approval is possible without what the goal requires: "2 of ops are enough". It
// returns an empty string if the requirement meets the goal. A requirement that nobody can fulfil meets
// each number of people.
func (g *Goal) Unmet(r *policy.Require) string {
	switch {
	case r == nil:
		return "one person of any group is enough, at any time"
	case r.OnTimeout == policy.TimeoutApprove:
		return "it is approved if nobody answers"
	}
	options, _ := policy.Options(r.Stages, r.AnyOf) // none if they are too many to be fulfilled
	for _, group := range slices.Sorted(maps.Keys(g.AtLeast)) {
		for _, stages := range options {
			if seats(stages, group) < g.AtLeast[group] {
				return enough(stages)
			}
		}
	}
	switch end := r.LastMoment(); {
	case g.Within > 0 && end == 0:
		return "it has no deadline"
	case g.Within > 0 && end > g.Within:
		return "it may stay open for " + policy.FormatDuration(end)
	}
	return ""
}

// seats returns the number of seats that only members of a group can fill.
func seats(stages []policy.Stage, group string) int {
	n := 0
	for _, s := range stages {
		other := func(i policy.StandIn) bool { return i.Group != group }
		if s.Group == group && !slices.ContainsFunc(s.StandIns, other) {
			n += s.People
		}
	}
	return n
}

// enough describes the people who fill stages.
func enough(stages []policy.Stage) string {
	var all []string
	for _, s := range stages {
		groups := []string{s.Group}
		for _, i := range s.StandIns {
			groups = append(groups, i.Group)
		}
		slices.Sort(groups[1:])
		all = append(all, fmt.Sprintf("%d of %s", s.People, strings.Join(slices.Compact(groups), " or ")))
	}
	if all == nil {
		return "one person of any group is enough"
	}
	return strings.Join(all, " and ") + " are enough"
}

// concerns reports whether a rule with a requirement may decide whether the goal is met. Requirements
// of other rules only add people of other groups.
func (g *Goal) concerns(r *policy.Require) bool {
	if r == nil {
		return false
	}
	if g.Within > 0 {
		return true
	}
	for _, stages := range append([][]policy.Stage{r.Stages}, slices.Concat(r.AnyOf...)...) {
		if slices.ContainsFunc(stages, func(s policy.Stage) bool { return g.AtLeast[s.Group] > 0 }) {
			return true
		}
	}
	return false
}

// breaks describes how a decision breaks the goal. It returns an empty string if it doesn't.
func (g *Goal) breaks(outcome resolve.Outcome, r *policy.Require) string {
	switch {
	case g.Exclude && outcome == resolve.Ask && g.Unmet(r) == "":
		return "it asks, and requires this"
	case g.Exclude || outcome == resolve.Deny:
		return ""
	case outcome == resolve.Allow:
		return "nobody is asked"
	}
	return g.Unmet(r)
}

// breaking looks for a call that breaks the goal, among those of one set of annotations.
func (q Query) breaking(p pair) Answer {
	if p.old.denied {
		return Answer{}
	}
	byTimeout := slices.ContainsFunc(p.old.asks, func(i int) bool {
		r := p.old.target.Gates[i].Require
		return r != nil && r.OnTimeout == policy.TimeoutApprove
	})
	var always []int
	var sets [][]int // gates that ask about the same calls
	at := map[string]int{}
	for _, i := range p.old.asks {
		if r := p.old.target.Gates[i].Require; !byTimeout && !q.Goal.concerns(r) {
			continue
		}
		key := p.gateKey(p.old, i)
		if key == "" {
			always = append(always, i)
			continue
		}
		if _, known := at[key]; !known {
			at[key] = len(sets)
			sets = append(sets, nil)
		}
		sets[at[key]] = append(sets[at[key]], i)
	}
	if len(sets) > mostApart {
		return Answer{Found: condition.Undecided, Why: tooManyTogether()}
	}
	gates := [][]condition.Gate{p.old.gates(p.old.denies), p.old.gates(p.old.asks)}
	for _, set := range sets {
		gates = append(gates, p.old.gates(set[:1]))
	}
	cells, ok := p.cmp.Cells(p.world, q.within(p), gates...)
	if !ok {
		return Answer{Found: condition.Undecided, Why: condition.WhyTooLarge}
	}

	open := Answer{}
	for _, cell := range cells {
		asking := slices.Clone(always)
		for i, asks := range cell.Asks[2:] {
			if asks {
				asking = append(asking, sets[i]...)
			}
		}
		slices.Sort(asking)
		outcome := p.old.decided(cell.Asks[0], cell.Asks[1])
		switch {
		case q.Goal.breaks(outcome, p.old.target.Demand(asking).Require) == "":
		case cell.Found != condition.Yes:
			open = Answer{Found: condition.Undecided, Why: condition.WhyTooHard}
		default:
			return q.shown(p, cell)
		}
	}
	return open
}

// fixed returns the side for calls at one moment: windows of time are replaced by what they are then.
func (s side) fixed(at time.Time) side {
	target := *s.target
	target.Gates = slices.Clone(target.Gates)
	apply := func(i int) (never bool) {
		g := &target.Gates[i]
		g.When, never = whenAt(g.When, at)
		return never
	}
	s.target = &target
	s.asks = slices.DeleteFunc(slices.Clone(s.asks), apply)
	s.denies = slices.DeleteFunc(slices.Clone(s.denies), apply)
	s.denied = s.denied || slices.ContainsFunc(s.denies, func(i int) bool { return target.Gates[i].When == nil })

	return s
}

// whenAt returns a condition without windows of time, for calls at one moment. It returns nil if the
// condition is always true then.
func whenAt(e *condition.Expr, at time.Time) (when *condition.Expr, never bool) {
	if e == nil || len(e.Groups) == 0 {
		return nil, false
	}
	out := &condition.Expr{Range: e.Range}
	for _, group := range e.Groups {
		outside := func(m condition.Matcher) bool { return m.Time != nil && m.Time.Window.Has(at) == m.Time.Outside }
		if slices.ContainsFunc(group.Matchers, outside) {
			continue
		}
		group.Matchers = slices.DeleteFunc(slices.Clone(group.Matchers),
			func(m condition.Matcher) bool { return m.Time != nil })
		if len(group.Matchers) == 0 {
			return nil, false
		}
		out.Groups = append(out.Groups, group)
	}
	return out, len(out.Groups) == 0
}
