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
			handle:  (*exchange).whoami,
		},
		{
			pattern: "GET /v1/agents",
			scopes:  slices.Concat(read, decide, request),
			handle:  (*exchange).listAgents,
		},
		{
			pattern: "POST /v1/agents/{agent}/decide",
			scopes:  slices.Concat(decide, request),
			body:    callBody,
			deny:    true,
			handle:  (*exchange).decide,
		},
		{
			pattern: "POST /v1/agents/{agent}/requests",
			scopes:  request,
			body:    callBody,
			deny:    true,
			handle:  (*exchange).openRequest,
		},
		{
			pattern: "POST /v1/agents/{agent}/questions",
			scopes:  request,
			body:    callBody,
			deny:    true,
			handle:  (*exchange).askQuestion,
		},
		{
			pattern: "POST /v1/agents/{agent}/reports",
			scopes:  request,
			body:    callBody,
			handle:  (*exchange).report,
		},

		{
			pattern: "GET /v1/agents/{agent}/rap/tools",
			scopes:  request,
			query:   []string{"session"},
			handle:  ofRuntime((*exchange).rapTools),
		},
		{
			pattern: "POST /v1/agents/{agent}/rap/calls",
			scopes:  request,
			body:    callBody,
			deny:    true,
			handle:  ofRuntime((*exchange).rapInvoke),
		},
		{
			pattern: "GET /v1/agents/{agent}/rap/calls",
			scopes:  request,
			query:   []string{"thread", "id", "wait"},
			handle:  ofRuntime((*exchange).rapCall),
		},
		{
			pattern: "POST /v1/agents/{agent}/rap/cancel",
			scopes:  request,
			body:    smallBody,
			handle:  ofRuntime((*exchange).rapCancel),
		},
		{
			pattern: "POST /v1/agents/{agent}/rap/close",
			scopes:  request,
			body:    smallBody,
			handle:  ofRuntime((*exchange).rapClose),
		},
		{
			pattern: "GET /v1/agents/{agent}/rap/stream",
			scopes:  request,
			query:   []string{"thread", "id", "after"},
			handle:  ofRuntime((*exchange).rapFollow),
		},
		{
			pattern: "GET /v1/agents/{agent}/rap/events",
			scopes:  request,
			query:   []string{"thread", "from"},
			handle:  ofRuntime((*exchange).rapEvents),
		},
		{
			pattern: "GET /v1/agents/{agent}/rap/views",
			scopes:  request,
			query:   []string{"thread"},
			handle:  ofRuntime((*exchange).rapViews),
		},

		{
			pattern: "GET /v1/rap/grants",
			scopes:  read,
			handle:  (*exchange).listSessionGrants,
		},
		{
			pattern: "POST /v1/rap/grants/{id}/revoke",
			scopes:  slices.Concat(vote, admin),
			body:    smallBody,
			handle:  (*exchange).revokeSessionGrant,
		},
		{
			pattern: "GET /v1/rap/sign_ins",
			scopes:  read,
			handle:  (*exchange).listSignIns,
		},

		{
			pattern: "GET /v1/requests",
			scopes:  read,
			handle:  (*exchange).listRequests,
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
			handle:  (*exchange).getRequest,
		},
		{
			pattern: "POST /v1/requests/{id}/votes",
			scopes:  vote,
			body:    smallBody,
			handle:  (*exchange).vote,
		},
		{
			pattern: "POST /v1/requests/{id}/edits",
			scopes:  vote,
			query:   []string{"preview"},
			body:    callBody,
			handle:  (*exchange).edit,
		},
		{
			pattern: "POST /v1/requests/{id}/consume",
			scopes:  request,
			body:    callBody,
			deny:    true,
			handle:  (*exchange).consume,
		},
		{
			pattern: "POST /v1/requests/{id}/cancel",
			scopes:  slices.Concat(request, admin),
			body:    smallBody,
			handle:  (*exchange).cancel,
		},
		{
			pattern: "GET /v1/requests/{id}/history",
			scopes:  slices.Concat(read, request),
			query:   []string{"from"},
			handle:  (*exchange).history,
		},

		{
			pattern: "GET /v1/grants",
			scopes:  read,
			query:   []string{"all"},
			handle:  (*exchange).listGrants,
		},
		{
			pattern: "GET /v1/grants/{id}",
			scopes:  read,
			handle:  (*exchange).getGrant,
		},
		{
			pattern: "POST /v1/grants/{id}/revoke",
			scopes:  slices.Concat(vote, admin),
			body:    smallBody,
			handle:  (*exchange).revokeGrant,
		},
		{
			pattern: "GET /v1/freezes",
			scopes:  read,
			handle:  (*exchange).listFreezes,
		},
		{
			pattern: "POST /v1/freezes",
			scopes:  slices.Concat(vote, admin),
			body:    smallBody,
			handle:  (*exchange).freeze,
		},
		{
			pattern: "POST /v1/freezes/lift",
			scopes:  admin,
			body:    smallBody,
			handle:  (*exchange).liftFreeze,
		},

		{
			pattern: "GET /v1/events",
			scopes:  read,
			query:   []string{"after"},
			handle:  (*exchange).watch,
		},
		{
			pattern: "GET /v1/audit/checkpoint",
			scopes:  read,
			handle:  (*exchange).checkpoint,
		},
		{
			pattern: "GET /v1/audit/export",
			scopes:  read,
			handle:  (*exchange).export,
		},
		{
			pattern: "GET /v1/audit/proof/{index}",
			scopes:  read,
			handle:  (*exchange).proof,
		},
		{
			pattern: "GET /v1/witness",
			scopes:  slices.Concat(witness, read),
			query:   []string{"log"},
			handle:  (*exchange).witnessed,
		},
		{
			pattern: "POST /v1/witness",
			scopes:  witness,
			body:    smallBody,
			handle:  (*exchange).showWitness,
		},
		{
			pattern: "POST /v1/witness/forget",
			scopes:  admin,
			body:    smallBody,
			handle:  (*exchange).forgetWitnessed,
		},
		{
			pattern: "GET /v1/stats",
			scopes:  read,
			query:   []string{"since"},
			handle:  (*exchange).stats,
		},

		{
			pattern: "GET /v1/candidate",
			scopes:  admin,
			handle:  (*exchange).candidate,
		},
		{
			pattern: "POST /v1/device",
			open:    true,
			body:    smallBody,
			handle:  (*exchange).beginDevice,
		},
		{
			pattern: "POST /v1/device/token",
			open:    true,
			body:    smallBody,
			handle:  (*exchange).takeDeviceToken,
		},
		{
			pattern: "GET /v1/tokens",
			scopes:  admin,
			handle:  (*exchange).listTokens,
		},
		{
			pattern: "POST /v1/tokens",
			scopes:  admin,
			body:    smallBody,
			handle:  (*exchange).createToken,
		},
		{
			pattern: "POST /v1/tokens/{id}/revoke",
			scopes:  admin,
			handle:  (*exchange).revokeToken,
		},
		{
			pattern: "GET /v1/deliveries",
			scopes:  slices.Concat(read, admin),
			query:   []string{"state", "limit"},
			handle:  (*exchange).listDeliveries,
		},
		{
			pattern: "POST /v1/deliveries/{number}/redeliver",
			scopes:  admin,
			handle:  (*exchange).redeliver,
		},

		{
			pattern: "GET /openapi.json",
			open:    true,
			lax:     true,
			handle:  (*exchange).openAPI,
		},
		{
			pattern: "GET /docs",
			open:    true,
			lax:     true,
			handle:  (*exchange).docs,
		},
		{
			pattern: "GET /healthz",
			open:    true,
			lax:     true,
			handle:  (*exchange).healthz,
		},
		{
			pattern: "GET /readyz",
			open:    true,
			lax:     true,
			query:   []string{"verbose"},
			handle:  (*exchange).readyz,
		},
	}
	if !s.cfg.MetricsElsewhere {
		routes = append(routes, route{
			pattern: "GET /metrics",
			open:    !s.cfg.MetricsToken,
			scopes:  read,
			lax:     true,
			handle:  (*exchange).serveMetrics,
		})
	}

	return routes
}
