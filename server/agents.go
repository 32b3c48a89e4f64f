package server

import (
	"net/http"

	"github.com/assent-dev/assent/server/openapi"
)

// listAgents lists the agents that can be used, and the files that decide about them. A
// token that is bound to agents gets only those agents, and the files in force without
// their problems.
func (x infoOps) listAgents() error {
	out := openapi.Agents{Agents: []openapi.AgentInForce{}}
	if x.cfg.Agents != nil {
		out = x.cfg.Agents(x.tenant())
	}

	if x.cfg.Loaded != nil {
		out.Loaded = x.cfg.Loaded(x.tenant())
	}

	return x.answer(http.StatusOK, out.SeenBy(x.token.Agents))
}
