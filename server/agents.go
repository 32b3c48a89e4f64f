package server

import (
	"net/http"

	"github.com/assent-dev/assent/server/openapi"
)

// listAgents tells which agents can be used, and by what they are
// decided. A token that may act for some alone is told of those, and
// of the files in force without what is wrong with them.
func (x *exchange) listAgents() error {
	out := openapi.Agents{Agents: []openapi.AgentInForce{}}
	if x.cfg.Agents != nil {
		out = x.cfg.Agents(x.tenant())
	}

	if x.cfg.Loaded != nil {
		out.Loaded = x.cfg.Loaded(x.tenant())
	}

	return x.answer(http.StatusOK, out.SeenBy(x.token.Agents))
}
