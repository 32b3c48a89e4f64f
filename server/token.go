package server

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/tokens"
	"github.com/assent-dev/assent/store"
)

// scope is a right of a token.
type scope = openapi.Scope

// may reports whether a token has a scope and may use it. A token that is bound to agents
// can't read or administer all of them.
func may(t *store.Token, s scope) bool {
	if s == openapi.ScopeAdmin && asksForCalls(t) {
		return false
	}

	return slices.Contains(t.Scopes, string(s)) &&
		(len(t.Agents) == 0 || slices.Contains(tokens.AgentScopes(), string(s)))
}

// asksForCalls reports whether a token asks for calls, which an admin token must not. New
// tokens never have both scopes.
func asksForCalls(t *store.Token) bool {
	return slices.Contains(t.Scopes, string(openapi.ScopeRequest)) ||
		slices.Contains(t.Scopes, string(openapi.ScopeDecide))
}

// actor returns the name for the ledger: the person of the token, or its own name.
func actor(t *store.Token) string {
	if t.Person != "" {
		return t.Person
	}
	return t.Name
}

// asker returns the caller that a token stands for.
func asker(t *store.Token) approval.Asker {
	return approval.Asker{Token: t.Name, Person: t.Person}
}

// authenticate finds the token of a request. Every presented secret is hashed and looked up
// in the same way, so the time that takes doesn't reveal how close the secret was. Cookies
// are never read.
func (s *Server) authenticate(r *http.Request) (*store.Token, error) {
	secret, err := bearer(r)
	if err != nil {
		return nil, err
	}
	hash := tokens.Hash(secret)
	t, err := s.cfg.Store.TokenByHash(r.Context(), hash)
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return nil, fail(openapi.CodeUnauthenticated, "the token is not known here")
	case err != nil:
		return nil, fmt.Errorf("look up a token: %w", err)
	case subtle.ConstantTimeCompare([]byte(t.Hash), []byte(hash)) != 1:
		return nil, fail(openapi.CodeUnauthenticated, "the token is not known here")
	case t.Revoked != nil:
		return nil, fail(openapi.CodeTokenRevoked, "")
	case !s.cfg.Now().Before(t.Expires):
		return nil, fail(openapi.CodeTokenExpired, "it was good until "+t.Expires.UTC().Format(time.RFC3339))
	case t.Person != "" && s.blocked(t.Tenant, t.Person):
		return nil, fail(openapi.CodeTokenRevoked, "its person is blocked")
	case t.Tenant == "" || t.Name == "":
		return nil, fail(openapi.CodeUnauthenticated, "the token names no tenant or no runtime")
	}

	return &t, nil
}

// blocked reports whether the directory blocks a person.
func (s *Server) blocked(tenant, person string) bool {
	d, ok := s.cfg.Directory.(interface {
		Blocked(tenant, name string) bool
	})
	return ok && d.Blocked(tenant, person)
}

// bearer returns the token in the Authorization header, of which there must be one.
func bearer(r *http.Request) (string, error) {
	all := r.Header.Values("Authorization")
	if len(all) == 1 {
		if scheme, secret, ok := strings.Cut(all[0], " "); ok && strings.EqualFold(scheme, "Bearer") &&
			secret != "" {
			return secret, nil
		}
	}

	return "", fail(openapi.CodeUnauthenticated, "expected one header Authorization: Bearer "+"assent_…")
}

// permit returns an error unless the token has one of the scopes of an operation.
func permit(t *store.Token, scopes []scope) error {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		if may(t, s) {
			return nil
		}
		names[i] = string(s)
	}

	detail := "this needs scope " + strings.Join(names, " or ")
	if len(t.Agents) > 0 && slices.ContainsFunc(scopes, func(s scope) bool {
		return slices.Contains(t.Scopes, string(s))
	}) {
		detail += ", and a token that is not bound to agents"
	}
	p := fail(openapi.CodeMissingScope, detail)
	p.lacks = names
	return p
}

// present returns an error for a token whose person the directory doesn't know, or knows by
// another id: people who left can't read, export, freeze, cancel or revoke. If a token uses
// only the scopes decide and request, the approval service checks the person instead, and
// asks nobody for an unknown one (approval.ErrUnknownName). If the directory can't be
// asked, present fails.
func (s *Server) present(ctx context.Context, t *store.Token, scopes []scope) error {
	asks := func(s scope) bool { return s == openapi.ScopeDecide || s == openapi.ScopeRequest }
	asksOnly := len(scopes) > 0 && !slices.ContainsFunc(scopes, func(s scope) bool { return may(t, s) && !asks(s) })
	if t.Person == "" || asksOnly {
		return nil
	}
	known, err := s.namesPerson(ctx, t)
	if err == nil && !known {
		err = approval.ErrUnknownName
	}

	return err
}

// stillMay checks the token again after a while: it may have been revoked or have expired
// since, or its person may have left.
func (x *exchange) stillMay(scopes ...scope) error {
	t, err := x.authenticate(x.r)
	if err != nil {
		return err
	}
	if err := permit(t, scopes); err != nil {
		return err
	}

	return x.present(x.r.Context(), t, scopes)
}

// actsFor reports whether a token may act for an agent.
func actsFor(t *store.Token, agent string) bool {
	return len(t.Agents) == 0 || slices.Contains(t.Agents, agent)
}
