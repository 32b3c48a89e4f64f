// Package delegationkey reports delegation conditions whose keys are no
// paths into the parent's input.
package delegationkey

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
		Policy:   check,
	}
}

func check(p *lint.Pass) {
	for _, s := range p.Sites() {
		if s.Use != condition.Delegation || s.Approval.Condition == nil {
			continue
		}
		for _, g := range s.Approval.Condition.Groups {
			for _, m := range g.Matchers {
				if _, fault := condition.Places(s.Use, m.Key); fault != "" {
					p.Report(
						m.KeyRange,
						fmt.Sprintf(
							"%q names nothing of the parent's input, so this test is never certain%s",
							m.Key,
							p.Unread(s.Use, s.Approval.Condition),
						),
						lint.Expected("a path: parent.input.<field>"),
						lint.Meant(meant(m.Key)),
					)
				}
			}
		}
	}
}

// meant is the path that a key was most likely to be, "" when nobody
// can tell.
func meant(key string) string {
	for _, prefix := range []string{"parent.output.", "parent.", "input.", "tool_args.", "skill_args."} {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			key = rest
			break
		}
	}

	path := "parent.input." + key
	if _, fault := condition.Places(condition.Delegation, path); fault != "" {
		return ""
	}
	return path
}
