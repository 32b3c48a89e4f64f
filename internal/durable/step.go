package durable

import (
	"context"
	"time"
)

// step does one thing for a call and stores it. An error leaves the
// call due, as it was stored last.
type step[P any] func(ctx context.Context, c *Call[P], t *turn) error

// next is the state machine: what is to be done for a call now, nil for
// nothing. News says that people, or whoever else is watched, may have
// an answer.
func (e *Engine[P]) next(c *Call[P], news bool) step[P] {
	if !c.Over() {
		if s := e.nextBefore(c, news); s != nil {
			return s
		}
	}
	if news { // a task that is under way may miss it
		e.tasks.check(c.Key, func(f *task) error {
			f.news.Store(true)
			return nil
		})
	}

	now := e.now()
	switch {
	case c.Message != nil && (c.claimed || c.Message.ready(now) || news && !c.Message.Under()):
		return e.send
	case len(c.Withdraw) > 0 && c.Later.ready(now):
		return e.withdraw
	}

	return nil
}

// nextBefore is what is to be done for a call that has not ended.
func (e *Engine[P]) nextBefore(c *Call[P], news bool) step[P] {
	now := e.now()
	why := e.transport.Abandoned(c)
	switch {
	case why != "" && (c.State != Running || c.Run.ready(now)):
		return e.ends(Ending{Why: AbandonedWhy, Reason: why})
	case !c.Deadline.IsZero() && !now.Before(c.Deadline):
		return e.ends(Ending{Why: Late})
	case c.State == Ready && c.Run.ready(now):
		return e.decide
	case c.State == Running && c.Run.ready(now) && !e.tasks.has(c.Key, c.Run.Name):
		return e.lost
	case c.Ask != nil && (news || !now.Before(c.Ask.Next) || c.Ask.over(now)):
		return e.seek
	}

	return nil
}

// ends ends a call.
func (e *Engine[P]) ends(how Ending) step[P] {
	return func(ctx context.Context, c *Call[P], _ *turn) error {
		return e.move(ctx, c, func() { e.Finish(c, how) })
	}
}

// move changes a call that was read, and stores it.
func (e *Engine[P]) move(ctx context.Context, c *Call[P], change func()) error {
	was := c.State
	change()
	e.claimMessage(c)
	if err := e.put(ctx, c); err != nil {
		return err
	}
	e.changed(ctx, was, c)
	e.stored(c)
	if c.due().After(e.now()) { // until then whoever works on it goes on
		e.wakeAt(c)
	}
	return nil
}

// decide goes by what the rules say of a call now.
func (e *Engine[P]) decide(ctx context.Context, c *Call[P], t *turn) error {
	r, err := e.transport.Decide(ctx, c)
	switch {
	case err != nil:
		e.cfg.Log.WarnContext(ctx, "a call could not be decided on", "call", c.Key, "error", err)
		return e.move(ctx, c, func() { e.putOff(c) })
	case r.Do == Proceed:
		return e.start(ctx, c, r, t)
	case r.Do == Approve:
		e.goBy(c, r)
		return e.open(ctx, c, r, t)
	}

	return e.move(ctx, c, func() { e.goBy(c, r) })
}

// goBy gives a call the state that a ruling leads to.
func (e *Engine[P]) goBy(c *Call[P], r Ruling) {
	var until time.Time
	if r.Within > 0 {
		until = e.now().Add(r.Within)
	}
	switch r.Do {
	case Proceed:
		c.State = Ready
	case Approve:
		c.State = Asking
		c.askApproval(r.Verdict.Binding)
		c.Ask.Until = until
	case Question:
		c.State = Asking
		c.AskQuestion(until)
	case Wait:
		c.State = Waiting
	default:
		orElse(&r.Ending.Why, Refused)
		e.Finish(c, r.Ending)
	}
}

// putOff has a call decided on again later.
func (e *Engine[P]) putOff(c *Call[P]) {
	c.Run.Fails++
	c.Run.Next = e.now().Add(e.cfg.Pause(c.Run.Fails))
}
