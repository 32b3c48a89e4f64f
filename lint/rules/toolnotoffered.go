package rules

import (
	"fmt"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/catalog"
)

// toolNotOffered reports tools that an agent may call and that are missing in its catalogue.
func toolNotOffered(p *lint.Pass) {
	space := &p.Agent.ActionSpace
	if tools, known := p.Catalogs().Local(space); known {
		for _, t := range space.LocalTools {
			if lint.LocalTool(tools, &t) == nil {
				reportToolNotOffered(p, t.AliasRange, t.Alias, "the catalogue", tools)
			}
		}
	}

	for _, s := range space.MCPServers {
		tools, known := p.Catalogs().Server(space, s.Alias)
		for _, t := range lint.Entries(s.AllowedTools) {
			if known && lint.Tool(tools, t.Name) == nil {
				reportToolNotOffered(p, t.NameRange, t.Name, fmt.Sprintf("server %q", s.Alias), tools)
			}
		}
	}
}

func reportToolNotOffered(p *lint.Pass, at diag.Range, name, by string, tools []*catalog.Tool) {
	var known []string
	for _, t := range tools {
		known = append(known, t.Name)
	}
	p.Report(
		at,
		fmt.Sprintf("%s offers no tool %q, so this entry allows and gates nothing", by, name),
		lint.Expected("the name of a tool that it offers"),
		lint.Nearest(name, known),
	)
}
