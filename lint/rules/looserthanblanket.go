package rules

import (
	"fmt"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

// looserThanBlanket reports tools whose condition asks less often than the approval of their
// server.
func looserThanBlanket(p *lint.Pass) {
	for _, s := range p.Agent.ActionSpace.MCPServers {
		if s.Approval == nil || s.Approval.Form == schema.Never {
			continue
		}
		reported := map[string]bool{}
		for _, t := range lint.Entries(s.AllowedTools) {
			if !reported[t.Name] && t.Approval != nil && t.Approval.Form == schema.Conditional {
				reported[t.Name] = true
				compare(p, &s, &t)
			}
		}
	}
}

// compare reports a tool if some call that the server's approval covers is let through. A
// server's approval that always asks has no condition.
func compare(p *lint.Pass, s *schema.MCPServer, t *schema.ToolRef) {
	own, dodges := together(s, t.Name)
	if !dodges {
		return
	}
	covers, witness := p.Analyzer(condition.ToolArgs).Covers(s.Approval.Condition, own)
	if covers != condition.No {
		return
	}
	severity := diag.Warning
	if s.Approval.Form == schema.Always {
		severity = diag.Info
	}
	p.Report(
		t.Approval.Condition.Range,
		fmt.Sprintf(
			"%q lets calls through that %q demands approval for%s",
			t.Name,
			s.Alias,
			lint.Witness(witness),
		),
		lint.Expected("a condition that asks at least as often, or approval: false where the tool is exempt"),
		lint.Related(s.Approval.Range, "the approval that it takes the place of"),
		lint.Soften(severity),
	)
}

// together returns the condition under which at least one of the entries of a tool asks,
// because the strictest entry counts if a tool is listed twice. dodges is false if one entry
// always asks or inherits the server's approval.
func together(s *schema.MCPServer, name string) (own *condition.Expr, dodges bool) {
	own = &condition.Expr{}
	for _, t := range lint.Entries(s.AllowedTools) {
		switch {
		case t.Name != name:
		case t.Approval == nil || t.Approval.Form == schema.Always:
			return nil, false
		case t.Approval.Form == schema.Conditional:
			own.Groups = append(own.Groups, t.Approval.Condition.Groups...)
		}
	}

	return own, true
}
