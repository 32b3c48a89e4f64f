package rules

import (
	"fmt"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

// emptyAllowList reports allow-lists that allow nothing.
func emptyAllowList(p *lint.Pass) {
	for _, s := range p.Agent.ActionSpace.MCPServers {
		reportEmptyAllowList(p, s.AllowedTools, s.AllowedRange, "allowed_tools", "tool", s.Alias)
	}
	for _, r := range p.Agent.ActionSpace.RemoteAgents {
		reportEmptyAllowList(p, r.AllowedSkills, r.AllowedRange, "allowed_skills", "skill", r.Alias)
	}
}

func reportEmptyAllowList(p *lint.Pass, list *[]schema.ToolRef, at diag.Range, field, what, alias string) {
	if list == nil || len(*list) > 0 {
		return
	}
	p.Report(at, fmt.Sprintf("%s: [] allows no %s of %q here, and every one elsewhere", field, what, alias),
		lint.Expected(fmt.Sprintf("the %ss that the agent needs, or no %s for all of them", what, field)))
}
