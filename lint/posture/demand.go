package posture

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// mostApart limits the number of conditions for which the comparison distinguishes the rules that
// ask together.
const mostApart = 16

// together is a set of gates that ask about the same calls, as indices into the gates of both
// sides.
type together struct {
	gate     condition.Gate
	old, new []int
}

// demands returns the changes of what approvals require if both sides ask.
func (p pair) demands() []Change {
	if p.old.denied || p.new.denied {
		return nil
	}
	oldOnly, newOnly := p.differing(p.old, p.new), p.differing(p.new, p.old)
	if len(oldOnly)+len(newOnly) == 0 && p.sameTemplate(p.old.asks, p.new.asks) {
		return nil
	}
	sets, always := p.sets()
	within := append(p.old.gates(oldOnly), p.new.gates(newOnly)...)
	if len(within) == 0 ||
		slices.ContainsFunc(within, func(g condition.Gate) bool { return g.When == nil }) {
		within = nil
	}
	if len(sets) > mostApart {
		return p.roughly(oldOnly, newOnly)
	}
	gates := make([][]condition.Gate, len(sets), len(sets)+1)
	for i := range sets {
		gates[i] = []condition.Gate{sets[i].gate}
	}
	if denies := append(p.old.gates(p.old.denies), p.new.gates(p.new.denies)...); len(denies) > 0 {
		gates = append(gates, denies)
	}
	cells, ok := p.cmp.Cells(p.world, within, gates...)
	if !ok {
		return p.roughly(oldOnly, newOnly)
	}

	var found []Change
	for _, cell := range cells {
		if asks := cell.Asks[:len(sets)]; !slices.Contains(cell.Asks[len(sets):], true) {
			found = p.demanded(found, cell, asking(sets, always, asks))
		}
	}
	return found
}

// differing returns the gates of side a that side b lacks, or has with other requirements.
func (p pair) differing(a, b side) []int {
	there := map[string]int{}
	for _, key := range p.signatures(b) {
		there[key]++
	}
	var out []int
	for _, i := range a.asks {
		if key := p.signature(a, i); there[key] > 0 {
			there[key]--
		} else {
			out = append(out, i)
		}
	}

	return out
}

// sets returns the gates of both sides, grouped by when they ask, and the gates that ask about
// every call.
func (p pair) sets() (sets []together, always together) {
	at := map[string]int{}
	put := func(s side, i int, list func(t *together) *[]int) {
		key := p.gateKey(s, i)
		if key == "" {
			*list(&always) = append(*list(&always), i)
			return
		}
		n, known := at[key]
		if !known {
			n = len(sets)
			at[key] = n
			sets = append(sets, together{gate: s.gates([]int{i})[0]})
		}
		*list(&sets[n]) = append(*list(&sets[n]), i)
	}
	for _, i := range p.old.asks {
		put(p.old, i, func(t *together) *[]int { return &t.old })
	}
	for _, i := range p.new.asks {
		put(p.new, i, func(t *together) *[]int { return &t.new })
	}

	return sets, always
}

// asking returns the gates that ask about the calls of a cell, in order.
func asking(sets []together, always together, asks []bool) together {
	all := together{old: slices.Clone(always.old), new: slices.Clone(always.new)}
	for i, asks := range asks {
		if asks {
			all.old = append(all.old, sets[i].old...)
			all.new = append(all.new, sets[i].new...)
		}
	}

	slices.Sort(all.old)
	slices.Sort(all.new)

	return all
}

// demanded adds the changed requirements in one cell. The same change in several cells becomes one
// change with all their calls.
func (p pair) demanded(found []Change, cell condition.Cell, by together) []Change {
	if len(by.old) == 0 || len(by.new) == 0 {
		return found // the change of the outcome covers it
	}
	old, new := p.old.target.Demand(by.old), p.new.target.Demand(by.new)
	for _, change := range p.between(old, new) {
		if cell.Found != condition.Yes {
			change.Effect, change.Why = Undecided, condition.WhyTooHard
		} else {
			change.region = cell.Region
			p.witness(&change, cell, func(was, is resolve.Decision) bool {
				return was.Outcome == resolve.Ask && is.Outcome == resolve.Ask &&
					sameRequire(was.Require, old.Require) && sameRequire(is.Require, new.Require)
			})
			change.Old, change.New = demandedAt(change.Old, p.old, by.old), demandedAt(change.New, p.new, by.new)
		}

		found = p.gather(found, change)
	}

	return found
}

// gather merges a change into an equal one that was found before, with the calls of both, or
// appends it.
func (p pair) gather(found []Change, change Change) []Change {
	i := slices.IndexFunc(found, func(f Change) bool {
		return f.Aspect == change.Aspect && f.From == change.From && f.To == change.To &&
			f.Effect == change.Effect
	})
	if i < 0 {
		return append(found, change)
	}
	found[i].addEdits(change.edited)
	if f := &found[i]; f.region != nil && change.region != nil {
		f.region = f.region.Or(change.region)
	}

	return found
}

