// Package tightenonlyoff reports agents that switch the tighten-only invariant off.
package tightenonlyoff

import (
	_ "embed"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
)

//go:embed bad.agf.yaml
var bad string

//go:embed good.agf.yaml
var good string

// Rule returns the rule.
func Rule() lint.Rule {
	return lint.Rule{
		RuleInfo: diag.RuleInfo{
			ID: "tighten-only-off", Title: "The tighten-only invariant is switched off", Severity: diag.Warning,
			Why: "With `tighten_only_invariant: false` a runtime may let sub-agents and policies loosen what this agent demands; the standard does not say how far. " +
				"assent never does: approvals are a union whatever the field says. Leave it at its default, so that it is the same everywhere.",
			Bad: lint.Sample(bad), Good: lint.Sample(good), Spec: "Agent Format, constraints.tighten_only_invariant",
		},
		Agent: check,
	}
}

func check(p *lint.Pass) {
	if c := &p.Agent.Constraints; !c.TightenOnly {
		p.Report(c.TightenOnlyRange, "sub-agents and policies may loosen what this agent demands, in a runtime that heeds this",
			lint.Expected("true, which is the default"))
	}
}
