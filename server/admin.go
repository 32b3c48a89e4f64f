package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

func (x *exchange) listGrants() error {
	all, err := x.flag("all")
	if err != nil {
		return err
	}
	grants, err := x.cfg.Store.Grants(x.r.Context(), x.tenant(), all, x.cfg.Now())
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, openapi.Grants{Grants: some(grants)})
}

// some makes an empty list of none, since JSON tells them apart.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (x *exchange) getGrant() error {
	g, err := x.cfg.Store.Grant(x.r.Context(), x.tenant(), x.r.PathValue("id"))
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, g)
}

// revokeGrant lets any person who may answer end a grant: ending one can only tighten.
func (x *exchange) revokeGrant() error {
	if err := x.personOrAdmin(); err != nil {
		return err
	}
	reason, err := x.reason()
	if err != nil {
		return err
	}
	id := x.r.PathValue("id")
	if g, err := x.cfg.Store.Grant(x.r.Context(), x.tenant(), id); err != nil || !actsFor(x.token, g.Agent) {
		return cmpErr(err, approval.ErrNotFound)
	}
	g, err := x.cfg.Service.Revoke(x.r.Context(), x.tenant(), id, actor(x.token), reason)
	if err != nil {
		return err
	}
	x.wake()
	return x.answer(http.StatusOK, g)
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// personOrAdmin asks a token that may only vote for its person.
func (x *exchange) personOrAdmin() error {
	if may(x.token, openapi.ScopeAdmin) {
		return nil
	}
	_, err := x.person()
	return err
}

func (x *exchange) listFreezes() error {
	freezes, err := x.cfg.Store.Freezes(x.r.Context(), x.tenant())
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, openapi.Freezes{Freezes: some(freezes)})
}

// freeze lets any person who may answer throw the kill switch; lifting it is for admins.
func (x *exchange) freeze() error {
	if err := x.personOrAdmin(); err != nil {
		return err
	}
	return x.freezing(x.cfg.Service.Freeze)
}

func (x *exchange) liftFreeze() error { return x.freezing(x.cfg.Service.Thaw) }

type freezer func(ctx context.Context, tenant, agent, by, reason string) error

func (x *exchange) freezing(do freezer) error {
	f := object(x.body, "", "agent", "reason")
	agent, reason := f.text("agent"), f.reason()
	if f.err != nil {
		return f.err
	}
	if !actsFor(x.token, agent) {
		return fail(openapi.CodeAgentNotAllowed, "the token is bound to "+strings.Join(x.token.Agents, ", "))
	}
	if err := do(x.r.Context(), x.tenant(), agent, actor(x.token), reason); err != nil {
		return err
	}
	x.wake()
	return x.listFreezes()
}

// statsSpan is how far back figures reach when nobody says.
const statsSpan = 30 * 24 * time.Hour

// statsVotes is how many answers figures rest on at most.
const statsVotes = 10_000

func (x *exchange) stats() error {
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
	return x.answer(http.StatusOK, approval.Figures(votes, x.cfg.Now().UTC()))
}

func (x *exchange) listTokens() error {
	tokens, err := x.cfg.Store.Tokens(x.r.Context(), x.tenant())
	if err != nil {
		return err
	}
	out := openapi.Tokens{Tokens: make([]openapi.Token, len(tokens))}
	for i, t := range tokens {
		out.Tokens[i] = shown(t)
	}
	return x.answer(http.StatusOK, out)
}

// shown is a token without its hash.
func shown(t store.Token) openapi.Token {
	return openapi.Token{ID: t.ID, Tenant: t.Tenant, Name: t.Name, Scopes: some(t.Scopes), Agents: t.Agents, Person: t.Person, Created: t.Created, Expires: t.Expires, Revoked: t.Revoked}
}

const (
	tokenAge    = 90 * 24 * time.Hour
	maxTokenAge = 365 * 24 * time.Hour
)

func (x *exchange) createToken() error {
	f := object(x.body, "", "name", "scopes", "agents", "person", "expires_in").must("name", "scopes")
	t := store.Token{Tenant: x.tenant(), Name: f.text("name"), Scopes: f.texts("scopes"), Agents: f.texts("agents"), Person: f.text("person")}
	age := f.duration("expires_in")
	if f.err != nil {
		return f.err
	}
	if age == 0 {
		age = tokenAge
	}
	if err := x.checkToken(&t, age); err != nil {
		return err
	}
	secret, hash, err := NewToken(x.cfg.Random)
	if err != nil {
		return err
	}
	now := x.cfg.Now().UTC().Truncate(time.Microsecond)
	t.ID, t.Hash, t.Created, t.Expires = "tok_"+hash[:20], hash, now, now.Add(age)
	if err := x.cfg.Store.PutToken(x.r.Context(), t); err != nil {
		return err
	}
	if err := x.record(approval.EventTokenCreated, t.ID, map[string]any{"name": t.Name, "scopes": list(t.Scopes), "agents": list(t.Agents), "person": t.Person}); err != nil {
		return err
	}
	return x.answer(http.StatusCreated, openapi.CreatedToken{Token: shown(t), Secret: secret})
}

