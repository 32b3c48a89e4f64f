package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/resolve"
)

// turns calls the model until it has answered or a person must be asked.
func (r *run) turns(ctx context.Context) error {
	for ; ; r.turn++ {
		last := r.turn >= r.cfg.MaxTurns
		a, err := r.askModel(ctx, last)
		if err != nil {
			return err
		}
		goOn, err := r.handle(ctx, a, last)
		if err != nil {
			return err
		}
		if !goOn {
			return r.surface(a.made)
		}
	}
}

// answer is one turn of the model.
type answer struct {
	resp *Response
	held []*Update // updates of a stream that have not been passed on
	made *batch    // the calls of this turn that wait
}

func (r *run) askModel(ctx context.Context, last bool) (*answer, error) {
	opt := r.opt
	if last {
		opt = opt.Clone()
		opt.Tools = slices.DeleteFunc(opt.Tools, func(t Tool) bool { return runs(t) == runNow })
	}

	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.unsent = false
	if r.out.yield == nil {
		resp, err := r.model.Respond(ctx, r.history, opt)
		if err != nil {
			return nil, err
		}
		if resp == nil {
			return nil, ErrNoAnswer
		}
		return &answer{resp: resp}, nil
	}

	return r.stream(ctx, opt)
}

// stream passes the updates of a turn on until its first call. Later updates are held, because
// how calls are shown can be decided only when all of them are known.
func (r *run) stream(ctx context.Context, opt *Options) (*answer, error) {
	var all []*Update
	a := &answer{}
	for u, err := range r.model.Stream(ctx, r.history, opt) {
		if err != nil {
			return nil, err
		}
		if u == nil {
			return nil, ErrNilUpdate
		}
		all = append(all, u)
		if len(a.held) > 0 || slices.ContainsFunc(u.Contents, isLive) {
			a.held = append(a.held, u)
			continue
		}
		if err := r.out.update(u); err != nil {
			return nil, err
		}
	}

	a.resp = Join(all)
	return a, nil
}

// isLive reports whether the loop must handle c: a call that has not been run, or a request of
// the model's service.
func isLive(c content.Content) bool {
	switch c := c.(type) {
	case *content.FunctionCall:
		return !c.InformationalOnly
	case content.InputRequest:
		return true
	}

	return false
}

// handle runs the calls of a turn or requests their approval. It reports whether the model
// continues.
func (r *run) handle(ctx context.Context, a *answer, last bool) (bool, error) {
	r.adopt(a.resp)
	for _, m := range a.resp.Messages {
		if m.Role == "" {
			m.Role = content.Assistant
		}
	}
	b, err := r.batchOf(a.resp.Messages, servedCalls(a.resp.Messages))
	if err != nil {
		return false, err
	}
	if len(b.Items) == 0 {
		r.adds.add(a.resp.Messages...)
		return false, r.release(a)
	}
	all := r.judgeAll(ctx, b, last)
	if !r.lasting && slices.ContainsFunc(all, func(j judgement) bool { return j.action == mustAsk }) {
		return false, ErrThreadNeeded
	}
	if !r.lasting && slices.ContainsFunc(all, func(j judgement) bool { return j.action == callerRuns }) {
		// As in .NET, the caller gets all calls: without a thread there is no place to keep the
		// results of some of them.
		return false, r.release(a)
	}
	if err := r.applyAll(ctx, b, all); err != nil {
		return false, err
	}
	outs, err := r.runTurn(ctx, b)
	if err != nil {
		return false, err
	}
	if err := r.failed.Turn(outs); err != nil {
		return false, err
	}
	if b.asked() || b.serves() || !b.finished() {
		a.made = b
		return r.keep(a, b)
	}
	return !last && !r.stopped, r.pass(a, b)
}

