package rules

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
)

// limitsNotEnforced reports the bounds of a run that assent does not
// enforce, once for a file. It sees single calls, and no run as a whole.
// max_delegation_depth is not among them: agf-validate holds files to it.
func limitsNotEnforced(p *lint.Pass) {
	constraints := p.Agent.Doc.Root.Get("constraints")
	var first *yamldoc.Field
	var found []string
	for _, bound := range [][2]string{
		{"budget", "max_token_usage"},
		{"budget", "max_duration_seconds"},
		{"limits", "max_llm_calls"},
		{"limits", "max_tool_calls"},
	} {
		if f := constraints.Get(bound[0]).Field(bound[1]); f != nil {
			first = cmp.Or(first, f)
			found = append(found, bound[0]+"."+bound[1])
		}
	}
	if first != nil {
		p.Report(first.Key.Range, fmt.Sprintf("assent does not enforce %s; the runtime of the agent must",
			strings.Join(found, ", ")))
	}
}
