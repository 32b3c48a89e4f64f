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
	for i := range target.Gates {
		g := &target.Gates[i]
		g.When = withoutArguments(g)
	}
	s.target = &target

	return s
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
			func(m condition.Matcher) bool { return !parentTest(g.Use, m.Key) },
		)
		if len(group.Matchers) == 0 {
			return nil
		}
	}

	return &out
}
