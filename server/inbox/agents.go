package inbox

import (
	"cmp"
	"time"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
)

// agentsPage tells which agents can be used, and by what they are
// decided: the same that GET /v1/agents tells, to the same people.
type agentsPage struct {
	openapi.Agents
	Known     bool      // this server tells
	Confirmed time.Time // when the registry was last confirmed; zero: never
	Problems  []string  // files that can't be used as they stand
}

// agents shows the page. People are bound to no agent, so they see all
// of their tenant, as their tokens do.
func (v *visit) agents() error {
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
