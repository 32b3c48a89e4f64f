// Package allowlistglob reports patterns in allow-lists, whose entries are plain names.
package allowlistglob

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

//go:embed bad.agf.yaml
var bad string

//go:embed good.agf.yaml
var good string

// Rule returns the rule.
func Rule() lint.Rule {
	return lint.Rule{
		RuleInfo: diag.RuleInfo{
			ID: "allow-list-glob", Title: "An allow-list has a pattern where names are meant", Severity: diag.Warning,
			Why: "Entries of `allowed_tools` and `allowed_skills` are plain names: the standard knows no patterns there. `get_*` allows a tool " +
				"of exactly this name, which no server has, so every call is denied; a runtime that does read patterns would allow tools that nobody has listed. " +
				"List the names. (Policies do have patterns, in `targets` and `servers`.)",
			Bad: lint.Sample(bad), Good: lint.Sample(good), Spec: "Agent Format, McpToolRef; docs/design/001-semantics.md",
		},
		Agent: check,
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
			p.Report(e.NameRange, fmt.Sprintf("%q is a plain name here, so it allows no %s but one of this very name", e.Name, what),
				lint.Expected(fmt.Sprintf("every %s by its name, or no list for all of them", what)))
		}
	}
}
