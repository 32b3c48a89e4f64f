package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/value"
)

// valueNotDeclared reports tests of the agent's input for values that the interface doesn't
// list.
func valueNotDeclared(p *lint.Pass) {
	var known map[string][]string
	for c, m := range p.Matchers() {
		if c.Use == condition.ToolArgs || c.Use == condition.SkillArgs {
			continue
		}
		if known == nil {
			known = lint.InputValues(p.Agent.Interface.Input)
		}
		if known[m.Key] == nil {
			continue
		}
		for i := range m.Tests {
			if t := &m.Tests[i]; compares(t) {
				judgeValueNotDeclared(p, m, t, known[m.Key])
			}
		}
	}
}

// valueNotDeclaredByAgents reports tests in a policy for values of the input that none of the
// agents under the policy declares.
func valueNotDeclaredByAgents(p *lint.Pass) {
	if p.Fleet == nil {
		return
	}
	agents := p.Fleet.Governed(p.Policy)
	for _, m := range p.Matchers() {
		var known []string
		listed := len(agents) > 0
		for _, a := range agents {
			values := a.Input[m.Key]
			listed = listed && values != nil && !a.Nested
			known = append(known, values...)
		}
		for i := range m.Tests {
			if t := &m.Tests[i]; listed && compares(t) {
				judgeValueNotDeclared(p, m, t, known)
			}
		}
	}
}

func judgeValueNotDeclared(p *lint.Pass, m *condition.Matcher, t *condition.Test, known []string) {
	for _, operand := range t.Operands() {
		text := strings.TrimRight(operand.Text, " \t")
		if operand.Kind == value.String && slices.Contains(known, text) {
			continue
		}
		p.Report(
			operand.Range,
			fmt.Sprintf("%q is never %s: interface.input does not list it", m.Key, operand.String()),
			lint.Expected("one of "+strings.Join(known[:min(len(known), 20)], ", ")),
			lint.Nearest(operand.Text, known),
		)
	}
}
