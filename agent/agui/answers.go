package agui

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/value"
)

// Code is the reason why a resume list is refused. The codes are those of Microsoft's Agent
// Framework for Python.
type Code string

// The codes of a ResumeError.
const (
	CodeRequired Code = "APPROVAL_RESUME_REQUIRED" // requests are open and there is no resume list
	// The list or an entry has the wrong format, or an id appears twice.
	CodeInvalid Code = "APPROVAL_RESUME_INVALID"
	// Data or edited arguments that the request doesn't accept.
	CodeInvalidResponse  Code = "APPROVAL_RESUME_INVALID_RESPONSE"
	CodeNotFound         Code = "APPROVAL_RESUME_NOT_FOUND"         // no such request is open
	CodeMissingInterrupt Code = "APPROVAL_RESUME_MISSING_INTERRUPT" // an open request is missing
	// An entry is cancelled and Resume.FailCancelled is set.
	CodeCancelled Code = "APPROVAL_RESUME_CANCELLED"
)

// ResumeError refuses a resume list as a whole: no answer in it is applied. It contains ids and
// member names, never values.
type ResumeError struct {
	Code        Code
	InterruptID string // empty if the error is about the list
	Detail      string
	Err         error
}

// Error returns the interrupt id followed by the detail.
func (e *ResumeError) Error() string {
	if e.InterruptID == "" {
		return "resume: " + e.Detail
	}
	return fmt.Sprintf("resume of %q: %s", e.InterruptID, e.Detail)
}

// Unwrap returns the cause.
func (e *ResumeError) Unwrap() error { return e.Err }

func resumeError(err error) (*ResumeError, bool) {
	var out *ResumeError
	return out, errors.As(err, &out)
}

func refuse(code Code, id, format string, args ...any) *ResumeError {
	return &ResumeError{
		Code:        code,
		InterruptID: id,
		Detail:      fmt.Sprintf(format, args...),
	}
}

// ReasonCancelled is the reason of the rejection for a cancelled interrupt.
const ReasonCancelled = "cancelled by the user"

// Resume reads resume lists.
type Resume struct {
	// Pending are the open requests, from the thread.
	Pending []content.InputRequest
	// FailCancelled makes a cancelled entry an error with CodeCancelled, as in Python.
	// Otherwise it rejects its request, so that the thread can continue.
	FailCancelled bool
}

// Answers reads the resume list of a RunAgentInput for the open requests. See Resume.
func Answers(pending []content.InputRequest, resume json.RawMessage) ([]content.Content, error) {
	return Resume{Pending: pending}.Answers(resume)
}

// Answers converts a resume list into contents for the next message, in the order of the open
// requests. The list must answer each of them exactly once. Errors are of type *ResumeError.
// After an error no answer may be used.
func (r Resume) Answers(resume json.RawMessage) ([]content.Content, error) {
	byID, err := r.byID()
	if err != nil {
		return nil, err
	}
	entries, err := r.entries(resume)
	if err != nil {
		return nil, err
	}
	if err := r.match(byID, entries); err != nil {
		return nil, err
	}
	var out []content.Content
	for _, q := range r.Pending {
		c, err := r.answer(q, entries[q.InputRequestID()])
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}

	return out, nil
}

func (r Resume) byID() (map[string]content.InputRequest, error) {
	out := map[string]content.InputRequest{}
	for _, q := range r.Pending {
		if q == nil || q.InputRequestID() == "" {
			return nil, refuse(CodeInvalid, "", "an open request has no id")
		}
		id := q.InputRequestID()
		if out[id] != nil {
			return nil, refuse(CodeInvalid, id, "two open requests have this id")
		}
		out[id] = q
	}

	return out, nil
}

// entry is one element of the list.
type entry struct {
	cancelled bool
	payload   value.Value // Absent if there is none
}

func (r Resume) entries(resume json.RawMessage) (map[string]entry, error) {
	if len(resume) == 0 || string(resume) == "null" {
		if len(r.Pending) > 0 {
			return nil, refuse(CodeRequired, "", "%d request(s) are open and must be answered", len(r.Pending))
		}

		return nil, nil
	}

	list, err := value.Parse(resume, value.Limits{})
	if err != nil {
		return nil, &ResumeError{Code: CodeInvalid, Detail: err.Error(), Err: err}
	}

	if list.Kind != value.Array {
		return nil, refuse(CodeInvalid, "", "expected a list, found a %s", list.Kind)
	}
	if len(list.Items) == 0 && len(r.Pending) > 0 {
		return nil, refuse(CodeInvalid, "", "the list is empty")
	}
	return readEntries(list.Items)
}

