package server

import (
	"slices"

	"github.com/assent-dev/assent/server/openapi"
)

// table lists every operation. A test compares it with openapi.yaml.
func (s *Server) table() []route {
	var (
		decide  = []scope{openapi.ScopeDecide}
		request = []scope{openapi.ScopeRequest}
		read    = []scope{openapi.ScopeRead}
		vote    = []scope{openapi.ScopeVote}
		admin   = []scope{openapi.ScopeAdmin}
		witness = []scope{openapi.ScopeWitness}
	)
	routes := []route{
		{
			pattern: "GET /v1/whoami",
			scopes:  slices.Concat(decide, request, read, vote, admin, witness),
			leavers: true, // it says so
			handle:  of(infoOps.whoami),
		},
		{
			pattern: "GET /v1/agents",
			scopes:  slices.Concat(read, decide, request),
			handle:  of(infoOps.listAgents),
		},
		{
			pattern: "POST /v1/agents/{agent}/decide",
			scopes:  slices.Concat(decide, request),
			body:    callBody,
			deny:    true,
			handle:  of(requestOps.decide),
		},
		{
			pattern: "POST /v1/agents/{agent}/requests",
			scopes:  request,
			body:    callBody,
			deny:    true,
			handle:  of(requestOps.openRequest),
		},
		{
			pattern: "POST /v1/agents/{agent}/questions",
			scopes:  request,
			body:    callBody,
			deny:    true,
			handle:  of(requestOps.askQuestion),
		},
		{
			pattern: "POST /v1/agents/{agent}/reports",
			scopes:  request,
			body:    callBody,
			handle:  of(requestOps.report),
		},

		{
			pattern: "GET /v1/agents/{agent}/rap/tools",
			scopes:  request,
			query:   []string{"session"},
			handle:  ofRuntime(rapOps.rapTools),
		},
		{
			pattern: "POST /v1/agents/{agent}/rap/calls",
			scopes:  request,
			body:    callBody,
			deny:    true,
			handle:  ofRuntime(rapOps.rapInvoke),
		},
		{
			pattern: "GET /v1/agents/{agent}/rap/calls",
			scopes:  request,
			query:   []string{"thread", "id", "wait"},
			handle:  ofRuntime(rapOps.rapCall),
		},
		{
			pattern: "POST /v1/agents/{agent}/rap/cancel",
			scopes:  request,
			body:    smallBody,
			handle:  ofRuntime(rapOps.rapCancel),
		},
		{
			pattern: "POST /v1/agents/{agent}/rap/close",
			scopes:  request,
			body:    smallBody,
			handle:  ofRuntime(rapOps.rapClose),
		},
		{
			pattern: "GET /v1/agents/{agent}/rap/stream",
			scopes:  request,
			query:   []string{"thread", "id", "after"},
			handle:  ofRuntime(rapOps.rapFollow),
		},
		{
			pattern: "GET /v1/agents/{agent}/rap/events",
			scopes:  request,
			query:   []string{"thread", "from"},
			handle:  ofRuntime(rapOps.rapEvents),
		},
		{
			pattern: "GET /v1/agents/{agent}/rap/views",
			scopes:  request,
			query:   []string{"thread"},
			handle:  ofRuntime(rapOps.rapViews),
		},

		{
			pattern: "GET /v1/rap/grants",
			scopes:  read,
			handle:  of(rapOps.listSessionGrants),
		},
		{
			pattern: "POST /v1/rap/grants/{id}/revoke",
			scopes:  slices.Concat(vote, admin),
			body:    smallBody,
			handle:  of(rapOps.revokeSessionGrant),
		},
		{
			pattern: "GET /v1/rap/sign_ins",
			scopes:  read,
			handle:  of(rapOps.listSignIns),
		},

		{
			pattern: "GET /v1/requests",
			scopes:  read,
			handle:  of(requestOps.listRequests),
			query: []string{
				"state",
				"agent",
				"target",
				"principal",
				"group",
				"mine",
				"since",
				"order",
				"limit",
				"cursor",
			},
		},
		{
			pattern: "GET /v1/requests/{id}",
			scopes:  slices.Concat(read, request),
			query:   []string{"wait", "version"},
			handle:  of(requestOps.getRequest),
		},
		{
			pattern: "POST /v1/requests/{id}/votes",
			scopes:  vote,
			body:    smallBody,
			handle:  of(requestOps.vote),
		},
		{
			pattern: "POST /v1/requests/{id}/edits",
			scopes:  vote,
			query:   []string{"preview"},
			body:    callBody,
			handle:  of(requestOps.edit),
		},
		{
			pattern: "POST /v1/requests/{id}/consume",
			scopes:  request,
			body:    callBody,
			deny:    true,
			handle:  of(requestOps.consume),
		},
		{
			pattern: "POST /v1/requests/{id}/cancel",
			scopes:  slices.Concat(request, admin),
			body:    smallBody,
			handle:  of(requestOps.cancel),
		},
		{
			pattern: "GET /v1/requests/{id}/history",
			scopes:  slices.Concat(read, request),
			query:   []string{"from"},
			handle:  of(requestOps.history),
		},

		{
			pattern: "GET /v1/grants",
			scopes:  read,
			query:   []string{"all"},
			handle:  of(adminOps.listGrants),
		},
		{
			pattern: "GET /v1/grants/{id}",
			scopes:  read,
			handle:  of(adminOps.getGrant),
		},
		{
			pattern: "POST /v1/grants/{id}/revoke",
			scopes:  slices.Concat(vote, admin),
			body:    smallBody,
			handle:  of(adminOps.revokeGrant),
		},
		{
			pattern: "GET /v1/freezes",
			scopes:  read,
			handle:  of(adminOps.listFreezes),
		},
		{
			pattern: "POST /v1/freezes",
			scopes:  slices.Concat(vote, admin),
			body:    smallBody,
			handle:  of(adminOps.freeze),
		},
		{
			pattern: "POST /v1/freezes/lift",
			scopes:  admin,
			body:    smallBody,
			handle:  of(adminOps.liftFreeze),
		},

		{
			pattern: "GET /v1/events",
			scopes:  read,
			query:   []string{"after"},
			handle:  of(streamOps.watch),
		},
		{
			pattern: "GET /v1/audit/checkpoint",
			scopes:  read,
			handle:  of(auditOps.checkpoint),
		},
		{
			pattern: "GET /v1/audit/export",
			scopes:  read,
			handle:  of(auditOps.export),
		},
		{
			pattern: "GET /v1/audit/proof/{index}",
			scopes:  read,
			handle:  of(auditOps.proof),
		},
		{
			pattern: "GET /v1/witness",
			scopes:  slices.Concat(witness, read),
			query:   []string{"log"},
			handle:  of(adminOps.witnessed),
		},
		{
			pattern: "POST /v1/witness",
			scopes:  witness,
			body:    smallBody,
			handle:  of(adminOps.showWitness),
		},
		{
			pattern: "POST /v1/witness/forget",
			scopes:  admin,
			body:    smallBody,
			handle:  of(adminOps.forgetWitnessed),
		},
		{
			pattern: "GET /v1/stats",
			scopes:  read,
			query:   []string{"since"},
			handle:  of(adminOps.stats),
		},

		{
			pattern: "GET /v1/candidate",
			scopes:  admin,
			handle:  of(adminOps.candidate),
		},
		{
			pattern: "POST /v1/device",
			open:    true,
			body:    smallBody,
			handle:  of(adminOps.beginDevice),
		},
		{
			pattern: "POST /v1/device/token",
			open:    true,
			body:    smallBody,
			handle:  of(adminOps.takeDeviceToken),
		},
		{
			pattern: "GET /v1/tokens",
			scopes:  admin,
			handle:  of(adminOps.listTokens),
		},
		{
			pattern: "POST /v1/tokens",
			scopes:  admin,
			body:    smallBody,
			handle:  of(adminOps.createToken),
		},
		{
			pattern: "POST /v1/tokens/{id}/revoke",
			scopes:  admin,
			handle:  of(adminOps.revokeToken),
		},
		{
			pattern: "GET /v1/deliveries",
			scopes:  slices.Concat(read, admin),
			query:   []string{"state", "limit"},
			handle:  of(adminOps.listDeliveries),
		},
		{
			pattern: "POST /v1/deliveries/{number}/redeliver",
			scopes:  admin,
			handle:  of(adminOps.redeliver),
		},

		{
			pattern: "GET /openapi.json",
			open:    true,
			lax:     true,
			handle:  of(infoOps.openAPI),
		},
		{
			pattern: "GET /docs",
			open:    true,
			lax:     true,
			handle:  of(infoOps.docs),
		},
		{
			pattern: "GET /healthz",
			open:    true,
			lax:     true,
			handle:  of(infoOps.healthz),
		},
		{
			pattern: "GET /readyz",
			open:    true,
			lax:     true,
			query:   []string{"verbose"},
			handle:  of(infoOps.readyz),
		},
	}
	if !s.cfg.MetricsElsewhere {
		routes = append(routes, route{
			pattern: "GET /metrics",
			open:    !s.cfg.MetricsToken,
			scopes:  read,
			lax:     true,
			handle:  of(infoOps.serveMetrics),
		})
	}

	return routes
}
