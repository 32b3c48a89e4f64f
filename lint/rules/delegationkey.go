package rules

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
)

// delegationKey reports delegation conditions whose keys are not paths into the parent's input.
func delegationKey(p *lint.Pass) {
	for c, m := range p.Matchers() {
		if c.Use != condition.Delegation {
			continue
		}
		if _, fault := condition.Places(c.Use, m.Key); fault != "" {
			p.Report(
				m.KeyRange,
				fmt.Sprintf(
					"%q names nothing of the parent's input, so this test is never certain%s",
					m.Key,
					p.Unread(c),
				),
				lint.Expected("a path: parent.input.<field>"),
				lint.Meant(meant(m.Key)),
			)
		}
	}
}

// meant guesses the path that the author of a key meant. It returns "" if there is no good
// guess.
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
