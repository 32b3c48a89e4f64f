package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/form"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/resolve"
)

// HeldQuestions has people behind an approval service answer what
// agents and suspended functions ask: a text approval is a choice there,
// structured input a form or a free text. A dismissal, a deadline, a
// withdrawal and a denial are rejections that say so; what is frozen
// when it is put is one, and an answer that a freeze holds back is
// waited for.
//
// Whoever runs an agent of any kind calls Answers or Wait between two
// runs, and gives what they return to the next run in a message of the
// user. A loop does so by itself for what its functions ask
// (LoopConfig.Questions). One question is put once for one request of
// one thread, whatever ends in between: its key is made of both ids, and
// its reference is kept in the thread. So store the thread before it is
// put, and when it has been; with a ThreadStore both are done.
type HeldQuestions struct {
	// People are asked: hold.Service(…).As(…) in this process,
	// client.Holder behind a server.
	People hold.Requests
	// Watch tells Wait when to look, as hold.People has it; nil: Wait
	// only looks every Poll.
	Watch func(ctx context.Context, changed func(ref string)) error
	// Poll is how long Wait waits at most before it looks again; 0 is 2
	// seconds, and a minute with Watch.
	Poll time.Duration

	Asker     string        // the agent's own name, under which people see who asks
	Principal string        // whom the agent acts for; "" names nobody
	Session   string        // "" for none
	Groups    []string      // who may answer; none: the principal, or any approver where there is none
	Within    time.Duration // until a question expires, where its note does not say; 0: as the service has it
	Now       func() time.Time
}

// What a text approval is as a choice. Every end without an answer is
// the second.
const (
	approveChoice = iota
	rejectChoice
)

// maxPrompt bounds the text of a question, as the service does.
const maxPrompt = 64 << 10

const textQuestionForgotten = "the question is not known any more where it was held"

// heldState is where a thread keeps the references of questions that
// its host has put.
const heldState = "held questions"

// HeldQuestionError says which request can't be put to people, and why.
type HeldQuestionError struct {
	RequestID string
	Err       error // often a *form.SchemaError, which says where
}

// Error names the request.
func (e *HeldQuestionError) Error() string {
	return fmt.Sprintf("the request %q can't be put to people: %v", e.RequestID, e.Err)
}

// Unwrap returns the cause.
func (e *HeldQuestionError) Unwrap() error { return e.Err }

// Answers puts what is asked on a thread, as far as it has not been put,
// and returns the answers that are there: some, all or none. Without
// requests it is all that the thread keeps open. When one of them can't
// be put (*HeldQuestionError) nobody is asked anything. Requests that
// have ended, and those that the loop itself has put, are passed over;
// what this put for a request that has ended is withdrawn.
func (h *HeldQuestions) Answers(
	ctx context.Context, t *Thread, asked ...content.InputRequest,
) ([]content.InputResponse, error) {
	answers, _, err := h.round(ctx, t, asked)
	return answers, err
}

// Wait returns the answers as soon as there is one; none when nothing is
// asked. It looks when Watch says so, and at least every Poll.
func (h *HeldQuestions) Wait(
	ctx context.Context, t *Thread, asked ...content.InputRequest,
) ([]content.InputResponse, error) {
	ctx, stop := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	poll := cmp.Or(h.Poll, 2*time.Second)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	if h.Watch != nil {
		poll = cmp.Or(h.Poll, time.Minute)
		watching.Go(func() {
			_ = h.Watch(ctx, func(string) { // it ends with ctx; when it fails, Poll is left
				select {
				case changed <- struct{}{}:
				default:
				}
			})
		})
	}

	for {
		answers, waits, err := h.round(ctx, t, asked)
		if err != nil || len(answers) > 0 || !waits {
			return answers, err
		}
		if err := wait.For(ctx, changed, poll); err != nil {
			return nil, err
		}
	}
}

// round is Answers; it also reports whether anything is asked.
func (h *HeldQuestions) round(
	ctx context.Context, t *Thread, asked []content.InputRequest,
) (answers []content.InputResponse, waits bool, err error) {
	open, err := h.open(t, asked)
	if err != nil {
		return nil, false, err
	}
	refs, err := h.putAll(ctx, t, open)
	if err != nil {
		return nil, true, err
	}
	for _, q := range open {
		answer, err := h.look(ctx, q, refs[q.InputRequestID()])
		if err != nil {
			return nil, true, err
		}
		if answer != nil {
			answers = append(answers, answer)
		}
	}

	return answers, len(open) > 0, nil
}

