package rules

import (
	"fmt"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
)

// emptyMatcher reports matchers that test nothing.
func emptyMatcher(p *lint.Pass) {
	for c, m := range p.Matchers() {
		if _, fault := condition.Places(c.Use, m.Key); fault == "" && lint.Idle(m) {
			reportEmptyMatcher(p, m)
		}
	}
}

func reportEmptyMatcher(p *lint.Pass, m *condition.Matcher) {
	if len(m.Tests) == 0 {
		p.Report(
			m.Range,
			fmt.Sprintf("%q is named and not tested, so every call passes", m.Key),
			lint.Expected("a value, or an operator such as {gt: 100}"),
		)
		return
	}

	p.Report(
		m.Range,
		fmt.Sprintf("this empty list excludes no value of %q", m.Key),
		lint.Expected("the values that need no approval"),
	)
}
