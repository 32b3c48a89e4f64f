package rules

import (
	"fmt"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

// looserThanBlanket reports tools whose condition asks less
// often than their server's approval.
func looserThanBlanket(p *lint.Pass) {
	for _, s := range p.Agent.ActionSpace.MCPServers {
		if s.Approval == nil || s.Approval.Form == schema.Never {
			continue
		}
		told := map[string]bool{}
		for _, t := range lint.Entries(s.AllowedTools) {
			if !told[t.Name] && t.Approval != nil && t.Approval.Form == schema.Conditional {
				told[t.Name] = true
				compare(p, &s, &t)
			}
		}
	}
}

// compare asks whether some call dodges the blanket. The blanket that
// asks always has no condition.
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

// together is the condition under which one of the entries of a tool at
// least asks: the strictest counts when it is listed twice. dodges is
// false when one always asks, or inherits the server's approval.
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
