package mcp

import (
	"context"
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
	// lease is how long a call may still be run behind the end of the
	// hold, so that a run that begins at the last moment is waited for.
	lease = 2 * time.Second
	// together is the time in which those who come to wait for the same
	// call need one change of it, and not one each.
	together = time.Second
	// untilNamed is how long the hold lasts for a call about which
	// people were not asked yet.
	untilNamed = time.Second
	// longHold is the longest hold of a client that isn't told of
	// progress: every client that is known waits as long.
	longHold = defaultHold
)

// await waits until a call has ended, or the caller has waited as long
// as it may. The record that is returned may still be open.
func (g *Gateway) await(
	ctx context.Context, r *server.Request, q *request, c *record, with *server.Exchange,
) (*record, error) {
	if q.gaveUp {
		return c, nil
	}
	until := g.now().Add(g.holdOf(q.caller, with))
	key := c.Key // c is another record, or none, when the watch ends
	leave, err := g.want(ctx, key, until.Add(lease), with)
	if err != nil {
		return nil, err
	}
	defer leave()

	waiting, stop := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop(nil)
	beside.Go(func() { g.beat(waiting, key, with) })
	beside.Go(func() {
		if g.offerNow(waiting, r, q, key, with) {
			stop(errNoAnswer)
		}
	})

	c, err = g.engine.Watch(waiting, key, func(c *record) bool {
		return c.Over() || g.asksNext(r, q, c) || g.waited(c, until)
	})
	if errors.Is(context.Cause(waiting), errNoAnswer) {
		return g.engine.Get(ctx, key)
	}
	return c, err
}

// waited reports whether a client was held long enough. One that would
// be told nothing but that its call is pending is held until the request
// has a name, for a moment.
func (g *Gateway) waited(c *record, until time.Time) bool {
	if c.Part.Ref == "" {
		until = until.Add(untilNamed)
	}
	return c.State != durable.Running && !g.now().Before(until)
}

// holdOf is how long a caller waits. One that is told of progress may
// wait longer than its clients' own limits.
func (g *Gateway) holdOf(by *caller, with *server.Exchange) time.Duration {
	if with.WantsProgress() {
		return by.Hold
	}
	return min(by.Hold, longHold)
}

// beat tells the client now and then that its call was not run yet.
func (g *Gateway) beat(ctx context.Context, key string, with *server.Exchange) {
	ticks := time.NewTicker(g.cfg.Heartbeat)
	defer ticks.Stop()
	for n := 1.0; with.WantsProgress(); n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		c, err := g.engine.Get(ctx, key)
		if err != nil || c.Over() {
			continue
		}
		if with.Progress(wire.Progress{Progress: n, Message: progressText(c)}) != nil {
			return
		}
	}
}

// progressText says how far a call has come that somebody waits for.
func progressText(c *record) string {
	switch {
	case c.State == durable.Running:
		return "It was approved, and runs."
	case isGranted(c):
		return fmt.Sprintf("Not run yet: it was approved%s.", inBrackets(c.Part.Ref))
	}

	return fmt.Sprintf("Not run yet: waits for people to decide%s.", inBrackets(c.Part.Ref))
}

// inBrackets is a note behind a word; nothing where there is none.
func inBrackets(ref string) string {
	if ref == "" {
		return ""
	}
	return " (" + ref + ")"
}

// waiters are those who wait for calls in this process.
type waiters struct {
	mu sync.Mutex
	of map[string][]*server.Exchange
}

// enter adds one who waits for a call.
func (w *waiters) enter(key string, with *server.Exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[key] = append(w.of[key], with)
}

// leave takes off one who waits for a call, and reports whether nobody
// does any more.
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

// one is somebody who waits for a call: one who wants to be told of
// progress where there is one, and nil where nobody waits here.
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

// want notes that somebody waits for a call: when it is approved it may
// run. The last who leaves takes that back.
func (g *Gateway) want(
	ctx context.Context, key string, until time.Time, with *server.Exchange,
) (leave func(), err error) {
	g.waiters.enter(key, with)
	leave = func() {
		if g.waiters.leave(key, with) {
			g.unwant(context.WithoutCancel(ctx), key)
		}
	}
	_, err = g.engine.Change(ctx, key, func(c *record) error {
		known := c.State != durable.Waiting && !c.Part.Wanted.Before(until)
		if known || c.Over() || c.State == durable.Running {
			return durable.ErrUnchanged
		}
		if c.Part.Wanted.Before(until) {
			c.Part.Wanted, c.Part.WantedBy = until.Add(together), g.process
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

// unwant has a call wait for somebody else, unless somebody came
// meanwhile.
func (g *Gateway) unwant(ctx context.Context, key string) {
	_, err := g.engine.Change(ctx, key, func(c *record) error {
		if c.Over() || c.State == durable.Running || c.Part.WantedBy != g.process || g.waiters.one(key) != nil {
			return durable.ErrUnchanged
		}
		c.Part.Wanted = time.Time{}
		return nil
	})
	if err != nil && !errors.Is(err, durable.ErrUnchanged) {
		g.cfg.Log.WarnContext(ctx, "that nobody waits for a call can't be stored", "call", key, "error", err)
	}
}
