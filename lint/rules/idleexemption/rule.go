// Package idleexemption reports `approval: false` where there is nothing to lift.
package idleexemption

import (
	_ "embed"
	"fmt"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

//go:embed bad.agf.yaml
var bad string

//go:embed good.agf.yaml
var good string

// Rule returns the rule.
func Rule() lint.Rule {
	return lint.Rule{
		RuleInfo: diag.RuleInfo{
			ID: "idle-exemption", Title: "An exemption lifts nothing", Severity: diag.Info,
			Why: "`approval: false` lifts what a tool of an MCP server inherits from that server, and nothing else: local tools, agents, servers and skills inherit no approval, " +
				"a remote agent's own gate stands whatever its skills say, and no file lifts what a policy demands. Leave the field out, or look for the approval that you thought is there.",
			Bad: lint.Sample(bad), Good: lint.Sample(good), Spec: "Agent Format, HITL, exemptions",
		},
		Agent: check,
	}
}

func check(p *lint.Pass) {
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
