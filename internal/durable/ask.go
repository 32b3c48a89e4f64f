package durable

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/policy"
)

// errNoRef is returned if the approval service accepted a request but returned no reference for
// it.
var errNoRef = errors.New("the request has no reference")

// unlimited limits the wait of a call for an approval request that has no expiry.
const unlimited = 30 * 24 * time.Hour

// over reports whether the time for an answer has passed at now.
func (a *Ask) over(now time.Time) bool { return !a.Until.IsZero() && !now.Before(a.Until) }

// seek sends the call's approval request or question if that has not been done, and otherwise
// checks for an answer.
func (e *Engine[P]) seek(ctx context.Context, c *Call[P], t *turn) error {
	switch {
	case e.cfg.People == nil:
		return e.move(ctx, c, func() { e.Finish(c, Ending{Why: Unreachable}) })
	case c.Ask.Question:
		return e.seekAnswer(ctx, c)
	case c.Ask.Ref != "":
		return e.look(ctx, c, t)
	}

	// The rules may have changed since the last attempt to ask.
	r, err := e.transport.Decide(ctx, c)
	switch {
	case err != nil:
		return e.askFailed(ctx, c, err)
	case r.Do != Approve:
		c.Ask = nil
		return e.move(ctx, c, func() { e.applyRuling(c, r) })
	}

	return e.open(ctx, c, r, t)
}

// open requests approval for a call. The request's key is stored before, so that after a crash
// the same key finds the same request and people are asked only once.
func (e *Engine[P]) open(ctx context.Context, c *Call[P], r Ruling, t *turn) error {
	if e.cfg.People == nil {
		return e.move(ctx, c, func() { e.Finish(c, Ending{Why: Unreachable}) })
	}
	if c.Ask.over(e.now()) {
		return e.move(ctx, c, func() { e.Finish(c, Ending{Why: Expired}) })
	}

	v := r.Verdict
	if !c.Ask.Until.IsZero() {
		v = bounded(v, c.Ask.Until.Sub(e.now()))
	}
	held, err := e.cfg.People.As(c.Asker).Open(ctx, c.Ask.Key, v)
	if err == nil && held.Ref == "" && (held.State == hold.Pending || held.State == hold.Approved) {
		err = errNoRef
	}
	if err != nil {
		return e.askFailed(ctx, c, err)
	}

	c.Ask.Ref = held.Ref
	c.Ask.Binding = v.Binding
	e.transport.Asked(ctx, c, held)
	ask := *c.Ask
	err = e.applyApproval(ctx, c, held, t)
	if errors.Is(err, errConflict) {
		e.withdrawUnneeded(ctx, c, ask)
	}
	return err
}

// bounded returns v with an expiry of at most within, even if the rules require none.
func bounded(v hold.Verdict, within time.Duration) hold.Verdict {
	var require policy.Require
	if v.Require != nil {
		require = *v.Require
	}
	if require.Within <= 0 || within < time.Duration(require.Within) {
		require.Within = within
	}
	v.Require = &require
	return v
}

// look checks the state of the approval request.
func (e *Engine[P]) look(ctx context.Context, c *Call[P], t *turn) error {
	held, err := e.cfg.People.As(c.Asker).Look(ctx, c.Ask.Ref)
	switch {
	case errors.Is(err, hold.ErrNoRequest):
		return e.answeredBy(ctx, c, Ending{Why: Forgotten})
	case err != nil: // they may have answered nevertheless: keep checking until the time is over
		e.cfg.Log.WarnContext(ctx, "people's side can't be reached", "call", c.Key, "error", err)
		held = hold.Held{State: hold.Pending}
	}

	return e.applyApproval(ctx, c, held, t)
}

