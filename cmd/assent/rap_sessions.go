package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
)

// tenantGateway is a gateway of a tenant, with the agent whose file decides its calls.
type tenantGateway struct {
	tenant  string
	agent   string
	gateway *gateway.Gateway
}

var _ rap.Sessions = (*tools)(nil)

// Grants implements rap.Sessions.
func (t *tools) Grants(ctx context.Context, tenant string) ([]rap.SessionGrant, error) {
	var out []rap.SessionGrant
	for _, g := range t.gateways {
		if g.tenant != tenant {
			continue
		}
		list, err := g.gateway.Grants(ctx)
		if err != nil {
			return nil, fmt.Errorf("list session grants: %w", err)
		}
		for i := range list {
			list[i].Agent = g.agent
		}
		out = append(out, list...)
	}

	return out, nil
}

// Revoke implements rap.Sessions.
func (t *tools) Revoke(ctx context.Context, tenant, id, by, reason string) error {
	for _, g := range t.gateways {
		if g.tenant != tenant {
			continue
		}
		if err := g.gateway.Revoke(ctx, id, by, reason); !errors.Is(err, hold.ErrNoRequest) {
			return err
		}
	}

	return approval.ErrNotFound
}
