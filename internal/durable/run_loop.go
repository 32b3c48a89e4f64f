package durable

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/store"
)

const (
	duePage    = 256         // due calls that are read at once; they may be large
	sweepEvery = time.Minute // and less often where sweeping takes long
)

// Run works until ctx ends: on calls that came, on what is due, on news
// of people, and on what an earlier process left. Any number of
// processes may run on one store and namespace; an engine runs once at
// a time.
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

func (e *Engine[P]) enter(ctx context.Context) (*session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return nil, errors.New("durable: the engine runs already")
	}
	e.running = true
	e.session = &session{ctx: ctx}
	return e.session, nil
}

// exit ends the work. Runs and messages may go on for a while, and are
// told to stop then; of what does not stop, others find that it gives
// no sign of life.
func (e *Engine[P]) exit(s *session) {
	// Whoever found the session began its job before: none begins while
	// they are waited for.
	e.mu.Lock()
	e.session = nil
	e.mu.Unlock()

	ended := make(chan struct{})
	go func() {
		s.work.Wait()
		s.tasks.Wait()
		close(ended)
	}()

	if !within(ended, e.cfg.Finish) {
		for _, f := range e.tasks.everything() {
			f.stop(ErrShutdown)
		}
		within(ended, e.cfg.Grace)
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = false
	if e.cfg.Always {
		e.session = &session{ctx: context.Background()}
	}
}

// within reports whether something ended in time.
func within(ended <-chan struct{}, most time.Duration) bool {
	select {
	case <-ended:
		return true
	case <-time.After(most):
		return false
	}
}

// poll takes what is due in the store, the earliest first. Where there
// is more than a page of it, or a page can't be read, the calls of one
// caller could hide those of all others: then it is shared out.
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

// shareOut takes what is due of every caller, as much as each may have.
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

// sweep forgets what expired, now and then.
func (e *Engine[P]) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		start := time.Now()
		if err := e.calls.records.SweepRecords(ctx, e.now()); err != nil && ctx.Err() == nil {
			e.cfg.Log.ErrorContext(ctx, "records can't be swept", "error", err)
		}
		_ = wait.Pause(ctx, max(sweepEvery, 20*time.Since(start)))
	}
}
