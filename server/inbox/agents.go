package inbox

import (
	"cmp"
	"time"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
)

// agentsPage shows which agents can be used and which configuration decides their calls. It
// contains the same information for the same people as GET /v1/agents.
type agentsPage struct {
	openapi.Agents
	Known     bool      // this server provides the information
	Confirmed time.Time // when the registry was last confirmed; zero if never
	Problems  []string  // files that can't be used at present
}

// agents shows the page. People are not restricted to one agent, so they see all agents of their
// tenant, like their tokens.
func (v recordPages) agents() error {
	p := agentsPage{Known: v.Agents != nil}
	if p.Known {
		p.Agents = v.Agents(v.Tenant).SeenBy(nil)
	}
	p.PermitAge = cmp.Or(p.PermitAge, policy.FormatDuration(resolve.DefaultPermitAge))
	p.Undeclared = cmp.Or(p.Undeclared, "deny")
	if r := p.Registry; r != nil && r.Confirmed != "" {
		var err error
		if p.Confirmed, err = time.Parse(time.RFC3339, r.Confirmed); err != nil {
			return err
		}
	}

	if v.Loaded != nil {
		for _, part := range v.Loaded(v.Tenant) {
			p.Problems = append(p.Problems, part.Problems...)
		}
	}

	return v.show("agents", "Agents", "agents", p)
}