// checkToken refuses tokens that could not do what they say, or that would live for ever.
func (x *exchange) checkToken(t *store.Token, age time.Duration) error {
	refuse := func(field, expected string) error { return &approval.InputError{Field: field, Expected: expected} }
	slices.Sort(t.Scopes)
	t.Scopes = slices.Compact(t.Scopes)
	for _, s := range t.Scopes {
		switch {
		case !openapi.Scope(s).Valid():
			return refuse("scopes", "some of decide, request, read, vote, admin, witness")
		case len(t.Agents) > 0 && !slices.Contains(agentScopes(), scope(s)):
			return refuse("scopes", "neither read, admin nor witness for a token that is bound to agents")
		}
	}
	switch {
	case !plainName.MatchString(t.Name):
		return refuse("name", "letters, digits and ._-, at most 100")
	case len(t.Scopes) == 0:
		return refuse("scopes", "at least one")
	case slices.Contains(t.Scopes, string(openapi.ScopeVote)) && t.Person == "":
		return refuse("person", "whose answers the token gives, for scope vote")
	case slices.Contains(t.Scopes, string(openapi.ScopeVote)) && slices.Contains(t.Scopes, string(openapi.ScopeRequest)):
		return refuse("scopes", "not request beside vote: whoever holds one token must not ask and answer")
	case age > maxTokenAge:
		return refuse("expires_in", fmt.Sprintf("at most %dh", maxTokenAge/time.Hour))
	}
	return x.checkPerson(t)
}

// checkPerson writes the person as the directory does.
func (x *exchange) checkPerson(t *store.Token) error {
	if t.Person == "" {
		return nil
	}
	p, known, err := x.cfg.Directory.Person(x.r.Context(), t.Tenant, t.Person)
	if err != nil {
		return fmt.Errorf("ask the directory: %w", err)
	}
	if !known {
		return &approval.InputError{Field: "person", Expected: "somebody whom the directory knows"}
	}
	t.Person = p.ID
	return nil
}

// record tells the ledger what happened to the house itself.
func (x *exchange) record(event, subject string, facts map[string]any) error {
	err := x.cfg.Service.Record(x.r.Context(), x.tenant(), event, subject, actor(x.token), facts)
	x.wake()
	return err
}

func list(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

func (x *exchange) revokeToken() error {
	id := x.r.PathValue("id")
	if err := x.cfg.Store.RevokeToken(x.r.Context(), x.tenant(), id, x.cfg.Now()); err != nil {
		return err
	}
	if err := x.record(approval.EventTokenRevoked, id, nil); err != nil {
		return err
	}
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (x *exchange) listDeliveries() error {
	state := store.DeadEnd
	if text, ok := x.query["state"]; ok {
		state = store.JobState(text)
	}
	if state != store.DeadEnd && state != store.Waiting && state != store.Sent {
		return fail(openapi.CodeBadRequest, "state: expected waiting, sent or dead").in("state")
	}
	limit, err := x.integer("limit", 1, 500, 50)
	if err != nil {
		return err
	}
	jobs, err := x.cfg.Store.Jobs(x.r.Context(), x.tenant(), state, int(limit))
	if err != nil {
		return err
	}
	out := openapi.Deliveries{Deliveries: make([]openapi.Delivery, len(jobs))}
	for i, j := range jobs {
		out.Deliveries[i] = openapi.Delivery{
			ID: j.ID, Tenant: j.Tenant, Target: j.Target, Event: j.Event, Subject: j.Subject, Payload: j.Payload, State: openapi.DeliveryState(j.State),
			Attempt: j.Attempt, RunAt: j.RunAt, Problem: j.Problem, Created: j.Created,
		}
	}
	return x.answer(http.StatusOK, out)
}

func (x *exchange) redeliver() error {
	id, err := x.pathNumber("number")
	if err != nil {
		return err
	}
	if err := x.cfg.Store.Redeliver(x.r.Context(), x.tenant(), id, x.cfg.Now()); err != nil {
		return err
	}
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}
