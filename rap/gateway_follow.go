package rap

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
)

// Feed is where the events of an operation's subscriptions come from. What it knows outlives the process. A call names its subscription before it
// runs, so that what goes on after a crash can be ended.
type Feed interface {
	// Name returns the name of the subscription that a call would have.
	Name(job Job) (string, error)
	// Events returns some of the events of a subscription from an index on, in order, and whether more may come.
	Events(ctx context.Context, subscription string, from int) (events []Event, live bool, err error)
	// End tells whoever runs the operation that nobody listens any more. It may be repeated, and there may be nothing to end.
	End(ctx context.Context, subscription string) error
	// Watch calls changed with each subscription that has something new, until ctx ends.
	Watch(ctx context.Context, changed func(subscription string)) error
}

// follows begins to pass on what comes after a result that was posted. The call may have been cancelled meanwhile.
func (g *Gateway) follows(ctx context.Context, d *doc[gateCall]) error {
	until := g.now().Add(g.cfg.SubscriptionWithin)
	ref := &doc[gateRef]{key: hashed(subscriptionRef(d.body.Follows)), expires: until.Add(gateRemain), body: gateRef{d.key, d.body.Caller}}
	if err := g.refs.put(ctx, ref); err != nil && !errors.Is(err, approval.ErrVersion) { // it was kept before the process died
		return err
	}
	now, _, err := g.change(ctx, d.key, func(d *doc[gateCall]) bool {
		c := &d.body
		if c.Phase != gateDone {
			return false
		}
		if c.Until.IsZero() {
			c.Until = until
		}
		c.Phase, c.Tries, c.Look, d.due = gateFollowing, 0, 0, g.now()
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
func (g *Gateway) pass(ctx context.Context, c *gateCaller, d *doc[gateCall]) (bool, error) {
	if d.body.Poster != g.id && g.now().Before(d.body.Lease) {
		return false, nil // another process posts now, and looks again after it
	}
	feed := g.feed(&d.body)
	if over, text := g.overNow(feed, &d.body); over {
		return true, g.unfollow(ctx, c, d, text)
	}
	events, live, err := feed.Events(ctx, d.body.Follows, d.body.Next)
	switch {
	case err != nil:
		g.refuse(ctx, "the events of a subscription can't be read", err, &d.body)
		return g.lookLater(ctx, d)
	case len(events) == 0 && !live:
		return true, g.unfollow(ctx, c, d, "the tool ended its subscription without a last event")
	case len(events) == 0:
		return g.lookLater(ctx, d)
	}
	d.body.Look = 0
	for _, e := range events {
		if went, err := g.postEvent(ctx, c, d, gateEvent(&d.body, e)); !went || err != nil {
			return false, err
		}
		d.body.Next, d.body.Passed = e.Index+1, d.body.Passed+1
		if e.Final {
			return true, g.unfollow(ctx, c, d, "")
		}
	}

	return true, g.keepPassed(ctx, d)
}

// keepPassed stores how far the events were passed on, also where somebody moved the call meanwhile: an event that went is not posted again.
func (g *Gateway) keepPassed(ctx context.Context, d *doc[gateCall]) error {
	err := g.calls.put(ctx, d)
	if !errors.Is(err, approval.ErrVersion) {
		return err
	}
	next, passed := d.body.Next, d.body.Passed
	_, _, failed := g.change(ctx, d.key, func(d *doc[gateCall]) bool {
		behind := d.body.Next < next
		d.body.Next, d.body.Passed = max(d.body.Next, next), max(d.body.Passed, passed)
		return behind
	})

	return errors.Join(err, failed)
}

// overNow reports whether no more events are to be passed on, and what the runtime is told of it; "" nothing: it knows.
func (g *Gateway) overNow(feed Feed, c *gateCall) (over bool, text string) {
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
func (g *Gateway) feed(c *gateCall) Feed {
	if op := g.ops[c.Operation]; op != nil {
		return op.Feed
	}

	return nil
}

// lookLater waits for news. It looks now and then without any: another process may have had them, and died.
func (g *Gateway) lookLater(ctx context.Context, d *doc[gateCall]) (bool, error) {
	c := &d.body
	if d.due.After(g.now()) && c.Look > 0 { // it was told of news that were none
		return false, nil
	}
	c.Look = min(2*max(c.Look, firstLook/2), lastLook)
	c.Lease, d.due = time.Time{}, earlier(g.now().Add(c.Look), c.Until)

	return g.later(d), g.calls.put(ctx, d)
}

// postEvent posts an event, and reports whether it went. One that the runtime refuses ends the subscription; so does one that can't be posted.
func (g *Gateway) postEvent(ctx context.Context, c *gateCaller, d *doc[gateCall], body []byte) (bool, error) {
	d.body.Poster, d.body.Lease = g.id, g.now().Add(c.lease)
	d.due = d.body.Lease
	if err := g.keepPassed(ctx, d); err != nil {
		return false, err
	}
	err := c.peer.Post(ctx, d.body.Callback, body)
	if ctx.Err() != nil {
		return false, nil // the next process posts it again
	}
	d.body.Tries++
	wait, more := c.peer.Pause(d.body.Tries)
	switch {
	case err == nil:
		d.body.Tries = 0
		return true, nil
	case more && peer.Again(err):
		d.body.Lease, d.due = time.Time{}, g.now().Add(wait)
		g.later(d)
		return false, g.calls.put(ctx, d)
	}
	g.refuse(ctx, "an event could not be posted", err, &d.body)

	return false, g.unfollow(ctx, c, d, "")
}

// unfollow ends a subscription: whoever runs the operation is told, and the runtime too, where there is something to tell.
func (g *Gateway) unfollow(ctx context.Context, c *gateCaller, d *doc[gateCall], text string) error {
	if err := g.endFeed(ctx, &d.body); err != nil {
		return err
	}
	if text != "" {
		last := Event{Text: "Error: the subscription ended: " + text, Final: true}
		if went, err := g.postEvent(ctx, c, d, gateEvent(&d.body, last)); !went || err != nil {
			return err
		}
	}
	d.body.Over, d.body.Lease = true, time.Time{}
	_ = g.record(ctx, "rap_subscription_ended", &d.body, map[string]any{"reason": cmp.Or(text, d.body.Stop), "events": d.body.Passed}) // it has ended; the failure is logged

	return g.leave(ctx, d)
}

// endFeed tells whoever runs the operation of a call that nobody listens any more.
func (g *Gateway) endFeed(ctx context.Context, c *gateCall) error {
	feed := g.feed(c)
	if feed == nil || c.Follows == "" {
		return nil
	}

	return feed.End(ctx, c.Follows)
}

// gateEvent writes an event under the names that the runtime gave its call.
func gateEvent(c *gateCall, e Event) []byte {
	out := wire.Event{GroupID: c.Thread, ToolCallID: c.ID, Text: e.Text, Associative: e.Associative, Final: e.Final}
	body := out.Append(nil)
	if len(body) > maxGateResult {
		out.Text = "Error: an event was too large to be passed on"
		body = out.Append(nil)
	}

	return body
}
