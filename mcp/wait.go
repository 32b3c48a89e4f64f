package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
)

const (
	// lease extends the hold: a call may still start within it, so that the caller waits for a run
	// that begins at the last moment.
	lease = 2 * time.Second
	// together is the period in which several waiters for the same call share one change of its
	// record.
	together = time.Second
	// untilNamed extends the hold of a call if people have not been asked about it yet.
	untilNamed = time.Second
	// longHold is the longest hold of a client that gets no progress reports. All known clients
	// wait that long.
	longHold = defaultHold
)

// waiting answers clients whose calls wait for people: it holds their requests, asks their users, and
// tells them the outcome.
type waiting struct {
	*base
	keeper *keeper
}

// await waits until a call has ended, or until the caller has waited as long as it may. The
// returned record may still be open.
func (w *waiting) await(
	ctx context.Context, r *server.Request, q *request, c *record, with *server.Exchange,
) (*record, error) {
	if q.gaveUp {
		return c, nil
	}
	until := w.now().Add(w.holdOf(q.caller, with))
	key := c.Key // c is another record, or none, when the watch ends
	leave, err := w.want(ctx, key, until.Add(lease), with)
	if err != nil {
		return nil, err
	}
	defer leave()

	waiting, stop := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop(nil)
	beside.Go(func() { w.beat(waiting, key, with) })
	beside.Go(func() {
		if w.offerNow(waiting, r, q, key, with) {
			stop(errNoAnswer)
		}
	})

	c, err = w.keeper.engine.Watch(waiting, key, func(c *record) bool {
		return c.Over() || w.asksNext(r, q, c) || w.waited(c, until)
	})
	if errors.Is(context.Cause(waiting), errNoAnswer) {
		return w.keeper.engine.Get(ctx, key)
	}
	return c, err
}

// waited reports whether a client was held long enough. If the request has no reference yet, the
// client is held a moment longer, so that the answer can name it.
func (w *waiting) waited(c *record, until time.Time) bool {
	if c.Part.Ref == "" {
		until = until.Add(untilNamed)
	}
	return c.State != durable.Running && !w.now().Before(until)
}

// holdOf returns how long a caller waits. With progress reports, a client may wait longer than its
// usual time limit.
func (w *waiting) holdOf(by *caller, with *server.Exchange) time.Duration {
	if with.WantsProgress() {
		return by.Hold
	}
	return min(by.Hold, longHold)
}

// beat sends the client progress reports while its call has not run yet.
func (w *waiting) beat(ctx context.Context, key string, with *server.Exchange) {
	ticks := time.NewTicker(w.cfg.Heartbeat)
	defer ticks.Stop()
	for n := 1.0; with.WantsProgress(); n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		c, err := w.keeper.engine.Get(ctx, key)
		if err != nil || c.Over() {
			continue
		}
		if with.Progress(wire.Progress{Progress: n, Message: progressText(c)}) != nil {
			return
		}
	}
}

// progressText returns the progress report for a call with waiting callers.
func progressText(c *record) string {
	switch {
	case c.State == durable.Running:
		return "It was approved, and runs."
	case isGranted(c):
		return fmt.Sprintf("Not run yet: it was approved%s.", inBrackets(c.Part.Ref))
	}

	return fmt.Sprintf("Not run yet: waits for people to decide%s.", inBrackets(c.Part.Ref))
}

// inBrackets returns the reference in brackets, or an empty string if there is none.
func inBrackets(ref string) string {
	if ref == "" {
		return ""
	}
	return " (" + ref + ")"
}

// waiters holds the clients of this process that wait for calls.
type waiters struct {
	mu sync.Mutex
	of map[string][]*server.Exchange
}

// enter adds a client that waits for a call, unless it is there already.
func (w *waiters) enter(key string, with *server.Exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.of[key], with) {
		w.of[key] = append(w.of[key], with)
	}
}

