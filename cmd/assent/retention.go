package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/assent-dev/assent/internal/wait"
)

// retentionPause is the time between two looks for what is old enough to
// be redacted.
const retentionPause = time.Hour

// retention is who the ledger says redacted something because of the
// configuration.
const retention = "retention"

// keepFor redacts what ended longer ago than the configuration says,
// until ctx ends. Any number of replicas may do so.
func (a *app) keepFor(ctx context.Context) {
	for a.cfg.Retention > 0 && ctx.Err() == nil {
		for _, tenant := range slices.Sorted(maps.Keys(a.tenants)) {
			if err := a.redactOld(ctx, tenant, time.Now()); err != nil && ctx.Err() == nil {
				a.log.Error("what is older than the retention can't be redacted", "tenant", tenant, "error", err)
			}
		}
		_ = wait.Pause(ctx, retentionPause)
	}
}

// redactOld redacts what a tenant has that is older than the retention.
// With a wrong clock it would redact what must be kept, for ever.
func (a *app) redactOld(ctx context.Context, tenant string, now time.Time) error {
	if err := a.store.checkClock(ctx); err != nil {
		return err
	}
	before := now.Add(-a.cfg.Retention)
	requests, entries, err := a.store.Prunable(ctx, tenant, before)
	if err != nil || requests+entries == 0 {
		return err
	}
	if requests, entries, err = pruneBy(ctx, a.store, tenant, before, retention); err != nil {
		return err
	}
	a.log.Info("redacted what is older than the retention", "tenant", tenant, "requests", requests, "entries", entries)

	return nil
}
