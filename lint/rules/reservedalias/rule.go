// Package reservedalias reports aliases of sub-agents that mean something else in an execution policy.
package reservedalias

import (
	_ "embed"
	"fmt"

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
			ID: "reserved-alias", Title: "A sub-agent has a name with a meaning of its own", Severity: diag.Warning,
			Why: "In paths `parent` is the agent itself, so `parent.output.x` never reads a sub-agent of that alias. In `output_from` the words `last`, `first` and `merge` are " +
				"strategies, so an agent of that name is meant only in the long form. Give the sub-agent another alias.",
			Bad: lint.Sample(bad), Good: lint.Sample(good), Spec: "Agent Format, path expressions and output_from",
		},
		Agent: check,
	}
}

func check(p *lint.Pass) {
	space := &p.Agent.ActionSpace
	for _, l := range space.LocalAgents {
		judge(p, l.Alias, l.AliasRange)
	}
	for _, r := range space.RemoteAgents {
		if r.Alias == "parent" {
			judge(p, r.Alias, r.AliasRange)
		}
	}
}

func judge(p *lint.Pass, alias string, at diag.Range) {
	switch alias {
	case "parent":
		p.Report(at, `"parent" is the agent itself in paths and templates`, lint.Expected("another alias"))
	case "last", "first", "merge":
		if out := p.Agent.Policy.Output; out.Strategy != alias || out.Range == (diag.Range{}) { // output-keyword-clash tells it there
			p.Report(at, fmt.Sprintf("%q is a strategy in output_from, not this agent", alias), lint.Expected("another alias"))
		}
	}
}
