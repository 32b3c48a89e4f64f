package rules

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

// allowListGlob reports patterns in allow-lists, because entries of an allow-list are plain
// names.
func allowListGlob(p *lint.Pass) {
	eachAllowList(p, reportAllowListGlob)
}

// eachAllowList calls report for each allow-list of an agent. The argument "what" is a word for
// one entry.
func eachAllowList(p *lint.Pass, report func(p *lint.Pass, list []schema.ToolRef, what string)) {
	for _, s := range p.Agent.ActionSpace.MCPServers {
		report(p, lint.Entries(s.AllowedTools), "tool")
	}
	for _, r := range p.Agent.ActionSpace.RemoteAgents {
		report(p, lint.Entries(r.AllowedSkills), "skill")
	}
}

func reportAllowListGlob(p *lint.Pass, list []schema.ToolRef, what string) {
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
