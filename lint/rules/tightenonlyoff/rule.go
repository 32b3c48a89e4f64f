// Package tightenonlyoff reports agents that switch the tighten-only
// invariant off.
package tightenonlyoff

import (
	_ "embed"

	"github.com/assent-dev/assent/lint"
)

//go:embed rule.md
var page string

//go:embed bad.agf.yaml
var bad string

//go:embed good.agf.yaml
var good string

// Rule returns the rule.
func Rule() lint.Rule {
	return lint.Rule{
		RuleInfo: lint.Describe(page, bad, good),
		Agent:    check,
	}
}

func check(p *lint.Pass) {
	if c := &p.Agent.Constraints; !c.TightenOnly {
		p.Report(
			c.TightenOnlyRange,
			"sub-agents and policies may loosen what this agent demands, in a runtime that heeds this",
			lint.Expected("true, which is the default"),
		)
	}
}