// open are the requests that people answer here. Each of them can be put.
func (h *HeldQuestions) open(t *Thread, asked []content.InputRequest) ([]content.InputRequest, error) {
	if t == nil {
		return nil, ErrThreadNeeded
	}
	if len(asked) == 0 {
		for _, a := range t.openAsks() {
			asked = append(asked, cloneRequest(a.Request))
		}
	}
	var open []content.InputRequest
	for _, q := range asked {
		if q == nil {
			return nil, &HeldQuestionError{Err: errors.New("it is nil")}
		}
		id := q.InputRequestID()
		if _, a := t.find(id); a != nil && a.Ref != "" || a == nil && t.ended(id) != "" {
			continue
		}
		if err := h.check(q); err != nil {
			return nil, err
		}
		open = append(open, q)
	}

	return open, nil
}

// putAll puts what has no reference yet, withdraws what is not asked any
// more, and keeps the references in the thread.
func (h *HeldQuestions) putAll(
	ctx context.Context, t *Thread, open []content.InputRequest,
) (map[string]string, error) {
	before, refs := map[string]string{}, map[string]string{}
	if _, err := t.Get(heldState, &before); err != nil {
		return nil, err
	}
	changed := false
	var failed error
	for _, q := range open {
		id := q.InputRequestID()
		if refs[id] = before[id]; refs[id] != "" {
			continue
		}
		ref, err := h.put(ctx, t.ID, q, nil)
		if err != nil {
			delete(refs, id)
			failed = err
			break
		}
		refs[id], changed = ref, changed || ref != ""
	}

	for id, ref := range before {
		switch _, a := t.find(id); {
		case refs[id] != "":
		case a != nil: // not among those that the caller named
			refs[id] = ref
		default:
			changed = true
			if err := h.withdraw(ctx, ref); err != nil {
				refs[id] = ref // for the next time
				failed = errors.Join(failed, err)
			}
		}
	}

	if failed != nil && !changed {
		return nil, failed
	}
	if !changed {
		return refs, nil
	}
	if err := t.Put(heldState, refs); err != nil {
		return nil, errors.Join(failed, err)
	}
	return refs, errors.Join(failed, t.Save(ctx))
}

// withdraw takes a question back whose request has ended. One that was
// answered stays as it is.
func (h *HeldQuestions) withdraw(ctx context.Context, ref string) error {
	err := h.People.Cancel(ctx, ref, "the agent goes on without an answer")
	if errors.Is(err, hold.ErrNoRequest) {
		return nil
	}
	return err
}

// check refuses what can't be put to people.
func (h *HeldQuestions) check(q content.InputRequest) error {
	_, err := h.question(q, nil)
	return err
}

// checkAll does so for what a function asks; nil holds nothing.
func (h *HeldQuestions) checkAll(requests []content.InputRequest) error {
	for _, q := range requests {
		if _, approval := q.(*content.ToolApprovalRequest); h == nil || approval {
			continue
		}
		if err := h.check(q); err != nil {
			return err
		}
	}

	return nil
}

// question is what people see of a request. Without a call the agent
// asks by itself.
func (h *HeldQuestions) question(q content.InputRequest, call *resolve.Call) (hold.Question, error) {
	refuse := func(err error) (hold.Question, error) {
		return hold.Question{}, &HeldQuestionError{q.InputRequestID(), err}
	}
	if err := errors.Join(askable(q), h.usable()); err != nil {
		return refuse(err)
	}
	note := content.NoteOf(q)
	out := hold.Question{
		Call:    call,
		Server:  h.Asker,
		Context: note.Context,
		Groups:  h.Groups,
		Within:  h.Within,
	}
	if call == nil {
		out.Call = &resolve.Call{Principal: h.Principal, Session: h.Session}
	}

	switch q := q.(type) {
	case *content.TextApprovalRequest:
		out.Prompt = cmp.Or(q.Text, note.Message, "Your approval is needed.")
		out.Choices, out.Default = []string{"Approve", "Reject"}, rejectChoice
	case *content.StructuredInputRequest:
		out.Prompt, out.Schema = cmp.Or(q.Text, note.Message, "Your input is needed."), q.Schema
		if _, err := form.Parse(q.Schema); err != nil {
			return refuse(err)
		}
	default:
		return refuse(fmt.Errorf("it is %s: expected a text approval or structured input; "+
			"approvals of calls are held by the Holder of the loop", kindOf(q)))
	}

	if len(out.Prompt) > maxPrompt || !utf8.ValidString(out.Prompt) || strings.ContainsRune(out.Prompt, 0) {
		return refuse(fmt.Errorf("text: expected UTF-8 text without NUL of at most %d bytes", maxPrompt))
	}

	return out, nil
}