// leave removes a client that waits for a call, and reports whether it was the last one.
func (w *waiters) leave(key string, with *server.Exchange) (last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.of[key], with)
	w.of[key] = slices.Delete(w.of[key], i, i+1)
	last = len(w.of[key]) == 0
	if last {
		delete(w.of, key)
	}
	return last
}

// one returns a client that waits for a call, preferably one that wants progress reports. It
// returns nil if no client waits in this process.
func (w *waiters) one(key string) *server.Exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, with := range w.of[key] {
		if with.WantsProgress() {
			return with
		}
	}
	if len(w.of[key]) == 0 {
		return nil
	}
	return w.of[key][0]
}

// want records that a client waits for a call, so that it may run when it is approved. The last
// client that leaves takes that back.
func (w *waiting) want(
	ctx context.Context, key string, until time.Time, with *server.Exchange,
) (leave func(), err error) {
	w.keeper.waiters.enter(key, with)
	leave = func() {
		if w.keeper.waiters.leave(key, with) {
			w.unwant(context.WithoutCancel(ctx), key)
		}
	}
	_, err = w.keeper.engine.Change(ctx, key, func(c *record) error {
		known := c.State != durable.Waiting && !c.Part.Wanted.Before(until)
		if known || c.Over() || c.State == durable.Running {
			return durable.ErrUnchanged
		}
		if c.Part.Wanted.Before(until) {
			c.Part.Wanted, c.Part.WantedBy = until.Add(together), w.keeper.process
		}
		if c.State == durable.Waiting {
			c.State = durable.Ready
			c.Run.Next = time.Time{}
		}
		return nil
	})
	if err != nil && !errors.Is(err, durable.ErrUnchanged) {
		leave()
		return nil, err
	}
	return leave, nil
}

// unwant records that no client of this process waits for a call any more, unless another one has
// come meanwhile.
func (w *waiting) unwant(ctx context.Context, key string) {
	_, err := w.keeper.engine.Change(ctx, key, func(c *record) error {
		others := c.Part.WantedBy != w.keeper.process || w.keeper.waiters.one(key) != nil
		if c.Over() || c.State == durable.Running || others {
			return durable.ErrUnchanged
		}
		c.Part.Wanted = time.Time{}
		return nil
	})
	if err != nil && !errors.Is(err, durable.ErrUnchanged) {
		w.cfg.Log.WarnContext(ctx, "that nobody waits for a call can't be stored", "call", key, "error", err)
	}
}

// ask asks people about a call, and waits for them as long as
// the caller may.
func (w *waiting) ask(
	ctx context.Context, r *server.Request, q *request, with *server.Exchange,
) (json.RawMessage, *wire.Error) {
	if !w.canForm(r, q) && !w.canLink(r) {
		q.with = with
		q.until = w.now().Add(w.holdOf(q.caller, with) + lease)
	}
	c, err := w.keeper.enter(ctx, q)
	q.gaveUp = err == nil && w.broughtBack(ctx, q, c.Key)
	for more := true; err == nil && more && !c.Over(); {
		if answer, bad := w.offerByResult(ctx, r, q, c, with); answer != nil || bad != nil {
			return answer, bad
		}
		c, err = w.await(ctx, r, q, c, with)
		more = err == nil && w.asksNext(r, q, c)
	}

	switch {
	case errors.Is(err, errFull):
		return w.say(r, notRun("Too many requests wait. Call again when people have decided about some"))
	case ctx.Err() != nil: // the client has gone
		return w.say(r, notRun("The client gave up waiting"))
	case errors.Is(err, errUnreadable):
		return w.say(r, notRun("The arguments can't be read"))
	case err != nil:
		w.cfg.Log.ErrorContext(ctx, "a call that asks can't be kept", "error", err)
		return w.say(r, notRun("The call could not be kept"))
	}

	if !c.Over() {
		return w.pendingAnswer(ctx, r, q, c)
	}
	return w.outcome(ctx, r, c)
}
