// Package tightenonlyoff reports agents that switch the tighten-only
// invariant off.
package tightenonlyoff

import "github.com/assent-dev/assent/lint"

// Check is the rule.
func Check(p *lint.Pass) {
	if c := &p.Agent.Constraints; !c.TightenOnly {
		p.Report(
			c.TightenOnlyRange,
			"sub-agents and policies may loosen what this agent demands, in a runtime that heeds this",
			lint.Expected("true, which is the default"),
		)
	}
}
