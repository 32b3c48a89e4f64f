package rules

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
)

// dottedKey reports nested arguments in the conditions of agents, which other runtimes may not
// see.
func dottedKey(p *lint.Pass) {
	for c, m := range p.Matchers() {
		if c.Asks() && c.Use != condition.Delegation && strings.Contains(p.Source(m.Key), ".") && !hasOwnRule(m.Key) {
			p.Report(
				m.KeyRange,
				fmt.Sprintf("%q is a nested argument, which the standard does not promise to conditions", m.Key),
				lint.Expected("a top-level argument, where other runtimes decide too"),
			)
		}
	}
}

// hasOwnRule reports whether argument-key or index-key says more about the key.
func hasOwnRule(key string) bool {
	root, _, _ := strings.Cut(key, ".")
	_, _, element := lint.Element(key)
	return root == "tool_args" || root == "skill_args" || root == "parent" || element
}