// demandedAt returns the position of the first rule that has requirements, or at if no rule has.
func demandedAt(at *Position, s side, asking []int) *Position {
	for _, i := range asking {
		if g := &s.target.Gates[i]; g.Require != nil && at != nil {
			return &Position{
				File:   g.File,
				Line:   g.Range.Start.Line,
				Column: g.Range.Start.Column,
			}
		}
	}

	return at
}

func sameRequire(a, b *policy.Require) bool { return requireKey(a) == requireKey(b) }

// between returns the changes between two requirements.
func (p pair) between(old, new resolve.Demand) []Change {
	var out []Change
	was, is := Protection{Require: valueOf(old.Require)}, Protection{Require: valueOf(new.Require)}
	agreed, together := peopleOrder(was.Require, is.Require)
	for _, a := range demandAspects() {
		order := a.compare(was, is)
		whoAgrees := a.Name == aspectStages || a.Name == aspectAnyOf
		if together && whoAgrees && order != Same {
			order = agreed
		}
		if order != Same {
			c := p.change(a.Name, a.show(was), a.show(is))
			c.Effect, c.Why = effectOf(order)
			if a.Name == aspectStages && order == Incomparable && !together {
				c.Effect, c.Why = effectOfCommittees(p.committees(was.Require, is.Require))
			}
			if a.Name == aspectStages {
				c.Note = lostEscalation(was.Require, is.Require)
			}
			out = append(out, c)
		}
	}

	if p.templateKey(old.Template) != p.templateKey(new.Template) || old.Shown != new.Shown &&
		strings.Contains(old.Template, "{{") {
		c := p.change(messageAspect, textOf(old), textOf(new))
		c.Effect = Changes
		out = append(out, c)
	}

	return out
}

// lostEscalation names the groups to which the new side no longer escalates although it still asks
// for the approval. This is tighter, because fewer people may approve, but if they don't answer, no
// other group is asked.
func lostEscalation(was, is policy.Require) string {
	now := standIns(is)
	var lost []string
	for _, group := range standIns(was) {
		if !slices.Contains(now, group) {
			lost = append(lost, group)
		}
	}
	if len(lost) == 0 || len(is.Stages) == 0 {
		return ""
	}
	return "no longer escalates to " + strings.Join(lost, ", ") + ": they are not called in any more"
}

// standIns lists the groups to which the requirement escalates.
func standIns(r policy.Require) []string {
	var out []string
	for _, s := range r.Stages {
		for _, i := range s.StandIns {
			out = append(out, i.Group)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func valueOf(r *policy.Require) policy.Require {
	if r == nil {
		return policy.Require{}
	}
	return *r
}

// textOf returns the message for people.
func textOf(d resolve.Demand) string {
	if d.Template == "" {
		return "the default message"
	}
	return strconv.Quote(d.Template)
}

// effectOf returns the effect of an order.
func effectOf(o Order) (effect Effect, why string) {
	switch o {
	case Tighter:
		return Tightens, ""
	case Looser:
		return Loosens, ""
	}

	return Undecided, "neither side demands all that the other does"
}

// effectOfCommittees returns the effect of a change of groups. If the same people may approve, the
// effect is Changes.
func effectOfCommittees(o Order, why string) (effect Effect, whyOpen string) {
	switch o {
	case Same:
		return Changes, ""
	case Tighter:
		return Tightens, ""
	case Looser:
		return Loosens, ""
	}

	return Undecided, cmp.Or(why, "neither side demands all that the other does")
}

// roughly returns the result if too many conditions decide which rules ask together. It is
// undecided, unless the rules that only one side has require nothing and show nothing, because then
// it makes no difference with which other rules they ask.
func (p pair) roughly(oldOnly, newOnly []int) []Change {
	if !p.old.demand(oldOnly) && !p.new.demand(newOnly) && !p.old.bounds() && !p.new.bounds() {
		return nil
	}
	c := p.change("require", "", "")
	c.Effect = Undecided
	c.Why = tooManyTogether()

	return []Change{c}
}

func tooManyTogether() string {
	return "more than " + strconv.Itoa(mostApart) + " conditions, or too large ones, decide which rules ask together"
}

// demand reports whether one of the gates has requirements or a message.
func (s side) demand(list []int) bool {
	return slices.ContainsFunc(list, func(i int) bool {
		g := &s.target.Gates[i]
		return g.Require != nil || g.Template != ""
	})
}

// bounds reports whether a gate lets arguments vary under a grant. A gate without requirements
// disables such a grant.
func (s side) bounds() bool {
	return slices.ContainsFunc(s.asks, func(i int) bool {
		r := s.target.Gates[i].Require
		return r != nil && len(r.Grants.Bounds) > 0
	})
}
