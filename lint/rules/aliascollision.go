package rules

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
)

// aliasCollision reports an alias that one agent uses for two things.
func aliasCollision(p *lint.Pass) {
	space := &p.Agent.ActionSpace
	names := map[string]thing{}
	for _, list := range space.Lists() {
		what := strings.TrimPrefix(list.What, "MCP ")
		for _, e := range list.Entries {
			other, taken := names[e.Alias]
			switch {
			case !taken:
				names[e.Alias] = thing{what, e.AliasRange}
			case other.what != what: // duplicate-alias reports the other case
				p.Report(e.AliasRange, fmt.Sprintf("%q is the alias of a %s already", e.Alias, other.what),
					lint.Expected("an alias of its own"), lint.Related(other.at, "the "+other.what))
			}
		}
	}

	for _, s := range space.MCPServers {
		for _, t := range lint.Entries(s.AllowedTools) {
			if tool := names[t.Name]; tool.what == "local tool" {
				p.Report(
					t.NameRange,
					fmt.Sprintf("tool %q has the name of a local tool", t.Name),
					lint.Expected("another alias for the local tool"),
					lint.Related(tool.at, "the local tool"),
				)
			}
		}
	}
}

// thing is anything that has an alias.
type thing struct {
	what string
	at   diag.Range
}
