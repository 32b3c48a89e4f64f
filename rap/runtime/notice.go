package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/value"
)

// maxNotices limits notices in progress. More are dropped, because tools don't depend on them.
const maxNotices = 256

// tell sends a notice to every server, once each, in the background.
func (d *dispatcher) tell(path string, body []byte) {
	for _, s := range d.servers {
		select {
		case d.notices <- struct{}{}:
		default:
			d.log.Warn("a notice was dropped: too many are on their way", "server", s.Name)
			continue
		}

		go func() {
			defer func() { <-d.notices }()
			if err := s.peer.Post(context.Background(), s.base+path, body); err != nil {
				d.log.Info(
					"a notice did not arrive; it is not repeated",
					"server",
					s.Name,
					"path",
					path,
					"error",
					plainError(err),
				)
			}
		}()
	}
}

// Cancel interrupts a call: it ends with WhyInterrupted, its request to people is withdrawn,
// and every server is notified once, in the background. If the call has ended, Cancel ends its
// subscription, or returns ErrDone if it has none.
func (t *Threads) Cancel(ctx context.Context, thread, id, reason string) error {
	if _, err := t.kept(ctx, thread, id); err != nil {
		return err
	}

	return t.r.dispatcher.cancel(ctx, t.r.names.Call(t.who, thread, id), reason)
}

func (d *dispatcher) cancel(ctx context.Context, key, reason string) error {
	c, err := d.engine.Change(ctx, key, func(c *call) error {
		switch {
		case !c.Over():
			d.engine.Finish(c, durable.Ending{Why: durable.Interrupted, Reason: reason})
		case c.Part.Live:
			c.Part.Live = false
			c.EndedAt = d.now()
		default:
			return ErrDone
		}

		return nil
	})
	if errors.Is(err, approval.ErrNotFound) {
		return ErrNoCall
	}
	if err != nil {
		return err
	}

	d.engine.Halt(ctx, key) // a request that was not sent by now is never sent
	d.listings.updateListing(ctx, c)
	d.tellCancelled(c)
	return nil
}

// CloseThread ends a thread with all of its calls, subscriptions and views, and notifies every
// server once, in the background. Later calls in the thread end with WhyClosed.
func (t *Threads) CloseThread(ctx context.Context, thread string) error {
	r := t.r
	place := r.names.Thread(t.who, thread)
	before, err := r.closeThread(ctx, place)
	if err != nil {
		return fmt.Errorf("close the thread: %w", err)
	}

	prefix := place + "/"
	err = errors.Join(
		r.dispatcher.closeCalls(ctx, prefix),
		removeAll(ctx, r.events, prefix),
		removeAll(ctx, r.views, prefix),
	)
	if !before { // only now, so that further messages of a server about its calls count as late
		r.dispatcher.tell("/close_thread", wire.CloseThread{ThreadID: r.names.Group(t.who, thread)}.Append(nil))
	}
	return err
}

// closeCalls closes the calls whose keys begin with prefix. It ignores deleted ones.
func (d *dispatcher) closeCalls(ctx context.Context, prefix string) error {
	var failed error
	err := d.engine.Each(ctx, prefix, func(record store.Record) {
		err := d.closeCall(ctx, record.Key)
		if !errors.Is(err, durable.ErrUnchanged) && !errors.Is(err, approval.ErrNotFound) {
			failed = errors.Join(failed, err)
		}
	})

	return errors.Join(failed, err)
}

func (d *dispatcher) closeCall(ctx context.Context, key string) error {
	c, err := d.engine.Change(ctx, key, func(c *call) error {
		if c.Part.Closed {
			return durable.ErrUnchanged
		}
		d.close(c)
		return nil
	})
	if err == nil {
		d.engine.Halt(ctx, key)
		d.listings.updateListing(ctx, c)
	}

	return err
}

// close ends a call because its thread was closed.
func (d *dispatcher) close(c *call) {
	d.engine.Finish(c, durable.Ending{Why: whyClosed, Reason: "the thread was closed"})
	if c.Part.Live {
		c.EndedAt = d.now()
	}
	c.Part.Closed = true
	c.Part.Live = false
	c.Part.Gone += len(c.Part.Events)
	c.Part.Events = nil
	c.Part.Views = nil
}

// removeAll removes the documents whose keys begin with prefix. It ignores those that were
// removed or changed meanwhile.
func removeAll[T any](ctx context.Context, v *durable.Vault[T], prefix string) error {
	return v.All(ctx, prefix, func(d *durable.Doc[T]) error {
		err := v.Remove(ctx, d)
		if errors.Is(err, approval.ErrNotFound) || errors.Is(err, approval.ErrVersion) {
			return nil
		}
		return err
	})
}

// Alive asks the tool server whether the call is still in progress (a proposed extension of the
// protocol). It returns false if the server says no or does not support the question, and an
// error if the answer is unknown.
func (t *Threads) Alive(ctx context.Context, thread, id string) (bool, error) {
	c, err := t.kept(ctx, thread, id)
	if err != nil {
		return false, err
	}
	s := t.r.servers[c.Part.Server]
	if s == nil {
		return false, fmt.Errorf("ask about the call: %w", errUnknown)
	}
	body, err := s.peer.Exchange(
		ctx,
		s.base+"/tool_call_status",
		wire.Status{ThreadID: c.Part.Wire.Group, ToolCallID: c.Part.Wire.ID}.Append(nil),
	)
	if status, ok := errors.AsType[*peer.StatusError](err); ok && status.Code/100 == http.StatusBadRequest/100 {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask about the call: %w", err)
	}
	v, err := value.Parse(body, value.Limits{})
	if err != nil {
		return false, nil //nolint:nilerr // an answer that can't be read is a no
	}
	alive, _ := v.Get("alive")
	return alive.Kind == value.Bool && alive.Bool, nil
}
