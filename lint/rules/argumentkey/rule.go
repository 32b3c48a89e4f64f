// Package argumentkey reports conditions of tools and skills that use
// the names of templates or of delegation.
package argumentkey

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
		if s.Use == condition.Delegation || s.Approval.Condition == nil {
			continue
		}
		for _, g := range s.Approval.Condition.Groups {
			for _, m := range g.Matchers {
				judge(p, &s, &m)
			}
		}
	}
}

func judge(p *lint.Pass, s *lint.Site, m *condition.Matcher) {
	for _, prefix := range []string{"tool_args.", "skill_args."} {
		if name, ok := strings.CutPrefix(m.Key, prefix); ok {
			p.Report(
				m.KeyRange,
				fmt.Sprintf(
					"%q is read as an argument of this name; conditions name arguments without %s",
					m.Key,
					prefix,
				),
				lint.Expected("the name of an argument"),
				lint.Meant(name),
			)
			return
		}
	}

	if _, fault := condition.Places(s.Use, m.Key); fault == "" {
		return
	}
	what, expected := "is never read from arguments, and there is no parent here", "the name of an argument"
	if s.Use == condition.Governance {
		what, expected = "is no path into the parent's input", "the name of an argument, or parent.input.<field>"
	}
	p.Report(
		m.KeyRange,
		fmt.Sprintf("%q %s, so this test is never certain%s", m.Key, what, p.Unread(s.Use, s.Approval.Condition)),
		lint.Expected(expected),
	)
}
