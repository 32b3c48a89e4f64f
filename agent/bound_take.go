package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
)

// Texts that a model gets in place of a result, in addition to those of .NET.
const (
	textSuperseded = "Tool call not run: the user went on without answering."
	textExpired    = "Tool call not run: nobody approved it in time."
	textLost       = "Error: the process ended while this call was running. " +
		"Whether it took effect is not known; it was not run again."
	textGivenUp   = "Error: this could not go on after parts of it had been done. What took effect is not known."
	textForgotten = "Tool call not run: its request is not known any more where it was held."
	textStopped   = "Tool call not run: another call ended the run."
	textLimit     = "Tool call not run: the limit of turns was reached."
	textNobody    = "Tool call not run: a service asks about it, " +
		"and no policy says whose approval it needs where requests are held."
	textMarked = "Tool call not run: it is marked to need approval, and no policy says whose, " +
		"so nobody can be asked where requests are held."
	textUndecided = "Tool call not run: it could not be decided whether it may."
)

var errNoHolder = errors.New("a request of this thread is held elsewhere, and there is no holder to ask")

// takeIn brings the thread up to date: calls that a crash interrupted, expired requests,
// decisions of the holder's people, answers in the messages, and requests that a new message
// supersedes.
func (r *run) takeIn(ctx context.Context, in input) error {
	steps := []func(context.Context, *item) error{r.recordEnd, r.findLost, r.look, r.expire}
	for _, step := range steps {
		for it := range r.t.items() {
			if err := step(ctx, it); err != nil {
				return err
			}
		}
	}

	r.putQuestions(ctx)
	if err := r.takeAnswers(ctx, in); err != nil {
		return err
	}
	if err := r.takeResults(ctx, in.results); err != nil {
		return err
	}
	return r.supersede(ctx, in.more)
}

// findLost settles a call that was begun by a process that no longer exists. The call is not
// begun again unless its function is a Recoverer.
func (r *run) findLost(ctx context.Context, it *item) error {
	if it.Stage != running {
		return nil
	}
	tool, ok := Inner[Recoverer](FindTool(it.Call.ToolName(), r.opt, r.cfg.Tools))
	if ok && tool.Recovers() {
		return r.recoverCall(ctx, it)
	}
	if err := r.record(ctx, it, Event{Type: "lost"}); err != nil {
		return err
	}
	r.closeOpen(ctx, it, nil)
	it.Stage = done
	it.Result = jsonText(textLost)
	it.State = nil
	return nil
}

// recoverCall lets an interrupted call continue. If it was waiting for answers, it waits for
// them again, otherwise it is begun again.
func (r *run) recoverCall(ctx context.Context, it *item) error {
	if err := r.record(ctx, it, Event{Type: "recovered"}); err != nil {
		return err
	}
	it.Stage = approved
	if slices.ContainsFunc(it.Asks, func(a *ask) bool { return a.Answer == nil }) {
		it.Stage = open
	}
	return nil
}

// expire ends calls whose requests were not answered in time. An expiry is not recorded as a
// denial.
func (r *run) expire(ctx context.Context, it *item) error {
	if it.Stage != open {
		return nil
	}
	now := r.now()
	late := func(a *ask) bool {
		return a.Answer == nil && a.Ref == "" && !a.Expires.IsZero() && !now.Before(a.Expires)
	}
	if !slices.ContainsFunc(it.Asks, late) {
		return nil
	}
	return r.end(ctx, it, howExpired, textExpired)
}

// end closes the open requests of a call and gives it a result.
func (r *run) end(ctx context.Context, it *item, how, text string) error {
	for _, a := range it.Asks {
		if a.Answer != nil {
			continue
		}
		if err := r.record(ctx, it, Event{Type: how, RequestID: a.Request.InputRequestID()}); err != nil {
			return err
		}
		if err := r.withdraw(ctx, a, how, text); err != nil {
			return err
		}
		r.t.close(it, a, how)
	}

	if len(it.Asks) == 0 {
		if err := r.record(ctx, it, Event{Type: how}); err != nil {
			return err
		}
	}
	if it.Service {
		it.decline(text)
		return nil
	}
	it.settle(text)
	it.State = nil
	return nil
}

