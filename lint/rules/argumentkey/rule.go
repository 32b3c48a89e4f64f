// Package argumentkey reports conditions of tools and skills that use the names of templates or of delegation.
package argumentkey

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/template"
)

//go:embed bad.agf.yaml
var bad string

//go:embed good.agf.yaml
var good string

// Rule returns the rule.
func Rule() lint.Rule {
	return lint.Rule{
		RuleInfo: diag.RuleInfo{
			ID: "argument-key", Title: "A condition of a tool or skill tests a path instead of an argument", Severity: diag.Error,
			Why: "Keys in the condition of a tool or skill are names of its arguments. `tool_args.amount` is how templates name an argument, `parent.input.risk_level` is how " +
				"delegations name the agent's input; here both name an argument that no call has. assent asks about every call then; other runtimes may never ask.",
			Bad: lint.Sample(bad), Good: lint.Sample(good), Spec: "Agent Format, HITL, condition keys",
		},
		Agent: check, Policy: check,
	}
}

func check(p *lint.Pass) {
	for _, s := range p.Sites() {
		if s.Use == condition.Delegation || s.Approval.Condition == nil {
			continue
		}
		for _, g := range s.Approval.Condition.Groups {
			for _, m := range g.Matchers {
				judge(p, s.Contexts, &m)
			}
		}
	}
}

func judge(p *lint.Pass, contexts []template.Context, m *condition.Matcher) {
	for _, prefix := range []string{"tool_args.", "skill_args."} {
		if name, ok := strings.CutPrefix(m.Key, prefix); ok {
			p.Report(m.KeyRange, fmt.Sprintf("%q is read as an argument of this name; conditions name arguments without %s", m.Key, prefix),
				lint.Expected("the name of an argument"), lint.Meant(name))
			return
		}
	}
	delegates := slices.Contains(contexts, template.RemoteDelegation) // a policy rule for delegations as well
	if isParent := strings.HasPrefix(m.Key, "parent.input.") || strings.HasPrefix(m.Key, "parent.output."); isParent && !delegates {
		p.Report(m.KeyRange, fmt.Sprintf("%q is read as an argument of this name; only delegation sees the parent", m.Key),
			lint.Expected("the name of an argument"))
	}
}
