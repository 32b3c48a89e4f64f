package durable

import (
	"context"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/store"
)

const (
	duePage    = 256         // due calls read at once; they may be large
	sweepEvery = time.Minute // less often if sweeping takes long
)

// Run works until ctx ends on new calls, due calls, notifications from the approval service,
// and calls that an earlier process left. Any number of processes may share a store and
// namespace. Run returns an error if this engine runs already.
func (e *Engine[P]) Run(ctx context.Context) error {
	s, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer e.exit(s)

	var parts sync.WaitGroup
	full := make(chan struct{}, 1)
	parts.Go(func() { e.sweep(ctx) })
	parts.Go(func() { e.shareOut(ctx, full) })
	for _, watch := range e.watches() {
		n := newNews()
		parts.Go(func() { e.listen(ctx, n, watch) })
		parts.Go(func() { e.hear(ctx, n) })
	}
	for ctx.Err() == nil {
		e.poll(ctx, full)
		_ = wait.Pause(ctx, e.cfg.Poll)
	}
	parts.Wait()
	return nil
}

// poll takes due calls from the store, the earliest first. If there is more than a page of
// them, or a page can't be read, the calls of one caller could hide those of all others; then
// it triggers shareOut.
func (e *Engine[P]) poll(ctx context.Context, full chan<- struct{}) {
	due, err := e.calls.due(ctx, e.now(), duePage)
	if err != nil || len(due) == duePage {
		select {
		case full <- struct{}{}:
		default:
		}
	}

	if err != nil && ctx.Err() == nil {
		e.cfg.Log.ErrorContext(ctx, "due calls can't be read", "error", err)
	}
	for _, r := range due {
		e.take(r.Key, false)
	}
}

// shareOut takes due calls of every caller, each up to its share.
func (e *Engine[P]) shareOut(ctx context.Context, full <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-full:
		}
		err := e.calls.Each(ctx, "", func(r store.Record) {
			if !r.Due.IsZero() && !r.Due.After(e.now()) {
				e.take(r.Key, false)
			}
		})
		if err != nil && ctx.Err() == nil {
			e.cfg.Log.ErrorContext(ctx, "due calls can't be read", "error", err)
		}
		_ = wait.Pause(ctx, 5*e.cfg.Poll)
	}
}

// sweep periodically deletes expired records.
func (e *Engine[P]) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		start := time.Now()
		if err := e.calls.records.SweepRecords(ctx, e.now()); err != nil && ctx.Err() == nil {
			e.cfg.Log.ErrorContext(ctx, "records can't be swept", "error", err)
		}
		_ = wait.Pause(ctx, max(sweepEvery, 20*time.Since(start)))
	}
}
