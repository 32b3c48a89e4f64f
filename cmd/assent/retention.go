package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/assent-dev/assent/internal/wait"
)

// retentionPause is the interval at which old requests are looked for and redacted.
const retentionPause = time.Hour

// retention is the actor in the ledger of redactions that the configuration requires.
const retention = "retention"

// keepFor redacts, until ctx ends, what ended longer ago than the retention period. Any number of
// replicas may do so.
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

// redactOld redacts what a tenant has that is older than the retention period. It checks the clock
// first, because with a wrong clock it would permanently redact data that must be kept.
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
