package durable

import (
	"context"
)

// step does one thing for a call and stores it. After an error the call stays due, in the state
// that was stored last.
type step[P any] func(ctx context.Context, c *Call[P], t *turn) error

// next is the state machine: it returns the next step for a call, or nil. news means that the
// approval service or another watched source may have an answer.
func (e *Engine[P]) next(c *Call[P], news bool) step[P] {
	if !c.Over() {
		if s := e.nextBefore(c, news); s != nil {
			return s
		}
	}
	if news { // a running task may have missed it
		e.tasks.check(c.Key, func(f *task) error {
			f.news.Store(true)
			return nil
		})
	}

	now := e.now()
	switch {
	case c.Message != nil && (c.claimed || c.Message.ready(now) || news && !c.Message.Under()):
		return e.executor.send
	case len(c.Withdraw) > 0 && c.Later.ready(now):
		return e.withdraw
	}

	return nil
}

// nextBefore returns the next step for a call that has not ended, or nil.
func (e *Engine[P]) nextBefore(c *Call[P], news bool) step[P] {
	now := e.now()
	why := e.transport.Abandoned(c)
	switch {
	case why != "" && (c.State != Running || c.Run.ready(now)):
		return e.endAs(Ending{Why: AbandonedWhy, Reason: why})
	case !c.Deadline.IsZero() && !now.Before(c.Deadline):
		return e.endAs(Ending{Why: Late})
	case c.State == Ready && c.Run.ready(now):
		return e.decide
	case c.State == Running && c.Run.ready(now) && !e.tasks.has(c.Key, c.Run.Name):
		return e.executor.lost
	case c.Ask != nil && (news || !now.Before(c.Ask.Next) || c.Ask.over(now)):
		return e.seek
	}

	return nil
}

// decide asks the rules and takes the resulting step.
func (e *Engine[P]) decide(ctx context.Context, c *Call[P], t *turn) error {
	r, err := e.transport.Decide(ctx, c)
	switch {
	case err != nil:
		e.cfg.Log.WarnContext(ctx, "a call could not be decided on", "call", c.Key, "error", err)
		return e.move(ctx, c, func() { e.putOff(c) })
	case r.Do == Proceed:
		return e.executor.start(ctx, c, r, t)
	case r.Do == Approve:
		e.applyRuling(c, r)
		return e.open(ctx, c, r, t)
	}

	return e.move(ctx, c, func() { e.applyRuling(c, r) })
}
