package server

import (
	"net/http"
	"slices"

	"github.com/assent-dev/assent/server/openapi"
)

// listAgents tells which agents can be used, and by what they are
// decided. A token that may act for some alone is told of those.
func (x *exchange) listAgents() error {
	out := openapi.Agents{Agents: []openapi.AgentInForce{}}
	if x.cfg.Agents != nil {
		out = x.cfg.Agents(x.tenant())
	}
	out.Agents = slices.DeleteFunc(out.Agents, func(a openapi.AgentInForce) bool {
		return !actsFor(x.token, a.ID)
	})

	return x.answer(http.StatusOK, out)
}
