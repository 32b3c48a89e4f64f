package rules

import (
	"fmt"

	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

// idleExemption reports `approval: false` on entries that inherit no approval.
func idleExemption(p *lint.Pass) {
	space := &p.Agent.ActionSpace
	why := map[string]string{
		"local_tools":   "a local tool inherits no approval",
		"mcp_servers":   "a server inherits no approval",
		"local_agents":  "a delegation inherits no approval",
		"remote_agents": "a delegation inherits no approval",
	}
	for _, list := range space.Lists() {
		for _, e := range list.Entries {
			reportIdleExemption(p, e.Approval, why[list.Key])
		}
	}

	for _, s := range space.MCPServers {
		for _, t := range lint.Entries(s.AllowedTools) {
			if s.Approval == nil || s.Approval.Form == schema.Never {
				reportIdleExemption(p, t.Approval, fmt.Sprintf("server %q demands no approval", s.Alias))
			}
		}
	}

	for _, r := range space.RemoteAgents {
		for _, s := range lint.Entries(r.AllowedSkills) {
			reportIdleExemption(p, s.Approval, "a skill inherits no approval, and the agent's own gate stands")
		}
	}
}

func reportIdleExemption(p *lint.Pass, a *schema.Approval, why string) {
	if a != nil && a.Form == schema.Never {
		p.Report(a.Range, "this exemption lifts nothing: "+why, lint.Expected("no approval field"))
	}
}
