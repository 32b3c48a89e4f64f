package a2a

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/assent-dev/assent/agent/content"
)

// Asked is a task of ours that waits for the user on the other side.
type Asked struct {
	TaskID    string
	ContextID string
	Requests  []content.InputRequest // the open ones, from the thread
}

// Status returns a status that asks for input, with a text for people and a data part for each
// request. It returns an *Error if there are no requests or if one can't be written.
func (a Asked) Status(messageID string) (*Status, error) {
	byID, err := a.byID()
	if err != nil {
		return nil, err
	}
	if len(byID) == 0 || messageID == "" || a.TaskID == "" {
		return nil, refuse(BadRequest, "", "a task with an id, a message id and a request are needed")
	}

	m := &Message{
		MessageID: messageID,
		ContextID: a.ContextID,
		TaskID:    a.TaskID,
		Role:      RoleAgent,
		Parts:     []Part{textPart(a.text())},
	}
	for _, q := range a.Requests {
		data, err := content.DotNet().AppendContent(nil, q)
		if err != nil {
			return nil, wrap(BadRequest, q.InputRequestID(), err)
		}
		m.Parts = append(m.Parts, Part{Data: data, MediaType: RequestMediaType})
	}

	return &Status{State: InputRequired, Message: m}, nil
}

func textPart(text string) Part { return Part{Text: &text, MediaType: "text/plain"} }

func (a Asked) byID() (map[string]content.InputRequest, error) {
	out := map[string]content.InputRequest{}
	for _, q := range a.Requests {
		if q == nil || q.InputRequestID() == "" {
			return nil, refuse(BadRequest, "", "a request without an id can't be answered")
		}
		id := q.InputRequestID()
		if out[id] != nil {
			return nil, wrap(BadRequest, id, errTwice)
		}
		out[id] = q
	}

	return out, nil
}

// text describes the requests for people whose client doesn't support our data parts.
func (a Asked) text() string {
	var all []string
	for _, q := range a.Requests {
		all = append(all, words(q))
	}
	return strings.Join(all, "\n\n")
}

// words describes a request in words.
func words(q content.InputRequest) string {
	switch q := q.(type) {
	case *content.ToolApprovalRequest:
		return callWords(q)
	case *content.TextApprovalRequest:
		return cmp.Or(q.Text, q.Note.Message, "Your approval is needed.")
	case *content.StructuredInputRequest:
		return cmp.Or(q.Text, q.Note.Message, "Your input is needed.")
	}

	return "Your input is needed."
}

// callWords always includes the call itself, because the request's message is not reliable.
func callWords(q *content.ToolApprovalRequest) string {
	var lines []string
	if q.Note.Message != "" {
		lines = append(lines, q.Note.Message)
	}
	if q.Call == nil {
		return strings.Join(append(lines, "Approve a call?"), "\n")
	}
	lines = append(
		lines,
		"Approve running "+cmp.Or(q.Call.ToolName(), "a tool")+content.ServerWords(q.Call)+"?",
	)
	if args := q.Call.Args(); len(args) > 0 {
		lines = append(lines, "Arguments: "+string(args))
	}
	return strings.Join(lines, "\n")
}

// Answers converts a message to the task into contents for the next message of its thread. Each
// part must answer one open request. Requests may be left open. A text is not an answer, with
// one exception: if the only open request is for data and its schema accepts a string, a
// message of texts is that data. Errors are of type *Error. After an error no answer may be
// used.
func (a Asked) Answers(m *Message) ([]content.Content, error) {
	byID, err := a.byID()
	if err != nil {
		return nil, err
	}
	if err := a.mine(m); err != nil {
		return nil, err
	}
	if c, ok := a.plain(m); ok {
		return []content.Content{c}, nil
	}
	seen := map[string]bool{}
	var out []content.Content
	for i, p := range m.Parts {
		said, err := readAnswer(i, p)
		if err != nil {
			return nil, err
		}
		id := said.InputResponseTo()
		if byID[id] == nil {
			return nil, refuse(UnknownRequest, id, "no such request is open")
		}
		if seen[id] {
			return nil, refuse(RepeatedAnswer, id, "it is answered twice")
		}
		seen[id] = true
		c, err := bind(byID[id], said)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}

	return out, nil
}

