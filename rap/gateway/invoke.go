package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/rap/wire"
)

// invoke acknowledges an invocation as soon as it is kept (I9, I10): nothing is decided before, and nobody is reached.
func (g *Gateway) invoke(w http.ResponseWriter, req *http.Request, c *caller) {
	if !c.enter(req.Context()) {
		g.busy(w, req, "1", "too many invocations at once")
		return
	}
	defer c.leave()
	body, err := g.body(w, req, g.cfg.MaxBody)
	if err != nil {
		g.decline(w, req, statusOf(err), err.Error())
		return
	}
	in, err := wire.ParseInvocation(body)
	if code, why := c.unreachable(&in); code != 0 {
		g.decline(w, req, code, why)
		return
	}
	if g.limits.hurried(c.key, g.now()) {
		g.busy(w, req, "1", "too many invocations in a second")
		return
	}
	digest, failed := digestOf(&in)
	if failed != nil {
		g.decline(w, req, http.StatusBadRequest, "the invocation can't be kept")
		return
	}
	d := g.received(c, &in, digest)
	if err != nil { // its sender can be told by a result (T21)
		g.misfit(d, "the invocation is not valid: "+err.Error())
	}
	g.keep(w, req, d)
}

// enter waits for a place among the invocations that a caller has in memory. Nothing of the body is read before.
func (c *caller) enter(ctx context.Context) bool {
	t := time.NewTimer(longestRequest)
	defer t.Stop()
	select {
	case c.reads <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-t.C:
	}
	return false
}

func (c *caller) leave() { <-c.reads }

// unreachable tells why an invocation can't even be answered by a result, and with which status.
func (c *caller) unreachable(in *wire.Invocation) (int, string) {
	switch {
	case in.CallbackURL == "" || in.GroupID == "" || in.ID == "":
		return http.StatusBadRequest, "expected an invocation with callback_url, group_id and id"
	case c.peer.Check(in.CallbackURL) != nil:
		return http.StatusForbidden, "the callback_url is none that is allowed for this caller"
	}
	return 0, ""
}

// busy has the runtime come again, after so many seconds.
func (g *Gateway) busy(w http.ResponseWriter, req *http.Request, after, why string) {
	w.Header().Set("Retry-After", after)
	g.decline(w, req, http.StatusServiceUnavailable, why)
}

func (g *Gateway) decline(w http.ResponseWriter, req *http.Request, code int, why string) {
	g.refuse(req.Context(), "an invocation was not accepted", why, nil)
	http.Error(w, why, code)
}

func (g *Gateway) received(c *caller, in *wire.Invocation, digest string) *kept.Doc[call] {
	now := g.now()
	d := &kept.Doc[call]{Key: callKey(c.Name, in.GroupID, in.ID), Due: now, Body: call{
		Phase: phaseReceived, Asker: c.asker, Caller: c.Name, Thread: in.GroupID, ID: in.ID, CallID: in.CallID, User: in.UserID, Ancestors: slices.Clone(in.Ancestors),
		Callback: in.CallbackURL, Operation: in.Operation, Args: in.Arguments, Digest: digest,
	}}
	if c.hash == nil && len(in.Ancestors) > 0 { // a caller that nobody knows can't say whose child its thread is (T28)
		d.Body.Ancestors, d.Body.Stray = nil, true
	}

	return d
}

// misfit makes of an invocation one that only its error is left of. It stands beside the call of that id, which nobody touches (T18).
func (g *Gateway) misfit(d *kept.Doc[call], text string) {
	d.Key += "/" + d.Body.Digest
	d.Body.settle(verdictFailed, text)
}

// keep stores a new call and acknowledges it.
func (g *Gateway) keep(w http.ResponseWriter, req *http.Request, d *kept.Doc[call]) {
	err := g.admit(req.Context(), d)
	switch {
	case errors.Is(err, errFull):
		g.busy(w, req, "10", "too many calls are open")
	case err != nil:
		g.cfg.Log.ErrorContext(req.Context(), "an invocation could not be kept", "error", err)
		http.Error(w, "the invocation could not be kept", http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusOK)
	}
}

var errFull = errors.New("too many calls are open")

// admit stores a call under a key that is free. A repetition of the call that has it is that call, and anything else gets an error (T17, T18).
func (g *Gateway) admit(ctx context.Context, d *kept.Doc[call]) error {
	for range maxChanges {
		err := g.create(ctx, d)
		if err == nil {
			g.moved(d)
			return nil
		}
		if !errors.Is(err, approval.ErrVersion) && !errors.Is(err, errFull) {
			return err
		}
		there, lost := g.calls.Get(ctx, d.Key)
		switch {
		case errors.Is(lost, approval.ErrNotFound) && errors.Is(err, errFull):
			return err
		case errors.Is(lost, approval.ErrNotFound): // forgotten just now
			d.Version = 0
		case lost != nil:
			return lost
		case !there.Expires.IsZero() && there.Expires.Before(g.now()): // as good as forgotten
			d.Version = there.Version
		case there.Body.Digest == d.Body.Digest:
			return g.again(ctx, d.Key)
		default:
			g.refuse(ctx, "an id was used for another call", "same ids, other content", &there.Body)
			d.Version = 0
			g.misfit(d, "this id was used for another call of this thread")
		}
	}
	return errBusy
}

func (g *Gateway) create(ctx context.Context, d *kept.Doc[call]) error {
	if !g.limits.enter(d.Key) {
		return errFull
	}
	err := g.calls.Put(ctx, d)
	if err != nil {
		g.limits.leave(d.Key)
	}
	return err
}

// again posts the result of a call anew, when it has one (T17).
func (g *Gateway) again(ctx context.Context, key string) error {
	var left bool
	d, changed, err := g.change(ctx, key, func(d *kept.Doc[call]) bool {
		c := &d.Body
		if c.Phase != phaseDelivered && c.Phase != phaseFollowing || len(c.Result) == 0 {
			return false
		}
		left = c.Phase == phaseDelivered
		c.Phase, c.Tries, d.Due, d.Expires = phaseDone, 0, g.now(), time.Time{}
		return true
	})
	if changed && left {
		g.limits.back(key)
	}
	if changed {
		g.moved(d)
	}
	return err
}
