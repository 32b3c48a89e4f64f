package a2a

import (
	"cmp"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/assent-dev/assent/agent/content"
)

// plainSchema is the schema of an answer in words.
const plainSchema = `{"type":"string"}`

// question is one question of a remote agent.
type question struct {
	ask    content.InputRequest // for the user here
	remote content.InputRequest // the peer's request; nil for a question in words
}

// Questions returns the questions of a remote task that waits for input, or nil for a task that
// doesn't wait. For a task that waits for authentication it returns an *AuthRequiredError.
// Other errors are of type *Error.
//
// A question is always a text approval or a request for data. Calls that the peer wants to run
// on its side are described in the text. The ids are chosen here and unique only within the
// task, as agent.Suspend requires. If the message has data parts with requests, its text parts
// only repeat them. Any other message is one question in words, with an answer in words.
func (t *Task) Questions() ([]content.InputRequest, error) {
	all, err := t.questions()
	if err != nil {
		return nil, err
	}
	var out []content.InputRequest
	for _, q := range all {
		out = append(out, q.ask)
	}
	return out, nil
}

func (t *Task) questions() ([]question, error) {
	switch t.Status.State {
	case InputRequired:
		return t.asked()
	case AuthRequired:
		return nil, &AuthRequiredError{TaskID: t.ID, Text: t.text()}
	case Submitted, Working, Completed, Failed, Canceled, Rejected:
		return nil, nil
	}

	return nil, refuse(UnknownState, "", "the task is in no state of A2A 1.0")
}

func (t *Task) text() string {
	if t.Status.Message == nil {
		return ""
	}
	return t.Status.Message.Text()
}

func (t *Task) asked() ([]question, error) {
	var out []question
	seen := map[string]bool{}
	for i, p := range t.parts() {
		if p.Data == nil || p.MediaType != RequestMediaType {
			continue
		}
		remote, err := readRequest(i, p)
		if err != nil {
			return nil, err
		}
		if id := remote.InputRequestID(); seen[id] {
			return nil, wrap(BadRequest, id, errTwice)
		}
		seen[remote.InputRequestID()] = true
		ask, err := local(remote, len(out)+1)
		if err != nil {
			return nil, err
		}
		out = append(out, question{ask, remote})
	}

	if len(out) == 0 {
		out = append(out, question{ask: &content.StructuredInputRequest{
			RequestID: localID(1),
			Text:      cmp.Or(t.text(), "The remote agent needs input."),
			Schema:    json.RawMessage(plainSchema),
		}})
	}

	return out, nil
}

func (t *Task) parts() []Part {
	if t.Status.Message == nil {
		return nil
	}
	return t.Status.Message.Parts
}

func readRequest(i int, p Part) (content.InputRequest, error) {
	c, err := content.DotNet().DecodeContent(p.Data)
	if err != nil {
		return nil, wrap(BadRequest, "", err)
	}
	remote, ok := c.(content.InputRequest)
	if !ok {
		return nil, refuse(UnknownPart, "", "part %d holds a %T", i, c)
	}
	return remote, nil
}

func localID(n int) string { return "a2a_" + strconv.Itoa(n) }

// local makes a question from a peer's request. It copies only the words and the schema: a call
// would look like one of ours, and a link could lead anywhere.
func local(remote content.InputRequest, n int) (content.InputRequest, error) {
	q, isInput := remote.(*content.StructuredInputRequest)
	if !isInput {
		return &content.TextApprovalRequest{RequestID: localID(n), Text: words(remote)}, nil
	}
	var bad *content.BadError
	if err := content.CheckSchema(q.Schema, json.RawMessage("null")); errors.As(err, &bad) &&
		bad.Code == content.BadSchema {
		return nil, wrap(BadRequest, q.RequestID, err)
	}
	return &content.StructuredInputRequest{
		RequestID: localID(n),
		Text:      words(q),
		Schema:    q.Schema,
	}, nil
}

// Reply returns the message that answers the questions of a remote task. Each question must be
// answered once. Errors are of type *Error. The code Declined means that the user declined a
// question in words, which A2A can express only by cancelling the task.
func (t *Task) Reply(messageID string, answers []content.InputResponse) (*Message, error) {
	all, err := t.questions()
	if err != nil {
		return nil, err
	}
	byID, err := index(all, answers)
	if err != nil {
		return nil, err
	}
	out := &Message{
		MessageID: messageID,
		ContextID: t.ContextID,
		TaskID:    t.ID,
		Role:      RoleUser,
	}
	if len(all) == 0 || messageID == "" {
		return nil, refuse(BadMessage, "", "a question and a message id are needed")
	}
	for _, q := range all {
		p, err := q.part(byID[q.ask.InputRequestID()])
		if err != nil {
			return nil, err
		}
		out.Parts = append(out.Parts, p)
	}

	return out, nil
}

func index(all []question, answers []content.InputResponse) (map[string]content.InputResponse, error) {
	open := map[string]bool{}
	for _, q := range all {
		open[q.ask.InputRequestID()] = true
	}
	out := map[string]content.InputResponse{}
	for _, a := range answers {
		if a == nil || !open[a.InputResponseTo()] {
			return nil, refuse(UnknownRequest, "", "there is an answer to nothing that was asked")
		}

		id := a.InputResponseTo()
		if out[id] != nil {
			return nil, refuse(RepeatedAnswer, id, "it is answered twice")
		}
		out[id] = a
	}

	return out, nil
}

// part returns the answer to one question, under the id that the peer used.
func (q question) part(said content.InputResponse) (Part, error) {
	id := q.ask.InputRequestID()
	if said == nil {
		return Part{}, refuse(MissingAnswer, id, "it is not answered")
	}
	bound, err := bind(q.ask, said)
	if err != nil {
		return Part{}, err
	}
	if q.remote == nil {
		return wordsPart(bound)
	}
	data, err := content.DotNet().AppendContent(nil, forPeer(q.remote, bound))
	if err != nil {
		return Part{}, wrap(BadAnswer, id, err)
	}
	return Part{Data: data, MediaType: ResponseMediaType}, nil
}

// wordsPart returns an answer in words. bind has checked that it is a string.
func wordsPart(bound content.Content) (Part, error) {
	r, ok := bound.(*content.StructuredInputResponse)
	if !ok || r.Declined {
		return Part{}, refuse(Declined, "", "the user declined")
	}
	var text string
	if err := json.Unmarshal(r.Data, &text); err != nil {
		return Part{}, wrap(BadAnswer, r.RequestID, err)
	}
	return textPart(text), nil
}

// forPeer converts an answer to the kind that the peer's request needs.
func forPeer(remote content.InputRequest, bound content.Content) content.Content {
	switch r := bound.(type) {
	case *content.TextApprovalResponse:
		if q, ok := remote.(*content.ToolApprovalRequest); ok {
			return &content.ToolApprovalResponse{
				RequestID: q.RequestID,
				Approved:  r.Approved,
				Call:      content.CloneCall(q.Call),
				Reason:    r.Reason,
			}
		}

		return &content.TextApprovalResponse{
			RequestID: remote.InputRequestID(),
			Approved:  r.Approved,
			Reason:    r.Reason,
		}
	case *content.StructuredInputResponse:
		return &content.StructuredInputResponse{
			RequestID: remote.InputRequestID(),
			Data:      r.Data,
			Declined:  r.Declined,
			Reason:    r.Reason,
		}
	}

	return bound
}
