package runtime

import (
	"context"
	"errors"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/rap/wire"
)

// deskRef says which call a reference of the desk belongs to. It is a record of its own, so that news of the desk find calls that nobody holds in
// memory.
type deskRef struct {
	Call string `json:"call"`
}

// errNoRef says that the desk asked somebody, and not what about.
var errNoRef = errors.New("the desk named no reference")

// desk is where people answer for a call, as whoever made it has it.
func (r *Runtime) desk(c *outCall) hold.Requests { return r.cfg.People.As(c.Asker) }

// asker is who made a call. Calls of an earlier version, which kept nobody, were made in the name of the runtime.
func (r *Runtime) asker(c *outCall) approval.Asker {
	if c.owned() {
		return c.Asker
	}

	return approval.Asker{Token: r.cfg.Room}
}

// disown ends a call that an earlier version kept without saying who made it: nobody can be asked about it in a name that is right.
func (r *Runtime) disown(ctx context.Context, c *outCall) error {
	how := ending{why: WhyNoAsker, text: "it was kept by an earlier version, which did not keep who made the call: nothing more is done for it"}
	if err := r.end(ctx, c, how, func(*outCall) error { return nil }); err != nil {
		return err
	}
	if c.left() {
		r.tell("/cancel_tool_call", wire.CancelCall{ThreadID: c.Thread, ToolCallID: c.ID}.Append(nil))
	}

	return nil
}

// remember keeps the call of a reference.
func (r *Runtime) remember(ctx context.Context, ref, call string) error {
	d := &kept.Doc[deskRef]{Key: kept.Hash(ref), Expires: r.now().Add(keepLive), Body: deskRef{call}}
	err := r.refs.Put(ctx, d)
	if errors.Is(err, approval.ErrVersion) {
		return nil // it is kept: references name one question each
	}
	return err
}

// forget drops a reference that brings no more news. What stays is swept with time.
func (r *Runtime) forget(ctx context.Context, ref string) {
	if ref == "" {
		return
	}
	d, err := r.refs.Get(ctx, kept.Hash(ref))
	if err == nil {
		err = r.refs.Remove(ctx, d)
	}
	if err != nil && !errors.Is(err, approval.ErrNotFound) && !errors.Is(err, approval.ErrVersion) {
		r.log.Debug("a reference stays", "error", plainError(err))
	}
}

// cancelAtDesk withdraws what was asked for a call that has moved on meanwhile.
func (r *Runtime) cancelAtDesk(ctx context.Context, c *outCall, ref string) {
	if err := r.desk(c).Cancel(ctx, ref, "the call has moved on"); err != nil && !errors.Is(err, hold.ErrNoRequest) {
		r.log.Warn("a question could not be withdrawn", "error", plainError(err))
	}
	r.forget(ctx, ref)
}

// maxWithdrawals is how often the desk is told that nobody needs an answer. After that the question expires by itself; its answer goes nowhere.
const maxWithdrawals = 20

// withdraw tells the desk that nobody needs an answer any more (4.3.9).
func (r *Runtime) withdraw(ctx context.Context, c *outCall) error {
	ref := c.Withdraw[0]
	var failed error
	if r.cfg.People != nil {
		failed = r.cfg.People.As(r.asker(c)).Cancel(ctx, ref, withdrawnText(c))
	}
	if errors.Is(failed, hold.ErrNoRequest) || c.Tries >= maxWithdrawals {
		failed = nil
	}
	_, err := r.update(ctx, c.Key, func(c *outCall) error {
		switch {
		case len(c.Withdraw) == 0 || c.Withdraw[0] != ref:
			return errMoved
		case failed != nil:
			c.Tries++
			c.Later = r.now().Add(pause(c.Tries - 1))
		default:
			c.Withdraw, c.Tries = c.Withdraw[1:], 0
		}
		return nil
	})
	if err == nil && failed == nil {
		r.forget(ctx, ref)
	}
	if failed != nil {
		r.log.Warn("a question could not be withdrawn", "call", callName(c.Key), "error", plainError(failed))
	}
	return err
}

func withdrawnText(c *outCall) string {
	switch {
	case c.State != CallDone:
		return "the tool asks something else"
	case c.Told.Why == WhyInterrupted:
		return "the call was interrupted"
	case c.Told.Why == WhyClosed:
		return "the thread was closed"
	}
	return "the call has ended"
}

// watch listens to the desk until ctx ends.
func (r *Runtime) watch(ctx context.Context, n *kept.News) {
	for tries := 0; ctx.Err() == nil; tries++ {
		err := r.cfg.People.Watch(ctx, n.Add)
		if ctx.Err() != nil {
			return
		}
		r.log.Warn("the desk is watched no more; trying again", "error", plainError(err))
		kept.Sleep(ctx, pause(min(tries, 4)))
		n.Add("")
	}
}

// hear looks at the calls that the desk has news of.
func (r *Runtime) hear(ctx context.Context, n *kept.News) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.Some:
		}
		refs := n.Take()
		if _, any := refs[""]; any {
			r.lookAtAll(ctx)
			continue
		}
		for ref := range refs {
			r.lookAt(ctx, ref)
		}
	}
}

func (r *Runtime) lookAt(ctx context.Context, ref string) {
	d, err := r.refs.Get(ctx, kept.Hash(ref))
	switch {
	case err == nil:
		r.kickWait(ctx, d.Body.Call)
	case !errors.Is(err, approval.ErrNotFound):
		r.log.Warn("news of the desk could not be followed", "error", plainError(err))
	}
}

// lookAtAll goes through everything that is asked.
func (r *Runtime) lookAtAll(ctx context.Context) {
	for after := ""; ctx.Err() == nil; {
		const page = 200
		ds, err := r.refs.List(ctx, "", after, page)
		if err != nil {
			r.log.Warn("what is asked could not be listed whole", "error", plainError(err))
		}
		for _, d := range ds {
			after = d.Key
			r.kickWait(ctx, d.Body.Call)
		}
		if len(ds) < page {
			return
		}
	}
}
