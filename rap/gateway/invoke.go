package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/store"
)

// intake stores the invocations that runtimes post, within the limits.
type intake struct{ *base }

// invoke acknowledges an invocation as soon as it is stored. The rules and the approval service
// are not involved yet.
func (i *intake) invoke(w http.ResponseWriter, req *http.Request, c *caller) {
	if !c.enter(req.Context()) {
		i.busy(w, req, "1", "too many invocations at once")
		return
	}
	defer c.leave()
	body, err := i.body(w, req, i.cfg.MaxBody)
	if err != nil {
		i.decline(w, req, statusOf(err), err.Error())
		return
	}
	in, err := wire.ParseInvocation(body)
	if code, why := c.unreachable(&in); code != 0 {
		i.decline(w, req, code, why)
		return
	}
	if i.limits.tooFast(c.Name, i.now()) {
		i.busy(w, req, "1", "too many invocations in a second")
		return
	}
	digest, failed := digestOf(&in)
	if failed != nil {
		i.decline(w, req, http.StatusBadRequest, "the invocation can't be kept")
		return
	}
	r := i.received(c, &in, digest)
	if err != nil { // the sender gets the error as a result
		i.endAsError(r, "the invocation is not valid: "+err.Error())
	}
	i.keep(w, req, r)
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
func (i *intake) busy(w http.ResponseWriter, req *http.Request, after, why string) {
	w.Header().Set("Retry-After", after)
	i.decline(w, req, http.StatusServiceUnavailable, why)
}

func (i *intake) decline(w http.ResponseWriter, req *http.Request, code int, why string) {
	i.refuse(req.Context(), "an invocation was not accepted", why, nil)
	http.Error(w, why, code)
}

func (i *intake) received(c *caller, in *wire.Invocation, digest string) *record {
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
func (i *intake) endAsError(r *record, text string) {
	r.Key += "/" + r.Part.Digest
	i.engine.Finish(r, durable.Ending{Why: whyFailed, Reason: text})
}

// keep stores a new call and acknowledges it.
func (i *intake) keep(w http.ResponseWriter, req *http.Request, r *record) {
	err := i.admit(req.Context(), r)
	switch {
	case errors.Is(err, errFull):
		i.busy(w, req, "10", "too many calls are open")
	case err != nil:
		i.cfg.Log.ErrorContext(req.Context(), "an invocation could not be kept", "error", err)
		http.Error(w, "the invocation could not be kept", http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusOK)
	}
}

var errFull = errors.New("too many calls are open")

// admit stores a call under its key. If the key is taken, a repetition of the same call posts
// its result again, and a different call ends with an error.
func (i *intake) admit(ctx context.Context, r *record) error {
	for range maxChanges {
		err := i.create(ctx, r)
		if !errors.Is(err, durable.ErrExists) && !errors.Is(err, errFull) {
			return err
		}
		there, lost := i.engine.Get(ctx, r.Key)
		switch {
		case errors.Is(lost, approval.ErrNotFound) && errors.Is(err, errFull):
			return err
		case errors.Is(lost, approval.ErrNotFound): // deleted just now: try again
		case lost != nil:
			return lost
		case there.Part.Digest == r.Part.Digest:
			return i.repost(ctx, r.Key)
		default:
			i.refuse(ctx, "an id was used for another call", "same ids, other content", there)
			i.endAsError(r, "this id was used for another call of this thread")
		}
	}

	return durable.ErrBusy
}

func (i *intake) create(ctx context.Context, r *record) error {
	if err := i.countFirst(ctx); err != nil {
		return err
	}
	if !i.limits.enter(r.Key) {
		return errFull
	}
	err := i.engine.Add(ctx, r)
	if err != nil {
		i.limits.leave(r.Key)
	}
	return err
}

// repost posts the result of a call again, if it has one.
func (i *intake) repost(ctx context.Context, key string) error {
	var left bool
	_, changed, err := i.change(ctx, key, func(r *record) bool {
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
		i.limits.reopen(key)
	}
	return err
}

// count counts open calls, which are the records without an expiry. They are not unsealed.
func (i *intake) count(ctx context.Context) error {
	callers, threads := map[string]int{}, map[string]int{}
	err := i.engine.Each(ctx, "", func(r store.Record) {
		if r.Expires.IsZero() {
			caller, thread := keyParts(r.Key)
			callers[caller]++
			threads[thread]++
		}
	})
	if err == nil {
		i.limits.recount(callers, threads)
	}
	return err
}

// countFirst counts the calls of an earlier process before the first new one is opened, so that
// a restart does not lift the limits.
func (i *intake) countFirst(ctx context.Context) error {
	i.limits.first.Lock()
	defer i.limits.first.Unlock()
	if i.limits.isCounted() {
		return nil
	}
	return i.count(ctx)
}

// countAgain regularly recounts open calls. The longer a count takes, the longer it waits
// before the next.
func (i *intake) countAgain(ctx context.Context) {
	for ctx.Err() == nil {
		start := time.Now()
		if err := i.count(ctx); err != nil && ctx.Err() == nil {
			i.cfg.Log.ErrorContext(ctx, "open calls can't be counted", "error", err)
		}
		_ = wait.Pause(ctx, max(countEvery, 20*time.Since(start)))
	}
}