// withdraw cancels a superseded request that its holder still shows to people.
func (r *run) withdraw(ctx context.Context, a *ask, how, text string) error {
	if a.Ref == "" || how != howSuperseded {
		return nil
	}
	if err := r.cancel(ctx, a, text); err != nil {
		return fmt.Errorf("withdraw a request: %w", err)
	}
	return nil
}

// supersede ends the open requests if the user wrote something else and OnNewMessage is
// Supersede. It also forgets rejected calls, so that the user may be asked about them again.
func (r *run) supersede(ctx context.Context, more bool) error {
	if more {
		r.t.Drop(rejectedState)
	}
	if !more || r.cfg.OnNewMessage != Supersede {
		return nil
	}
	for it := range r.t.items() {
		if it.Stage != open && it.Stage != external {
			continue
		}
		if err := r.end(ctx, it, howSuperseded, textSuperseded); err != nil {
			return err
		}
	}

	return nil
}

// takeResults stores the results of calls that the caller ran.
func (r *run) takeResults(ctx context.Context, results []*content.FunctionResult) error {
	for _, result := range results {
		it := r.t.externalCall(result.CallID)
		if no := misfitResult(it, result); no != nil {
			if err := r.refuse(ctx, *no); err != nil {
				return err
			}
			continue
		}

		if err := r.record(ctx, it, Event{Type: "finished", Detail: "by the caller"}); err != nil {
			return err
		}
		it.Stage, it.Result = done, result.Result
		if len(it.Result) == 0 {
			it.Result = jsonText(textDone)
		}
	}

	return nil
}

func misfitResult(it *item, result *content.FunctionResult) *Refusal {
	if it == nil {
		return &Refusal{result.CallID, UnknownRequest, "no call of that id waits for a result from the caller"}
	}
	if len(result.Result) == 0 {
		return nil
	}
	if err := content.CheckSchema(nil, result.Result); err != nil {
		return &Refusal{result.CallID, BadAnswer, "the result: " + err.Error()}
	}
	return nil
}

// refuse records refused answers and adds them to the response.
func (r *run) refuse(ctx context.Context, all ...Refusal) error {
	for _, no := range all {
		if err := r.audit(ctx, no.event()); err != nil {
			return err
		}
	}
	return r.out.refuse(all)
}

// takeAnswers applies the valid answers and refuses the others.
func (r *run) takeAnswers(ctx context.Context, in input) error {
	hits, refused := r.t.match(in)
	for _, hit := range hits {
		no, err := r.take(ctx, hit)
		if err != nil {
			return err
		}
		if no != nil {
			refused = append(refused, *no)
		}
	}

	return r.refuse(ctx, refused...)
}

// take applies one answer. If it returns a refusal or an error, nothing has changed.
func (r *run) take(ctx context.Context, hit accepted) (*Refusal, error) {
	it, a := hit.item, hit.ask
	response, approval := hit.answer.(*content.ToolApprovalResponse)
	if approval && r.cfg.Holder != nil && it.State == nil {
		return &Refusal{
			RequestID: response.RequestID,
			Reason:    HeldElsewhere,
			Detail:    "approvals are given where requests are held, not in the messages",
		}, nil
	}

	if r.heldByPeople(it, a) { // the question could not be put to people yet
		return &Refusal{
			RequestID: a.Request.InputRequestID(),
			Reason:    HeldElsewhere,
			Detail:    "the request is answered where questions are held, not in the messages",
		}, nil
	}

	if approval && !it.Service {
		r.debug("%s", ProcessingText(it.Call.ToolName(), response.Approved))
	}

	yes, by := !content.Rejects(hit.answer), cmp.Or(answerer(hit.answer), "user")
	event := Event{
		Type:      "answered",
		RequestID: a.Request.InputRequestID(),
		Approved:  &yes,
		By:        by,
		Detail:    reasonOf(hit.answer),
	}
	if approval && response.Edited != nil && it.State == nil { // a suspended function handles edits itself
		return r.edit(ctx, it, a, response, event)
	}
	if err := r.record(ctx, it, event); err != nil {
		return nil, err
	}
	it.By = by
	if !yes {
		r.debug("Function '%s' was rejected. Reason: %s", it.Call.ToolName(), reasonOf(hit.answer))
	}

	a.Answer = hit.answer
	r.t.close(it, a, howAnswered)
	it.answered()
	return nil, r.noteRejected(it)
}

