package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/assent-dev/assent/content"
)

// ErrNotClaimed is what a Holder wraps when the run of a call is not to be had: not approved, changed, or taken before.
var ErrNotClaimed = errors.New("the approval can't be used")

// runApproved runs the calls that may run by now, each decided again and claimed before it begins.
func (r *run) runApproved(ctx context.Context) error {
	r.turn = -1
	defer func() { r.turn = 0 }()
	var outs []outcome
	for _, b := range r.t.batches {
		more, err := r.runBatch(ctx, b)
		if err != nil {
			return err
		}
		outs = append(outs, more...)
	}
	return r.failed.turn(outs)
}

func (r *run) runBatch(ctx context.Context, b *batch) ([]outcome, error) {
	var ready []*item
	for _, it := range b.Items {
		if b.stopped && it.Stage == approved {
			it.settle(textStopped)
		}
		ok, err := r.clear(ctx, it)
		if err != nil {
			return nil, err
		}
		if ok {
			ready = append(ready, it)
		}
	}
	if r.cfg.Concurrent && len(ready) > 1 {
		return r.runTogether(ctx, b, ready)
	}
	var outs []outcome
	for _, it := range ready {
		if b.stopped {
			it.settle(textStopped)
			continue
		}
		more, err := r.runTogether(ctx, b, []*item{it})
		if err != nil {
			return nil, err
		}
		outs = append(outs, more...)
	}
	return outs, nil
}

// clear tells whether a call may begin: it is approved, nothing that it was approved on has changed.
func (r *run) clear(ctx context.Context, it *item) (bool, error) {
	poll := it.Stage == open && it.Poll
	if it.Stage != approved && !poll {
		return false, nil
	}
	call, ok := it.Call.(*content.FunctionCall)
	if !ok {
		return false, nil
	}
	j := r.judge(ctx, call, findTool(call.Name, r.opt, r.cfg.Tools))
	switch {
	case j.what == refuse:
		it.settle(j.text)
		return false, r.record(ctx, it, Event{Type: "denied", Detail: j.text})
	case it.State != nil: // was begun before, with the approval that it needed
		return true, nil
	case j.what == mustAsk && !it.Ground.same(j.ground):
		return false, r.ask(ctx, it, j)
	case j.what == callerRuns || j.after == callerRuns:
		it.Stage = external
		return false, nil
	}
	return r.claim(ctx, it, j)
}

// claim takes the one run of a held call.
func (r *run) claim(ctx context.Context, it *item, j judgement) (bool, error) {
	ref := it.ref()
	if ref == "" {
		return true, nil
	}
	if r.cfg.Holder == nil {
		return false, errNoHolder
	}
	if it.Key == "" {
		key, err := r.claimKey(it)
		if err != nil {
			return false, err
		}
		it.Key = key
	}
	err := r.cfg.Holder.Claim(ctx, ref, it.Key, j.verdict)
	if errors.Is(err, ErrNotClaimed) {
		it.settle("Tool call not run: " + err.Error() + ".")
		return false, r.record(ctx, it, Event{Type: "denied", Detail: err.Error()})
	}
	if err != nil {
		return false, fmt.Errorf("claim an approved call: %w", err)
	}
	return true, nil
}

// claimKey names the attempt. With a store the same attempt may ask again after a crash, since the store lets only one process go on;
// without one each attempt is another, and a crash costs the run.
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

// runTogether runs cleared calls at once. That they begin is saved before, how they ended after.
func (r *run) runTogether(ctx context.Context, b *batch, items []*item) ([]outcome, error) {
	for _, it := range items {
		it.Stage = running
		if err := r.record(ctx, it, Event{Type: "started"}); err != nil {
			return nil, r.unstart(items, err)
		}
	}
	if err := r.t.Save(ctx); err != nil {
		return nil, r.unstart(items, err)
	}
	outs := make([]outcome, len(items))
	var all sync.WaitGroup
	for i, it := range items {
		outs[i] = unfinished(r.opt)
		all.Go(func() { outs[i] = r.runItem(ctx, it) })
	}
	all.Wait()
	for i, it := range items {
		r.opt = mergeTools(r.opt, r.opt, outs[i].opt)
		b.stopped = b.stopped || outs[i].stop
		if err := r.settleOutcome(ctx, it, outs[i]); err != nil {
			return nil, err
		}
	}
	return outs, r.t.Save(ctx)
}

// unstart takes back that calls begin: nothing of them has run.
func (r *run) unstart(items []*item, err error) error {
	for _, it := range items {
		if it.Stage == running {
			it.Stage = approved
		}
	}
	return err
}

