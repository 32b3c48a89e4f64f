package rules

import (
	"fmt"

	"github.com/assent-dev/assent/lint"
)

// serverUnderOtherAlias reports rules that name a server by its alias, if an agent under the
// policy uses another alias for the same server.
func serverUnderOtherAlias(p *lint.Pass) {
	for i, n := range p.Policy.Doc.Root.Get("rules").Items {
		r := &p.Policy.Rules[i]
		servers := n.Get("match").Get("servers")
		agent, alias, ref, found := p.Fleet.Elsewhere(p.Policy, &r.Match)
		if servers == nil || !found {
			continue
		}
		p.Report(
			servers.Range,
			fmt.Sprintf("the agent %s calls the server %s by the alias %q, so rule %q does not meet its calls",
				agent, ref, alias, r.ID),
			lint.Expected(fmt.Sprintf("the alias %q too, or one alias for the server in all agents", alias)),
		)
	}
}
