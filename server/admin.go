package server

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/server/administration"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/tokens"
	"github.com/assent-dev/assent/store"
)

// adminOps are the operations of administrators.
type adminOps struct{ *exchange }

func (x adminOps) listGrants() error {
	all, err := x.flag("all")
	if err != nil {
		return err
	}
	grants, err := x.cfg.Store.Grants(x.r.Context(), x.tenant(), all, x.cfg.Now())
	if err != nil {
		return err
	}
	by, err := x.reader()
	if err == nil {
		grants, err = x.cfg.Service.Grants(x.r.Context(), x.tenant(), by, grants)
	}
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, openapi.Grants{Grants: some(grants)})
}

// some makes a nil list an empty one, because JSON distinguishes them.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (x adminOps) getGrant() error {
	g, err := x.readableGrant(x.r.PathValue("id"))
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, g)
}

// readableGrant returns a grant that the token may read.
func (x adminOps) readableGrant(id string) (*approval.Grant, error) {
	by, err := x.reader()
	if err != nil {
		return nil, err
	}
	g, err := x.cfg.Store.Grant(x.r.Context(), x.tenant(), id)
	if err != nil {
		return nil, err
	}
	may, err := x.cfg.Service.Grants(x.r.Context(), x.tenant(), by, []approval.Grant{*g})
	if err == nil && len(may) == 0 {
		err = approval.ErrNotFound
	}
	return g, err
}

// revokeGrant ends a grant. Any person who may read the grant may do that, because ending
// one only restricts.
func (x adminOps) revokeGrant() error {
	if err := x.personOrAdmin(); err != nil {
		return err
	}
	reason, err := x.reason()
	if err != nil {
		return err
	}
	id := x.r.PathValue("id")
	if g, err := x.readableGrant(id); err != nil || !actsFor(x.token, g.Agent) {
		return cmp.Or(err, approval.ErrNotFound)
	}
	g, err := x.cfg.Service.Revoke(x.r.Context(), x.tenant(), id, actor(x.token), reason)
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, g)
}

// personOrAdmin returns an error unless the token is an admin's, or its person is known to
// the directory now.
func (x *exchange) personOrAdmin() error {
	if may(x.token, openapi.ScopeAdmin) {
		return nil
	}
	if x.token.Person == "" {
		return errNoPerson()
	}
	known, err := x.namesPerson()
	if err == nil && !known {
		err = approval.ErrUnknownName
	}
	return err
}

func (x adminOps) listFreezes() error {
	freezes, err := x.cfg.Store.Freezes(x.r.Context(), x.tenant())
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, openapi.Freezes{Freezes: some(freezes)})
}

// freeze lets any person who may answer use the kill switch. Only admins may lift a freeze.
func (x adminOps) freeze() error {
	if err := x.personOrAdmin(); err != nil {
		return err
	}
	agent, reason, err := x.freezeBody()
	if err != nil {
		return err
	}
	if err := x.cfg.Service.Freeze(x.r.Context(), x.tenant(), agent, actor(x.token), reason); err != nil {
		return err
	}
	return x.listFreezes()
}

// liftFreeze lifts a freeze after people have approved that. Until then it answers that
// they are asked.
func (x adminOps) liftFreeze() error {
	agent, reason, err := x.freezeBody()
	if err != nil {
		return err
	}
	freezes, err := x.cfg.Store.Freezes(x.r.Context(), x.tenant())
	if err != nil {
		return err
	}
	act, err := administration.Lifting(freezes, agent, reason)
	if err != nil {
		return err
	}
	if asked, err := x.act(administration.LiftFreeze, act); asked || err != nil {
		return err
	}
	if err := x.cfg.Service.Thaw(x.r.Context(), x.tenant(), agent, actor(x.token), reason); err != nil {
		return err
	}
	return x.listFreezes()
}

func (x adminOps) freezeBody() (agent, reason string, err error) {
	f := object(x.body, "", "agent", "reason")
	agent, reason = f.text("agent"), f.reason()
	if f.err != nil {
		return "", "", f.err
	}
	return agent, reason, x.mayActFor(agent)
}

// statsSpan is the default period of statistics.
const statsSpan = 30 * 24 * time.Hour

// statsVotes is the largest number of answers that statistics are computed from.
const statsVotes = 10_000

func (x adminOps) stats() error {
	since, err := x.time("since")
	if err != nil {
		return err
	}
	if since.IsZero() {
		since = x.cfg.Now().Add(-statsSpan)
	}
	votes, err := x.cfg.Store.Votes(x.r.Context(), x.tenant(), since, statsVotes)
	if err != nil {
		return err
	}
	by, err := x.reader()
	if err != nil {
		return err
	}
	votes = by.Votes(votes)
	return x.answer(http.StatusOK, approval.Figures(votes, x.cfg.Now().UTC()))
}

func (x adminOps) listTokens() error {
	all, err := x.cfg.Store.Tokens(x.r.Context(), x.tenant())
	if err != nil {
		return err
	}
	out := openapi.Tokens{Tokens: make([]openapi.Token, len(all))}
	for i, t := range all {
		out.Tokens[i] = tokens.Shown(t)
	}
	return x.answer(http.StatusOK, out)
}

// maker returns the maker of tokens for this server.
func (x adminOps) maker() *tokens.Maker {
	return &tokens.Maker{
		Store:     x.cfg.Store,
		Directory: x.cfg.Directory,
		Record:    x.cfg.Service.Record,
		Now:       x.cfg.Now,
		Random:    x.cfg.Random,
	}
}

