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

// executor runs calls and sends their messages.
type executor[P any] struct{ *book[P] }

// start claims the approval, stores that the call runs, and runs it in the background.
func (x *executor[P]) start(ctx context.Context, c *Call[P], r Ruling, t *turn) error {
	if !t.group.beginRun() {
		return x.move(ctx, c, func() {
			x.applyRuling(c, r)
			c.Run.Next = x.now().Add(x.cfg.Poll)
		})
	}

	f, err := x.begin(ctx, c, r)
	if f == nil {
		t.group.endRun()
		return err
	}

	run := *c
	x.detach(f, t, func(ctx context.Context) {
		defer t.group.endRun()
		x.run(ctx, &run)
	})
	return nil
}

// begin stores that a call runs and returns its task. The task is nil if it does not run.
func (x *executor[P]) begin(ctx context.Context, c *Call[P], r Ruling) (*task, error) {
	if c.Approval != nil && !c.Approval.Taken {
		if err := x.claim(ctx, c, r.Verdict); err != nil {
			return nil, x.notClaimed(ctx, c, err)
		}
	}
	how, err := x.transport.Begin(ctx, c)
	switch {
	case err != nil:
		return nil, fmt.Errorf("begin the run: %w", err)
	case how != nil:
		return nil, x.move(ctx, c, func() { x.Finish(c, *how) })
	}

	was := c.State
	c.State = Running
	c.Message = nil
	c.Run.begin(x.now(), x.transport.Lease(c))
	// Before the put, because a request to stop the call has to find the task as soon as the call
	// is stored.
	f := x.tasks.add(c.Key, c.Run.Name)
	if err := x.put(ctx, c); err != nil {
		x.tasks.done(f)
		return nil, err
	}
	x.changed(ctx, was, c)
	x.stored(c)
	x.wakeAt(c)
	return f, nil
}

// claim takes the one run that an approval permits. After a crash the same key claims the same
// run again.
func (x *executor[P]) claim(ctx context.Context, c *Call[P], v hold.Verdict) error {
	if x.cfg.People == nil {
		return errNoPeople
	}
	err := x.cfg.People.As(c.Asker).Claim(ctx, c.Approval.Ref, c.Approval.Key, v)
	if err == nil {
		c.Approval.Taken = true
		x.forget(ctx, c.Approval.Ref)
	}
	return err
}

func (x *executor[P]) notClaimed(ctx context.Context, c *Call[P], cause error) error {
	return x.move(ctx, c, func() {
		switch {
		case errors.Is(cause, hold.ErrNotClaimed):
			x.Finish(c, Ending{Why: NotClaimed, Reason: cause.Error()})
			return
		case errors.Is(cause, errNoPeople):
			x.Finish(c, Ending{Why: Unreachable})
			return
		}

		x.cfg.Log.WarnContext(ctx, "people's side can't be reached", "call", c.Key, "error", cause)
		c.State = Ready
		x.putOff(c)
		if x.cfg.AskTries > 0 && c.Run.Fails >= x.cfg.AskTries {
			x.Finish(c, Ending{Why: Unreachable})
		}
	})
}

// run runs a call, renews its lease meanwhile, and stores the result.
func (x *executor[P]) run(ctx context.Context, c *Call[P]) {
	alive, rest := context.WithCancel(context.WithoutCancel(ctx))
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		x.beat(alive, c)
	}()

	result := x.runOnce(ctx, c)
	rest()
	<-beats
	x.keepResult(ctx, c, result)
}

// runOnce calls the transport. After a panic the outcome is unknown.
func (x *executor[P]) runOnce(ctx context.Context, c *Call[P]) (result Result[P]) {
	defer func() {
		if p := recover(); p != nil {
			x.cfg.Log.ErrorContext(ctx, "a run panicked", "call", c.Key, "panic", p)
			result = Result[P]{Ending: Ending{Why: Unknown, Reason: "it panicked"}}
		}
	}()
	return x.transport.Run(ctx, c)
}

// beat renews the lease of a run so that other processes don't consider it lost. It also
// notices that the run should stop.
func (x *executor[P]) beat(ctx context.Context, run *Call[P]) {
	lease := x.transport.Lease(run)
	ticks := time.NewTicker(lease / 4)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		_, err := x.Change(ctx, run.Key, func(c *Call[P]) error {
			x.tasks.check(c.Key, func(f *task) error { return overtaken(c, f) })
			if c.State != Running || c.Run.Name != run.Run.Name {
				return ErrUnchanged
			}
			c.Run.Lease = x.now().Add(lease)
			return nil
		})
		if err != nil && !errors.Is(err, ErrUnchanged) && ctx.Err() == nil {
			x.cfg.Log.ErrorContext(ctx, "the lease of a run can't be renewed", "call", run.Key, "error", err)
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
func (x *executor[P]) keepResult(ctx context.Context, run *Call[P], result Result[P]) {
	detached := context.WithoutCancel(ctx)
	err := x.insist(ctx, func() error {
		_, err := x.Change(detached, run.Key, func(c *Call[P]) error {
			if c.State != Running || c.Run.Name != run.Run.Name {
				return ErrUnchanged
			}
			x.applyResult(c, result)
			return nil
		})
		return err
	})
	switch {
	case errors.Is(err, ErrUnchanged):
		level := slog.LevelWarn
		if x.cfg.PeersReturn { // the peer reported the ending before the run returned
			level = slog.LevelDebug
		}
		x.cfg.Log.Log(ctx, level, "the result of a run was dropped", "call", run.Key, "error", ErrOvertaken)
		x.transport.Dropped(detached, run)
	case err != nil:
		x.cfg.Log.ErrorContext(ctx, "the result of a run could not be stored", "call", run.Key, "error", err)
	}
}

// applyResult moves a call by the result of its run.
func (x *executor[P]) applyResult(c *Call[P], result Result[P]) {
	if result.Keep != nil {
		result.Keep(c)
	}
	switch result.After {
	case HandedOn:
		c.State = Away
		c.Run.Lease = time.Time{}
	case NotBegun:
		c.State = Ready
		c.Run.again(x.now().Add(result.Pause))
	default:
		x.Finish(c, result.Ending)
	}
}

// insist retries store until it succeeds or the process shuts down.
func (x *executor[P]) insist(ctx context.Context, store func() error) error {
	for fails := 1; ; fails++ {
		err := store()
		if err == nil || errors.Is(err, ErrUnchanged) || errors.Is(err, approval.ErrNotFound) {
			return err
		}
		x.cfg.Log.ErrorContext(ctx, "a result can't be stored; trying again", "error", err)
		if ended := context.Cause(ctx); errors.Is(ended, ErrShutdown) {
			return err
		}
		_ = wait.Pause(ctx, min(x.cfg.Pause(fails), 5*time.Second))
	}
}

// lost ends a call whose process died while it ran. The outcome is unknown, so it is never run
// again. If runs hand calls to peers, the peer may have received it, and the call waits for its
// report.
func (x *executor[P]) lost(ctx context.Context, c *Call[P], _ *turn) error {
	return x.move(ctx, c, func() {
		if x.cfg.PeersReturn {
			c.State = Away
			c.Run.Lease = time.Time{}
			return
		}
		x.Finish(c, Ending{Why: Unknown})
	})
}
