package rules

import (
	"fmt"

	"github.com/assent-dev/assent/lint"
)

// limitsNotEnforced reports the bounds of a run that assent does not
// enforce. It sees single calls, and no run as a whole.
// max_delegation_depth is not among them: agf-validate holds files to it.
func limitsNotEnforced(p *lint.Pass) {
	constraints := p.Agent.Doc.Root.Get("constraints")
	for _, group := range []struct {
		name   string
		fields []string
	}{
		{"budget", []string{"max_token_usage", "max_duration_seconds"}},
		{"limits", []string{"max_llm_calls", "max_tool_calls"}},
	} {
		for _, name := range group.fields {
			bounds := constraints.Get(group.name)
			if bounds.Get(name) == nil {
				continue
			}
			p.Report(
				bounds.Field(name).Key.Range,
				fmt.Sprintf("%s.%s is not enforced by assent; the runtime of the agent must enforce it", group.name, name),
			)
		}
	}
}
