package posture

import (
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
)

// oddArguments describes the calls of the changes that oddOnes returns.
const oddArguments = "with arguments that are no object"

// oddOnes returns the changes for calls whose arguments are no object, without those that are in
// found already. Every test of an argument is Unknown for such calls, so a rule that never asks
// about objects may still ask about a list.
func (p pair) oddOnes(found []Change) []Change {
	p.odd = true
	p.old, p.new = p.old.odd(), p.new.odd()
	if p.old.denied && p.new.denied {
		return nil
	}
	return slices.DeleteFunc(p.parted(), func(c Change) bool {
		return c.Aspect == messageAspect || slices.ContainsFunc(found, func(f Change) bool {
			return f.Aspect == c.Aspect && f.From == c.From && f.To == c.To && f.Effect == c.Effect
		})
	})
}

// odd returns the side for calls whose arguments are no object.
func (s side) odd() side {
	target := *s.target
	target.Gates = slices.Clone(target.Gates)
	silent := map[int]bool{}
	for i := range target.Gates {
		g := &target.Gates[i]
		silent[i] = g.Certain && !certainWithoutArguments(g)
		g.When = withoutArguments(g)
	}
	s.target = &target
	s.asks = slices.DeleteFunc(slices.Clone(s.asks), func(i int) bool { return silent[i] })
	s.denies = slices.DeleteFunc(slices.Clone(s.denies), func(i int) bool { return silent[i] })
	if always := func(i int) bool { return target.Gates[i].When == nil }; slices.ContainsFunc(s.denies, always) {
		s.denied, s.denies = true, slices.DeleteFunc(s.denies, always)
	}

	return s
}

// certainWithoutArguments reports whether the condition of a gate can be true for calls whose
// arguments can't be read: some group tests only the parent's input. It removes the other groups.
func certainWithoutArguments(g *resolve.Gate) bool {
	if g.When == nil {
		return true
	}
	reads := func(group condition.Group) bool {
		return slices.ContainsFunc(group.Matchers, func(m condition.Matcher) bool { return readsArguments(g.Use, &m) })
	}
	out := *g.When
	out.Groups = slices.DeleteFunc(slices.Clone(out.Groups), reads)
	g.When = &out
	return len(out.Groups) > 0
}

func readsArguments(use condition.Use, m *condition.Matcher) bool {
	if m.History != nil {
		return m.History.ReadsArguments()
	}
	return !m.IsFact() && (m.Takes || !parentTest(use, m.Key))
}

// withoutArguments returns the condition of a gate for calls whose arguments can't be read: only
// its tests of the parent's input. It returns nil if the gate always asks about them.
func withoutArguments(g *resolve.Gate) *condition.Expr {
	if g.When == nil {
		return nil
	}
	out := *g.When
	out.Groups = slices.Clone(out.Groups)
	for i := range out.Groups {
		group := &out.Groups[i]
		group.Matchers = slices.DeleteFunc(
			slices.Clone(group.Matchers),
			func(m condition.Matcher) bool { return readsArguments(g.Use, &m) },
		)
		if len(group.Matchers) == 0 {
			return nil
		}
	}

	return &out
}
