package rules

import (
	"fmt"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
)

// destructiveExempted reports destructive tools that are exempt from the approval that their
// server demands.
func destructiveExempted(p *lint.Pass) {
	space := &p.Agent.ActionSpace
	for _, s := range space.MCPServers {
		if open(s.Approval) {
			continue // an exemption has no effect here
		}
		tools, _ := p.Catalogs().Server(space, s.Alias)
		for _, e := range lint.Entries(s.AllowedTools) {
			if e.Approval == nil || e.Approval.Form != schema.Never || asksElsewhere(&s, e.Name) {
				continue
			}
			t := lint.Tool(tools, e.Name)
			why := destructive(p, e.Name, s.Alias, t)
			if why != "" && !governed(p, t, policy.MCPTool, e.Name, s.Alias) {
				reportDestructiveExempted(p, &s, &e, why)
			}
		}
	}
}

func reportDestructiveExempted(p *lint.Pass, s *schema.MCPServer, e *schema.ToolRef, why string) {
	message := fmt.Sprintf("%q %s, and is exempted from what %q demands", e.Name, why, s.Alias)
	more := []func(*diag.Finding){
		lint.Expected("no approval field here, or a condition that asks where it destroys something"),
		lint.Related(s.Approval.Range, "the approval that is lifted"),
	}
	if policiesMissing(p) {
		message += "; the policies that the agent names were not given"
		more = append(more, lint.Soften(diag.Info))
	}
	p.Report(e.Approval.Range, message, more...)
}

// asksElsewhere reports whether another entry of the tool asks or inherits, because the
// strictest entry counts.
func asksElsewhere(s *schema.MCPServer, name string) bool {
	for _, e := range lint.Entries(s.AllowedTools) {
		if e.Name == name && (e.Approval == nil || e.Approval.Form != schema.Never) {
			return true
		}
	}
	return false
}