// unfinished is the outcome of a function that never comes back (runtime.Goexit).
func unfinished(opt *Options) outcome {
	return outcome{found: true, err: errors.New("the function ended its goroutine"), opt: opt}
}

func (r *run) runItem(ctx context.Context, it *item) outcome {
	call := content.CloneCall(it.Call).(*content.FunctionCall)
	j := job{call: call, tool: findTool(call.Name, r.opt, r.cfg.Tools), approval: it.approval()}
	var o outcome
	if it.State == nil {
		o = r.calls.invoke(ctx, j, r.opt, r.turn)
	} else {
		o = r.calls.resume(ctx, j, r.opt, it.State, it.answers())
	}
	if o.suspend != nil {
		o.err = nil // it asks, it did not fail
	}
	return o
}

// approval names who approved, for the function that runs; "" when nobody was asked.
func (it *item) approval() string {
	switch {
	case it.By != "":
		return it.By
	case len(it.Asks) > 0:
		return "user"
	}
	return ""
}

// answers are those to a suspended function, under the ids that it gave.
func (it *item) answers() []content.InputResponse {
	var out []content.InputResponse
	for _, a := range it.Asks {
		if a.Answer != nil {
			out = append(out, withID(a.Answer, a.Inner))
		}
	}
	return out
}

func withID(answer content.InputResponse, id string) content.InputResponse {
	switch a := answer.(type) {
	case *content.ToolApprovalResponse:
		out := *a
		out.RequestID = id
		return &out
	case *content.TextApprovalResponse:
		out := *a
		out.RequestID = id
		return &out
	case *content.StructuredInputResponse:
		out := *a
		out.RequestID = id
		return &out
	}
	return answer
}

// settleOutcome keeps how a call went: its result, or what it asks now.
func (r *run) settleOutcome(ctx context.Context, it *item, o outcome) error {
	if o.suspend != nil {
		return r.suspend(ctx, it, o.suspend)
	}
	call := content.FunctionCall{CallID: it.Call.ID(), Name: it.Call.ToolName()}
	it.Stage, it.Result, it.State = done, resultContent(&call, o, r.cfg).Result, nil
	detail := ""
	if o.err != nil {
		detail = "failed: " + o.err.Error()
	}
	return r.record(ctx, it, Event{Type: "finished", Detail: detail})
}

// suspend keeps what a function asks before it goes on.
func (r *run) suspend(ctx context.Context, it *item, s *Suspend) error {
	before := it.Asks
	it.Stage, it.State, it.Poll, it.Asks = open, s.State, s.Poll, nil
	if it.State == nil {
		it.State = []byte("null")
	}
	if len(s.Requests) == 0 {
		call := content.FunctionCall{CallID: it.Call.ID(), Name: it.Call.ToolName()}
		it.Stage, it.State, it.Result = done, nil, resultContent(&call, outcome{found: true, err: s}, r.cfg).Result
		return nil
	}
	for _, q := range s.Requests {
		if a := stillOpen(before, q); a != nil {
			it.Asks = append(it.Asks, a)
			continue
		}
		if err := r.askFor(ctx, it, q); err != nil {
			return err
		}
	}
	return nil
}

// stillOpen finds an open request that a polled function makes again: it keeps its id.
func stillOpen(before []*ask, q content.InputRequest) *ask {
	for _, a := range before {
		if a.Inner == q.InputRequestID() && a.Answer == nil {
			return a
		}
	}
	return nil
}

// askFor shows a function's own request under an id of this thread.
func (r *run) askFor(ctx context.Context, it *item, q content.InputRequest) error {
	id, err := r.requestID(it.Call.ID())
	if err != nil {
		return err
	}
	outer := withRequestID(q, id)
	it.Asks = append(it.Asks, &ask{Request: outer, Inner: q.InputRequestID(), Since: r.now(), Expires: noteOf(outer).Expires})
	return r.record(ctx, it, Event{Type: "requested", RequestID: id})
}

func withRequestID(q content.InputRequest, id string) content.InputRequest {
	switch q := q.(type) {
	case *content.ToolApprovalRequest:
		out := *q
		out.RequestID = id
		return &out
	case *content.TextApprovalRequest:
		out := *q
		out.RequestID = id
		return &out
	case *content.StructuredInputRequest:
		out := *q
		out.RequestID = id
		return &out
	}
	return q
}

func noteOf(q content.InputRequest) content.Note {
	if note := notePtr(q); note != nil {
		return *note
	}
	return content.Note{}
}

func notePtr(q content.InputRequest) *content.Note {
	switch q := q.(type) {
	case *content.ToolApprovalRequest:
		return &q.Note
	case *content.TextApprovalRequest:
		return &q.Note
	case *content.StructuredInputRequest:
		return &q.Note
	}
	return nil
}
