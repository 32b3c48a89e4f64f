package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store"
)

// How often approvals are looked at that nobody told us about: less and less.
const (
	firstLook = 2 * time.Second
	lastLook  = time.Minute
	deskTries = 8
)

// gateDeskKey is what the desk knows a call by, in one attempt and the next.
func approvalKey(d *kept.Doc[call]) string { return "rap-" + kept.Hash(d.Key) }

// desk is where our approvers answer for a call, as whoever made it has it.
func (g *Gateway) desk(c *call) hold.Requests { return g.cfg.People.As(c.Asker) }

// asker is who made a call. Calls of an earlier version, which kept nobody, were made in the name of the gateway.
func (g *Gateway) asker(c *call) approval.Asker {
	if c.owned() {
		return c.Asker
	}

	return approval.Asker{Token: g.cfg.Room}
}

// disown ends a call that an earlier version kept without saying who made it: nobody can be asked about it in a name that is right.
func (g *Gateway) disown(ctx context.Context, d *kept.Doc[call]) error {
	return g.settle(ctx, d, verdictFailed, "the call was kept by an earlier version, which did not keep who made it; nothing was run")
}

// hold puts a call to our approvers.
func (g *Gateway) hold(ctx context.Context, d *kept.Doc[call], j *judged) (bool, error) {
	if d.Body.Until.IsZero() {
		d.Body.Until = g.now().Add(lowerOf(g.cfg.Within, j.Require))
	}
	held, err := g.desk(&d.Body).Open(ctx, approvalKey(d), j.verdict(d.Body.Until.Sub(g.now())))
	if err != nil {
		return g.tryDesk(ctx, d, err)
	}
	d.Body.Held, d.Body.Tries, d.Body.Look = held.Ref, 0, firstLook
	_ = g.record(ctx, "rap_approvers_asked", &d.Body, map[string]any{"state": string(held.State)})
	more, err := g.stands(ctx, d, held)
	if errors.Is(err, approval.ErrVersion) {
		g.unwanted(ctx, d.Key, held.Ref)
	}
	return more, err
}

// unwanted withdraws a request that the desk took for a call that ended meanwhile.
func (g *Gateway) unwanted(ctx context.Context, key, ref string) {
	d, err := g.calls.Get(ctx, key)
	if err != nil || !d.Body.over() || d.Body.Held == ref {
		return
	}
	if err := g.cfg.People.As(g.asker(&d.Body)).Cancel(ctx, ref, "nobody waits for the call any more"); err != nil {
		g.refuse(ctx, "a request at the desk was not withdrawn", err, &d.Body)
	}
}

// tryDesk tries again later what the desk did not take, a number of times. It returns true when the call ended instead.
func (g *Gateway) tryDesk(ctx context.Context, d *kept.Doc[call], failed error) (bool, error) {
	g.refuse(ctx, "the desk can't be reached", failed, &d.Body)
	d.Body.Tries++
	if d.Body.Tries >= deskTries {
		return true, g.settle(ctx, d, verdictFailed, "the approvers can't be reached; nothing was run")
	}
	d.Due = g.now().Add(min(250*time.Millisecond<<d.Body.Tries, lastLook))
	return g.later(d), g.calls.Put(ctx, d)
}

// look sees how the approval of a call stands.
func (g *Gateway) look(ctx context.Context, d *kept.Doc[call]) (bool, error) {
	held, err := g.desk(&d.Body).Look(ctx, d.Body.Held)
	if errors.Is(err, hold.ErrNoRequest) {
		return true, g.settle(ctx, d, verdictFailed, "the approval is known no more; nothing was run")
	}
	if err != nil { // people may have answered all the same: it is looked at until the time is over
		g.refuse(ctx, "the desk can't be reached", err, &d.Body)
		held = hold.Held{State: hold.Pending}
	}
	return g.stands(ctx, d, held)
}

// stands moves a call to where its approval stands.
func (g *Gateway) stands(ctx context.Context, d *kept.Doc[call], held hold.Held) (bool, error) {
	c := &d.Body
	over := !g.now().Before(c.Until)
	switch held.State {
	case hold.Approved:
		if over { // the desk may give longer than we do, and nobody may have looked meanwhile
			return true, g.settle(ctx, d, verdictExpired, "nobody approved the call in time; nothing was run")
		}
		return true, g.approved(ctx, d, held)
	case hold.Denied, hold.Expired, hold.Cancelled, hold.Responded:
		c.Held = "" // nothing is left to withdraw
	}
	switch held.State {
	case hold.Denied:
		return true, g.settle(ctx, d, verdictDeny, "the approvers denied this call"+because(held.Reason))
	case hold.Expired:
		return true, g.settle(ctx, d, verdictExpired, "nobody approved the call in time; nothing was run")
	case hold.Cancelled:
		return true, g.settle(ctx, d, verdictCancelled, "the approval was withdrawn; nothing was run"+because(held.Reason))
	case hold.Responded:
		c.Verdict = verdictDeny
		c.finish(rap.Outcome{Text: held.Reason})
		d.Due = g.now()
		return true, g.calls.Put(ctx, d)
	}
	if over {
		return true, g.settle(ctx, d, verdictExpired, "nobody approved the call in time; nothing was run")
	}
	if c.Phase == phaseHeld && d.Due.After(g.now()) { // the desk had news that were none
		return false, nil
	}
	if err := g.remember(ctx, d); err != nil {
		return false, err
	}
	c.Phase, d.Due = phaseHeld, earlier(g.now().Add(c.Look), c.Until)
	c.Look, c.Tries = min(2*max(c.Look, firstLook), lastLook), 0
	return g.later(d), g.calls.Put(ctx, d)
}

