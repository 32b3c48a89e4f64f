package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/wait"
)

// Causes of cancelled contexts of runs and messages.
var (
	// ErrShutdown means that this process is shutting down.
	ErrShutdown = errors.New("the process was stopped")
	// ErrOvertaken means that another process considered the run lost, or that the call has
	// ended.
	ErrOvertaken = errors.New("another process took the call for lost, or it has ended")
)

// errNoPeople is returned if the approval service is no longer configured.
var errNoPeople = errors.New("nobody can be asked")

// Stopped is the cause if a run should stop (Call.Stop).
type Stopped struct{ Reason string }

func (s *Stopped) Error() string { return s.Reason }

// start claims the approval, stores that the call runs, and runs it in the background.
func (e *Engine[P]) start(ctx context.Context, c *Call[P], r Ruling, t *turn) error {
	if !t.group.beginRun() {
		return e.move(ctx, c, func() {
			e.applyRuling(c, r)
			c.Run.Next = e.now().Add(e.cfg.Poll)
		})
	}

	f, err := e.begin(ctx, c, r)
	if f == nil {
		t.group.endRun()
		return err
	}

	run := *c
	e.detach(f, t, func(ctx context.Context) {
		defer t.group.endRun()
		e.run(ctx, &run)
	})
	return nil
}

// begin stores that a call runs and returns its task. The task is nil if it does not run.
func (e *Engine[P]) begin(ctx context.Context, c *Call[P], r Ruling) (*task, error) {
	if c.Approval != nil && !c.Approval.Taken {
		if err := e.claim(ctx, c, r.Verdict); err != nil {
			return nil, e.notClaimed(ctx, c, err)
		}
	}
	how, err := e.transport.Begin(ctx, c)
	switch {
	case err != nil:
		return nil, fmt.Errorf("begin the run: %w", err)
	case how != nil:
		return nil, e.move(ctx, c, func() { e.Finish(c, *how) })
	}

	was := c.State
	c.State = Running
	c.Message = nil
	c.Run.begin(e.now(), e.transport.Lease(c))
	// Before the put, because a request to stop the call has to find the task as soon as the call
	// is stored.
	f := e.tasks.add(c.Key, c.Run.Name)
	if err := e.put(ctx, c); err != nil {
		e.tasks.done(f)
		return nil, err
	}
	e.changed(ctx, was, c)
	e.stored(c)
	e.wakeAt(c)
	return f, nil
}

// claim takes the one run that an approval permits. After a crash the same key claims the same
// run again.
func (e *Engine[P]) claim(ctx context.Context, c *Call[P], v hold.Verdict) error {
	if e.cfg.People == nil {
		return errNoPeople
	}
	err := e.cfg.People.As(c.Asker).Claim(ctx, c.Approval.Ref, c.Approval.Key, v)
	if err == nil {
		c.Approval.Taken = true
		e.forget(ctx, c.Approval.Ref)
	}
	return err
}

func (e *Engine[P]) notClaimed(ctx context.Context, c *Call[P], cause error) error {
	return e.move(ctx, c, func() {
		switch {
		case errors.Is(cause, hold.ErrNotClaimed):
			e.Finish(c, Ending{Why: NotClaimed, Reason: cause.Error()})
			return
		case errors.Is(cause, errNoPeople):
			e.Finish(c, Ending{Why: Unreachable})
			return
		}

		e.cfg.Log.WarnContext(ctx, "people's side can't be reached", "call", c.Key, "error", cause)
		c.State = Ready
		e.putOff(c)
		if e.cfg.AskTries > 0 && c.Run.Fails >= e.cfg.AskTries {
			e.Finish(c, Ending{Why: Unreachable})
		}
	})
}

// run runs a call, renews its lease meanwhile, and stores the result.
func (e *Engine[P]) run(ctx context.Context, c *Call[P]) {
	alive, rest := context.WithCancel(context.WithoutCancel(ctx))
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		e.beat(alive, c)
	}()

	result := e.runOnce(ctx, c)
	rest()
	<-beats
	e.keepResult(ctx, c, result)
}

