package gateway

import (
	"context"
	"errors"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/peer"
)

type sent = durable.Sent[call]

// send posts the next message to the calling runtime: a question, the result, or the events
// after it.
func (g *Gateway) send(ctx context.Context, r *record) sent {
	c := g.caller(r.Part.Caller)
	switch {
	case c == nil: // only an ended call gets here
		return g.delivered(ctx, r, errors.New("the caller is configured no more"))
	case r.State == durable.Waiting:
		return g.postQuestion(ctx, c, r)
	case r.Part.Posted:
		return g.passEvents(ctx, c, r)
	}

	return g.deliver(ctx, c, r)
}

// later schedules a retry.
func (g *Gateway) later() sent { return sent{Retry: true, Pause: g.cfg.Poll} }

// postQuestion posts the user_choice. Retries post the same body.
func (g *Gateway) postQuestion(ctx context.Context, c *caller, r *record) sent {
	err := c.peer.Post(ctx, r.Part.Callback, r.Part.Question.Body)
	wait, more := c.peer.Pause(r.Message.Tries)
	switch {
	case err == nil:
		return sent{Keep: func(r *record) { r.Part.Question.Posted = true }}
	case more && peer.Again(err):
		return sent{Retry: true, Pause: wait}
	case ctx.Err() == nil:
		g.refuse(ctx, "a question could not be posted", err, r)
	}

	return sent{Ending: &durable.Ending{Why: whyFailed, Reason: textUnasked}}
}

// deliver posts the result, and retries while that can help. A result that can't be delivered
// is kept as long as any other.
func (g *Gateway) deliver(ctx context.Context, c *caller, r *record) sent {
	if r.Part.Closed && r.Part.Makes {
		if err := g.endGrant(ctx, r.Part.Grant, "closed"); err != nil {
			g.refuse(ctx, "a session grant could not be ended", err, r)
			return g.later()
		}
	}

	err := c.peer.Post(ctx, r.Part.Callback, r.Part.Result)
	wait, more := c.peer.Pause(r.Message.Tries)
	if err != nil && (ctx.Err() != nil || more && peer.Again(err)) {
		return sent{Retry: true, Pause: wait}
	}
	return g.delivered(ctx, r, err)
}

// delivered finishes a call whose result was posted, or can't be. Events may follow a posted
// result.
func (g *Gateway) delivered(ctx context.Context, r *record, failed error) sent {
	if r.Part.Follows != "" && failed == nil {
		return g.follow(ctx, r)
	}
	if err := g.endFeed(ctx, &r.Part); err != nil {
		g.refuse(ctx, "a subscription could not be ended", err, r)
		return g.later()
	}
	if failed != nil {
		g.refuse(ctx, "a result could not be posted", failed, r)
	}
	return sent{Keep: func(r *record) { r.Part.Lost = failed != nil }}
}

// moved records the state of a call in the ledger, once it is stored.
func (g *Gateway) moved(ctx context.Context, was durable.State, r *record) {
	switch {
	case r.State == durable.Waiting:
		g.askedUser(ctx, r)
	case r.State == durable.Closed:
		g.limits.leave(r.Key)
		if !r.Part.Posted {
			g.recordEnded(ctx, r, !r.Part.Lost)
		}
	}
}

func (g *Gateway) recordEnded(ctx context.Context, r *record, delivered bool) {
	_ = g.record(ctx, "rap_call_ended", r, map[string]any{
		"verdict":      r.Part.Verdict,
		"delivered":    delivered,
		"subscription": r.Part.Follows != "",
	})
}
