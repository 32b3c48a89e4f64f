// Package indexkey reports conditions that test one element of a list.
package indexkey

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/lint"
)

//go:embed rule.md
var page string

//go:embed bad.policy.yaml
var bad string

//go:embed good.policy.yaml
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
		if !c.Asks() {
			continue
		}
		for _, g := range c.Groups {
			for _, m := range g.Matchers {
				if list, index, ok := lint.Element(m.Key); ok && !strings.HasPrefix(m.Key, "parent.") {
					p.Report(
						m.KeyRange,
						fmt.Sprintf(
							"%q tests element %s of %q alone, and a call may have others",
							m.Key,
							index,
							list,
						),
						lint.Expected("an argument outside of the list, or approval: true"),
					)
				}
			}
		}
	}
}
