// Package allowlistglob reports patterns in allow-lists, whose entries
// are plain names.
package allowlistglob

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
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
	for _, s := range p.Agent.ActionSpace.MCPServers {
		report(p, lint.Entries(s.AllowedTools), "tool")
	}
	for _, r := range p.Agent.ActionSpace.RemoteAgents {
		report(p, lint.Entries(r.AllowedSkills), "skill")
	}
}

func report(p *lint.Pass, list []schema.ToolRef, what string) {
	for _, e := range list {
		if strings.Contains(e.Name, "*") {
			p.Report(
				e.NameRange,
				fmt.Sprintf(
					"%q is a plain name here, so it allows no %s but one of this very name",
					e.Name,
					what,
				),
				lint.Expected(fmt.Sprintf("every %s by its name, or no list for all of them", what)),
			)
		}
	}
}