// edit replaces the requested call with the edited one and decides it again. A denial refuses
// the answer. If the edited call falls under rules that the person was not shown, edit makes a
// new request.
func (r *run) edit(
	ctx context.Context, it *item, a *ask, response *content.ToolApprovalResponse, e Event,
) (*Refusal, error) {
	tool := FindTool(response.Edited.Name, r.opt, r.cfg.Tools)
	if err := errors.Join(r.readable(response.Edited, true), r.schemas.check(response.Edited, tool)); err != nil {
		return &Refusal{response.RequestID, BadAnswer, "the edited " + err.Error()}, nil
	}
	edited := content.CloneCall(response.Edited).(*content.FunctionCall)
	j := r.judge(ctx, edited, tool)
	if j.action == refuse {
		return &Refusal{response.RequestID, BadAnswer, "the edited call: " + j.text}, nil
	}
	now := *it
	now.Call = edited
	now.Ground = j.ground
	now.By = e.By
	if now.Asked == nil {
		now.Asked = it.Call
	}
	// Decide the original call again too: its policies or tool may have changed since the
	// request.
	asked := r.judge(ctx, it.Call.(*content.FunctionCall), tool)
	if j.action == mustAsk &&
		(!it.Ground.covers(j.ground) || asked.action == mustAsk && !it.Ground.same(asked.ground)) {
		e.Detail = strings.TrimPrefix(e.Detail+"; edited, and asked again", "; ")
		if err := r.record(ctx, &now, e); err != nil {
			return nil, err
		}
		if err := r.ask(ctx, &now, j); err != nil {
			return nil, err
		}
		r.t.close(it, a, howAgain)
		*it = now
		return nil, nil
	}

	e.Detail = strings.TrimPrefix(e.Detail+"; edited", "; ")
	if err := r.record(ctx, &now, e); err != nil {
		return nil, err
	}
	*it = now
	a.Answer = response
	r.t.close(it, a, howAnswered)
	it.answered()
	return nil, nil
}

// answered moves a call to its next stage once all of its requests are answered.
func (it *item) answered() {
	if slices.ContainsFunc(it.Asks, func(a *ask) bool { return a.Answer == nil }) {
		return
	}
	response, approval := it.Asks[0].Answer.(*content.ToolApprovalResponse)
	it.Poll = false
	switch {
	case it.Service && approval && response.Approved:
		it.Stage = approved // must be cleared again before the service runs it
	case it.Service:
		it.Stage = done
	case it.State != nil || !approval:
		it.Stage = approved // resume with the answers, even if they are rejections
	case response.Approved:
		it.Stage = approved
	default:
		it.reject(Rejection(response.Reason))
	}
}

// debug logs with the same texts as the .NET library.
func (l *boundLoop) debug(format string, args ...any) {
	if l.cfg.Log != nil {
		l.cfg.Log.Debug(fmt.Sprintf(format, args...))
	}
}

// decline answers a request of the service with a rejection.
func (it *item) decline(reason string) {
	it.Asks[0].Answer = content.Rejection(it.Asks[0].Request, reason)
	it.Stage = done
}

