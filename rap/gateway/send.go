package gateway

import (
	"context"
	"errors"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/peer"
)

// sender posts questions, results and events to the runtimes that made the calls.
type sender struct {
	*base
	grants *grantBook
}

type sent = durable.Sent[call]

// send posts the next message to the calling runtime: a question, the result, or the events
// after it.
func (s *sender) send(ctx context.Context, r *record) sent {
	c := s.caller(r.Part.Caller)
	switch {
	case c == nil: // only an ended call gets here
		return s.delivered(ctx, r, errors.New("the caller is configured no more"))
	case r.State == durable.Waiting:
		return s.postQuestion(ctx, c, r)
	case r.Part.Posted:
		return s.passEvents(ctx, c, r)
	}

	return s.deliver(ctx, c, r)
}

// later schedules a retry.
func (s *sender) later() sent { return sent{Retry: true, Pause: s.cfg.Poll} }

// postQuestion posts the user_choice. Retries post the same body.
func (s *sender) postQuestion(ctx context.Context, c *caller, r *record) sent {
	err := c.peer.Post(ctx, r.Part.Callback, r.Part.Question.Body)
	wait, more := c.peer.Pause(r.Message.Tries)
	switch {
	case err == nil:
		return sent{Keep: func(r *record) { r.Part.Question.Posted = true }}
	case more && peer.Again(err):
		return sent{Retry: true, Pause: wait}
	case ctx.Err() == nil:
		s.refuse(ctx, "a question could not be posted", err, r)
	}

	return sent{Ending: &durable.Ending{Why: whyFailed, Reason: textUnasked}}
}

// deliver posts the result, and retries while that can help. A result that can't be delivered
// is kept as long as any other.
func (s *sender) deliver(ctx context.Context, c *caller, r *record) sent {
	if r.Part.Closed && r.Part.Makes {
		if err := s.grants.endGrant(ctx, r.Part.Grant, "closed"); err != nil {
			s.refuse(ctx, "a session grant could not be ended", err, r)
			return s.later()
		}
	}

	err := c.peer.Post(ctx, r.Part.Callback, r.Part.Result)
	wait, more := c.peer.Pause(r.Message.Tries)
	if err != nil && (ctx.Err() != nil || more && peer.Again(err)) {
		return sent{Retry: true, Pause: wait}
	}
	return s.delivered(ctx, r, err)
}

// delivered finishes a call whose result was posted, or can't be. Events may follow a posted
// result.
func (s *sender) delivered(ctx context.Context, r *record, failed error) sent {
	if r.Part.Follows != "" && failed == nil {
		return s.follow(ctx, r)
	}
	if err := s.endFeed(ctx, &r.Part); err != nil {
		s.refuse(ctx, "a subscription could not be ended", err, r)
		return s.later()
	}
	if failed != nil {
		s.refuse(ctx, "a result could not be posted", failed, r)
	}
	return sent{Keep: func(r *record) { r.Part.Lost = failed != nil }}
}

// moved records the state of a call in the ledger, once it is stored.
func (s *sender) moved(ctx context.Context, was durable.State, r *record) {
	switch {
	case r.State == durable.Waiting:
		s.askedUser(ctx, r)
	case r.State == durable.Closed:
		s.limits.leave(r.Key)
		if !r.Part.Posted {
			s.recordEnded(ctx, r, !r.Part.Lost)
		}
	}
}

func (s *sender) recordEnded(ctx context.Context, r *record, delivered bool) {
	_ = s.record(ctx, "rap_call_ended", r, map[string]any{
		"verdict":      r.Part.Verdict,
		"delivered":    delivered,
		"subscription": r.Part.Follows != "",
	})
}
