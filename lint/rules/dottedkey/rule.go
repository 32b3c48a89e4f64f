// Package dottedkey reports nested arguments in the conditions of
// agents, which other runtimes may not see.
package dottedkey

import (
	_ "embed"
	"fmt"
	"strings"

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
	}
}

func check(p *lint.Pass) {
	for _, s := range p.Sites() {
		if s.Use == condition.Delegation || s.Approval.Condition == nil {
			continue
		}
		for _, g := range s.Approval.Condition.Groups {
			for _, m := range g.Matchers {
				if strings.Contains(m.Key, ".") && !hasOwnRule(m.Key) {
					p.Report(
						m.KeyRange,
						fmt.Sprintf(
							"%q is a nested argument, which the standard does not promise to conditions",
							m.Key,
						),
						lint.Expected("a top-level argument, where other runtimes decide too"),
					)
				}
			}
		}
	}
}

// hasOwnRule reports whether argument-key or index-key has more to say
// about the key.
func hasOwnRule(key string) bool {
	root, _, _ := strings.Cut(key, ".")
	_, _, element := lint.Element(key)
	return root == "tool_args" || root == "skill_args" || root == "parent" || element
}
