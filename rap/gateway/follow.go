package gateway

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
)

// follows begins to pass on what comes after a result that was posted. The call may have been cancelled meanwhile.
func (g *Gateway) follows(ctx context.Context, d *kept.Doc[call]) error {
	until := g.now().Add(g.cfg.SubscriptionWithin)
	ref := &kept.Doc[reference]{Key: kept.Hash(subscriptionRef(d.Body.Follows)), Expires: until.Add(rememberEnded), Body: reference{d.Key, d.Body.Caller}}
	if err := g.refs.Put(ctx, ref); err != nil && !errors.Is(err, approval.ErrVersion) { // it was kept before the process died
		return err
	}
	now, _, err := g.change(ctx, d.Key, func(d *kept.Doc[call]) bool {
		c := &d.Body
		if c.Phase != phaseDone {
			return false
		}
		if c.Until.IsZero() {
			c.Until = until
		}
		c.Phase, c.Tries, c.Look, d.Due = phaseFollowing, 0, 0, g.now()
		return true
	})
	if err == nil {
		*d = *now
	}

	return err
}

// subscriptionRef keeps the names of subscriptions apart from the references of the desk.
func subscriptionRef(name string) string { return "subscription " + name }

// pass passes on the events of a subscription, one after another, until the last. Each is posted again and again while that can help, so after a crash
// one may come twice.
func (g *Gateway) pass(ctx context.Context, c *caller, d *kept.Doc[call]) (bool, error) {
	if d.Body.Poster != g.id && g.now().Before(d.Body.Lease) {
		return false, nil // another process posts now, and looks again after it
	}
	feed := g.feed(&d.Body)
	if over, text := g.overNow(feed, &d.Body); over {
		return true, g.unfollow(ctx, c, d, text)
	}
	events, live, err := feed.Events(ctx, d.Body.Follows, d.Body.Next)
	switch {
	case err != nil:
		g.refuse(ctx, "the events of a subscription can't be read", err, &d.Body)
		return g.lookLater(ctx, d)
	case len(events) == 0 && !live:
		return true, g.unfollow(ctx, c, d, "the tool ended its subscription without a last event")
	case len(events) == 0:
		return g.lookLater(ctx, d)
	}
	d.Body.Look = 0
	for _, e := range events {
		if went, err := g.postEvent(ctx, c, d, eventBody(&d.Body, e)); !went || err != nil {
			return false, err
		}
		d.Body.Next, d.Body.Passed = e.Index+1, d.Body.Passed+1
		if e.Final {
			return true, g.unfollow(ctx, c, d, "")
		}
	}

	return true, g.keepPassed(ctx, d)
}

// keepPassed stores how far the events were passed on, also where somebody moved the call meanwhile: an event that went is not posted again.
func (g *Gateway) keepPassed(ctx context.Context, d *kept.Doc[call]) error {
	err := g.calls.Put(ctx, d)
	if !errors.Is(err, approval.ErrVersion) {
		return err
	}
	next, passed := d.Body.Next, d.Body.Passed
	_, _, failed := g.change(ctx, d.Key, func(d *kept.Doc[call]) bool {
		behind := d.Body.Next < next
		d.Body.Next, d.Body.Passed = max(d.Body.Next, next), max(d.Body.Passed, passed)
		return behind
	})

	return errors.Join(err, failed)
}

// overNow reports whether no more events are to be passed on, and what the runtime is told of it; "" nothing: it knows.
func (g *Gateway) overNow(feed rap.Feed, c *call) (over bool, text string) {
	switch {
	case c.Over:
		return true, "its events were passed on before"
	case c.Stop != "":
		return true, ""
	case feed == nil:
		return true, "the operation is offered no more"
	case !g.now().Before(c.Until):
		return true, "it went on for " + policy.FormatDuration(g.cfg.SubscriptionWithin) + ", the longest that this gateway passes events on"
	}

	return false, ""
}

// feed is where the events of a call come from; nil when its operation has none.
func (g *Gateway) feed(c *call) rap.Feed {
	if op := g.ops[c.Operation]; op != nil {
		return op.Feed
	}

	return nil
}

// lookLater waits for news. It looks now and then without any: another process may have had them, and died.
func (g *Gateway) lookLater(ctx context.Context, d *kept.Doc[call]) (bool, error) {
	c := &d.Body
	if d.Due.After(g.now()) && c.Look > 0 { // it was told of news that were none
		return false, nil
	}
	c.Look = min(2*max(c.Look, firstLook/2), lastLook)
	c.Lease, d.Due = time.Time{}, earlier(g.now().Add(c.Look), c.Until)

	return g.later(d), g.calls.Put(ctx, d)
}

// postEvent posts an event, and reports whether it went. One that the runtime refuses ends the subscription; so does one that can't be posted.
func (g *Gateway) postEvent(ctx context.Context, c *caller, d *kept.Doc[call], body []byte) (bool, error) {
	d.Body.Poster, d.Body.Lease = g.id, g.now().Add(c.lease)
	d.Due = d.Body.Lease
	if err := g.keepPassed(ctx, d); err != nil {
		return false, err
	}
	err := c.peer.Post(ctx, d.Body.Callback, body)
	if ctx.Err() != nil {
		return false, nil // the next process posts it again
	}
	d.Body.Tries++
	wait, more := c.peer.Pause(d.Body.Tries)
	switch {
	case err == nil:
		d.Body.Tries = 0
		return true, nil
	case more && peer.Again(err):
		d.Body.Lease, d.Due = time.Time{}, g.now().Add(wait)
		g.later(d)
		return false, g.calls.Put(ctx, d)
	}
	g.refuse(ctx, "an event could not be posted", err, &d.Body)

	return false, g.unfollow(ctx, c, d, "")
}

// unfollow ends a subscription: whoever runs the operation is told, and the runtime too, where there is something to tell.
func (g *Gateway) unfollow(ctx context.Context, c *caller, d *kept.Doc[call], text string) error {
	if err := g.endFeed(ctx, &d.Body); err != nil {
		return err
	}
	if text != "" {
		last := rap.Event{Text: "Error: the subscription ended: " + text, Final: true}
		if went, err := g.postEvent(ctx, c, d, eventBody(&d.Body, last)); !went || err != nil {
			return err
		}
	}
	d.Body.Over, d.Body.Lease = true, time.Time{}
	_ = g.record(ctx, "rap_subscription_ended", &d.Body, map[string]any{"reason": cmp.Or(text, d.Body.Stop), "events": d.Body.Passed}) // it has ended; the failure is logged

	return g.leave(ctx, d)
}

// endFeed tells whoever runs the operation of a call that nobody listens any more.
func (g *Gateway) endFeed(ctx context.Context, c *call) error {
	feed := g.feed(c)
	if feed == nil || c.Follows == "" {
		return nil
	}

	return feed.End(ctx, c.Follows)
}

// gateEvent writes an event under the names that the runtime gave its call.
func eventBody(c *call, e rap.Event) []byte {
	out := wire.Event{GroupID: c.Thread, ToolCallID: c.ID, Text: e.Text, Associative: e.Associative, Final: e.Final}
	body := out.Append(nil)
	if len(body) > maxResult {
		out.Text = "Error: an event was too large to be passed on"
		body = out.Append(nil)
	}

	return body
}