// remember keeps which call a reference of the desk belongs to, so that its news find a call that nobody holds in memory.
func (g *Gateway) remember(ctx context.Context, d *kept.Doc[call]) error {
	if d.Body.Phase == phaseHeld {
		return nil // it did
	}
	ref := &kept.Doc[reference]{Key: kept.Hash(d.Body.Held), Expires: d.Body.Until.Add(rememberEnded), Body: reference{d.Key, d.Body.Caller}}
	if err := g.refs.Put(ctx, ref); !errors.Is(err, approval.ErrVersion) { // an earlier attempt kept it
		return err
	}
	return nil
}

// gateRef is the call of a reference.
type reference struct {
	Key    string `json:"key"`
	Caller string `json:"caller"`
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// approved goes on with what was approved. That may be other arguments than were asked for: then the rules have their say about these.
func (g *Gateway) approved(ctx context.Context, d *kept.Doc[call], held hold.Held) error {
	c := &d.Body
	if held.Arguments != nil {
		c.Args = held.Arguments
	}
	j, why := g.judge(ctx, c)
	switch {
	case j == nil:
		return g.settle(ctx, d, verdictDeny, why)
	case held.Arguments == nil && j.binding != c.Ground.Binding, j.Outcome != resolve.Ask:
		return g.settle(ctx, d, verdictDeny, "the rules or the operation changed since the call was decided; nothing was run")
	}
	c.Ground = j.ground()
	if g.cfg.Ask == AskBoth {
		return g.askToo(ctx, d, j, byBoth)
	}
	return g.allow(ctx, d, byApprovers)
}

// watch looks at calls when something happens at the desk, or there are events for them. Run does not wait for that: there may be many.
func (g *Gateway) watch(ctx context.Context, jobs *sync.WaitGroup) {
	if g.cfg.People != nil && g.cfg.Ask != AskUser {
		g.listen(ctx, jobs, g.cfg.People.Watch)
	}
	for _, feed := range g.feeds {
		g.listen(ctx, jobs, func(ctx context.Context, changed func(string)) error {
			return feed.Watch(ctx, func(name string) { changed(subscriptionRef(name)) })
		})
	}
}

// listen follows the news of one watch.
func (g *Gateway) listen(ctx context.Context, jobs *sync.WaitGroup, watch func(context.Context, func(string)) error) {
	n := &kept.News{Refs: map[string]struct{}{}, Some: make(chan struct{}, 1)}
	jobs.Go(func() { eachTime(ctx, n.Some, func() { g.follow(ctx, jobs, n.Take()) }) })
	jobs.Go(func() {
		for ctx.Err() == nil {
			err := watch(ctx, n.Add)
			g.pauseWatch(ctx, err)
		}
	})
}

// eachTime does something at each signal until ctx ends.
func eachTime(ctx context.Context, signal <-chan struct{}, do func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signal:
			do()
		}
	}
}

func (g *Gateway) pauseWatch(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	g.cfg.Log.WarnContext(ctx, "news of the desk, or of events, is not heard", "error", err)
	select {
	case <-ctx.Done():
	case <-time.After(g.cfg.Poll):
	}
}

// follow looks at the calls that there is news of, and at all that wait for approvals where nobody can tell of which.
func (g *Gateway) follow(ctx context.Context, jobs *sync.WaitGroup, refs map[string]struct{}) {
	if _, any := refs[""]; any {
		g.lookAgain(ctx, jobs)
		return
	}
	for ref := range refs {
		d, err := g.refs.Get(ctx, kept.Hash(ref))
		switch {
		case err == nil:
			g.begin(ctx, jobs, dueCall{key: d.Body.Key, caller: d.Body.Caller, look: true})
		case !errors.Is(err, approval.ErrNotFound) && ctx.Err() == nil:
			g.cfg.Log.ErrorContext(ctx, "news of the desk, or of events, can't be followed", "error", err)
		}
	}
}

// lookAgain looks at all approvals that are waited for.
func (g *Gateway) lookAgain(ctx context.Context, jobs *sync.WaitGroup) {
	err := g.eachHeld(ctx, func(d *kept.Doc[call]) {
		g.begin(ctx, jobs, dueCall{key: d.Key, caller: d.Body.Caller, d: d, look: true})
	})
	if err != nil && ctx.Err() == nil {
		g.cfg.Log.ErrorContext(ctx, "calls that wait for approvers can't be read", "error", err)
	}
}

// eachHeld shows the calls that wait for approvers. What has ended is not even opened.
func (g *Gateway) eachHeld(ctx context.Context, show func(*kept.Doc[call])) error {
	var bad error
	err := g.calls.Each(ctx, "", func(r store.Record) {
		if !r.Expires.IsZero() {
			return
		}
		d, err := g.calls.Open(r)
		if err != nil {
			bad = err
		} else if d.Body.Phase == phaseHeld {
			show(d)
		}
	})
	return errors.Join(err, bad)
}
