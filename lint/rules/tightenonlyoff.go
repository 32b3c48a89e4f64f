package rules

import "github.com/assent-dev/assent/lint"

// tightenOnlyOff reports agents that switch the tighten-only invariant off.
func tightenOnlyOff(p *lint.Pass) {
	if c := &p.Agent.Constraints; !c.TightenOnly {
		p.Report(
			c.TightenOnlyRange,
			"sub-agents and policies may loosen what this agent demands, in a runtime that heeds this",
			lint.Expected("true, which is the default"),
		)
	}
}
