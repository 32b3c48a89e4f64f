package rap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/resolve"
)

// run runs a call that may run, once: what it was allowed on is looked at again, then it is stored that it begins, and then it begins (4.3.4).
func (g *Gateway) run(ctx context.Context, c *gateCaller, d *doc[gateCall]) (bool, error) {
	j, why := g.mayRun(ctx, &d.body)
	if why != "" {
		return true, g.settle(ctx, d, gateDeny, why)
	}
	select {
	case c.runs <- struct{}{}:
		defer func() { <-c.runs }()
	default:
		d.due = g.now().Add(g.cfg.Poll)
		return false, g.calls.put(ctx, d)
	}
	if ok, err := g.take(ctx, d, j); !ok || err != nil {
		return d.body.over(), err
	}
	args := d.body.Args
	if err := g.beginRun(ctx, d, j.op); err != nil {
		return false, err
	}
	<-c.turns // others may go on while the operation runs
	out, failed := g.perform(ctx, d, j, args)
	c.turns <- struct{}{}
	return g.finished(ctx, d, out, failed)
}

// beginRun stores that a call runs from now on, and under which name whatever comes after it goes on.
func (g *Gateway) beginRun(ctx context.Context, d *doc[gateCall], op *gateOp) (err error) {
	c := &d.body
	c.Phase, c.Owner, c.Run, d.due = gateExecuting, g.id, rand.Text(), g.now().Add(gateLease)
	if op.Feed != nil {
		if c.Follows, err = op.Feed.Name(c.job(nil)); err != nil {
			return err
		}
	}

	return g.calls.put(ctx, d)
}

// job is what an operation is told of a call.
func (c *gateCall) job(args []byte) Job {
	return Job{
		Asker: c.Asker, Caller: c.Caller, Thread: c.Thread, ID: c.ID, Run: c.Run, User: c.User, Ancestors: slices.Clone(c.Ancestors),
		Operation: c.Operation, Arguments: slices.Clone(args),
	}
}

// mayRun tells why a call may not run after all.
func (g *Gateway) mayRun(ctx context.Context, c *gateCall) (*judged, string) {
	j, why := g.judge(ctx, c)
	switch {
	case j == nil:
		return nil, why
	case j.binding != c.Ground.Binding, c.By == gateByRules && j.Outcome != resolve.Allow:
		return nil, "the rules or the operation changed since the call was decided; nothing was run"
	}
	return j, ""
}

