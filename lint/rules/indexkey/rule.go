// Package indexkey reports conditions that test one element of a list.
package indexkey

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
)

//go:embed bad.policy.yaml
var bad string

//go:embed good.policy.yaml
var good string

// Rule returns the rule.
func Rule() lint.Rule {
	return lint.Rule{
		RuleInfo: diag.RuleInfo{
			ID: "index-key", Title: "A condition tests one element of a list", Severity: diag.Warning,
			Why: "A number between dots is an index, as in templates: `lines.0.amount` reads the first element of `lines` and no other. A model can put what the condition is about into the second one, and is not asked. " +
				"There is no key for every element. Test an argument outside of the list, such as a total or a count, or ask about every call.",
			Bad: lint.Sample(bad), Good: lint.Sample(good), Spec: "docs/design/001-semantics.md",
		},
		Agent: check, Policy: check,
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
					p.Report(m.KeyRange, fmt.Sprintf("%q tests element %s of %q alone, and a call may have others", m.Key, index, list),
						lint.Expected("an argument outside of the list, or approval: true"))
				}
			}
		}
	}
}