// createToken makes a token after people have approved it. Until then it answers that they
// are asked.
func (x adminOps) createToken() error {
	f := object(x.body, "", "name", "scopes", "agents", "person", "expires_in", "replaces").must("name", "scopes")
	spec := tokens.Spec{
		Name:     f.text("name"),
		Scopes:   f.texts("scopes"),
		Agents:   f.texts("agents"),
		Person:   f.text("person"),
		Age:      f.duration("expires_in"),
		Replaces: f.text("replaces"),
	}
	if f.err != nil {
		return f.err
	}
	by := tokens.By{Token: x.token}
	t, err := x.maker().Check(x.r.Context(), x.tenant(), spec, by)
	if err != nil {
		return err
	}
	if asked, err := x.act(administration.CreateToken, tokenAct(t, spec, actor(x.token))); asked || err != nil {
		return err
	}
	t, secret, err := x.maker().Make(x.r.Context(), x.tenant(), spec, by)
	if err != nil {
		return err
	}
	return x.answer(http.StatusCreated, openapi.CreatedToken{Token: tokens.Shown(t), Secret: secret})
}

// tokenAct returns the facts that people are shown before a token is made, including who
// gets its secret. Requests for the same token must have the same facts.
func tokenAct(t store.Token, spec tokens.Spec, holder string) map[string]any {
	agents := t.Agents
	if len(agents) == 0 {
		agents = []string{tokens.AllAgents}
	}
	age := spec.Age
	if age == 0 {
		age = tokens.Age
	}

	return map[string]any{
		"what": "a token named " + t.Name + " with the scopes " + strings.Join(t.Scopes, ", ") +
			", handed to " + holder,
		"name":       t.Name,
		"holder":     holder,
		"scopes":     t.Scopes,
		"agents":     agents,
		"person":     t.Person,
		"replaces":   spec.Replaces,
		"expires_in": policy.FormatDuration(age),
	}
}

// act asks people about an act of administration, or uses the run that they have approved.
// If it returns asked = true, it has sent the answer that people are asked.
func (x adminOps) act(act administration.Act, args map[string]any) (asked bool, err error) {
	if x.cfg.Administration == nil {
		return false, fail(
			openapi.CodeNotFound,
			"this server has no administrators who could be asked: an operator acts on the store itself",
		)
	}

	own, err := x.maker().OwnPerson(x.r.Context(), x.token)
	if err != nil {
		return false, err
	}
	if !own {
		return false, fail(
			openapi.CodeNoPerson,
			"another person's token made this one, so it can't ask as "+x.token.Person+": have it made for nobody",
		)
	}
	who := approval.AdministrationAsker(x.token.Name, x.token.Person)
	err = x.cfg.Administration.Take(x.r.Context(), x.tenant(), who, act, args)
	var pending *administration.PendingError
	var refused *administration.RefusedError
	switch {
	case errors.As(err, &pending):
		return true, x.answer(http.StatusAccepted, openapi.Asked{Request: *pending.Request})
	case errors.As(err, &refused):
		return false, fail(openapi.CodeNotApproved, refused.Error())
	}

	return false, err
}

// record writes an entry about the server itself to the ledger.
func (x *exchange) record(event, subject string, facts map[string]any) error {
	err := x.cfg.Service.Record(x.r.Context(), x.tenant(), event, subject, actor(x.token), facts)
	return err
}

func (x adminOps) revokeToken() error {
	if err := x.maker().End(x.r.Context(), x.tenant(), x.r.PathValue("id"), tokens.By{Token: x.token}); err != nil {
		return err
	}
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (x adminOps) listDeliveries() error {
	state := store.DeadEnd
	if text, ok := x.query["state"]; ok {
		state = store.JobState(text)
	}
	if state != store.DeadEnd && state != store.Waiting && state != store.Sent {
		return bad("state", "expected waiting, sent or dead")
	}
	limit, err := x.integer("limit", 1, 500, 50)
	if err != nil {
		return err
	}
	jobs, err := x.cfg.Store.Jobs(x.r.Context(), x.tenant(), state, int(limit))
	if err != nil {
		return err
	}
	about := make([]approval.About, len(jobs))
	for i, j := range jobs {
		about[i] = approval.About{Type: j.Event, Subject: j.Subject}
	}
	by, err := x.reader()
	if err != nil {
		return err
	}
	may, err := x.cfg.Service.Entries(x.r.Context(), x.tenant(), by, about)
	if err != nil {
		return err
	}
	out := openapi.Deliveries{Deliveries: []openapi.Delivery{}}
	for i, j := range jobs {
		if !may[i] {
			continue
		}
		out.Deliveries = append(out.Deliveries, openapi.Delivery{
			ID:      j.ID,
			Tenant:  j.Tenant,
			Target:  j.Target,
			Event:   j.Event,
			Subject: j.Subject,
			Payload: j.Payload,
			State:   openapi.DeliveryState(j.State),
			Attempt: j.Attempt,
			RunAt:   j.RunAt,
			Problem: j.Problem,
			Created: j.Created,
		})
	}

	return x.answer(http.StatusOK, out)
}

func (x adminOps) redeliver() error {
	id, err := x.pathNumber("number")
	if err != nil {
		return err
	}
	if err := x.cfg.Store.Redeliver(x.r.Context(), x.tenant(), id, x.cfg.Now()); err != nil {
		return err
	}
	if err := x.record("redelivered", "", map[string]any{"delivery": id}); err != nil {
		return err
	}
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}