// runTurn runs the calls of a turn that need no approval, and then those that the holder
// approved immediately.
func (r *run) runTurn(ctx context.Context, b *batch) ([]Outcome, error) {
	outs, err := r.runHarmless(ctx, b)
	if err != nil || !b.asked() && !b.serves() && b.finished() {
		return outs, err
	}
	if !r.lasting {
		return nil, ErrThreadNeeded
	}
	r.t.batches, r.fresh = append(r.t.batches, b), append(r.fresh, b)
	more, err := r.runBatch(ctx, b)
	return append(outs, more...), err
}

// adopt copies the response data of a turn, such as id, model and usage, to the response of the
// run.
func (r *run) adopt(resp *Response) {
	out := r.out.resp
	out.ID = resp.ID
	out.Model = resp.Model
	out.FinishReason = resp.FinishReason
	out.Refused = append(out.Refused, resp.Refused...)
	if resp.Usage != nil {
		out.Usage = addUsage(out.Usage, resp.Usage)
	}
	if resp.ConversationID != "" {
		out.ConversationID, r.opt.ConversationID = resp.ConversationID, resp.ConversationID
	}
}

// servedCalls returns the ids of calls that the service ran itself: their results are in the
// same response.
func servedCalls(messages []*content.Message) map[string]bool {
	var out map[string]bool
	for result := range content.All[*content.FunctionResult](messages) {
		if out == nil {
			out = map[string]bool{}
		}
		out[result.CallID] = true
	}

	return out
}

// batchOf collects the calls of a turn.
func (r *run) batchOf(messages []*content.Message, served map[string]bool) (*batch, error) {
	b := &batch{ConversationID: r.opt.ConversationID}
	ids := map[string]bool{}
	for _, m := range messages {
		before := len(b.Items)
		var lead []content.Content
		for _, c := range m.Contents {
			it, err := r.itemOf(c, served, ids)
			if err != nil {
				return nil, err
			}
			// Keep reasoning with the call it precedes. This is only needed for a history of an
			// agent: a caller with its own history has the reasoning there.
			if _, thought := c.(*content.Reasoning); thought && r.adds != nil {
				lead = append(lead, c)
			}
			if it != nil {
				it.Lead, lead = lead, nil
				b.Items = append(b.Items, it)
			}
		}

		if before == 0 && len(b.Items) > 0 {
			b.MessageID, b.AuthorName = m.ID, m.AuthorName
		}
	}

	return b, nil
}

func (r *run) itemOf(c content.Content, served, ids map[string]bool) (*item, error) {
	switch c := c.(type) {
	case *content.FunctionCall:
		if served[c.CallID] {
			c.InformationalOnly = true
		}
		if c.InformationalOnly {
			return nil, nil
		}
		c.CallID = unusedID(c.CallID, ids)
		return &item{Call: c, origin: c}, nil
	case content.InputRequest:
		if err := r.checkQuestion(c); err != nil {
			return nil, err
		}
		r.made = append(r.made, c.InputRequestID()) // no request of the loop may get the same id
		return &item{
			Call:    calledBy(c),
			Service: true,
			Stage:   open,
			Asks:    []*ask{{Request: c}},
			origin:  c,
		}, nil
	}

	return nil, nil
}

// unusedID makes the call ids of one turn unique, since some models repeat them.
func unusedID(id string, used map[string]bool) string {
	if id == "" {
		id = "call"
	}
	unique := id
	for n := 2; used[unique]; n++ {
		unique = fmt.Sprintf("%s.%d", id, n)
	}
	used[unique] = true
	return unique
}

// checkQuestion returns an error if a request of the model's service can't be stored, or has
// the id of another open request.
func (r *run) checkQuestion(q content.InputRequest) error {
	if approval, ok := q.(*content.ToolApprovalRequest); ok && approval.Call == nil {
		return &content.BadError{
			Code:   content.BadShape,
			Where:  "toolCall",
			Detail: "the model's side asks about no call",
		}
	}

	if _, err := content.DotNet().AppendContent(nil, q); err != nil {
		return fmt.Errorf("what the model's side asks can't be kept: %w", err)
	}
	id := q.InputRequestID()
	if _, open := r.t.find(id); open != nil || slices.Contains(r.made, id) {
		return &content.BadError{
			Code:   content.BadID,
			Where:  "requestId",
			Detail: fmt.Sprintf("the model's side asks twice under the id %q", id),
		}
	}

	return nil
}

