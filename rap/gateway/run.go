package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/resolve"
)

// run runs a call that may run, once: what it was allowed on is looked at again, then it is stored that it begins, and then it begins (4.3.4).
func (g *Gateway) run(ctx context.Context, c *caller, d *kept.Doc[call]) (bool, error) {
	j, why := g.mayRun(ctx, &d.Body)
	if why != "" {
		return true, g.settle(ctx, d, verdictDeny, why)
	}
	select {
	case c.runs <- struct{}{}:
		defer func() { <-c.runs }()
	default:
		d.Due = g.now().Add(g.cfg.Poll)
		return false, g.calls.Put(ctx, d)
	}
	if ok, err := g.take(ctx, d, j); !ok || err != nil {
		return d.Body.over(), err
	}
	args := d.Body.Args
	if err := g.beginRun(ctx, d, j.op); err != nil {
		return false, err
	}
	<-c.turns // others may go on while the operation runs
	out, failed := g.perform(ctx, d, j, args)
	c.turns <- struct{}{}
	return g.finished(ctx, d, out, failed)
}

// beginRun stores that a call runs from now on, and under which name whatever comes after it goes on.
func (g *Gateway) beginRun(ctx context.Context, d *kept.Doc[call], op *operation) (err error) {
	c := &d.Body
	c.Phase, c.Owner, c.Run, d.Due = phaseExecuting, g.id, rand.Text(), g.now().Add(executionLease)
	if op.Feed != nil {
		if c.Follows, err = op.Feed.Name(c.job(nil)); err != nil {
			return err
		}
	}

	return g.calls.Put(ctx, d)
}

// job is what an operation is told of a call.
func (c *call) job(args []byte) rap.Job {
	return rap.Job{
		Asker: c.Asker, Caller: c.Caller, Thread: c.Thread, ID: c.ID, Run: c.Run, User: c.User, Ancestors: slices.Clone(c.Ancestors),
		Operation: c.Operation, Arguments: slices.Clone(args),
	}
}

// mayRun tells why a call may not run after all.
func (g *Gateway) mayRun(ctx context.Context, c *call) (*judged, string) {
	j, why := g.judge(ctx, c)
	switch {
	case j == nil:
		return nil, why
	case j.binding != c.Ground.Binding, c.By == byRules && j.Outcome != resolve.Allow:
		return nil, "the rules or the operation changed since the call was decided; nothing was run"
	}
	return j, ""
}

// take takes what the run uses up: the approval at the desk, a session grant. Only true says that it was had.
func (g *Gateway) take(ctx context.Context, d *kept.Doc[call], j *judged) (bool, error) {
	c := &d.Body
	if c.Held != "" && g.cfg.People == nil {
		return false, g.settle(ctx, d, verdictFailed, "the approvers can't be reached; nothing was run")
	}
	if c.Held != "" {
		err := g.desk(&d.Body).Claim(ctx, c.Held, approvalKey(d), j.verdict(g.cfg.Within))
		if errors.Is(err, hold.ErrNotClaimed) {
			return false, g.settle(ctx, d, verdictDeny, "the approval can't be used: "+err.Error())
		}
		if err != nil {
			_, err = g.tryDesk(ctx, d, err)
			return false, err
		}
	}
	if c.Grant == "" {
		return true, nil
	}
	if c.Makes {
		return g.makeGrant(ctx, d, j)
	}
	ok, err := g.inForce(ctx, c.Grant)
	if err != nil || ok {
		return ok, err
	}
	return false, g.settle(ctx, d, verdictDeny, "the session grant was revoked; nothing was run")
}

// perform runs the operation, showing that this process lives. The caller's turn is free meanwhile.
func (g *Gateway) perform(ctx context.Context, d *kept.Doc[call], j *judged, args []byte) (rap.Outcome, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g.running(d.Key, stop)
	if g.record(ctx, "rap_call_ran", &d.Body, map[string]any{"by": d.Body.By}) != nil {
		return rap.Outcome{}, &rap.PublicError{Text: "the run could not be recorded; nothing was run"}
	}
	r := &operationRun{g: g, key: d.Key, clock: newRunClock(g.cfg.RunWithin, stop), nudge: make(chan struct{}, 1)}
	defer r.clock.stop()
	beats := make(chan struct{})
	alive, rest := context.WithCancel(context.WithoutCancel(ctx))
	go func() { defer close(beats); r.beat(alive, stop) }()
	defer func() { rest(); <-beats }()
	g.relay(d.Key, r)
	job := d.Body.job(args)
	job.Ask = r.ask

	return r.call(ctx, j.op, job)
}

// gateRun is one run of an operation.
type operationRun struct {
	g     *Gateway
	key   string
	clock *runClock
	nudge chan struct{} // something happened to the record
}

var (
	errTimedOut error = &rap.PublicError{Text: "the operation took too long; its outcome is unknown"}
	errStopped  error = &rap.PublicError{Text: "outcome unknown: the server was stopped while the operation ran; it was not run again"}
	errPanicked       = errors.New("the operation panicked")
	errLost           = errors.New("another process took the call for lost")
)

