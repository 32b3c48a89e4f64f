package rules

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
)

// limitsNotEnforced reports the limits of a run that assent doesn't enforce, once per file.
// assent sees single calls, not a whole run. max_delegation_depth isn't included, because
// agf-validate enforces it.
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