// calledBy returns the call that a request of the model's service is about.
func calledBy(q content.InputRequest) content.ToolCall {
	if approval, ok := q.(*content.ToolApprovalRequest); ok {
		return approval.Call
	}
	return &content.FunctionCall{CallID: q.InputRequestID(), Name: "input_request"}
}

// asked reports whether a person or the holder was asked about a call of this batch.
func (b *batch) asked() bool {
	return slices.ContainsFunc(b.Items, func(it *item) bool { return !it.Service && len(it.Asks) > 0 })
}

// serves reports whether the batch contains a request of the model's service.
func (b *batch) serves() bool {
	return slices.ContainsFunc(b.Items, func(it *item) bool { return it.Service })
}

// judgeAll decides all calls of a turn before any of them runs.
func (r *run) judgeAll(ctx context.Context, b *batch, last bool) []judgement {
	all := make([]judgement, len(b.Items))
	for i, it := range b.Items {
		switch {
		case it.Service:
			all[i] = r.judgeService(ctx, it)
		case last:
			all[i] = judgement{action: refuse, text: textLimit}
		default:
			call := it.Call.(*content.FunctionCall) // calls of any other type belong to the service
			it.tool = FindTool(call.Name, r.opt, r.cfg.Tools)
			all[i] = r.judge(ctx, call, it.tool)
			if all[i].action == mustAsk && it.rejectedBefore(r.t) {
				all[i].refuse(textRejected + " " + textRepeated)
				all[i].repeated = true
			}
		}
	}

	return all
}

func (r *run) applyAll(ctx context.Context, b *batch, all []judgement) error {
	asks := false
	for i, it := range b.Items {
		asks = asks || all[i].action == mustAsk && !it.Service
	}
	for i, it := range b.Items {
		if err := r.apply(ctx, it, all[i], asks && r.cfg.WrapSiblings && r.cfg.Holder == nil); err != nil {
			return err
		}
	}
	return nil
}

// judgeService lets the plan refuse a call that a service would run itself. If the plan allows
// it, the user still has to answer.
func (r *run) judgeService(ctx context.Context, it *item) judgement {
	if _, mcp := it.Call.(*content.MCPCall); !mcp || r.cfg.Decider == nil {
		if _, approval := it.Asks[0].Request.(*content.ToolApprovalRequest); approval && r.cfg.Holder != nil {
			return judgement{action: refuse, text: textNobody}
		}
		return judgement{action: mustAsk}
	}

	v, err := r.cfg.Decider.Decide(ctx, nil, it.Call)
	j := judgement{action: mustAsk, verdict: v}
	j.ground.take(v)
	switch {
	case err != nil:
		j.refuse(textUndecided)
	case v.Outcome == resolve.Deny:
		j.refuse(denialText(v))
	case r.cfg.Holder != nil && v.Outcome == resolve.Allow:
		j.refuse(textNobody)
	case r.cfg.Holder == nil && j.ground.needsOthers():
		j.refuse(j.ground.cannotAsk())
	}

	return j
}

// apply sets the stage that follows from a judgement. A harmless call is approved, unless wrap
// is set: then the user is asked about it together with the other calls of the turn.
func (r *run) apply(ctx context.Context, it *item, j judgement, wrap bool) error {
	switch {
	case it.Service && j.action == refuse:
		it.decline(j.text)
		r.t.close(it, it.Asks[0], howAnswered)
		return r.record(ctx, it, Event{Type: "denied", Detail: j.text})
	case it.Service:
		return r.askService(ctx, it, j)
	case wrap && j.action == runNow:
		if err := r.ask(ctx, it, j); err != nil {
			return err
		}
		if it.Stage == open {
			it.Asks[0].Request.(*content.ToolApprovalRequest).NoConfirmation = true
		}
		return nil
	case j.action == mustAsk:
		return r.ask(ctx, it, j)
	case j.action == refuse:
		it.settle(j.text)
		return r.recordRefusal(ctx, it, j)
	case j.action == callerRuns:
		it.Stage = external
	default:
		it.Stage, it.Ground = approved, j.ground
	}

	return nil
}

