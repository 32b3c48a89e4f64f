// Package emptymatcher reports matchers that test nothing.
package emptymatcher

import (
	_ "embed"
	"fmt"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
)

//go:embed rule.md
var page string

//go:embed bad.agf.yaml
var bad string

//go:embed good.agf.yaml
var good string

// Rule returns the rule.
func Rule() lint.Rule {
	return lint.Rule{
		RuleInfo: lint.Describe(page, bad, good),
		Agent:    check,
		Policy:   check,
	}
}

func check(p *lint.Pass) {
	for _, c := range p.Conditions() {
		for _, g := range c.Groups {
			for _, m := range g.Matchers {
				judge(p, c.Use, &m)
			}
		}
	}
}

func judge(p *lint.Pass, use condition.Use, m *condition.Matcher) {
	if _, fault := condition.Places(use, m.Key); fault != "" || !lint.Idle(m) {
		return
	}
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