func (h *HeldQuestions) usable() error {
	switch {
	case h.People == nil:
		return errors.New("HeldQuestions.People: expected who is asked")
	case h.Asker == "":
		return errors.New("HeldQuestions.Asker: expected the agent's name")
	}

	return nil
}

// put puts a request to people. Its deadline is that of its note, where
// it has one; with "" as its reference it had passed before.
func (h *HeldQuestions) put(
	ctx context.Context, threadID string, q content.InputRequest, call *resolve.Call,
) (ref string, err error) {
	asked, err := h.question(q, call)
	if err != nil {
		return "", err
	}
	if expires := content.NoteOf(q).Expires; !expires.IsZero() {
		if asked.Within = expires.Sub(h.now()); asked.Within <= 0 {
			return "", nil
		}
	}
	ref, err = h.People.Ask(ctx, threadID+"/"+q.InputRequestID(), asked)
	if err != nil {
		return "", fmt.Errorf("put the request %q to people: %w", q.InputRequestID(), err)
	}
	return ref, nil
}

func (h *HeldQuestions) now() time.Time {
	if h.Now == nil {
		return time.Now()
	}
	return h.Now()
}

// look returns the answer to a request that was put; nil while there is
// none.
func (h *HeldQuestions) look(
	ctx context.Context, q content.InputRequest, ref string,
) (content.InputResponse, error) {
	if ref == "" {
		return content.Rejection(q, "its time was over before anybody could be asked"), nil
	}
	answer, err := h.People.Answer(ctx, ref)
	switch {
	case errors.Is(err, hold.ErrNoRequest):
		return content.Rejection(q, textQuestionForgotten), nil
	case err != nil:
		return nil, fmt.Errorf("look at the request %q: %w", q.InputRequestID(), err)
	case answer.State == hold.Pending:
		return nil, nil
	}

	return by(answer.By, responseTo(q, answer)), nil
}

// responseTo makes a response of how a question has ended. All that is
// no answer is a no.
func responseTo(q content.InputRequest, a hold.Answer) content.InputResponse {
	switch q := q.(type) {
	case *content.TextApprovalRequest:
		if a.State == hold.Chosen && a.Selected == approveChoice {
			return q.CreateApproval(a.Reason)
		}
		if a.State == hold.Chosen {
			return q.CreateRejection(a.Reason)
		}
	case *content.StructuredInputRequest:
		if a.State != hold.Submitted {
			break
		}
		response, err := q.CreateResponse([]byte(a.Data))
		if err != nil {
			return q.CreateRejection("what was submitted does not fit what was asked: " + err.Error())
		}
		response.Reason = a.Reason

		return response
	}

	if a.State == hold.Dismissed {
		return content.Rejection(q, strings.TrimSuffix("dismissed without an answer: "+a.Reason, ": "))
	}

	return content.Rejection(q, cmp.Or(a.Reason, "it ended without an answer: it is "+string(a.State)))
}

// by notes who answered.
func by(person string, answer content.InputResponse) content.InputResponse {
	switch a := answer.(type) {
	case *content.ToolApprovalResponse:
		a.By = person
	case *content.TextApprovalResponse:
		a.By = person
	case *content.StructuredInputResponse:
		a.By = person
	}

	return answer
}

// answerer is who answered, as far as this process knows.
func answerer(answer content.InputResponse) string {
	switch a := answer.(type) {
	case *content.ToolApprovalResponse:
		return a.By
	case *content.TextApprovalResponse:
		return a.By
	case *content.StructuredInputResponse:
		return a.By
	}

	return ""
}
