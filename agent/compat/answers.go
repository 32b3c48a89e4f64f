package compat

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// answer is a response with its request, if there is one.
type answer struct {
	response *content.ToolApprovalResponse
	request  *content.ToolApprovalRequest
	message  *content.Message // the message that contains the request
}

// call returns the call to run. It is the one in the response, even if the request has a
// different one.
func (a answer) call() *content.FunctionCall { return a.response.Call.(*content.FunctionCall) }

// asked returns the copy of the call in the request, or nil without a request.
func (a answer) asked() *content.FunctionCall {
	if a.request == nil {
		return nil
	}
	return a.request.Call.(*content.FunctionCall)
}

// input is the input, split into its parts.
type input struct {
	kept       []*content.Message // without live approvals
	anchor     int                // index in kept for the results of the approvals
	found      bool               // there were live approvals
	unanswered []string           // call ids
	requests   map[string]answer
	responses  []*content.ToolApprovalResponse
	results    map[string]bool // call ids that have a result
}

// takeIn replaces live approvals in the input with their calls and results, and emits these. It
// returns true if a function ended the run.
func (r *run) takeIn() (bool, error) {
	in := &input{requests: map[string]answer{}, results: map[string]bool{}}
	for _, m := range r.input {
		if m == nil {
			continue
		}
		if err := in.message(m); err != nil {
			return false, err
		}
	}

	if !in.found {
		return false, nil
	}
	if len(in.unanswered) > 0 {
		return false, &UnansweredError{CallIDs: in.unanswered}
	}
	rejected, approved, err := r.answers(in)
	if err != nil {
		return false, err
	}
	return r.act(in, rejected, approved)
}

// message splits one message. Live approvals are removed. The rest is kept in a copy.
func (in *input) message(m *content.Message) error {
	var rest []content.Content
	for _, c := range m.Contents {
		taken, err := in.content(c, m)
		if err != nil {
			return err
		}
		if !taken {
			rest = append(rest, c)
		}
	}

	switch len(rest) {
	case len(m.Contents):
		in.kept = append(in.kept, m)
		return nil
	case 0:
		in.anchor = len(in.kept)
	default:
		in.anchor = len(in.kept)
		in.kept = append(in.kept, m.With(rest))
	}

	in.found = true
	return nil
}

// content takes live approvals of function calls. Approvals of other tools belong to the
// service.
func (in *input) content(c content.Content, m *content.Message) (bool, error) {
	switch c := c.(type) {
	case *content.ToolApprovalRequest:
		call, ok := liveCall(c.Call)
		if !ok {
			return false, nil
		}
		if _, double := in.requests[c.RequestID]; double {
			return false, &DuplicateRequestError{RequestID: c.RequestID}
		}
		in.requests[c.RequestID] = answer{request: c, message: m}
		if !slices.Contains(in.unanswered, call.CallID) {
			in.unanswered = append(in.unanswered, call.CallID)
		}
		return true, nil
	case *content.ToolApprovalResponse:
		call, ok := liveCall(c.Call)
		if !ok || m.Role != content.User { // the request then stays unanswered, which ends the run with an error
			return false, nil
		}
		in.unanswered = slices.DeleteFunc(in.unanswered, func(id string) bool { return id == call.CallID })
		in.responses = append(in.responses, c)
		return true, nil
	case *content.FunctionResult:
		in.results[c.CallID] = true
	}

	return false, nil
}

func liveCall(c content.ToolCall) (*content.FunctionCall, bool) {
	call, ok := c.(*content.FunctionCall)
	return call, ok && call != nil && !call.InformationalOnly
}

// answers splits the responses whose calls have no result yet. It returns an error for an
// approval with an edited call, because .NET would run the original call.
func (r *run) answers(in *input) (rejected, approved []answer, err error) {
	for _, resp := range in.responses {
		a := in.requests[resp.RequestID]
		a.response = resp
		if in.results[resp.Call.ID()] {
			continue
		}
		r.debug(agent.ProcessingText(resp.Call.ToolName(), resp.Approved))
		switch {
		case !resp.Approved:
			rejected = append(rejected, a)
		case resp.Edited != nil:
			return nil, nil, errEdited
		default:
			approved = append(approved, a)
		}
	}

	return rejected, approved, nil
}

// act runs the approved calls and puts calls and results in place of the approvals.
func (r *run) act(in *input, rejected, approved []answer) (bool, error) {
	calls := r.rebuild(slices.Concat(rejected, approved))
	block := slices.Clone(calls)
	if len(rejected) > 0 {
		block = append(block, r.reject(rejected))
	}
	for _, m := range block {
		if err := r.emit(m); err != nil {
			return false, err
		}
	}
	done, ran, err := r.runApproved(approved)
	if err != nil {
		return false, err
	}
	block = append(block, ran...)
	if !isBlank(r.opt.ConversationID) {
		block = block[len(calls):] // the service has the calls
	}
	r.input = slices.Concat(in.kept[:in.anchor], block, in.kept[in.anchor:])
	return done, nil
}

func (r *run) runApproved(approved []answer) (bool, []*content.Message, error) {
	if len(approved) == 0 {
		return false, nil, nil
	}
	var jobs []job
	for _, a := range approved {
		jobs = append(jobs, r.job(a.call(), a.asked(), "user"))
	}
	results, done, err := r.results(jobs, -1)
	if err != nil {
		return false, nil, err
	}
	return done, []*content.Message{results}, r.emit(results)
}

// rebuild restores the messages that contained the calls before they became requests: one for
// each message with requests, with its id, author and properties, and one without an id for all
// others.
func (r *run) rebuild(answers []answer) []*content.Message {
	var out []*content.Message
	at := map[string]*content.Message{}
	for _, a := range answers {
		like := a.message
		if like == nil {
			like = &content.Message{Role: content.Assistant}
		}
		m := at[like.ID]
		if m == nil {
			m = like.With(nil)
			if m.ID == "" {
				m.ID = r.callID
			}
			at[like.ID] = m
			out = append(out, m)
		}

		m.Contents = append(m.Contents, a.call())
	}

	return out
}

// reject marks the calls as handled and returns one message with their results.
func (r *run) reject(rejected []answer) *content.Message {
	m := &content.Message{ID: r.toolID, Role: content.ToolRole}
	for _, a := range rejected {
		call := a.call()
		text := "Function '" + call.Name + "' was rejected."
		if !isBlank(a.response.Reason) {
			text += " Reason: " + a.response.Reason
		}
		r.debug(text)
		call.InformationalOnly = true
		if asked := a.asked(); asked != nil {
			asked.InformationalOnly = true
		}
		m.Contents = append(m.Contents, &content.FunctionResult{
			CallID: call.CallID,
			Result: agent.Rejection(a.response.Reason),
		})
	}

	return m
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }
