package durable

import (
	"context"
	"errors"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
)

// maxWithdrawals limits the failed attempts to withdraw a request. Then the request expires by
// itself, and its answer is ignored.
const maxWithdrawals = 20

// withdraw cancels the first request that is no longer needed.
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

// reference maps a reference to its call. It is a record of its own, so that notifications find
// calls that are not in memory.
type reference struct {
	Key string `json:"key"`
}

// Remember stores that notifications for ref are for the call with the given key. The engine
// does this itself for references of the approval service.
func (b *book[P]) Remember(ctx context.Context, ref, key string) error {
	d := &Doc[reference]{
		Key:     Hash(ref),
		Expires: b.now().Add(unlimited),
		Body:    reference{Key: key},
	}
	err := b.refs.Put(ctx, d)
	if errors.Is(err, errConflict) {
		return nil // it is stored already: a reference belongs to one call
	}
	return err
}

// forget deletes a reference for which no more notifications come. If that fails, the record
// expires.
func (b *book[P]) forget(ctx context.Context, ref string) {
	if ref == "" {
		return
	}
	d, err := b.refs.Get(ctx, Hash(ref))
	if err == nil {
		err = b.refs.Remove(ctx, d)
	}
	if err != nil && !errors.Is(err, approval.ErrNotFound) && !errors.Is(err, errConflict) {
		b.cfg.Log.DebugContext(ctx, "a reference stays", "error", err)
	}
}
