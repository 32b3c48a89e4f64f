package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/value"
)

// maxNotices bounds how many notices are on their way at once. More are dropped: they are a courtesy, and tools do without (L4).
const maxNotices = 256

// tell sends a notice to every server, concurrently, once, and waits for none of them (L6, L7, R38).
func (r *Runtime) tell(path string, body []byte) {
	for _, s := range r.servers {
		select {
		case r.notices <- struct{}{}:
		default:
			r.log.Warn("a notice was dropped: too many are on their way", "server", s.Name)
			continue
		}
		go func() {
			defer func() { <-r.notices }()
			if err := s.peer.Post(context.Background(), s.base+path, body); err != nil {
				r.log.Info("a notice did not arrive; it is not repeated", "server", s.Name, "path", path, "error", plainError(err))
			}
		}()
	}
}

func (r *Runtime) tellCancelled(c *outCall) {
	r.tell("/cancel_tool_call", wire.CancelCall{ThreadID: c.Wire.Group, ToolCallID: c.Wire.ID}.Append(nil))
}

// Cancel interrupts a call: it is done with WhyInterrupted, its question is withdrawn, and every server is told once, without waiting for them. Of
// a call that has ended it ends the subscription; ErrDone when there is none.
func (t *Threads) Cancel(ctx context.Context, thread, id, reason string) error {
	if _, err := t.kept(ctx, thread, id); err != nil {
		return err
	}

	return t.r.cancel(ctx, t.r.names.Call(t.who, thread, id), reason)
}

func (r *Runtime) cancel(ctx context.Context, key, reason string) error {
	var was CallState
	now, err := r.update(ctx, key, func(c *outCall) error {
		was = c.State
		switch {
		case c.State != CallDone:
			c.finish(r.now(), rap.Outcome{Text: "Error: " + withReason("interrupted", reason)}, WhyInterrupted)
		case c.Live:
			c.Live, c.Ended = false, r.now()
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
	r.ground(ctx, now.Key)
	r.tellCancelled(now)
	if was != CallDone {
		r.ended(ctx, now)
	}
	return nil
}

// CloseThread ends a thread with all of its calls, subscriptions and views, and tells every server once, without waiting for them. Calls that are
// made in it later are done with WhyClosed.
func (t *Threads) CloseThread(ctx context.Context, thread string) error {
	r, place := t.r, t.r.names.Thread(t.who, thread)
	before, err := r.closeThread(ctx, place)
	if err != nil {
		return fmt.Errorf("close the thread: %w", err)
	}
	prefix := place + "/"
	err = errors.Join(
		eachDoc(ctx, r.calls, prefix, func(d *kept.Doc[outCall]) error { return r.closeCall(ctx, d.Key) }),
		eachDoc(ctx, r.events, prefix, func(d *kept.Doc[keptNews]) error { return r.events.Remove(ctx, d) }),
		eachDoc(ctx, r.views, prefix, func(d *kept.Doc[keptView]) error { return r.views.Remove(ctx, d) }),
	)
	if !before { // not earlier: what a server then says of its calls is late
		r.tell("/close_thread", wire.CloseThread{ThreadID: r.names.Group(t.who, thread)}.Append(nil))
	}
	return err
}

const closedText = "Error: the thread was closed"

func (r *Runtime) closeCall(ctx context.Context, key string) error {
	var was CallState
	now, err := r.update(ctx, key, func(c *outCall) error {
		was = c.State
		if c.Closed {
			return errMoved
		}
		if c.State != CallDone {
			c.finish(r.now(), rap.Outcome{Text: closedText}, WhyClosed)
		}
		if c.Live {
			c.Ended = r.now()
		}
		c.Closed, c.Live, c.Events = true, false, nil
		return nil
	})
	if err != nil {
		return err
	}
	r.ground(ctx, key)
	if was != CallDone {
		r.ended(ctx, now)
	}
	return nil
}

// eachDoc goes through documents. What is gone or moved on meanwhile is passed over.
func eachDoc[T any](ctx context.Context, v *kept.Vault[T], prefix string, do func(*kept.Doc[T]) error) error {
	var failed error
	for after := ""; ; {
		const page = 100
		ds, err := v.List(ctx, prefix, after, page)
		failed = errors.Join(failed, err)
		for _, d := range ds {
			after = d.Key
			err := do(d)
			if !errors.Is(err, errMoved) && !errors.Is(err, approval.ErrNotFound) && !errors.Is(err, approval.ErrVersion) {
				failed = errors.Join(failed, err)
			}
		}
		if len(ds) < page {
			return failed
		}
	}
}

// Alive asks the tool server whether it still works on a call (a proposal of the protocol). False means that it says no, or does not know the
// question; an error that nobody can say.
func (t *Threads) Alive(ctx context.Context, thread, id string) (bool, error) {
	d, err := t.kept(ctx, thread, id)
	if err != nil {
		return false, err
	}
	c, s := &d.Body, t.r.servers[d.Body.Server]
	if s == nil {
		return false, fmt.Errorf("ask about the call: %w", errUnknown)
	}
	body, err := s.peer.Exchange(ctx, s.base+"/tool_call_status", wire.Status{ThreadID: c.Wire.Group, ToolCallID: c.Wire.ID}.Append(nil))
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

// lease is how long a request of this server may be under way.
func (s *toolServer) lease() time.Duration {
	const most, spare = 10 * time.Second, 15 * time.Second
	if s.Peer.Timeout > 0 {
		return s.Peer.Timeout + spare
	}
	return most + spare
}
