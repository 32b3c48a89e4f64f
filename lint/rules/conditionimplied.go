package rules

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
)

// conditionImplied reports condition groups that another group already covers.
func conditionImplied(p *lint.Pass) {
	for _, c := range p.Conditions() {
		a, list := p.Analyzer(c.Use), comparable(p, c)
		for i, g := range list {
			if other := covering(a, list, i); other != nil {
				p.Report(
					g.Range,
					fmt.Sprintf(
						"whatever matches this group matches the one in line %d as well",
						other.Range.Start.Line,
					),
					lint.Expected("one of the two, or both tests in one group if both must hold"),
					lint.Related(other.Range, "this group covers it"),
				)
			}
		}
	}
}

// maxGroups limits the pairs that are compared in one condition.
const maxGroups = 1_000

// comparable lists the groups that are worth comparing: those that no other rule reports, and
// that some call can match.
func comparable(p *lint.Pass, c lint.Condition) []*condition.Group {
	if n := len(c.Groups); n < 2 || n > maxGroups {
		return nil
	}
	var list []*condition.Group
	for i := range c.Groups {
		if g := &c.Groups[i]; sound(c.Use, g) {
			if possible, _ := p.Analyzer(c.Use).SatisfiableGroup(g); possible == condition.Yes {
				list = append(list, g)
			}
		}
	}

	return list
}

// covering returns a group that makes the i-th group superfluous, or nil. If two groups are
// equal, the later one is superfluous.
func covering(a lint.Analyzer, list []*condition.Group, i int) *condition.Group {
	g := list[i]
	for j, h := range list {
		if i == j || !testsAllOf(g, h) {
			continue
		}
		if implies, _ := a.ImpliesGroup(g, h); implies != condition.Yes {
			continue
		}
		if back, _ := a.ImpliesGroup(h, g); back != condition.Yes || i > j {
			return h
		}
	}

	return nil
}

// sound excludes groups that other rules report.
func sound(use condition.Use, g *condition.Group) bool {
	return !slices.ContainsFunc(g.Matchers, func(m condition.Matcher) bool {
		return lint.Idle(&m)
	}) && len(g.Matchers) > 0 && lint.Readable(use, g)
}

// testsAllOf is a cheap first check. A group can only imply another group if it tests all of
// its keys.
func testsAllOf(g, h *condition.Group) bool {
	for _, m := range h.Matchers {
		if !slices.ContainsFunc(g.Matchers, func(n condition.Matcher) bool { return n.Key == m.Key }) {
			return false
		}
	}
	return true
}
