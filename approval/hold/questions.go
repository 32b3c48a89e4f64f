package hold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// Ask puts a question to people. If the question is refused before people see it, Ask still returns
// a reference, for which Answer returns Denied.
func (r *requests) Ask(ctx context.Context, key string, q Question) (string, error) {
	switch {
	case key == "":
		return "", ErrNoKey
	case q.Call == nil:
		return "", ErrNoCall
	}

	if err := readable(q); err != nil {
		return "", fmt.Errorf("put a question: %w", err)
	}
	o, err := r.side.Ask(ctx, questionKey(key), q)
	switch {
	case err != nil:
		return "", fmt.Errorf("put a question: %w", err)
	case o.Outcome == resolve.Deny:
		return deniedPrefix + deniedReason(o), nil
	case o.Outcome == resolve.Ask && o.Request != nil && approval.QuestionID(o.Request.ID):
		return o.Request.ID, nil
	}

	return "", fmt.Errorf(
		"put a question: an answer that makes no sense: %q without what belongs to it",
		o.Word(),
	)
}

// readable returns an error for texts that are not UTF-8, because an encoder on the way to the
// people would change them.
func readable(q Question) error {
	for _, text := range append([]string{q.Server, q.Prompt}, append(q.Choices, q.Groups...)...) {
		if !utf8.ValidString(text) {
			return errors.New("its words are not UTF-8")
		}
	}

	return nil
}

// Answer returns the state of a question.
func (r *requests) Answer(ctx context.Context, ref string) (Answer, error) {
	if reason, ok := strings.CutPrefix(ref, deniedPrefix); ok {
		return Answer{State: Denied, Reason: reason}, nil
	}
	if !approval.QuestionID(ref) {
		return Answer{}, fmt.Errorf("%q is no question: %w", ref, ErrNoRequest)
	}
	found, err := r.side.Answer(ctx, ref)
	if found != nil && found.Agent.ID != r.agent || errors.Is(err, approval.ErrNotFound) {
		return Answer{}, fmt.Errorf("look at the question %s: %w", ref, ErrNoRequest)
	}
	// A question without an answer comes with an error. Its state is in the returned request.
	unanswered := errors.Is(err, approval.ErrPending) || errors.Is(err, approval.ErrNotApproved)
	switch {
	case errors.Is(err, approval.ErrFrozen):
		return Answer{State: Pending, Reason: "the agent is frozen by its operators: no answer is given out"}, nil
	case err != nil && !unanswered, found == nil:
		return Answer{}, fmt.Errorf("look at the question %s: %w", ref, err)
	}

	return answerOf(found)
}

// answerOf returns the answer to a question. It returns an error for a state that this version does
// not support.
func answerOf(r *approval.Request) (Answer, error) {
	switch r.State {
	case approval.Pending:
		return Answer{State: Pending}, nil
	case approval.Expired:
		return Answer{State: Expired, Reason: "nobody answered in time"}, nil
	case approval.Cancelled:
		return Answer{State: Cancelled, Reason: cmp.Or(r.Reason, "the question was withdrawn")}, nil
	}

	out := Answer{State: Chosen, By: r.By, Reason: r.Reason}
	if r.Cause == approval.ByDismissal {
		out.State = Dismissed
	}
	switch {
	case r.Cause == approval.BySubmission:
		out.State, out.Data = Submitted, string(r.Data)
	case r.Chosen != nil:
		out.Selected = *r.Chosen
	case out.State == Chosen:
		out.State = ""
	}

	if r.State != approval.Answered || r.Question == nil || !fits(r.Question, out) {
		return Answer{}, fmt.Errorf(
			"look at the question %s: it is %s, which is no end of a question",
			r.ID,
			r.State,
		)
	}

	return out, nil
}

// fits reports whether the question can have this answer.
func fits(q *approval.Question, a Answer) bool {
	asked := q.Form()
	switch a.State {
	case Pending, "":
		return false
	case Submitted:
		if asked == nil {
			return false
		}
		_, err := asked.Check([]byte(a.Data))

		return err == nil
	case Chosen, Dismissed:
		if asked != nil {
			return a.State == Dismissed
		}

		return a.Selected >= 0 && a.Selected < len(q.Choices)
	}

	return true
}
