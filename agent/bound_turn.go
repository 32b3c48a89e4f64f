package agent

import (
	"context"
	"slices"
	"sync"

	"github.com/assent-dev/assent/content"
	"github.com/assent-dev/assent/resolve"
)

// turns asks the model until it has answered or somebody must be asked.
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
			return r.surfaceOlder(a)
		}
	}
}

// answer is one turn of the model.
type answer struct {
	resp *Response
	held []*Update // of a stream: what has not been passed on
	made *batch    // the calls of this turn that wait
}

func (r *run) askModel(ctx context.Context, last bool) (*answer, error) {
	opt := r.opt
	if last {
		opt = opt.Clone()
		opt.Tools = slices.DeleteFunc(opt.Tools, func(t Tool) bool { return runs(t) == runNow })
	}
	if r.out.yield == nil {
		resp, err := r.model.Respond(ctx, r.history, opt)
		if err != nil {
			return nil, err
		}
		if resp == nil {
			return nil, errNoAnswer
		}
		return &answer{resp: resp}, nil
	}
	return r.stream(ctx, opt)
}

// stream passes a turn on up to its first call: what becomes of calls is known when all are there.
func (r *run) stream(ctx context.Context, opt *Options) (*answer, error) {
	var all []*Update
	a := &answer{}
	for u, err := range r.model.Stream(ctx, r.history, opt) {
		if err != nil {
			return nil, err
		}
		if u == nil {
			return nil, errNilUpdate
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
	a.resp = join(all)
	return a, nil
}

// isLive holds for what the loop must handle: calls that nobody has run, and questions of the model's side.
func isLive(c content.Content) bool {
	switch c := c.(type) {
	case *content.FunctionCall:
		return !c.InformationalOnly
	case content.InputRequest:
		return true
	}
	return false
}

// handle runs or asks about the calls of a turn. It reports whether the model goes on.
func (r *run) handle(ctx context.Context, a *answer, last bool) (bool, error) {
	r.adopt(a.resp)
	served := servedCalls(a.resp.Messages)
	b := r.batchOf(a.resp.Messages, served)
	if len(b.Items) == 0 {
		return false, r.release(a)
	}
	if err := r.judgeAll(ctx, b, last); err != nil {
		return false, err
	}
	outs, err := r.runHarmless(ctx, b)
	if err != nil {
		return false, err
	}
	held := b.asked()
	if held {
		r.t.batches = append(r.t.batches, b)
		more, err := r.runBatch(ctx, b)
		if err != nil {
			return false, err
		}
		outs = append(outs, more...)
	}
	if err := r.failed.turn(outs); err != nil {
		return false, err
	}
	if held || !b.finished() || b.serves() {
		a.made = b
		if !held {
			r.t.batches = append(r.t.batches, b)
		}
		return r.keep(a, b)
	}
	return !last && !b.stopped, r.pass(a, b)
}

// adopt takes over what a turn says of the whole run.
func (r *run) adopt(resp *Response) {
	out := r.out.resp
	out.ID, out.Model, out.FinishReason = resp.ID, resp.Model, resp.FinishReason
	out.Refused = append(out.Refused, resp.Refused...)
	if resp.Usage != nil {
		out.Usage = addUsage(out.Usage, resp.Usage)
	}
	if resp.ConversationID != "" {
		out.ConversationID, r.opt.ConversationID = resp.ConversationID, resp.ConversationID
	}
}

// servedCalls are the calls that the service ran itself: their results stand in the same response.
func servedCalls(messages []*content.Message) map[string]bool {
	var out map[string]bool
	for _, m := range messages {
		for _, c := range m.Contents {
			if result, ok := c.(*content.FunctionResult); ok {
				if out == nil {
					out = map[string]bool{}
				}
				out[result.CallID] = true
			}
		}
	}
	return out
}

// batchOf collects the calls of a turn.
func (r *run) batchOf(messages []*content.Message, served map[string]bool) *batch {
	b := &batch{ConversationID: r.opt.ConversationID}
	for _, m := range messages {
		before := len(b.Items)
		for _, c := range m.Contents {
			if it := itemOf(c, served); it != nil {
				b.Items = append(b.Items, it)
			}
		}
		if before == 0 && len(b.Items) > 0 {
			b.MessageID, b.AuthorName = m.ID, m.AuthorName
		}
	}
	return b
}

func itemOf(c content.Content, served map[string]bool) *item {
	switch c := c.(type) {
	case *content.FunctionCall:
		if served[c.CallID] {
			c.InformationalOnly = true
		}
		if !c.InformationalOnly {
			return &item{Call: c}
		}
	case content.InputRequest:
		return &item{Call: calledBy(c), Service: true, Stage: open, Asks: []*ask{{Request: c}}}
	}
	return nil
}

// calledBy is the call that a question of the model's side is about.
func calledBy(q content.InputRequest) content.ToolCall {
	if approval, ok := q.(*content.ToolApprovalRequest); ok && approval.Call != nil {
		return approval.Call
	}
	return &content.HostedCall{Kind: "inputRequest", CallID: q.InputRequestID()}
}

// asked tells whether somebody was asked about a call of this batch, if only the holder.
func (b *batch) asked() bool {
	return slices.ContainsFunc(b.Items, func(it *item) bool { return !it.Service && len(it.Asks) > 0 })
}

// serves tells whether the model's side asks something in this batch.
func (b *batch) serves() bool {
	return slices.ContainsFunc(b.Items, func(it *item) bool { return it.Service })
}

// judgeAll decides every call of a turn before any of them runs.
func (r *run) judgeAll(ctx context.Context, b *batch, last bool) error {
	all := make([]judgement, len(b.Items))
	asks := false
	for i, it := range b.Items {
		switch {
		case it.Service:
			all[i] = r.judgeService(ctx, it)
		case last:
			all[i] = judgement{what: refuse, text: textLimit}
		default:
			all[i] = r.judge(ctx, it.Call, findTool(it.Call.ToolName(), r.opt, r.cfg.Tools))
		}
		asks = asks || all[i].what == mustAsk
	}
	if asks && !r.lasting {
		return ErrThreadNeeded
	}
	for i, it := range b.Items {
		if err := r.apply(ctx, it, all[i], asks && r.cfg.WrapSiblings && r.cfg.Holder == nil); err != nil {
			return err
		}
	}
	return nil
}

// judgeService lets the plan refuse what a service would run itself. What it allows is still for the user to answer.
func (r *run) judgeService(ctx context.Context, it *item) judgement {
	if _, mcp := it.Call.(*content.MCPCall); !mcp || r.cfg.Decider == nil {
		return judgement{what: mustAsk}
	}
	v, err := r.cfg.Decider.Decide(ctx, nil, it.Call)
	switch {
	case err != nil:
		return judgement{what: refuse, text: textUndecided}
	case v.Outcome == resolve.Deny:
		return judgement{what: refuse, text: denialText(v)}
	}
	return judgement{what: mustAsk, verdict: v}
}

// apply turns a judgement into a stage. A harmless call is approved unless its siblings' questions take it along.
func (r *run) apply(ctx context.Context, it *item, j judgement, wrap bool) error {
	switch {
	case it.Service && j.what == refuse:
		it.decline(j.text)
		r.t.close(it, it.Asks[0], howAnswered)
		return r.record(ctx, it, Event{Type: "denied", Detail: j.text})
	case it.Service:
		it.Asks[0].Since = r.now()
		return r.record(ctx, it, Event{Type: "requested", RequestID: it.Asks[0].Request.InputRequestID()})
	case wrap && j.what == runNow:
		if err := r.ask(ctx, it, j); err != nil {
			return err
		}
		it.Asks[0].Request.(*content.ToolApprovalRequest).NoConfirmation = true
		return nil
	case j.what == mustAsk:
		return r.ask(ctx, it, j)
	case j.what == refuse:
		it.settle(j.text)
		return r.recordRefusal(ctx, it, j)
	case j.what == callerRuns:
		it.Stage = external
	default:
		it.Stage, it.Ground = approved, j.ground
	}
	return nil
}

// recordRefusal audits denials. Calls that can't be understood are no decisions.
func (r *run) recordRefusal(ctx context.Context, it *item, j judgement) error {
	it.Rejected = j.verdict.Call != nil || len(j.verdict.Reasons) > 0
	if !it.Rejected {
		return nil
	}
	return r.record(ctx, it, Event{Type: "denied", Detail: j.text})
}

// runHarmless runs the calls that need nobody.
func (r *run) runHarmless(ctx context.Context, b *batch) ([]outcome, error) {
	var ready []*item
	for _, it := range b.Items {
		if it.Stage == approved && len(it.Asks) == 0 {
			ready = append(ready, it)
		}
	}
	if r.cfg.Concurrent && len(ready) > 1 {
		return r.runAtOnce(ctx, b, ready)
	}
	var outs []outcome
	for _, it := range ready {
		if b.stopped {
			it.settle(textStopped)
			continue
		}
		o := r.runItem(ctx, it)
		if err := r.finish(ctx, b, it, o); err != nil {
			return nil, err
		}
		outs = append(outs, o)
	}
	return outs, nil
}

func (r *run) runAtOnce(ctx context.Context, b *batch, ready []*item) ([]outcome, error) {
	outs := make([]outcome, len(ready))
	var all sync.WaitGroup
	for i, it := range ready {
		outs[i] = unfinished(r.opt)
		all.Go(func() { outs[i] = r.runItem(ctx, it) })
	}
	all.Wait()
	base := r.opt
	for i, it := range ready {
		next := mergeTools(base, r.opt, outs[i].opt)
		if err := r.finish(ctx, b, it, outs[i]); err != nil {
			return nil, err
		}
		r.opt = next
	}
	return outs, nil
}

// finish keeps the outcome of a call that needed nobody.
func (r *run) finish(ctx context.Context, b *batch, it *item, o outcome) error {
	if o.err != nil && o.suspend == nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if o.suspend != nil && !r.lasting {
		return ErrThreadNeeded
	}
	r.opt, b.stopped = o.opt, b.stopped || o.stop
	return r.settleOutcome(ctx, it, o)
}

// release passes on what a turn without live calls holds.
func (r *run) release(a *answer) error {
	r.out.resp.Messages = append(r.out.resp.Messages, a.resp.Messages...)
	r.t.news.add(a.resp.Messages...)
	if r.out.yield == nil {
		return nil
	}
	for _, u := range a.held {
		if err := r.out.update(u); err != nil {
			return err
		}
	}
	return nil
}

// pass shows a turn whose calls all have their results, and gives both to the model.
func (r *run) pass(a *answer, b *batch) error {
	if err := r.release(a); err != nil {
		return err
	}
	results := make([]content.Content, len(b.Items))
	for i, it := range b.Items {
		results[i] = &content.FunctionResult{CallID: it.Call.ID(), Result: it.Result}
	}
	told := content.NewMessage(content.ToolRole, results...)
	r.t.news.add(told)
	r.history = r.next(a.resp.Messages, told)
	return r.out.message(told)
}

// next is the history of the next turn; a service that keeps it gets what is new only.
func (r *run) next(said []*content.Message, more ...*content.Message) []*content.Message {
	if r.opt.ConversationID != "" {
		return more
	}
	return append(append(r.history, said...), more...)
}

// keep shows requests in place of the calls of a batch that waits in the thread. A batch that got all its answers at once goes on.
func (r *run) keep(a *answer, b *batch) (bool, error) {
	said := present(a.resp.Messages, b)
	r.out.resp.Messages = append(r.out.resp.Messages, said...)
	for _, u := range presentUpdates(a.held, b) {
		if err := r.out.update(u); err != nil {
			return false, err
		}
	}
	left := leftOf(a.resp.Messages, b)
	r.t.news.add(left...)
	if !b.finished() {
		b.stopped = false // this run ends anyway; the next one is another
		return false, nil
	}
	r.history = r.next(left)
	return !b.stopped, r.tellBatch(b)
}

// leftOf is what a model may see of a turn while its calls wait.
func leftOf(messages []*content.Message, b *batch) []*content.Message {
	var out []*content.Message
	for _, m := range messages {
		left := slices.DeleteFunc(slices.Clone(m.Contents), func(c content.Content) bool { return b.holds(c) })
		if len(left) > 0 {
			out = append(out, m.With(left))
		}
	}
	return out
}

func (b *batch) holds(c content.Content) bool {
	return slices.ContainsFunc(b.Items, func(it *item) bool { return it.is(c) })
}

// present shows messages with what the user is asked in place of the calls. Messages that are left empty are dropped.
func present(messages []*content.Message, b *batch) []*content.Message {
	var out []*content.Message
	for _, m := range messages {
		if contents := presentContents(m.Contents, b); len(contents) > 0 || len(m.Contents) == 0 {
			out = append(out, m.With(contents))
		}
	}
	return out
}

func presentUpdates(updates []*Update, b *batch) []*Update {
	var out []*Update
	for _, u := range updates {
		shown := *u
		shown.Contents = presentContents(u.Contents, b)
		if len(shown.Contents) > 0 || len(u.Contents) == 0 || u.FinishReason != "" {
			out = append(out, &shown)
		}
	}
	return out
}

func presentContents(contents []content.Content, b *batch) []content.Content {
	var out []content.Content
	for _, c := range contents {
		i := slices.IndexFunc(b.Items, func(it *item) bool { return it.is(c) })
		if i < 0 {
			out = append(out, c)
			continue
		}
		out = append(out, b.Items[i].visible()...)
	}
	return out
}

// is tells whether a content of the response is what the item was made of.
func (it *item) is(c content.Content) bool {
	if it.Service {
		return c == content.Content(it.Asks[0].Request)
	}
	return c == content.Content(it.Call)
}

// surfaceOlder shows again, at the end of a run, what earlier turns still ask.
func (r *run) surfaceOlder(a *answer) error {
	var contents []content.Content
	for _, b := range r.t.batches {
		if b == a.made {
			continue
		}
		for _, it := range b.Items {
			contents = append(contents, it.visible()...)
		}
	}
	if len(contents) == 0 {
		return nil
	}
	return r.out.message(content.NewMessage(content.Assistant, contents...))
}
