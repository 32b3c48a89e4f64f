package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/reid"
	"github.com/assent-dev/assent/approval/hold"
)

// runApproved runs the calls that may run now. Each is decided again and claimed before it
// begins.
func (r *run) runApproved(ctx context.Context) error {
	r.turn = -1
	defer func() { r.turn = 0 }()
	var outs []Outcome
	for _, b := range r.t.batches {
		more, err := r.runBatch(ctx, b)
		if err != nil {
			return err
		}
		outs = append(outs, more...)
	}

	return r.failed.Turn(outs)
}

func (r *run) runBatch(ctx context.Context, b *batch) ([]Outcome, error) {
	if r.cfg.Concurrent {
		ready, err := r.cleared(ctx, b.Items)
		if err != nil || len(ready) == 0 {
			return nil, err
		}
		return r.runTogether(ctx, ready)
	}

	var outs []Outcome
	for _, it := range b.Items {
		ready, err := r.cleared(ctx, []*item{it})
		if err != nil {
			return nil, err
		}
		if len(ready) == 0 {
			continue
		}
		more, err := r.runTogether(ctx, ready)
		if err != nil {
			return nil, err
		}
		outs = append(outs, more...)
	}

	return outs, nil
}

// cleared returns the calls that may begin now. After a call has ended the run, no further call
// begins.
func (r *run) cleared(ctx context.Context, items []*item) ([]*item, error) {
	var ready []*item
	for _, it := range items {
		if r.stopped && it.Stage == approved && !it.Service {
			if err := r.leaveOut(ctx, it); err != nil {
				return nil, err
			}
			continue
		}

		ok, err := r.clear(ctx, it)
		if err != nil {
			return nil, err
		}
		if ok {
			ready = append(ready, it)
		}
	}

	return ready, nil
}

// leaveOut gives a result to a call that does not run because another call ended the run.
func (r *run) leaveOut(ctx context.Context, it *item) error {
	if err := r.record(ctx, it, Event{Type: "skipped", Detail: textStopped}); err != nil {
		return err
	}
	it.settle(textStopped)
	return nil
}

// clear reports whether a call may begin: it is approved, and nothing that the approval was
// based on has changed. Otherwise it records and settles a refusal, or asks again.
func (r *run) clear(ctx context.Context, it *item) (bool, error) {
	poll := it.Stage == open && it.Poll && r.turn < 0 // not in the turn that asked
	if it.Stage != approved && !poll {
		return false, nil
	}
	if it.Service {
		return false, r.clearService(ctx, it)
	}
	if it.overdue(r.now()) {
		if err := r.record(
			ctx,
			it,
			Event{Type: howExpired, RequestID: it.Asks[0].Request.InputRequestID()},
		); err != nil {
			return false, err
		}

		it.settle(textExpired)
		return false, nil
	}

	call := it.Call.(*content.FunctionCall) // calls of any other type belong to the service
	it.tool = FindTool(call.Name, r.opt, r.cfg.Tools)
	j := r.judge(ctx, call, it.tool)
	switch {
	case j.action == refuse:
		if err := r.record(ctx, it, Event{Type: "denied", Detail: j.text}); err != nil {
			return false, err
		}
		it.settle(j.text)
		return false, nil
	case it.State != nil: // it was begun before, with the approval that it needed
		return true, nil
	case j.action == mustAsk && !it.Ground.same(j.ground):
		if err := r.ask(ctx, it, j); err != nil || it.Stage != approved {
			return false, err
		} // the holder approved it immediately
	}

	refused, err := r.claim(ctx, it, j.verdict)
	switch {
	case err != nil:
		return false, err
	case refused != "":
		if err := r.record(ctx, it, Event{Type: "denied", Detail: refused}); err != nil {
			return false, err
		}
		it.settle("Tool call not run: " + refused + ".")
		return false, nil
	case j.action == callerRuns || j.after == callerRuns:
		it.Stage = external
		return false, nil
	}

	return true, nil
}

// overdue reports whether a call was approved in time but did not begin before its request
// expired. Permits of the holder have their own deadlines, so held requests are never overdue.
func (it *item) overdue(now time.Time) bool {
	if it.Stage != approved || it.State != nil || len(it.Asks) == 0 || it.Asks[0].Ref != "" {
		return false
	}
	expires := it.Asks[0].Expires
	return !expires.IsZero() && !now.Before(expires)
}

// clearService claims the permit for a call that a service is about to run on a held approval.
func (r *run) clearService(ctx context.Context, it *item) error {
	j := r.judgeService(ctx, it)
	if j.action != refuse {
		refused, err := r.claim(ctx, it, j.verdict)
		if err != nil {
			return err
		}
		if refused == "" {
			it.Stage = done
			return nil
		}
		j.text = "Tool call not run: " + refused + "."
	}

	if err := r.record(ctx, it, Event{Type: "denied", Detail: j.text}); err != nil {
		return err
	}
	it.decline(j.text)
	return nil
}

// claim takes the single permit to run a held call. If the holder refuses, claim returns the
// reason as text and no error.
func (r *run) claim(ctx context.Context, it *item, v hold.Verdict) (refused string, err error) {
	ref := it.ref()
	if ref == "" {
		return "", nil
	}
	if r.cfg.Holder == nil {
		return "", errNoHolder
	}
	if it.Key == "" {
		if it.Key, err = r.claimKey(it); err != nil {
			return "", err
		}
	}
	err = r.cfg.Holder.Claim(ctx, ref, it.Key, v)
	if errors.Is(err, hold.ErrNotClaimed) {
		return err.Error(), nil
	}
	if err != nil {
		return "", fmt.Errorf("claim an approved call: %w", err)
	}
	return "", nil
}