// applyApproval moves a call by the state of its approval request.
func (e *Engine[P]) applyApproval(ctx context.Context, c *Call[P], held hold.Held, t *turn) error {
	over := c.Ask.over(e.now())
	switch held.State {
	case hold.Expired:
		return e.answeredBy(ctx, c, Ending{Why: Expired, Reason: held.Reason})
	case hold.Cancelled:
		return e.answeredBy(ctx, c, Ending{Why: Withdrawn, Reason: held.Reason})
	case hold.Responded:
		return e.answeredBy(ctx, c, Ending{Why: Responded, Reason: held.Reason})
	case hold.Approved:
		if !over { // the service may allow more time than we do, and the answer may be seen only now
			return e.approved(ctx, c, held, t)
		}
	case hold.Pending:
	default: // an unknown state allows nothing
		return e.answeredBy(ctx, c, Ending{Why: Denied, Reason: held.Reason, By: held.By})
	}

	if over {
		return e.move(ctx, c, func() { e.Finish(c, Ending{Why: Expired}) })
	}
	return e.lookLater(ctx, c, held.Expires)
}

// answeredBy ends a call whose request is closed already, so that it need not be withdrawn.
func (e *Engine[P]) answeredBy(ctx context.Context, c *Call[P], how Ending) error {
	e.forget(ctx, c.Ask.Ref)
	return e.move(ctx, c, func() {
		c.Ask = nil
		e.Finish(c, how)
	})
}

// approved continues with the call that people approved. They may have edited the arguments.
// Nothing is stored yet: after a crash the request is looked up again.
func (e *Engine[P]) approved(ctx context.Context, c *Call[P], held hold.Held, t *turn) error {
	c.Approval = &Approval{
		Ref:     held.Ref,
		Key:     c.Ask.Key,
		By:      held.By,
		Binding: c.Ask.Binding,
	}
	if c.Approval.Ref == "" {
		c.Approval.Ref = c.Ask.Ref
	}
	if held.Arguments != nil && string(held.Arguments) != string(c.Args()) {
		c.Approval.Edited = true
		c.Edited = held.Arguments
	}
	c.Ask = nil
	c.State = Ready
	c.Run.Next = time.Time{}
	c.Run.Fails = 0
	return e.decide(ctx, c, t)
}

// lookLater stores which call the reference belongs to and schedules the next check. It checks
// even without a notification, because the process that received one may have crashed.
func (e *Engine[P]) lookLater(ctx context.Context, c *Call[P], expires time.Time) error {
	a := c.Ask
	if a.Pause > 0 && a.Next.After(e.now()) { // the notification was for something else
		return nil
	}
	if err := e.Remember(ctx, a.Ref, c.Key); err != nil {
		return err
	}
	first := a.Pause == 0
	return e.move(ctx, c, func() {
		a.Tries = 0
		a.Pause = min(max(2*a.Pause, e.cfg.FirstLook), e.cfg.LastLook)
		a.Next = e.now().Add(a.Pause)
		if first && !a.Question { // a notification may have come before the reference was stored
			a.Next = e.now()
		}
		if a.Until.IsZero() && !a.Question && !c.Deadline.IsZero() {
			c.Deadline = later(c.Deadline, e.endOf(expires))
		}
	})
}