// call runs the operation in a goroutine of its own, so that neither a panic nor one that does not listen holds up the call (T32).
func (r *operationRun) call(ctx context.Context, op *operation, job rap.Job) (rap.Outcome, error) {
	type end struct {
		out rap.Outcome
		err error
	}
	ended := make(chan end, 1)
	go func() {
		e := end{err: errPanicked}
		defer func() {
			if p := recover(); p != nil {
				e.err = fmt.Errorf("%w: %v", errPanicked, p)
			}
			ended <- e
		}()
		e.out, e.err = op.Run(ctx, job)
	}()
	select {
	case e := <-ended:
		return e.out, e.err
	case <-ctx.Done():
	}
	select {
	case e := <-ended:
		if e.err != nil {
			e.err = errors.Join(context.Cause(ctx), e.err)
		}
		return e.out, e.err
	case <-time.After(r.g.patience()):
		return rap.Outcome{}, errors.Join(context.Cause(ctx), errTimedOut)
	}
}

// patience is how long an operation that was told to stop may take to do so.
func (g *Gateway) patience() time.Duration { return min(stopGrace/2, g.cfg.RunWithin) }

// beat shows that the run lives, and sees when it should not.
func (r *operationRun) beat(ctx context.Context, stop context.CancelCauseFunc) {
	for t := time.NewTicker(executionLease / 4); ; {
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		d, _, err := r.g.change(ctx, r.key, func(d *kept.Doc[call]) bool {
			d.Due = r.g.now().Add(executionLease)
			return d.Body.Phase == phaseExecuting && d.Body.Owner == r.g.id
		})
		switch {
		case err != nil:
			r.g.cfg.Log.ErrorContext(ctx, "a sign of life can't be stored", "error", err)
		case d.Body.Phase != phaseExecuting || d.Body.Owner != r.g.id:
			stop(errLost)
		case d.Body.Stop != "":
			stop(&rap.PublicError{Text: d.Body.Stop})
		}
	}
}

// finished stores what came of the run. It is stored also when this process is to end.
func (g *Gateway) finished(ctx context.Context, d *kept.Doc[call], out rap.Outcome, failed error) (bool, error) {
	if failed != nil && ctx.Err() != nil {
		failed = errors.Join(failed, errStopped)
	}
	if failed != nil {
		out = g.failure(ctx, &d.Body, failed)
	}
	keep, stop := detached(ctx)
	defer stop()
	now, changed, err := g.change(keep, d.Key, func(d *kept.Doc[call]) bool {
		if d.Body.Phase != phaseExecuting || d.Body.Owner != g.id {
			return false
		}
		if failed != nil {
			d.Body.Verdict = verdictFailed
		}
		d.Body.finish(out)
		d.Due = g.now()
		return true
	})
	if err != nil {
		return false, err
	}
	*d = *now
	if !changed {
		g.refuse(ctx, "what came of a run was dropped", errLost, &d.Body)
		err = g.endFeed(keep, &d.Body)
	}
	return changed && ctx.Err() == nil, err
}

// failure is what a runtime is told of an error: nothing that was not written for it (I16).
func (g *Gateway) failure(ctx context.Context, c *call, failed error) rap.Outcome {
	var public *rap.PublicError
	g.cfg.Log.WarnContext(ctx, "an operation failed", "call", subjectOf(c), "operation", c.Operation, "error", failed)
	if errors.As(failed, &public) && public != nil {
		return errorOutcome(public.Text)
	}
	return errorOutcome("the operation failed")
}

// lost ends a call that was begun by a process that gives no sign of life. Nobody knows what came of it, so it is never run again (T26).
func (g *Gateway) lost(ctx context.Context, d *kept.Doc[call]) (bool, error) {
	if !g.isDue(d) {
		return false, nil
	}
	return true, g.settle(ctx, d, verdictUnknown, "outcome unknown: the server was interrupted while the operation ran; it was not run again")
}

// running remembers how to stop a call that runs here.
func (g *Gateway) running(key string, stop context.CancelCauseFunc) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if j := g.inFlight[key]; j != nil {
		j.stop = stop
	}
}

// relay remembers the run of a call, so that an answer that comes here reaches it at once.
func (g *Gateway) relay(key string, r *operationRun) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if j := g.inFlight[key]; j != nil {
		j.run = r
	}
}

// stop stops a call, if it runs here.
func (g *Gateway) stop(key, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if j := g.inFlight[key]; j != nil && j.stop != nil {
		j.stop(&rap.PublicError{Text: why})
	}
}

// hint tells the run of a call, if it is here, that its record changed.
func (g *Gateway) hint(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if j := g.inFlight[key]; j != nil && j.run != nil {
		select {
		case j.run.nudge <- struct{}{}:
		default:
		}
	}
}
