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

// HeldQuestions lets people of an approval service answer the questions of agents and suspended
// functions. A text approval is shown there as a choice, structured input as a form or a free
// text. If a question is dismissed, expired, withdrawn or denied, the answer is a rejection
// with that reason. A question that is asked during a freeze is rejected too. An answer that a
// freeze holds back is not returned until the freeze ends.
//
// Programs that run an agent of any kind call Answers or Wait between two runs, and pass the
// answers to the next run in a message of the user. The loop does this itself for questions of
// its functions (LoopConfig.Questions). Each request of a thread is put to people once, even if
// a process ends in between: its key consists of both ids, and its reference is kept in the
// thread. So the thread must be stored before and after a question is put. With a ThreadStore
// both happen automatically.
type HeldQuestions struct {
	// People answers the questions: use hold.Service(…).As(…) in the same process, or
	// client.Holder for a server.
	People hold.Requests
	// Watch reports changes, as in hold.People, so that Wait knows when to look. If nil, Wait
	// only looks every Poll.
	Watch func(ctx context.Context, changed func(ref string)) error
	// Poll is the longest time that Wait waits before it looks again. By default it is 2
	// seconds, or a minute with Watch.
	Poll time.Duration

	Asker     string   // the agent's own name, which people see as the sender
	Principal string   // the person for whom the agent acts, if any
	Session   string   // the session, if any
	Groups    []string // who may answer; by default the principal, or any approver without a principal
	// time until a question expires unless its note says otherwise. Zero uses the service's
	// default
	Within time.Duration
	Now    func() time.Time
}

// Indexes of the choices of a text approval. Every end without an answer counts as the second.
const (
	approveChoice = iota
	rejectChoice
)

// maxPrompt is the maximum size of a question's text in bytes. The service has the same limit.
const maxPrompt = 64 << 10

const textQuestionForgotten = "the question is not known any more where it was held"

// heldState is the key of the thread state that holds the references of questions that the host
// has put to people.
const heldState = "held questions"

// HeldQuestionError is returned for a request that can't be put to people.
type HeldQuestionError struct {
	RequestID string
	Err       error // often a *form.SchemaError, which names the place
}

// Error names the request and the cause.
func (e *HeldQuestionError) Error() string {
	return fmt.Sprintf("the request %q can't be put to people: %v", e.RequestID, e.Err)
}

// Unwrap returns the cause.
func (e *HeldQuestionError) Unwrap() error { return e.Err }

// Answers puts requests to people unless they have been put already, and returns the answers
// that have arrived: some, all or none. Without requests it uses all open requests of the
// thread. If one of them can't be put (*HeldQuestionError), none is. It skips requests that
// have ended and those that the loop itself has put. It withdraws the questions that it put
// earlier for requests that have ended.
func (h *HeldQuestions) Answers(
	ctx context.Context, t *Thread, asked ...content.InputRequest,
) ([]content.InputResponse, error) {
	answers, _, err := h.round(ctx, t, asked)
	return answers, err
}

// Wait blocks until there is at least one answer and returns the answers. It returns none if
// there is nothing to ask. It checks when Watch reports a change, and at least every Poll.
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
			_ = h.Watch(ctx, func(string) { // ends with ctx; if it fails, Wait still polls
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

// round does the work of Answers. It also reports whether there are open requests.
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

// open returns the requests that people answer here, and an error if one of them can't be put.
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

// putAll puts requests that have no reference yet, withdraws those that have ended, and stores
// the references in the thread.
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
		case a != nil: // still open, but not among those that the caller named
			refs[id] = ref
		default:
			changed = true
			if err := h.withdraw(ctx, ref); err != nil {
				refs[id] = ref // try again in the next round
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

// withdraw cancels a question whose request has ended. A question that was answered is not
// changed.
func (h *HeldQuestions) withdraw(ctx context.Context, ref string) error {
	err := h.People.Cancel(ctx, ref, "the agent goes on without an answer")
	if errors.Is(err, hold.ErrNoRequest) {
		return nil
	}
	return err
}

// check returns an error if a request can't be put to people.
func (h *HeldQuestions) check(q content.InputRequest) error {
	_, err := h.question(q, nil)
	return err
}

// checkAll checks all requests of a function except tool approvals. A nil receiver checks
// nothing.
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

// question returns the question that people see for a request. If call is nil, the agent itself
// asks.
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

// put puts a request to people. The deadline in the request's note takes precedence over
// Within. If that deadline has passed, put returns an empty reference and asks no one.
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

// look returns the answer to a request that was put, or nil if there is none yet.
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

// responseTo converts the end of a question into a response. Every end without an answer
// becomes a rejection.
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

// by sets the name of the person who answered.
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

// answerer returns the name of the person who answered, or an empty string if it is not known.
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