func readEntries(items []value.Value) (map[string]entry, error) {
	out := make(map[string]entry, len(items))
	for i, item := range items {
		id, e, err := readEntry(i, item)
		if err != nil {
			return nil, err
		}
		if _, twice := out[id]; twice {
			return nil, refuse(CodeInvalid, id, "it is answered twice")
		}
		out[id] = e
	}

	return out, nil
}

// readEntry accepts only the protocol's exact member names: a lenient reader and a strict one
// in front of it could see different answers.
func readEntry(i int, item value.Value) (string, entry, error) {
	var e entry
	if item.Kind != value.Object {
		return "", e, refuse(CodeInvalid, "", "entry %d: expected an object, found a %s", i, item.Kind)
	}

	id, _ := item.Get("interruptId")
	if id.Kind != value.String || id.Text == "" {
		return "", e, refuse(CodeInvalid, "", "entry %d: interruptId must be a text", i)
	}
	status, _ := item.Get("status")
	if status.Kind != value.String || status.Text != "resolved" && status.Text != "cancelled" {
		return "", e, refuse(CodeInvalid, id.Text, "status must be resolved or cancelled")
	}
	e.cancelled = status.Text == "cancelled"
	e.payload, _ = item.Get("payload")
	if !e.cancelled && e.payload.Kind == value.Absent {
		return "", e, refuse(CodeInvalid, id.Text, "a resolved entry needs a payload")
	}
	return id.Text, e, nil
}

// match checks that the list answers exactly the open requests.
func (r Resume) match(byID map[string]content.InputRequest, entries map[string]entry) error {
	for id := range entries {
		if byID[id] == nil {
			return refuse(CodeNotFound, id, "no such request is open")
		}
	}
	for _, q := range r.Pending {
		e, ok := entries[q.InputRequestID()]
		if !ok {
			return refuse(CodeMissingInterrupt, q.InputRequestID(), "it is open and not answered")
		}

		if e.cancelled && r.FailCancelled {
			return refuse(CodeCancelled, q.InputRequestID(), "it was cancelled")
		}
	}

	return nil
}

func (r Resume) answer(q content.InputRequest, e entry) (content.Content, error) {
	if e.cancelled {
		if no := content.Rejection(q, ReasonCancelled); no != nil {
			return no, nil
		}
	}
	switch q := q.(type) {
	case *content.ToolApprovalRequest:
		return answerCall(q, e.payload)
	case *content.TextApprovalRequest:
		return answerText(q, e.payload)
	case *content.StructuredInputRequest:
		return answerInput(q, e.payload)
	}

	return nil, refuse(CodeInvalid, q.InputRequestID(), "requests of type %T have no answers here", q)
}

func answerInput(q *content.StructuredInputRequest, payload value.Value) (content.Content, error) {
	out, err := q.CreateResponse(payload.AppendJSON(nil))
	if err != nil {
		return nil, &ResumeError{
			Code:        CodeInvalidResponse,
			InterruptID: q.RequestID,
			Detail:      err.Error(),
			Err:         err,
		}
	}

	return out, nil
}

// answerText accepts {"approved": …} or a plain boolean, which is AG-UI's default for a
// confirmation.
func answerText(q *content.TextApprovalRequest, payload value.Value) (content.Content, error) {
	d := decision{approved: payload.Bool}
	if payload.Kind != value.Bool {
		var err error
		if d, err = decide(q.RequestID, payload, arguments{}); err != nil {
			return nil, err
		}
		if len(d.edits) > 0 {
			return nil, refuse(CodeInvalidResponse, q.RequestID, "there is nothing to edit")
		}
	}

	if d.approved {
		return q.CreateApproval(d.reason), nil
	}
	return q.CreateRejection(d.reason), nil
}

func answerCall(q *content.ToolApprovalRequest, payload value.Value) (content.Content, error) {
	if q.Call == nil {
		return nil, refuse(CodeInvalid, q.RequestID, "the request has no call")
	}
	args := parseArguments(q.Call)
	d, err := decide(q.RequestID, payload, args)
	if err != nil {
		return nil, err
	}
	if !d.approved {
		return q.CreateRejection(d.reason), nil
	}
	return approve(q, args, d)
}
