// Package idleexemption reports `approval: false` where there is
// nothing to lift.
package idleexemption

import (
	"fmt"

	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

// Check is the rule.
func Check(p *lint.Pass) {
	space := &p.Agent.ActionSpace
	for _, t := range space.LocalTools {
		report(p, t.Approval, "a local tool inherits no approval")
	}
	for _, s := range space.MCPServers {
		report(p, s.Approval, "a server inherits no approval")
		for _, t := range lint.Entries(s.AllowedTools) {
			if s.Approval == nil || s.Approval.Form == schema.Never {
				report(p, t.Approval, fmt.Sprintf("server %q demands no approval", s.Alias))
			}
		}
	}

	for _, l := range space.LocalAgents {
		report(p, l.Approval, "a delegation inherits no approval")
	}
	for _, r := range space.RemoteAgents {
		report(p, r.Approval, "a delegation inherits no approval")
		for _, s := range lint.Entries(r.AllowedSkills) {
			report(p, s.Approval, "a skill inherits no approval, and the agent's own gate stands")
		}
	}
}

func report(p *lint.Pass, a *schema.Approval, why string) {
	if a != nil && a.Form == schema.Never {
		p.Report(a.Range, "this exemption lifts nothing: "+why, lint.Expected("no approval field"))
	}
}
