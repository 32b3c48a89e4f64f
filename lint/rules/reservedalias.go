package rules

import (
	"fmt"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
)

// reservedAlias reports aliases of sub-agents that mean something else in an execution policy.
func reservedAlias(p *lint.Pass) {
	space := &p.Agent.ActionSpace
	for _, l := range space.LocalAgents {
		judgeReservedAlias(p, l.Alias, l.AliasRange)
	}
	for _, r := range space.RemoteAgents {
		if r.Alias == "parent" {
			judgeReservedAlias(p, r.Alias, r.AliasRange)
		}
	}
}

func judgeReservedAlias(p *lint.Pass, alias string, at diag.Range) {
	switch alias {
	case "parent":
		p.Report(at, `"parent" is the agent itself in paths and templates`, lint.Expected("another alias"))
	case "last", "first", "merge":
		// output-keyword-clash reports the other case.
		if out := p.Agent.Policy.Output; out.Strategy != alias || out.Range == (diag.Range{}) {
			p.Report(
				at,
				fmt.Sprintf("%q is a strategy in output_from, not this agent", alias),
				lint.Expected("another alias"),
			)
		}
	}
}