// runOnce calls the transport. After a panic the outcome is unknown.
func (e *Engine[P]) runOnce(ctx context.Context, c *Call[P]) (result Result[P]) {
	defer func() {
		if p := recover(); p != nil {
			e.cfg.Log.ErrorContext(ctx, "a run panicked", "call", c.Key, "panic", p)
			result = Result[P]{Ending: Ending{Why: Unknown, Reason: "it panicked"}}
		}
	}()
	return e.transport.Run(ctx, c)
}

// beat renews the lease of a run so that other processes don't consider it lost. It also
// notices that the run should stop.
func (e *Engine[P]) beat(ctx context.Context, run *Call[P]) {
	lease := e.transport.Lease(run)
	ticks := time.NewTicker(lease / 4)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		_, err := e.Change(ctx, run.Key, func(c *Call[P]) error {
			e.tasks.check(c.Key, func(f *task) error { return overtaken(c, f) })
			if c.State != Running || c.Run.Name != run.Run.Name {
				return ErrUnchanged
			}
			c.Run.Lease = e.now().Add(lease)
			return nil
		})
		if err != nil && !errors.Is(err, ErrUnchanged) && ctx.Err() == nil {
			e.cfg.Log.ErrorContext(ctx, "a sign of life can't be stored", "call", run.Key, "error", err)
		}
	}
}

// overtaken returns why a run should stop, or nil. A run whose peer has already reported the
// ending may finish.
func overtaken[P any](c *Call[P], f *task) error {
	switch {
	case c.Run.Name != f.name:
		return nil // a message, or a run that the record no longer refers to
	case c.State == Running && c.Stop != "":
		return &Stopped{Reason: c.Stop}
	case c.Over() && (c.Ending.Why == Unknown || c.Ending.Why == AbandonedWhy):
		return ErrOvertaken
	}

	return nil
}

// keepResult stores the result of a run, retrying until that works, because no other process
// has it.
func (e *Engine[P]) keepResult(ctx context.Context, run *Call[P], result Result[P]) {
	detached := context.WithoutCancel(ctx)
	err := e.insist(ctx, func() error {
		_, err := e.Change(detached, run.Key, func(c *Call[P]) error {
			if c.State != Running || c.Run.Name != run.Run.Name {
				return ErrUnchanged
			}
			e.applyResult(c, result)
			return nil
		})
		return err
	})
	switch {
	case errors.Is(err, ErrUnchanged):
		level := slog.LevelWarn
		if e.cfg.PeersReturn { // the peer reported the ending before the run returned
			level = slog.LevelDebug
		}
		e.cfg.Log.Log(ctx, level, "what came of a run was dropped", "call", run.Key, "error", ErrOvertaken)
		e.transport.Dropped(detached, run)
	case err != nil:
		e.cfg.Log.ErrorContext(ctx, "what came of a run could not be stored", "call", run.Key, "error", err)
	}
}

// applyResult moves a call by the result of its run.
func (e *Engine[P]) applyResult(c *Call[P], result Result[P]) {
	if result.Keep != nil {
		result.Keep(c)
	}
	switch result.After {
	case HandedOn:
		c.State = Away
		c.Run.Lease = time.Time{}
	case NotBegun:
		c.State = Ready
		c.Run.again(e.now().Add(result.Pause))
	default:
		e.Finish(c, result.Ending)
	}
}

// insist retries store until it succeeds or the process shuts down.
func (e *Engine[P]) insist(ctx context.Context, store func() error) error {
	for fails := 1; ; fails++ {
		err := store()
		if err == nil || errors.Is(err, ErrUnchanged) || errors.Is(err, approval.ErrNotFound) {
			return err
		}
		e.cfg.Log.ErrorContext(ctx, "a result can't be stored; trying again", "error", err)
		if ended := context.Cause(ctx); errors.Is(ended, ErrShutdown) {
			return err
		}
		_ = wait.Pause(ctx, min(e.cfg.Pause(fails), 5*time.Second))
	}
}

// lost ends a call whose process died while it ran. The outcome is unknown, so it is never run
// again. If runs hand calls to peers, the peer may have received it, and the call waits for its
// report.
func (e *Engine[P]) lost(ctx context.Context, c *Call[P], _ *turn) error {
	return e.move(ctx, c, func() {
		if e.cfg.PeersReturn {
			c.State = Away
			c.Run.Lease = time.Time{}
			return
		}
		e.Finish(c, Ending{Why: Unknown})
	})
}
