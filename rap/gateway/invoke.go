package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/wire"
)

// invoke acknowledges an invocation as soon as it is stored. The rules and the approval service
// are not involved yet.
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
	if g.limits.tooFast(c.Name, g.now()) {
		g.busy(w, req, "1", "too many invocations in a second")
		return
	}
	digest, failed := digestOf(&in)
	if failed != nil {
		g.decline(w, req, http.StatusBadRequest, "the invocation can't be kept")
		return
	}
	r := g.received(c, &in, digest)
	if err != nil { // the sender gets the error as a result
		g.endAsError(r, "the invocation is not valid: "+err.Error())
	}
	g.keep(w, req, r)
}

// enter waits for a free slot among the invocations of a caller that are in memory. The body is
// not read before.
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

// unreachable returns a status and a reason if an invocation can't even be answered by a
// result, and otherwise 0.
func (c *caller) unreachable(in *wire.Invocation) (int, string) {
	switch {
	case in.CallbackURL == "" || in.GroupID == "" || in.ID == "":
		return http.StatusBadRequest, "expected an invocation with callback_url, group_id and id"
	case c.peer.Check(in.CallbackURL) != nil:
		return http.StatusForbidden, "the callback_url is none that is allowed for this caller"
	}

	return 0, ""
}

// busy tells the runtime to retry after a number of seconds.
func (g *Gateway) busy(w http.ResponseWriter, req *http.Request, after, why string) {
	w.Header().Set("Retry-After", after)
	g.decline(w, req, http.StatusServiceUnavailable, why)
}

func (g *Gateway) decline(w http.ResponseWriter, req *http.Request, code int, why string) {
	g.refuse(req.Context(), "an invocation was not accepted", why, nil)
	http.Error(w, why, code)
}

func (g *Gateway) received(c *caller, in *wire.Invocation, digest string) *record {
	r := &record{
		Key:       callKey(c.Name, in.GroupID, in.ID),
		Asker:     c.asker,
		Arguments: in.Arguments,
		Part: call{
			Caller:    c.Name,
			Thread:    in.GroupID,
			ID:        in.ID,
			CallID:    in.CallID,
			User:      in.UserID,
			Ancestors: slices.Clone(in.Ancestors),
			Callback:  in.CallbackURL,
			Operation: in.Operation,
			Digest:    digest,
		},
	}
	if c.hash == nil && len(in.Ancestors) > 0 { // the ancestors of an unauthenticated caller are not trusted
		r.Part.Ancestors = nil
		r.Part.Stray = true
	}
	return r
}

// endAsError ends an invocation with an error. It is stored under a key of its own, so that the
// call which has its id is not affected.
func (g *Gateway) endAsError(r *record, text string) {
	r.Key += "/" + r.Part.Digest
	g.engine.Finish(r, durable.Ending{Why: whyFailed, Reason: text})
}

// keep stores a new call and acknowledges it.
func (g *Gateway) keep(w http.ResponseWriter, req *http.Request, r *record) {
	err := g.admit(req.Context(), r)
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

// admit stores a call under its key. If the key is taken, a repetition of the same call posts
// its result again, and a different call ends with an error.
func (g *Gateway) admit(ctx context.Context, r *record) error {
	for range maxChanges {
		err := g.create(ctx, r)
		if !errors.Is(err, durable.ErrExists) && !errors.Is(err, errFull) {
			return err
		}
		there, lost := g.engine.Get(ctx, r.Key)
		switch {
		case errors.Is(lost, approval.ErrNotFound) && errors.Is(err, errFull):
			return err
		case errors.Is(lost, approval.ErrNotFound): // deleted just now: try again
		case lost != nil:
			return lost
		case there.Part.Digest == r.Part.Digest:
			return g.repost(ctx, r.Key)
		default:
			g.refuse(ctx, "an id was used for another call", "same ids, other content", there)
			g.endAsError(r, "this id was used for another call of this thread")
		}
	}

	return durable.ErrBusy
}

func (g *Gateway) create(ctx context.Context, r *record) error {
	if err := g.countFirst(ctx); err != nil {
		return err
	}
	if !g.limits.enter(r.Key) {
		return errFull
	}
	err := g.engine.Add(ctx, r)
	if err != nil {
		g.limits.leave(r.Key)
	}
	return err
}

// repost posts the result of a call again, if it has one.
func (g *Gateway) repost(ctx context.Context, key string) error {
	var left bool
	_, changed, err := g.change(ctx, key, func(r *record) bool {
		if r.State != durable.Closed && !r.Part.Posted || len(r.Part.Result) == 0 {
			return false
		}
		left = r.State == durable.Closed
		r.State = durable.Ended
		if r.Message == nil || !r.Message.Under() { // so that an event that is being posted is passed on once
			r.Message = &durable.Attempt{}
		}
		r.Part.Posted = false
		return true
	})
	if changed && left {
		g.limits.reopen(key)
	}
	return err
}
