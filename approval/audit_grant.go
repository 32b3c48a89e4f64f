package approval

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/assent-dev/assent/policy"
)

// auditedGrant is the state of a grant according to the ledger.
type auditedGrant struct {
	agent, target, plan, principal, session string
	expires                                 time.Time
	uses, most                              int
	revoked                                 bool
	rules                                   Rules          // the rules that asked when it was given
	require                                 policy.Require // who had to agree
	by                                      []string       // people who approved it
	args                                    string         // of the approved call; empty if they are not known
	may                                     leeway
	open                                    bool // the values of its bounds are not known
}

var aboutGrants = map[string]bool{
	EventGrantCreated: true,
	EventGrantUsed:    true,
	EventGrantRevoked: true,
}

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
	g := &auditedGrant{
		agent:     e.text("agent"),
		target:    e.text("target"),
		plan:      e.text("plan"),
		principal: e.text("principal"),
		session:   e.text("session"),
		expires:   e.time("expires"),
		most:      e.number("max_uses"),
		by:        e.texts("by"),
	}
	if _, told := e.Facts.Get("rules"); told { // old grants have neither fact, and cover nothing any more
		g.rules, g.require = e.rules(), policy.Require{Stages: e.stages(), AnyOf: e.anyOf()}
	}
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
	case len(g.rules) > 0 && !r.fulfils(g):
		e.fail("it says that more was fulfilled than its request asked for")
	}

	if r != nil {
		g.args = r.args
	}
	g.bounds(e)

	return g
}

// bounds reads what may differ. The values of bounds are sealed, since they repeat arguments.
func (g *auditedGrant) bounds(e *auditEntry) {
	g.may.ignored = asTexts(member(e.Facts, "ignored").Items) // entries of earlier versions have none
	for _, v := range member(e.Facts, "bounds").Items {
		b := Bound{Path: member(v, "path").Text, Kind: BoundKind(member(v, "kind").Text)}
		g.may.bounds = append(g.may.bounds, b)
	}
	values := g.may.bounds
	if text := e.sealed("bounds"); text != "" {
		values = nil
		sameKind := func(a, b Bound) bool { return a.Path == b.Path && a.Kind == b.Kind }
		if json.Unmarshal([]byte(text), &values) != nil || !slices.EqualFunc(values, g.may.bounds, sameKind) {
			e.fail("its bounds are not those that it tells of")
		}
	}
	g.may.bounds = values
	g.open = slices.ContainsFunc(values, func(b Bound) bool {
		return !b.number() && b.Kind != AnyText && b.Value == ""
	})
}

// covers reports whether the call is within the bounds. It returns true if the arguments or the
// bounds were redacted. Entries don't contain the workspace of a call, so links are not checked.
func (g *auditedGrant) covers(e *auditEntry) bool {
	args := e.sealed("args")
	return args == "" || g.args == "" || g.open || narrows([]byte(g.args), []byte(args), g.may)
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
	case !g.covers(e):
		e.fail("it was used for a call that is not within its bounds")
	case len(g.rules) > 0 && !g.rules.include(e.rules()):
		e.fail("it was used for a call about which other rules ask")
	case len(g.rules) > 0 && !policy.TighterPeople(g.require, policy.Require{Stages: e.stages(), AnyOf: e.anyOf()}):
		e.fail("it was used for a call that more or other people must agree to")
	case len(g.rules) > 0 && slices.ContainsFunc(g.by, func(id string) bool {
		return slices.Contains(append(e.texts("owners"), e.text("person")), id)
	}):
		e.fail("it was used for a person, or an agent of a person, who approved it")
	}

	g.uses++
}

// fulfils reports whether the request required at least the rules and stages that the grant claims
// to have fulfilled.
func (r *auditedRequest) fulfils(g *auditedGrant) bool {
	return r.rules.include(g.rules) && policy.TighterPeople(policy.Require{Stages: r.stages, AnyOf: r.anyOf}, g.require)
}
