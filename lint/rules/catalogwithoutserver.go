package rules

import (
	"fmt"

	"github.com/assent-dev/assent/lint"
)

// catalogWithoutServer reports lists of tools that could belong to several servers of the
// agent.
func catalogWithoutServer(p *lint.Pass) {
	space := &p.Agent.ActionSpace
	for _, c := range p.Catalogs().Homeless(space) {
		first := space.MCPServers[0]
		p.Report(
			first.AliasRange,
			fmt.Sprintf(
				"%s does not say which of the %d servers it lists the tools of, so nothing is held against it",
				c.File,
				len(space.MCPServers),
			),
			lint.Expected(fmt.Sprintf("--tools %s=%s, or \"server\": %q in the list", first.Alias, c.File, first.Alias)),
		)
	}
}
