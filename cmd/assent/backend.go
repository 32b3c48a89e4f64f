package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/tokens"
	"github.com/assent-dev/assent/store"
)

// backend connects the commands to the code that opens stores and runs services.
func backend() operate.Backend {
	return operate.Backend{
		OpenStore:   func(ctx context.Context, c config.Store) (store.Store, error) { return openStore(ctx, c, nil) },
		CreateToken: createToken,
		RevokeToken: revokeToken,
		Thaw:        thaw,
		Prune:       prune,
		Backup:      backup,
		Restore:     restore,
		RotateKey:   rotateKey,
		Serve:       serve,
		Check:       checkServe,
		CheckOIDC:   checkOIDC,
		Gateway:     serveGateway,
		MCP:         serveMCP,
		MCPInbox:    serveMCPInbox,
	}
}

// records returns a service that is only used to write to the ledger of a store.
func records(s store.Store) *approval.Service {
	return approval.New(s, nil, nil, time.Now, rand.Reader, approval.Config{})
}

// operator is the actor of changes that are made directly in a store by someone with access to it.
const operator = "operator"

// maker returns a Maker that creates and revokes tokens directly in a store, by the rules of the
// API.
func maker(s store.Store) *tokens.Maker {
	return &tokens.Maker{
		Store:  s,
		Record: records(s).Record,
		Now:    time.Now,
		Random: rand.Reader,
	}
}

// createToken creates a token directly in a store.
func createToken(
	ctx context.Context, s store.Store, tenant string, body openapi.TokenBody,
) (*openapi.CreatedToken, error) {
	spec, err := tokens.SpecOf(body)
	if err != nil {
		return nil, err
	}
	t, secret, err := maker(s).Make(ctx, tenant, spec, tokens.By{Operator: true})
	if err != nil {
		return nil, err
	}

	return &openapi.CreatedToken{Secret: secret, Token: tokens.Shown(t)}, nil
}

func revokeToken(ctx context.Context, s store.Store, tenant, id string) error {
	if err := maker(s).End(ctx, tenant, id, tokens.By{Operator: true}); err != nil {
		return fmt.Errorf("the token %s: %w", id, err)
	}

	return nil
}

func thaw(ctx context.Context, s store.Store, tenant, agent, reason string) error {
	return records(s).Thaw(ctx, tenant, agent, operator, reason)
}

func prune(
	ctx context.Context,
	s store.Store,
	tenant string,
	before time.Time,
	dry bool,
) (requests, entries int, err error) {
	if dry {
		return s.Prunable(ctx, tenant, before)
	}
	return pruneBy(ctx, s, tenant, before, operator)
}

// pruneBy redacts requests that ended before a time, and records who did it.
func pruneBy(
	ctx context.Context, s store.Store, tenant string, before time.Time, by string,
) (requests, entries int, err error) {
	if requests, entries, err = s.Prune(ctx, tenant, before); err != nil {
		return 0, 0, err
	}
	facts := map[string]any{
		"before":   before.UTC().Format(time.RFC3339),
		"requests": requests,
		"entries":  entries,
	}
	return requests, entries, records(s).Record(ctx, tenant, approval.EventPruned, "", by, facts)
}