// claimKey returns the key of an attempt. If the thread has a store, the same key is used again
// after a crash, which is safe because the store lets only one process continue. Without a
// store each attempt gets a new key, and a crash loses the run.
func (r *run) claimKey(it *item) (string, error) {
	id := it.Asks[0].Request.InputRequestID()
	if r.t.store != nil {
		return id, nil
	}
	tail, err := randomTail(r.cfg.Rand)
	return id + tail, err
}

func (it *item) ref() string {
	if len(it.Asks) == 0 {
		return ""
	}
	return it.Asks[0].Ref
}

// runTogether runs cleared calls at the same time. It saves their start before they begin and
// their results after they have ended.
func (r *run) runTogether(ctx context.Context, items []*item) ([]Outcome, error) {
	if err := r.start(ctx, items); err != nil {
		return nil, err
	}
	outs := r.runAll(ctx, items)
	after := context.WithoutCancel(ctx) // the calls have run, so save their results even if the caller has cancelled
	var failed error
	for i, it := range items {
		failed = errors.Join(failed, r.settleOutcome(after, it, outs[i]))
	}
	if err := r.t.Save(after); err != nil {
		return nil, errors.Join(failed, err)
	}
	for _, it := range items {
		failed = errors.Join(failed, r.recordEnd(after, it))
	}
	return outs, failed
}

// start marks calls as running and saves the thread. On an error it undoes the marks and
// nothing runs.
func (r *run) start(ctx context.Context, items []*item) error {
	undo := func() {}
	if r.turn >= 0 {
		undo = r.adds.checkpoint(r.t)
	}
	before := make([]stage, len(items))
	var err error
	for i, it := range items {
		before[i], it.Stage = it.Stage, running
		if err == nil {
			err = r.record(ctx, it, Event{Type: "started"})
		}
	}

	if err == nil {
		err = r.t.Save(ctx)
	}
	if err != nil {
		for i, it := range items {
			it.Stage = before[i]
		}
		undo()
	}

	return err
}

// runAll runs calls concurrently.
func (r *run) runAll(ctx context.Context, items []*item) []Outcome {
	outs, next := AtOnce(r.opt, len(items), func(i int) Outcome { return r.runItem(ctx, items[i]) })
	r.opt = next
	for _, o := range outs {
		r.stopped = r.stopped || o.Stop
	}
	return outs
}

// recordEnd records the end of a call. On an error the result is kept and the next run records
// the end.
func (r *run) recordEnd(ctx context.Context, it *item) error {
	if !it.Unrecorded {
		return nil
	}
	if err := r.record(ctx, it, Event{Type: "finished", Detail: it.ended}); err != nil {
		return err
	}
	it.Unrecorded = false
	return nil
}

func (r *run) runItem(ctx context.Context, it *item) Outcome {
	call := content.CloneCall(it.Call).(*content.FunctionCall)
	j := Job{
		Call:     call,
		Tool:     it.tool,
		Approval: it.approval(),
		checked:  true, // checked by judge
	}
	var o Outcome
	if it.State == nil {
		o = Invoke(ctx, j, r.opt, r.turn)
	} else {
		o = resume(ctx, j, r.opt, it.State, it.answers())
	}
	if o.Suspend != nil {
		o.Err = nil // a function that asks has not failed
	}
	return o
}

// approval returns the name of the person or rule that approved the call, for the function that
// runs. It is empty if no approval was needed.
func (it *item) approval() string {
	switch {
	case it.By != "":
		return it.By
	case len(it.Asks) > 0:
		return "user"
	}

	return ""
}

// answers returns the answers to a suspended function, under the ids that the function gave its
// requests.
func (it *item) answers() []content.InputResponse {
	var out []content.InputResponse
	for _, a := range it.Asks {
		if a.Answer != nil {
			out = append(out, reid.Response(a.Answer, a.Inner))
		}
	}
	return out
}

// settleOutcome stores the outcome of a call: its result, or the requests with which it
// suspended.
func (r *run) settleOutcome(ctx context.Context, it *item, o Outcome) error {
	if o.Suspend != nil && o.Suspend.Err != nil {
		return r.again(ctx, it, o.Suspend)
	}
	if o.Suspend != nil {
		err := checkSuspend(o.Suspend)
		if err == nil {
			err = r.cfg.Questions.checkAll(o.Suspend.Requests)
		}
		if err == nil {
			return r.suspend(ctx, it, o.Suspend)
		}
		o = Outcome{Err: err}
	}

	r.closeOpen(ctx, it, nil)
	call := content.FunctionCall{CallID: it.Call.ID(), Name: it.Call.ToolName()}
	it.Stage = done
	it.Result = o.Content(&call, r.cfg.DetailedErrors).Result
	it.State = nil
	it.Unrecorded = true
	it.ended = ""
	if o.Err != nil {
		it.ended = "failed: " + o.Err.Error()
		r.debug("Function '%s' failed: %v", it.Call.ToolName(), o.Err)
	}
	return nil
}
