package approval

import (
	"time"
)

// auditedGrant is a grant as the ledger tells of it.
type auditedGrant struct {
	agent, target, plan, principal, session string
	expires                                 time.Time
	uses, most                              int
	revoked                                 bool
}

var aboutGrants = map[string]bool{EventGrantCreated: true, EventGrantUsed: true, EventGrantRevoked: true}

func (a *Auditor) grant(e *auditEntry) {
	g := a.grants[e.Subject]
	switch {
	case e.Type == EventGrantCreated && g != nil:
		e.fail("it was made before")
	case e.Type == EventGrantCreated:
		a.grants[e.Subject] = a.granted(e)
	case g == nil:
		e.fail("there is no such standing approval before this entry")
	case e.Type == EventGrantRevoked:
		if g.revoked {
			e.fail("it was revoked before")
		}
		g.revoked = true
	default:
		a.uses++
		g.used(e)
	}
}

func (a *Auditor) granted(e *auditEntry) *auditedGrant {
	g := &auditedGrant{agent: e.text("agent"), target: e.text("target"), plan: e.text("plan"), principal: e.text("principal"), session: e.text("session"),
		expires: e.time("expires"), most: e.number("max_uses")}
	r := a.requests[e.text("request")]
	switch {
	case r == nil:
		e.fail("it came out of no request")
	case r.state != Approved || e.text("binding") != r.binding:
		e.fail("it came out of a request that was not approved, or for another call")
	case g.plan != r.plan:
		e.fail("it is for other rules than its request's")
	case e.number("uses") != 0:
		e.fail("it begins used")
	}
	return g
}

func (g *auditedGrant) used(e *auditEntry) {
	switch {
	case g.revoked:
		e.fail("it was used after it was revoked")
	case e.Time.After(g.expires):
		e.fail("it was used after its end at %s", stamp(g.expires))
	case g.uses >= g.most:
		e.fail("it was used more than %d times", g.most)
	case e.number("uses") != g.uses+1:
		e.fail("its uses are miscounted: this is use %d", g.uses+1)
	case e.text("plan") != g.plan:
		e.fail("it was used under other rules than it was made under")
	case e.text("agent") != g.agent || e.text("target") != g.target || e.text("principal") != g.principal:
		e.fail("it was used for another agent, target or principal")
	case g.session != "" && e.text("session") != g.session:
		e.fail("it was used in another session")
	}
	g.uses++
}