// mine returns an error unless the message belongs to the task.
func (a Asked) mine(m *Message) error {
	switch {
	case m == nil || len(m.Parts) == 0:
		return refuse(MissingAnswer, "", "the message has no parts")
	case m.Role != RoleUser:
		return refuse(WrongTask, "", "answers come from the client, in messages of ROLE_USER")
	case a.TaskID == "" || m.TaskID != a.TaskID:
		return refuse(WrongTask, "", "the message is not for this task")
	case m.ContextID != "" && m.ContextID != a.ContextID:
		return refuse(WrongTask, "", "the message is not of this context")
	}

	return nil
}

// plain returns the answer of a client that only supports texts.
func (a Asked) plain(m *Message) (content.Content, bool) {
	if len(a.Requests) != 1 {
		return nil, false
	}
	q, ok := a.Requests[0].(*content.StructuredInputRequest)
	if !ok {
		return nil, false
	}
	for _, p := range m.Parts {
		if p.Text == nil {
			return nil, false
		}
	}
	data, err := json.Marshal(m.Text())
	if err != nil {
		return nil, false
	}
	out, err := q.CreateResponse(data)
	return out, err == nil
}

// readAnswer reads a data part of ours. All other parts are errors.
func readAnswer(i int, p Part) (content.InputResponse, error) {
	if p.Data == nil || p.MediaType != ResponseMediaType {
		return nil, refuse(UnknownPart, "", "part %d is no %s", i, ResponseMediaType)
	}
	c, err := content.DotNet().DecodeContent(p.Data)
	if err != nil {
		return nil, wrap(BadAnswer, "", err)
	}
	said, ok := c.(content.InputResponse)
	if !ok {
		return nil, refuse(UnknownPart, "", "part %d holds a %T", i, c)
	}
	return said, nil
}

// bind makes the response from the request, so that it contains the recorded call.
func bind(q content.InputRequest, said content.InputResponse) (content.Content, error) {
	switch q := q.(type) {
	case *content.ToolApprovalRequest:
		if r, ok := said.(*content.ToolApprovalResponse); ok {
			return bindCall(q, r)
		}
	case *content.TextApprovalRequest:
		if r, ok := said.(*content.TextApprovalResponse); ok && r.Approved {
			return q.CreateApproval(r.Reason), nil
		} else if ok {
			return q.CreateRejection(r.Reason), nil
		}
	case *content.StructuredInputRequest:
		if r, ok := said.(*content.StructuredInputResponse); ok {
			return bindData(q, r)
		}
	}

	return nil, refuse(WrongKind, q.InputRequestID(), "it is not answered by a %T", said)
}

func bindCall(q *content.ToolApprovalRequest, r *content.ToolApprovalResponse) (content.Content, error) {
	switch {
	case content.SameButRounded(q.Call, r.Call):
		return nil, refuse(
			OtherCall,
			q.RequestID,
			"the answer shows the call with rounded numbers: the other side keeps numbers as doubles, "+
				"which can't hold this call's, so it can't answer this request; cancel the task, or let the tool "+
				"take such a number as a text",
		)
	case !content.SameCall(q.Call, r.Call):
		return nil, refuse(
			OtherCall,
			q.RequestID,
			"the answer shows another call than the one that was asked about",
		)
	case r.Always != content.AlwaysNot:
		return nil, refuse(BadAnswer, q.RequestID, "standing approvals are not given by a peer")
	case !r.Approved:
		return q.CreateRejection(r.Reason), nil
	case r.Edited == nil:
		return q.CreateApproval(r.Reason), nil
	}

	// made from the recorded call, so an edit can't change the name
	out, err := q.CreateEdit(r.Edited.Arguments, r.Reason)
	if err != nil {
		return nil, wrap(BadAnswer, q.RequestID, err)
	}
	return out, nil
}

func bindData(q *content.StructuredInputRequest, r *content.StructuredInputResponse) (content.Content, error) {
	if r.Declined {
		return q.CreateRejection(r.Reason), nil
	}
	out, err := q.CreateResponse(r.Data)
	if err != nil {
		return nil, wrap(BadAnswer, q.RequestID, err)
	}
	return out, nil
}
