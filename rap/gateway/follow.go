package gateway

import (
	"cmp"
	"context"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
)

// follow begins to pass on the events that come after a posted result.
func (s *sender) follow(ctx context.Context, r *record) sent {
	if err := s.engine.Remember(ctx, subscriptionRef(r.Part.Follows), r.Key); err != nil {
		s.refuse(ctx, "a subscription could not be kept", err, r)
		return s.later()
	}
	s.recordEnded(ctx, r, true)
	until := s.now().Add(s.cfg.SubscriptionWithin)
	return sent{Keep: func(r *record) {
		r.Part.Posted = true
		if r.Part.Until.IsZero() {
			r.Part.Until = until
		}
		r.Message = &durable.Attempt{}
	}}
}

// subscriptionRef returns the reference of a subscription, which can't collide with references
// of the approval service.
func subscriptionRef(name string) string { return "subscription " + name }

// Intervals between two checks of a subscription without notifications.
const (
	firstLook = time.Second
	lastLook  = time.Minute
)

// passEvents posts the events of a subscription in order, up to the last one. Each is retried
// while that can help; after a crash one may be posted twice.
func (s *sender) passEvents(ctx context.Context, c *caller, r *record) sent {
	feed := s.feed(&r.Part)
	if over, text := s.overNow(feed, r); over {
		return s.unfollow(ctx, c, r, text)
	}
	events, live, err := feed.Events(ctx, r.Part.Follows, r.Part.Next)
	switch {
	case err != nil:
		s.refuse(ctx, "the events of a subscription can't be read", err, r)
		return s.lookLater(r)
	case len(events) == 0 && !live:
		return s.unfollow(ctx, c, r, "the tool ended its subscription without a last event")
	case len(events) == 0:
		return s.lookLater(r)
	}

	r.Part.Pause = 0
	for i, e := range events {
		if i > 0 && s.engine.Renew(ctx, r, keepPassed(r)) != nil {
			return s.passLater(r, s.cfg.Poll)
		}
		if again := s.postEvent(ctx, c, r, eventBody(&r.Part, e)); again != nil {
			return *again
		}
		r.Part.Next = e.Index + 1
		r.Part.Passed++
		if e.Final {
			return s.unfollow(ctx, c, r, "")
		}
	}

	return s.passLater(r, 0)
}

// passLater schedules the next check for events after a pause, or at once if the subscription
// is to end or its result was requested again.
func (s *sender) passLater(r *record, pause time.Duration) sent {
	keep := keepPassed(r)
	return sent{
		Retry: true,
		Pause: pause,
		Keep: func(r *record) {
			keep(r)
			if r.Stop != "" || !r.Part.Posted {
				r.Message.Next = time.Time{}
			}
		},
	}
}

// keepPassed returns a change that stores how many events were passed on.
func keepPassed(r *record) func(*record) {
	at := r.Part
	return func(r *record) {
		r.Part.Next = max(r.Part.Next, at.Next)
		r.Part.Passed = max(r.Part.Passed, at.Passed)
		r.Part.Fails = at.Fails
		r.Part.Pause = at.Pause
	}
}

// overNow reports whether no more events should be passed on. If the runtime has to be
// informed, it also returns the text.
func (s *sender) overNow(feed rap.Feed, r *record) (over bool, text string) {
	switch {
	case r.Stop != "":
		return true, ""
	case feed == nil:
		return true, "the operation is offered no more"
	case !s.now().Before(r.Part.Until):
		within := policy.FormatDuration(s.cfg.SubscriptionWithin)
		return true, "it went on for " + within + ", the longest that this gateway passes events on"
	}

	return false, ""
}

// feed returns the source of a call's events, or nil if its operation has none.
func (s *sender) feed(c *call) rap.Feed {
	if op := s.ops[c.Operation]; op != nil {
		return op.Feed
	}

	return nil
}

// lookLater schedules the next check. It checks even without a notification, because the
// process that received one may have died.
func (s *sender) lookLater(r *record) sent {
	r.Part.Pause = min(max(2*r.Part.Pause, firstLook), lastLook)
	return s.passLater(r, min(r.Part.Pause, max(r.Part.Until.Sub(s.now()), 0)))
}

// postEvent posts an event and returns nil if that worked. It ends the subscription if the
// runtime refuses the event or retries can't help.
func (s *sender) postEvent(ctx context.Context, c *caller, r *record, body []byte) *sent {
	err := c.peer.Post(ctx, r.Part.Callback, body)
	if err == nil {
		r.Part.Fails = 0
		return nil
	}
	r.Part.Fails++
	wait, more := c.peer.Pause(r.Part.Fails)
	if ctx.Err() != nil || more && peer.Again(err) {
		again := s.passLater(r, wait)
		return &again
	}
	s.refuse(ctx, "an event could not be posted", err, r)
	over := s.unfollow(ctx, c, r, "")
	return &over
}

// unfollow ends a subscription at its source, and posts a last event with text unless it is
// empty.
func (s *sender) unfollow(ctx context.Context, c *caller, r *record, text string) sent {
	if err := s.endFeed(ctx, &r.Part); err != nil {
		s.refuse(ctx, "a subscription could not be ended", err, r)
		return s.later()
	}
	if text != "" {
		last := rap.Event{Text: "Error: the subscription ended: " + text, Final: true}
		if again := s.postEvent(ctx, c, r, eventBody(&r.Part, last)); again != nil {
			return *again
		}
	}

	facts := map[string]any{"reason": cmp.Or(text, r.Stop), "events": r.Part.Passed}
	_ = s.record(ctx, "rap_subscription_ended", r, facts) // the subscription has ended anyway; the failure is logged
	keep := keepPassed(r)
	return sent{Keep: func(r *record) {
		keep(r)
		if !r.Part.Posted { // the result was requested again meanwhile
			r.Message = &durable.Attempt{}
		}
	}}
}

// endFeed ends the subscription of a call at its source, if it has one.
func (s *sender) endFeed(ctx context.Context, c *call) error {
	feed := s.feed(c)
	if feed == nil || c.Follows == "" {
		return nil
	}

	return feed.End(ctx, c.Follows)
}

// eventBody encodes an event with the ids that the runtime gave its call.
func eventBody(c *call, e rap.Event) []byte {
	out := wire.Event{
		GroupID:     c.Thread,
		ToolCallID:  c.ID,
		Text:        e.Text,
		Associative: e.Associative,
		Final:       e.Final,
	}
	body := out.Append(nil)
	if len(body) > maxResult {
		out.Text = "Error: an event was too large to be passed on"
		body = out.Append(nil)
	}

	return body
}
