// Package agui maps an agent's responses to events of the AG-UI
// protocol, and the answers of an AG-UI client to contents. It is a
// mapping only: the server around it is the caller's.
//
// A run that asks ends with a RUN_FINISHED event whose outcome lists
// the open requests as interrupts, in the shape of Microsoft's Agent
// Framework for Python; the next run's input answers all of them in its
// resume list. The form of the .NET sample, in which a request is a
// call of a tool named request_approval, is there too (RequestApproval,
// ApprovalResult).
//
// What a client sends is an answer to a request that the host knows,
// and nothing else: it is bound by id to the open requests, which the
// caller takes from its own thread (agent.Thread.Pending), and the call
// that runs is the one recorded there.
package agui

import (
	"encoding/json"

	"github.com/assent-dev/assent/agent"
)

// EventType is the discriminator of an Event.
type EventType string

// The types of events that are written here.
const (
	RunStarted         EventType = "RUN_STARTED"
	RunFinished        EventType = "RUN_FINISHED"
	RunError           EventType = "RUN_ERROR"
	TextMessageStart   EventType = "TEXT_MESSAGE_START"
	TextMessageContent EventType = "TEXT_MESSAGE_CONTENT"
	TextMessageEnd     EventType = "TEXT_MESSAGE_END"
	ToolCallStart      EventType = "TOOL_CALL_START"
	ToolCallArgs       EventType = "TOOL_CALL_ARGS"
	ToolCallEnd        EventType = "TOOL_CALL_END"
	ToolCallResult     EventType = "TOOL_CALL_RESULT"
)

// Event is one event of AG-UI, to be written with encoding/json. Only
// the members that its type has are set.
type Event struct {
	Type            EventType `json:"type"`
	ThreadID        string    `json:"threadId,omitempty"`
	RunID           string    `json:"runId,omitempty"`
	MessageID       string    `json:"messageId,omitempty"`
	Role            string    `json:"role,omitempty"`
	ToolCallID      string    `json:"toolCallId,omitempty"`
	ToolCallName    string    `json:"toolCallName,omitempty"`
	ParentMessageID string    `json:"parentMessageId,omitempty"`
	Delta           string    `json:"delta,omitempty"`
	Content         *string   `json:"content,omitempty"` // of a result, which may be empty
	Message         string    `json:"message,omitempty"` // of an error
	Code            string    `json:"code,omitempty"`
	Outcome         *Ending   `json:"outcome,omitempty"`
}

// Ending is how a run ended: "success", or "interrupt" with what the
// user is asked.
type Ending struct {
	Type       string      `json:"type"`
	Interrupts []Interrupt `json:"interrupts,omitempty"`
}

// Interrupt is one open request. Its id is the id of the request.
type Interrupt struct {
	ID             string          `json:"id"`
	Reason         string          `json:"reason"` // "tool_call", "confirmation" or "input_required"
	Message        string          `json:"message,omitempty"`
	ToolCallID     string          `json:"toolCallId,omitempty"`
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
	ExpiresAt      string          `json:"expiresAt,omitempty"` // RFC 3339
	Metadata       json.RawMessage `json:"metadata,omitempty"`
}

// Run names the run whose events are written.
type Run struct {
	ThreadID, RunID string
	// Shown are the ids of calls that an earlier run showed, such as
	// those of the requests that are answered in this one. They are not
	// shown again: their results belong to the calls that the client
	// has.
	Shown []string
	// DotNet writes each approval request as a call of
	// request_approval, as the .NET sample does, instead of an
	// interrupt.
	DotNet bool
}

// Outcome is the RUN_FINISHED event of a response: an interrupt outcome
// when it asks the user, success else. It fails when a request can't be
// told to a client, such as one without an id.
func (r Run) Outcome(resp *agent.Response) (Event, error) {
	return r.finished(resp.UserInputRequests())
}

// CodeFailed is the code of a RUN_ERROR that has no code of its own.
const CodeFailed = "RUN_FAILED"

// ErrorEvent is the RUN_ERROR event of an error. A *ResumeError is told
// as it is; of any other the client only learns that the run failed,
// since it is not known what stands in it.
func ErrorEvent(err error) Event {
	if refused, ok := resumeError(err); ok {
		return Event{Type: RunError, Message: refused.Error(), Code: string(refused.Code)}
	}

	return Event{Type: RunError, Message: "the run failed", Code: CodeFailed}
}
