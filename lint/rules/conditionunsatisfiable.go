package rules

import (
	"fmt"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
)

// conditionUnsatisfiable reports condition groups that can never match.
func conditionUnsatisfiable(p *lint.Pass) {
	for _, c := range p.Conditions() {
		a := p.Analyzer(c.Use)
		for i := range c.Groups {
			if g := &c.Groups[i]; lint.Readable(c.Use, g) && never(a, g) {
				reportConditionUnsatisfiable(p, a, g)
			}
		}
	}
}

func never(a lint.Analyzer, g *condition.Group) bool {
	verdict, _ := a.SatisfiableGroup(g)
	return verdict == condition.No
}

// reportConditionUnsatisfiable points at the matchers that no value passes, or else at the
// group.
func reportConditionUnsatisfiable(p *lint.Pass, a lint.Analyzer, g *condition.Group) {
	found := false
	for i := range g.Matchers {
		m := &g.Matchers[i]
		if !never(a, &condition.Group{Matchers: g.Matchers[i : i+1]}) {
			continue
		}
		found = true
		if list := emptyList(m); list != nil {
			p.Report(
				list.Range,
				fmt.Sprintf("nothing is in this empty list, so no value of %q matches", m.Key),
				lint.Expected("the values that matter"),
			)
		} else {
			p.Report(
				m.Range,
				fmt.Sprintf("no value of %q passes all of these tests, so the group never matches", m.Key),
				lint.Expected("tests that one value can pass, or a group for each"),
			)
		}
	}

	if !found {
		p.Report(
			g.Range,
			"no arguments pass all tests of this group, so it never matches",
			lint.Expected("tests that one call can pass, or a group for each"),
		)
	}
}

func emptyList(m *condition.Matcher) *condition.Test {
	for i := range m.Tests {
		if t := &m.Tests[i]; t.Op == condition.In && len(t.Operands()) == 0 {
			return t
		}
	}
	return nil
}
