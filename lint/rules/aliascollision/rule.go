// Package aliascollision reports aliases that name two things of one agent.
package aliascollision

import (
	"fmt"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
)

// thing is whatever has an alias.
type thing struct {
	what string
	at   diag.Range
}

// Check is the rule.
func Check(p *lint.Pass) {
	space := &p.Agent.ActionSpace
	names := map[string]thing{}
	add := func(alias, what string, at diag.Range) {
		if other, taken := names[alias]; taken && other.what == what {
			return // duplicate-alias tells it
		} else if taken {
			p.Report(at, fmt.Sprintf("%q is the alias of a %s already", alias, other.what),
				lint.Expected("an alias of its own"), lint.Related(other.at, "the "+other.what))
			return
		}

		names[alias] = thing{what, at}
	}
	tools := map[string]bool{}
	for _, t := range space.LocalTools {
		tools[t.Alias] = true
		add(t.Alias, "local tool", t.AliasRange)
	}
	for _, s := range space.MCPServers {
		add(s.Alias, "server", s.AliasRange)
		for _, t := range lint.Entries(s.AllowedTools) {
			if tools[t.Name] {
				p.Report(
					t.NameRange,
					fmt.Sprintf("tool %q has the name of a local tool", t.Name),
					lint.Expected("another alias for the local tool"),
					lint.Related(names[t.Name].at, "the local tool"),
				)
			}
		}
	}

	for _, l := range space.LocalAgents {
		add(l.Alias, "local agent", l.AliasRange)
	}
	for _, r := range space.RemoteAgents {
		add(r.Alias, "remote agent", r.AliasRange)
	}
}