// take takes what the run uses up: the approval at the desk, a session grant. Only true says that it was had.
func (g *Gateway) take(ctx context.Context, d *doc[gateCall], j *judged) (bool, error) {
	c := &d.body
	if c.Held != "" && g.cfg.People == nil {
		return false, g.settle(ctx, d, gateFailed, "the approvers can't be reached; nothing was run")
	}
	if c.Held != "" {
		err := g.desk(&d.body).Claim(ctx, c.Held, gateDeskKey(d), j.verdict(g.cfg.Within))
		if errors.Is(err, hold.ErrNotClaimed) {
			return false, g.settle(ctx, d, gateDeny, "the approval can't be used: "+err.Error())
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
	return false, g.settle(ctx, d, gateDeny, "the session grant was revoked; nothing was run")
}

// perform runs the operation, showing that this process lives. The caller's turn is free meanwhile.
func (g *Gateway) perform(ctx context.Context, d *doc[gateCall], j *judged, args []byte) (Outcome, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g.running(d.key, stop)
	if g.record(ctx, "rap_call_ran", &d.body, map[string]any{"by": d.body.By}) != nil {
		return Outcome{}, &PublicError{"the run could not be recorded; nothing was run"}
	}
	r := &gateRun{g: g, key: d.key, clock: newGateClock(g.cfg.RunWithin, stop), nudge: make(chan struct{}, 1)}
	defer r.clock.stop()
	beats := make(chan struct{})
	alive, rest := context.WithCancel(context.WithoutCancel(ctx))
	go func() { defer close(beats); r.beat(alive, stop) }()
	defer func() { rest(); <-beats }()
	g.relay(d.key, r)
	job := d.body.job(args)
	job.Ask = r.ask

	return r.call(ctx, j.op, job)
}

// gateRun is one run of an operation.
type gateRun struct {
	g     *Gateway
	key   string
	clock *gateClock
	nudge chan struct{} // something happened to the record
}

var (
	errGateTime    error = &PublicError{"the operation took too long; its outcome is unknown"}
	errGateStopped error = &PublicError{"outcome unknown: the server was stopped while the operation ran; it was not run again"}
	errGatePanic         = errors.New("the operation panicked")
	errGateLost          = errors.New("another process took the call for lost")
)

// call runs the operation in a goroutine of its own, so that neither a panic nor one that does not listen holds up the call (T32).
func (r *gateRun) call(ctx context.Context, op *gateOp, job Job) (Outcome, error) {
	type end struct {
		out Outcome
		err error
	}
	ended := make(chan end, 1)
	go func() {
		e := end{err: errGatePanic}
		defer func() {
			if p := recover(); p != nil {
				e.err = fmt.Errorf("%w: %v", errGatePanic, p)
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
		return Outcome{}, errors.Join(context.Cause(ctx), errGateTime)
	}
}

// patience is how long an operation that was told to stop may take to do so.
func (g *Gateway) patience() time.Duration { return min(gateGrace/2, g.cfg.RunWithin) }

// beat shows that the run lives, and sees when it should not.
func (r *gateRun) beat(ctx context.Context, stop context.CancelCauseFunc) {
	for t := time.NewTicker(gateLease / 4); ; {
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		d, _, err := r.g.change(ctx, r.key, func(d *doc[gateCall]) bool {
			d.due = r.g.now().Add(gateLease)
			return d.body.Phase == gateExecuting && d.body.Owner == r.g.id
		})
		switch {
		case err != nil:
			r.g.cfg.Log.ErrorContext(ctx, "a sign of life can't be stored", "error", err)
		case d.body.Phase != gateExecuting || d.body.Owner != r.g.id:
			stop(errGateLost)
		case d.body.Stop != "":
			stop(&PublicError{d.body.Stop})
		}
	}
}

// finished stores what came of the run. It is stored also when this process is to end.
func (g *Gateway) finished(ctx context.Context, d *doc[gateCall], out Outcome, failed error) (bool, error) {
	if failed != nil && ctx.Err() != nil {
		failed = errors.Join(failed, errGateStopped)
	}
	if failed != nil {
		out = g.failure(ctx, &d.body, failed)
	}
	keep, stop := gateDetached(ctx)
	defer stop()
	now, changed, err := g.change(keep, d.key, func(d *doc[gateCall]) bool {
		if d.body.Phase != gateExecuting || d.body.Owner != g.id {
			return false
		}
		if failed != nil {
			d.body.Verdict = gateFailed
		}
		d.body.finish(out)
		d.due = g.now()
		return true
	})
	if err != nil {
		return false, err
	}
	*d = *now
	if !changed {
		g.refuse(ctx, "what came of a run was dropped", errGateLost, &d.body)
		err = g.endFeed(keep, &d.body)
	}
	return changed && ctx.Err() == nil, err
}

// failure is what a runtime is told of an error: nothing that was not written for it (I16).
func (g *Gateway) failure(ctx context.Context, c *gateCall, failed error) Outcome {
	var public *PublicError
	g.cfg.Log.WarnContext(ctx, "an operation failed", "call", gateSubject(c), "operation", c.Operation, "error", failed)
	if errors.As(failed, &public) && public != nil {
		return gateError(public.Text)
	}
	return gateError("the operation failed")
}

// lost ends a call that was begun by a process that gives no sign of life. Nobody knows what came of it, so it is never run again (T26).
func (g *Gateway) lost(ctx context.Context, d *doc[gateCall]) (bool, error) {
	if !g.isDue(d) {
		return false, nil
	}
	return true, g.settle(ctx, d, gateUnknown, "outcome unknown: the server was interrupted while the operation ran; it was not run again")
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
func (g *Gateway) relay(key string, r *gateRun) {
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
		j.stop(&PublicError{why})
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
