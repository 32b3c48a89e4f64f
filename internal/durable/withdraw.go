package durable

import (
	"context"
	"errors"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
)

// maxWithdrawals is how often people's side is told that nobody needs
// an answer. After that the request expires by itself; its answer goes
// nowhere.
const maxWithdrawals = 20

// withdraw tells people's side that nobody needs an answer any more.
func (e *Engine[P]) withdraw(ctx context.Context, c *Call[P], _ *turn) error {
	ref := c.Withdraw[0]
	err := e.cancelRequest(ctx, c, ref)
	if err == nil {
		e.forget(ctx, ref)
	} else {
		e.cfg.Log.WarnContext(ctx, "a request could not be withdrawn", "call", c.Key, "error", err)
	}

	return e.move(ctx, c, func() {
		if err != nil && c.Later.Fails < maxWithdrawals {
			c.Later.Fails++
			c.Later.Next = e.now().Add(e.cfg.Pause(c.Later.Fails))
			return
		}
		c.Withdraw = c.Withdraw[1:]
		c.Later = Attempt{}
	})
}

func (e *Engine[P]) cancelRequest(ctx context.Context, c *Call[P], ref string) error {
	if e.cfg.People == nil {
		return nil
	}
	err := e.cfg.People.As(c.Asker).Cancel(ctx, ref, e.transport.WithdrawReason(c))
	if errors.Is(err, hold.ErrNoRequest) {
		return nil
	}
	return err
}

// reference says which call a reference belongs to. It is a record of
// its own, so that news find calls that nobody holds in memory.
type reference struct {
	Key string `json:"key"`
}

// Remember has news of a reference look at a call. People's references
// are remembered by the engine itself.
func (e *Engine[P]) Remember(ctx context.Context, ref, key string) error {
	d := &Doc[reference]{
		Key:     Hash(ref),
		Expires: e.now().Add(unlimited),
		Body:    reference{Key: key},
	}
	err := e.refs.Put(ctx, d)
	if errors.Is(err, errConflict) {
		return nil // it is remembered: a reference belongs to one call
	}
	return err
}

// forget drops a reference of which no more news comes. What stays is
// swept with time.
func (e *Engine[P]) forget(ctx context.Context, ref string) {
	if ref == "" {
		return
	}
	d, err := e.refs.Get(ctx, Hash(ref))
	if err == nil {
		err = e.refs.Remove(ctx, d)
	}
	if err != nil && !errors.Is(err, approval.ErrNotFound) && !errors.Is(err, errConflict) {
		e.cfg.Log.DebugContext(ctx, "a reference stays", "error", err)
	}
}
