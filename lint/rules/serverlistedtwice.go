package rules

import (
	"fmt"

	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

// serverListedTwice reports an MCP server that one agent lists under two aliases.
func serverListedTwice(p *lint.Pass) {
	first := map[string]*schema.MCPServer{}
	servers := p.Agent.ActionSpace.MCPServers
	for i := range servers {
		s := &servers[i]
		other, listed := first[s.ServerRef]
		switch {
		case s.ServerRef == "" || listed && other.Alias == s.Alias: // duplicate-alias reports this one
		case !listed:
			first[s.ServerRef] = s
		default:
			p.Report(s.AliasRange, fmt.Sprintf("%s is listed as %q already", s.ServerRef, other.Alias),
				lint.Expected("one alias for the server"), lint.Related(other.AliasRange, "the other alias"))
		}
	}
}