// endOf returns how long to wait for a request that has no limit of ours.
func (e *Engine[P]) endOf(expires time.Time) time.Time {
	if expires.IsZero() {
		return e.now().Add(unlimited)
	}
	return expires.Add(time.Minute)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// askFailed schedules another attempt to ask, or ends the call after AskTries failures.
func (e *Engine[P]) askFailed(ctx context.Context, c *Call[P], cause error) error {
	e.cfg.Log.WarnContext(ctx, "people could not be asked", "call", c.Key, "error", cause)
	return e.move(ctx, c, func() {
		c.Ask.Tries++
		c.Ask.Next = e.now().Add(e.cfg.Pause(c.Ask.Tries))
		if e.cfg.AskTries > 0 && c.Ask.Tries >= e.cfg.AskTries {
			e.Finish(c, Ending{Why: Unreachable})
		}
	})
}

// seekAnswer asks a question of the transport and checks for its answer.
func (e *Engine[P]) seekAnswer(ctx context.Context, c *Call[P]) error {
	people := e.cfg.People.As(c.Asker)
	over := c.Ask.over(e.now())
	asked := c.Ask.Ref != ""
	if !asked && !over {
		q := e.transport.Question(c)
		q.Within = e.within(c)
		ref, err := people.Ask(ctx, c.Ask.Key, q)
		if err == nil && ref == "" {
			err = errNoRef
		}
		if err != nil {
			return e.askFailed(ctx, c, err)
		}
		if err := e.Remember(ctx, ref, c.Key); err != nil { // before the check: a notification may come right after it
			return err
		}
		c.Ask.Ref = ref
		e.transport.Asked(ctx, c, hold.Held{
			Ref:     ref,
			State:   hold.Pending,
			Expires: c.Ask.Until,
		})
	}

	if c.Ask.Ref == "" {
		return e.move(ctx, c, func() { e.Finish(c, Ending{Why: Expired}) })
	}

	ask := *c.Ask // a copy: an answer clears c.Ask even if storing it fails
	err := e.lookAnswer(ctx, c, people, over)
	if errors.Is(err, errConflict) && !asked {
		e.withdrawUnneeded(ctx, c, ask)
	}
	return err
}

// within returns how long a question stays open.
func (e *Engine[P]) within(c *Call[P]) time.Duration {
	end := c.Ask.Until
	if end.IsZero() || !c.Deadline.IsZero() && c.Deadline.Before(end) {
		end = c.Deadline
	}
	if end.IsZero() {
		return unlimited
	}
	return end.Sub(e.now())
}

func (e *Engine[P]) lookAnswer(ctx context.Context, c *Call[P], people hold.Requests, over bool) error {
	a, err := people.Answer(ctx, c.Ask.Ref)
	switch {
	case errors.Is(err, hold.ErrNoRequest):
		return e.answeredBy(ctx, c, Ending{Why: Forgotten})
	case (err != nil || a.State == hold.Pending) && over:
		return e.move(ctx, c, func() { e.Finish(c, Ending{Why: Expired}) })
	case err != nil:
		e.cfg.Log.WarnContext(ctx, "people's side can't be reached", "call", c.Key, "error", err)
		return e.lookLater(ctx, c, time.Time{})
	case a.State == hold.Pending:
		return e.lookLater(ctx, c, time.Time{})
	}

	e.forget(ctx, c.Ask.Ref)
	return e.move(ctx, c, func() {
		c.Ask = nil
		if how := e.transport.Answered(c, a); how != nil {
			e.Finish(c, *how)
		}
		if c.State == Asking {
			c.State = Ready
		}
	})
}

// withdrawUnneeded cancels a request if the call changed while the request was being made,
// unless the call still needs it.
func (e *Engine[P]) withdrawUnneeded(ctx context.Context, asked *Call[P], ask Ask) {
	c, err := e.Get(ctx, asked.Key)
	if err != nil || c.Seed == asked.Seed && c.restsOn(ask) {
		return
	}
	if err := e.cfg.People.As(asked.Asker).Cancel(ctx, ask.Ref, e.transport.WithdrawReason(c)); err != nil {
		e.cfg.Log.WarnContext(ctx, "a request could not be withdrawn", "call", c.Key, "error", err)
	}
	e.forget(ctx, ask.Ref)
}

// restsOn reports whether the call uses this request, will make it again (the same key yields
// the same reference), or will withdraw it.
func (c *Call[P]) restsOn(ask Ask) bool {
	switch {
	case c.Ask != nil && c.Ask.Key == ask.Key, c.Approval != nil && c.Approval.Key == ask.Key:
		return true
	case c.State == Ready && c.Ask == nil && c.nextKey() == ask.Key:
		return true
	}

	return slices.Contains(c.Withdraw, ask.Ref)
}
