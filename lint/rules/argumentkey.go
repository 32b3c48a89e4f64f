package rules

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
)

// argumentKey reports conditions of tools and skills that use the names of templates or of
// delegation.
func argumentKey(p *lint.Pass) {
	for c, m := range p.Matchers() {
		if c.Asks() && c.Use != condition.Delegation {
			judgeArgumentKey(p, c, m)
		}
	}
}

func judgeArgumentKey(p *lint.Pass, c lint.Condition, m *condition.Matcher) {
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

	if _, fault := condition.Places(c.Use, m.Key); fault == "" {
		return
	}
	what, expected := "is never read from arguments, and there is no parent here", "the name of an argument"
	if c.Use == condition.Governance {
		what, expected = "is no path into the parent's input", "the name of an argument, or parent.input.<field>"
	}
	p.Report(
		m.KeyRange,
		fmt.Sprintf("%q %s, so this test is never certain%s", m.Key, what, p.Unread(c)),
		lint.Expected(expected),
	)
}
