package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap"
)

const (
	runLease = 5 * time.Second  // how long a run may go without a renewal
	runGrace = 10 * time.Second // how long Run waits for operations at its end
)

var (
	errTimedOut   error = &rap.PublicError{Text: "the operation took too long; its outcome is unknown"}
	errStopped    error = &rap.PublicError{Text: textStopped}
	errUnrecorded error = &rap.PublicError{Text: "the run could not be recorded; nothing was run"}
	errPanicked         = errors.New("the operation panicked")
)

// runner runs the operations of calls that may run.
type runner struct {
	*base
	grants  *grantBook
	decider *decider
	sender  *sender
}

// begin claims the session grant that a run uses or makes, and names the run and its
// subscription.
func (n *runner) begin(ctx context.Context, r *record) (*durable.Ending, error) {
	c := &r.Part
	if how, err := n.takeGrant(ctx, r); how != nil || err != nil {
		return how, err
	}

	c.Run = rand.Text()
	feed := n.sender.feed(c)
	if feed == nil {
		return nil, nil
	}
	var err error
	c.Follows, err = feed.Name(jobOf(r))
	return nil, err
}

// takeGrant makes sure that the session grant of a call is in force, or makes it.
func (n *runner) takeGrant(ctx context.Context, r *record) (*durable.Ending, error) {
	switch {
	case r.Part.Grant == "":
		return nil, nil
	case r.Part.Makes:
		return n.grants.makeGrant(ctx, r)
	}

	ok, err := n.grants.inForce(ctx, r.Part.Grant)
	if err != nil || ok {
		return nil, err
	}
	return &durable.Ending{Why: durable.Refused, Reason: "the session grant was revoked; nothing was run"}, nil
}

// jobOf returns the description of a call for its operation.
func jobOf(r *record) rap.Job {
	c := &r.Part
	return rap.Job{
		Asker:     r.Asker,
		Caller:    c.Caller,
		Thread:    c.Thread,
		ID:        c.ID,
		Run:       c.Run,
		User:      c.User,
		Ancestors: slices.Clone(c.Ancestors),
		Operation: c.Operation,
		Arguments: slices.Clone(r.Args()),
	}
}

// run runs the operation of a call.
func (n *runner) run(ctx context.Context, r *record) durable.Result[call] {
	out, err := n.perform(ctx, r)
	if err != nil && errors.Is(context.Cause(ctx), durable.ErrShutdown) {
		err = errors.Join(err, errStopped)
	}
	if err != nil {
		out = n.failure(ctx, r, err)
	}
	return durable.Result[call]{Keep: func(r *record) {
		if err != nil {
			r.Part.Verdict = verdictFailed
		}
		finish(r, out)
	}}
}

func (n *runner) perform(ctx context.Context, r *record) (rap.Outcome, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if n.record(ctx, "rap_call_ran", r, map[string]any{"by": r.Part.By}) != nil {
		return rap.Outcome{}, errUnrecorded
	}

	run := &operationRun{
		runner: n,
		key:    r.Key,
		name:   r.Part.Run,
		clock:  newRunClock(n.cfg.RunWithin, stop),
	}
	defer run.clock.stop()
	job := jobOf(r)
	job.Ask = run.ask
	return run.call(ctx, n.ops[r.Part.Operation], job)
}

// operationRun is one run of an operation.
type operationRun struct {
	runner *runner
	key    string // of the call
	name   string // of the run
	clock  *runClock
}

// call runs the operation in a goroutine of its own, so that a panic or an operation that
// ignores its context can't block the call.
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
			e.err = errors.Join(cause(ctx), e.err)
		}
		return e.out, e.err
	case <-time.After(r.runner.patience()):
		return rap.Outcome{}, errors.Join(cause(ctx), errTimedOut)
	}
}

// cause returns why a run should stop, as an error with a text for the runtime.
func cause(ctx context.Context) error {
	err := context.Cause(ctx)
	if stopped, ok := errors.AsType[*durable.Stopped](err); ok {
		return &rap.PublicError{Text: stopped.Reason}
	}
	return err
}

// patience returns how long an operation may take to stop.
func (n *runner) patience() time.Duration { return min(runGrace/2, n.cfg.RunWithin) }

// failure returns the outcome for a failed operation. The runtime gets only the text of a
// PublicError; the log gets the whole error.
func (n *runner) failure(ctx context.Context, r *record, failed error) rap.Outcome {
	operation := r.Part.Operation
	n.cfg.Log.WarnContext(
		ctx,
		"an operation failed",
		"call",
		subjectOf(r),
		"operation",
		operation,
		"error",
		failed,
	)
	if public, ok := errors.AsType[*rap.PublicError](failed); ok && public != nil {
		return errorOutcome(public.Text)
	}
	return errorOutcome("the operation failed")
}

// dropped ends the subscription of a run whose result was dropped.
func (n *runner) dropped(ctx context.Context, r *record) {
	if err := n.sender.endFeed(ctx, &r.Part); err != nil {
		n.refuse(ctx, "a subscription could not be ended", err, r)
	}
}
