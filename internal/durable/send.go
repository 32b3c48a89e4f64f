package durable

import (
	"context"
	"errors"
	"time"
)

// claimMessage claims a due message for this process. The next write stores the claim.
func (b *book[P]) claimMessage(c *Call[P]) {
	if c.Message == nil || !c.Message.ready(b.now()) {
		return
	}
	c.Message.begin(b.now(), b.transport.Lease(c))
	c.claimed = true
}

// send sends the message of a call in its own goroutine, because a peer may be slow.
func (x *executor[P]) send(ctx context.Context, c *Call[P], t *turn) error {
	if !c.claimed {
		c.Message.Next = time.Time{}
		return x.move(ctx, c, func() {})
	}

	c.claimed = false
	sent := *c
	f := x.tasks.add(c.Key, c.Message.Name)
	release := t.handOn()
	x.detach(f, t, func(ctx context.Context) {
		defer release()
		x.keepSent(ctx, &sent, x.transport.Send(ctx, &sent))
		if f.news.Load() {
			x.take(f.key, true)
		}
	})
	return nil
}

// keepSent stores the result of sending a message. If the process ends before, the message is
// sent again.
func (x *executor[P]) keepSent(ctx context.Context, sent *Call[P], result Sent[P]) {
	failed := result.Retry || result.Ending != nil
	if failed && ctx.Err() != nil {
		return // it was interrupted: the next process sends it again
	}
	err := x.insist(ctx, func() error {
		_, err := x.Change(context.WithoutCancel(ctx), sent.Key, func(c *Call[P]) error {
			if !c.sameMessage(sent) {
				return ErrUnchanged
			}
			x.applySent(c, result)
			return nil
		})
		return err
	})
	if err != nil && !errors.Is(err, ErrUnchanged) {
		x.cfg.Log.WarnContext(ctx, "what came of a message could not be stored", "call", sent.Key, "error", err)
	}
}

func (c *Call[P]) sameMessage(sent *Call[P]) bool {
	return c.Message != nil && c.Message.Name == sent.Message.Name
}

// applySent moves a call by the result of sending its message.
func (x *executor[P]) applySent(c *Call[P], result Sent[P]) {
	if result.Retry {
		c.Message.again(x.now().Add(result.Pause))
	} else {
		c.Message = nil
	}
	if result.Keep != nil {
		result.Keep(c)
	}
	if result.Ending != nil {
		x.Finish(c, *result.Ending)
	}
	if c.State == Ended && c.Message == nil {
		c.State = Closed
	}
}

// Renew stores the progress of a message and renews its lease. It returns ErrOvertaken if this
// process no longer sends it.
func (b *book[P]) Renew(ctx context.Context, sent *Call[P], change func(c *Call[P])) error {
	_, err := b.Change(ctx, sent.Key, func(c *Call[P]) error {
		if !c.sameMessage(sent) {
			return ErrOvertaken
		}
		c.Message.Lease = b.now().Add(b.transport.Lease(c))
		change(c)
		return nil
	})
	return err
}