// look asks the holder for the state of its requests and applies decisions.
func (r *run) look(ctx context.Context, it *item) error {
	if it.Stage != open {
		return nil
	}
	for _, a := range it.Asks {
		if a.Ref == "" || a.Answer != nil {
			continue
		}
		if isHeldKind(a.Request) {
			if err := r.lookAt(ctx, it, a); err != nil {
				return err
			}
			continue
		}

		if r.cfg.Holder == nil {
			return errNoHolder
		}
		held, err := r.cfg.Holder.Look(ctx, a.Ref)
		if errors.Is(err, hold.ErrNoRequest) {
			return r.end(ctx, it, "cancelled", textForgotten)
		}
		if err != nil { // only this call waits; the run continues with the others
			r.unseen = errors.Join(r.unseen, fmt.Errorf("look at a held request: %w", err))
			return nil
		}
		if err := r.takeHeld(ctx, it, a, held); err != nil {
			return err
		}
	}

	return nil
}

// takeHeld applies the decision of the holder's people.
func (r *run) takeHeld(ctx context.Context, it *item, a *ask, held hold.Held) error {
	q := a.Request.(*content.ToolApprovalRequest) // only approvals of calls are held
	it.By = held.By
	switch held.State {
	case hold.Pending:
		return nil
	case hold.Approved:
		if held.Arguments != nil && !content.SameArguments(held.Arguments, it.Call.Args()) {
			call, ok := content.CloneCall(it.Call).(*content.FunctionCall)
			if !ok {
				return r.end(
					ctx,
					it,
					"cancelled",
					"Tool call not run: it was edited, and what a service runs can't be.",
				)
			}

			call.Arguments = held.Arguments
			if it.Asked == nil {
				it.Asked = it.Call
			}
			definition := it.Ground.Definition // the definition that the people saw
			it.Call, it.Ground = call, r.judge(ctx, call, FindTool(call.Name, r.opt, r.cfg.Tools)).ground
			it.Ground.Definition = definition
		}

		return r.closeHeld(ctx, it, a, q.CreateApproval(held.Reason))
	case hold.Denied:
		return r.closeHeld(ctx, it, a, q.CreateRejection(held.Reason))
	case hold.Responded:
		if err := r.record(ctx, it, Event{
			Type:      "answered",
			RequestID: q.RequestID,
			By:        held.By,
			Detail:    "a person answered in place of the tool",
		}); err != nil {
			return err
		}

		r.t.close(it, a, howAnswered)
		if it.Service {
			it.decline(held.Reason)
			return nil
		}
		it.Stage, it.Result = done, jsonText(held.Reason)
		return nil
	case hold.Expired:
		return r.end(ctx, it, howExpired, textExpired)
	case hold.Cancelled:
		return r.end(ctx, it, "cancelled", "Tool call not run: the request was withdrawn.")
	}

	return fmt.Errorf("a held request is %q, which nobody knows", held.State)
}

func (r *run) closeHeld(ctx context.Context, it *item, a *ask, answer *content.ToolApprovalResponse) error {
	if !it.Service {
		r.debug("%s", ProcessingText(it.Call.ToolName(), answer.Approved))
	}
	event := Event{
		Type:      "answered",
		RequestID: answer.RequestID,
		Approved:  &answer.Approved,
		By:        it.By,
		Detail:    answer.Reason,
	}
	if err := r.record(ctx, it, event); err != nil {
		return err
	}
	a.Answer = answer
	r.t.close(it, a, howAnswered)
	it.answered()
	return r.noteRejected(it)
}

func reasonOf(a content.InputResponse) string {
	switch a := a.(type) {
	case *content.ToolApprovalResponse:
		return a.Reason
	case *content.TextApprovalResponse:
		return a.Reason
	case *content.StructuredInputResponse:
		return a.Reason
	}

	return ""
}

// record writes an event about a call to the audit log.
func (r *run) record(ctx context.Context, it *item, e Event) error {
	if r.cfg.Audit == nil {
		return nil
	}
	e.CallID = it.Call.ID()
	e.Tool = it.Call.ToolName()
	e.Arguments = string(it.Call.Args())
	if e.By == "" {
		e.By = it.By
	}
	return r.audit(ctx, e)
}

func (r *run) audit(ctx context.Context, e Event) error {
	return r.cfg.Audit.record(ctx, r.t, r.now(), e)
}

func (r *run) now() time.Time { return r.cfg.Now().UTC() }
