package rules

import (
	"fmt"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
)

// gateOutOfBounds reports groups that match no arguments that the tool takes.
func gateOutOfBounds(p *lint.Pass) {
	for _, g := range p.Gates() {
		if g.Approval.Condition == nil {
			continue
		}
		for i := range g.Approval.Condition.Groups {
			group := &g.Approval.Condition.Groups[i]
			if lint.Readable(g.Use, group) && !reportedByArgumentRule(&g, group) && !never(p.Analyzer(g.Use), group) &&
				neverWithin(p, &g, group) {
				reportGateOutOfBounds(p, &g, group)
			}
		}
	}
}

// reportedByArgumentRule reports whether a group has a test that another rule about arguments reports.
func reportedByArgumentRule(g *lint.Gate, group *condition.Group) bool {
	for _, m := range group.Matchers {
		types, known := typesOf(g, m.Key)
		if !taken(g, m.Key) {
			return true
		}
		for i := range m.Tests {
			if !known {
				continue
			}
			if clashes(types, &m.Tests[i]) {
				return true
			}
			for _, operand := range m.Tests[i].Operands() {
				if compares(&m.Tests[i]) && unlisted(types, operand) {
					return true
				}
			}
		}
	}

	return false
}

// neverWithin reports whether no tool of the gate takes arguments that match the group.
func neverWithin(p *lint.Pass, g *lint.Gate, group *condition.Group) bool {
	alone := &condition.Expr{Groups: []condition.Group{*group}}
	for _, t := range g.Tools {
		a := p.Analyzer(g.Use).Within(lint.Bounds(t, g.Use, alone))
		if !never(a, group) {
			return false
		}
	}

	return true
}

// reportGateOutOfBounds points at the matchers that no value passes, or else at the group.
func reportGateOutOfBounds(p *lint.Pass, g *lint.Gate, group *condition.Group) {
	found := false
	for i := range group.Matchers {
		m := &group.Matchers[i]
		if !neverWithin(p, g, &condition.Group{Matchers: group.Matchers[i : i+1]}) {
			continue
		}
		found = true
		p.Report(
			m.Range,
			fmt.Sprintf("%s takes no %q that passes this test, so the group never matches", offered(g), m.Key),
			lint.Expected("a test that arguments within the bounds of the tool can pass"),
			lint.Declared(g.Tools[0]),
		)
	}

	if !found {
		p.Report(
			group.Range,
			fmt.Sprintf("%s takes no arguments that pass all tests of this group, so it never matches", offered(g)),
			lint.Expected("tests that arguments within the bounds of the tool can pass"),
			lint.Declared(g.Tools[0]),
		)
	}
}