// askService stores a request of the model's service, and passes it to the holder if it is
// about a call.
func (r *run) askService(ctx context.Context, it *item, j judgement) error {
	a := it.Asks[0]
	a.Since = r.now()
	if within := j.verdict.Within(); within > 0 {
		a.Expires = a.Since.Add(within)
	}
	var held *hold.Held
	if q, ok := a.Request.(*content.ToolApprovalRequest); ok {
		shown := *q // don't change the model's own request
		var err error
		if held, err = r.hold(ctx, a, &shown, j.verdict); err != nil {
			return err
		}
		a.Request = &shown
	}

	err := r.record(ctx, it, Event{Type: "requested", RequestID: a.Request.InputRequestID()})
	if err != nil || held == nil {
		return err
	}
	return r.takeHeld(ctx, it, a, *held)
}

// recordRefusal writes denials to the audit log. A call that could not be parsed was not
// decided, so it is not recorded.
func (r *run) recordRefusal(ctx context.Context, it *item, j judgement) error {
	it.Rejected = j.repeated || j.verdict.Call != nil || len(j.verdict.Reasons) > 0
	if !it.Rejected {
		return nil
	}
	return r.record(ctx, it, Event{Type: "denied", Detail: j.text})
}

// runHarmless runs the calls that need no approval.
func (r *run) runHarmless(ctx context.Context, b *batch) ([]Outcome, error) {
	var ready []*item
	for _, it := range b.Items {
		if it.Stage == approved && len(it.Asks) == 0 {
			ready = append(ready, it)
		}
	}
	switch {
	case r.cfg.Concurrent:
		return r.keepAll(ctx, ready, r.runAll(ctx, ready))
	case r.cfg.Audit == nil:
		return r.keepAll(ctx, ready, r.runInTurn(ctx, ready))
	}

	var outs []Outcome
	for i := range ready { // one by one, so that nothing runs after a record has failed
		one := ready[i : i+1]
		more, err := r.keepAll(ctx, one, r.runInTurn(ctx, one))
		if err != nil {
			return nil, err
		}
		outs = append(outs, more...)
	}

	return outs, nil
}

// runInTurn runs calls one after the other in a separate goroutine, so that a function that
// calls runtime.Goexit ends only that goroutine. The remaining calls then continue in a new
// one. After a call that ended the run, the others get no outcome.
func (r *run) runInTurn(ctx context.Context, items []*item) []Outcome {
	var outs []Outcome
	for len(outs) < len(items) && !r.over(ctx, outs) {
		var one sync.WaitGroup
		one.Go(func() {
			for len(outs) < len(items) && !r.over(ctx, outs) {
				outs = append(outs, unfinished(r.opt))
				o := r.runItem(ctx, items[len(outs)-1])
				outs[len(outs)-1] = o
				r.opt = o.Options
				r.stopped = r.stopped || o.Stop
			}
		})
		one.Wait()
	}

	return outs
}

// over reports whether no further calls may begin.
func (r *run) over(ctx context.Context, outs []Outcome) bool {
	return r.stopped || len(outs) > 0 && outs[len(outs)-1].Err != nil && ctx.Err() != nil
}

// keepAll stores the outcomes of calls. Calls without an outcome were not run.
func (r *run) keepAll(ctx context.Context, items []*item, outs []Outcome) ([]Outcome, error) {
	for i, it := range items {
		if i >= len(outs) {
			it.settle(textStopped)
			continue
		}
		if outs[i].Err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if outs[i].Suspend != nil && !r.lasting {
			return nil, ErrThreadNeeded
		}
		if err := r.settleOutcome(ctx, it, outs[i]); err != nil {
			return nil, err
		}
		if err := r.recordEnd(ctx, it); err != nil {
			return nil, err
		}
	}

	return outs, nil
}
