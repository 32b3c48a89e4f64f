package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/resolve"
)

// heldByPeople reports whether a request of a suspended function is answered by the people of
// HeldQuestions instead of in the messages.
func (r *run) heldByPeople(it *item, a *ask) bool {
	return r.cfg.Questions != nil && !it.Service && it.State != nil && isHeldKind(a.Request)
}

// isHeldKind reports whether HeldQuestions can ask a request of this kind.
func isHeldKind(q content.InputRequest) bool {
	_, approval := q.(*content.ToolApprovalRequest)
	return !approval
}

// unput reports whether the thread has a question that has not been put to people yet.
func (r *run) unput() bool {
	for it, a := range r.t.openAsks() {
		if a.Ref == "" && r.heldByPeople(it, a) {
			return true
		}
	}
	return false
}

// putQuestions puts the questions of suspended functions to people. Questions for which this
// fails are tried again in the next run.
func (r *run) putQuestions(ctx context.Context) {
	for it, a := range r.t.openAsks() {
		if a.Ref != "" || !r.heldByPeople(it, a) {
			continue
		}
		ref, err := r.cfg.Questions.put(ctx, r.t.ID, a.Request, r.callOf(ctx, it))
		if err != nil {
			r.unseen = errors.Join(r.unseen, err)
			r.debug("A question of '%s' could not be put: %v", it.Call.ToolName(), err)
			continue
		}
		a.Ref = ref
	}
}

// callOf returns the plan's view of the call during which the function asks, or nil without a
// plan.
func (r *run) callOf(ctx context.Context, it *item) *resolve.Call {
	call, ok := it.Call.(*content.FunctionCall)
	if !ok {
		return nil
	}
	return r.judge(ctx, call, FindTool(call.Name, r.opt, r.cfg.Tools)).verdict.Call
}

// holdQuestions ends a run that asks questions. It saves the thread before people see a
// question, so that a process that crashes and restarts doesn't ask a different one.
func (r *run) holdQuestions(ctx context.Context) error {
	if !r.unput() {
		return nil
	}
	undo := r.adds.checkpoint(r.t)
	if err := r.t.Save(ctx); err != nil {
		undo()
		return err
	}
	r.putQuestions(ctx)
	return nil
}

// lookAt applies the people's answer to a question, if there is one.
func (r *run) lookAt(ctx context.Context, it *item, a *ask) error {
	if r.cfg.Questions == nil {
		return errNoHolder
	}
	answer, err := r.cfg.Questions.look(ctx, a.Request, a.Ref)
	if err != nil {
		r.unseen = errors.Join(r.unseen, err)
		return nil
	}
	if answer == nil {
		return nil
	}
	yes := !content.Rejects(answer)
	it.By = answerer(answer)
	if err := r.record(ctx, it, Event{
		Type:      "answered",
		RequestID: a.Request.InputRequestID(),
		Approved:  &yes,
		Detail:    reasonOf(answer),
	}); err != nil {
		return err
	}

	a.Answer = answer
	r.t.close(it, a, howAnswered)
	it.answered()
	return nil
}

// cancel withdraws a held request from HeldQuestions or from the Holder, depending on its kind.
func (r *run) cancel(ctx context.Context, a *ask, why string) error {
	if a.Ref == "" {
		return nil
	}
	switch {
	case isHeldKind(a.Request) && r.cfg.Questions != nil:
		return r.cfg.Questions.People.Cancel(ctx, a.Ref, why)
	case !isHeldKind(a.Request) && r.cfg.Holder != nil:
		return r.cfg.Holder.Cancel(ctx, a.Ref, why)
	}

	return errNoHolder
}

// says calls LoopConfig.Says and adds the result to the request as context for the people who
// are asked.
func (r *run) says(ctx context.Context, it *item, q *content.ToolApprovalRequest) error {
	call, ok := it.Call.(*content.FunctionCall)
	if r.cfg.Says == nil || !ok {
		return nil
	}
	_, err := guarded(func() (any, error) {
		var err error
		q.Note.Context, err = r.cfg.Says(ctx, content.CloneCall(call).(*content.FunctionCall))
		return nil, err
	})
	if err == nil {
		_, err = content.DotNet().AppendContent(nil, q)
	}
	if err != nil {
		return fmt.Errorf("what is said about it: %w", err)
	}
	return nil
}
