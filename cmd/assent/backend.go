package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/cli"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// backend wires the heavy half of the command.
func backend() cli.Backend {
	return cli.Backend{
		OpenStore:   func(ctx context.Context, c cli.StoreConfig) (store.Store, error) { return openStore(ctx, c, nil) },
		CreateToken: createToken, RevokeToken: revokeToken, Prune: prune, Backup: backup, Restore: restore, RotateKey: rotateKey,
		Serve: serve, Gateway: serveGateway,
	}
}

// records is a service that does nothing but note what was done to a store.
func records(s store.Store) *approval.Service {
	return approval.New(s, nil, nil, time.Now, rand.Reader, approval.Config{})
}

// operator is who acts on a store directly: whoever may write to it.
const operator = "operator"

// plainName is how a runtime may be called.
var plainName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

const maxTokenAge = 8760 * time.Hour

// createToken makes a token directly in a store, by the rules of the API.
func createToken(ctx context.Context, s store.Store, tenant string, body openapi.TokenBody) (*openapi.CreatedToken, error) {
	age, err := time.ParseDuration(body.ExpiresIn)
	if err != nil {
		return nil, fmt.Errorf("expires: %w", err)
	}
	if err := checkToken(body, age); err != nil {
		return nil, err
	}
	secret, hash, err := server.NewToken(rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	t := store.Token{
		ID: "tok_" + hash[:20], Tenant: tenant, Name: body.Name, Hash: hash, Agents: body.Agents, Person: body.Person, Created: now, Expires: now.Add(age),
	}
	for _, scope := range body.Scopes {
		t.Scopes = append(t.Scopes, string(scope))
	}
	if err := s.PutToken(ctx, t); err != nil {
		return nil, err
	}
	facts := map[string]any{"name": t.Name, "scopes": list(t.Scopes), "agents": list(t.Agents), "person": t.Person}
	if err := records(s).Record(ctx, tenant, approval.EventTokenCreated, t.ID, operator, facts); err != nil {
		return nil, err
	}
	return &openapi.CreatedToken{Secret: secret, Token: openapi.Token{
		ID: t.ID, Tenant: t.Tenant, Name: t.Name, Scopes: t.Scopes, Agents: t.Agents, Person: t.Person, Created: t.Created, Expires: t.Expires,
	}}, nil
}

func checkToken(body openapi.TokenBody, age time.Duration) error {
	forAgents := []openapi.Scope{openapi.ScopeDecide, openapi.ScopeRequest, openapi.ScopeVote}
	for _, scope := range body.Scopes {
		switch {
		case !scope.Valid():
			return fmt.Errorf("--scopes: %q is no scope, expected some of decide, request, read, vote, admin, witness", scope)
		case len(body.Agents) > 0 && !slices.Contains(forAgents, scope):
			return fmt.Errorf("--scopes: %q is of no use to a token that is bound to agents", scope)
		}
	}
	switch {
	case !plainName.MatchString(body.Name):
		return fmt.Errorf("--name: expected letters, digits and ._-, at most 100")
	case len(body.Scopes) == 0:
		return fmt.Errorf("--scopes: expected at least one")
	case slices.Contains(body.Scopes, openapi.ScopeVote) && body.Person == "":
		return fmt.Errorf("--person: expected whose answers the token gives: the scope vote needs it")
	case slices.Contains(body.Scopes, openapi.ScopeVote) && slices.Contains(body.Scopes, openapi.ScopeRequest):
		return fmt.Errorf("--scopes: not request beside vote: whoever holds one token must not ask and answer")
	case age <= 0 || age > maxTokenAge:
		return fmt.Errorf("--expires: expected at most %s", maxTokenAge)
	}
	return nil
}

func list(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

func revokeToken(ctx context.Context, s store.Store, tenant, id string) error {
	if err := s.RevokeToken(ctx, tenant, id, time.Now()); err != nil {
		return fmt.Errorf("the token %s: %w", id, err)
	}
	return records(s).Record(ctx, tenant, approval.EventTokenRevoked, id, operator, nil)
}

func prune(ctx context.Context, s store.Store, tenant string, before time.Time) (requests, entries int, err error) {
	if requests, entries, err = s.Prune(ctx, tenant, before); err != nil {
		return 0, 0, err
	}
	facts := map[string]any{"before": before.UTC().Format(time.RFC3339), "requests": requests, "entries": entries}
	return requests, entries, records(s).Record(ctx, tenant, approval.EventPruned, "", operator, facts)
}
