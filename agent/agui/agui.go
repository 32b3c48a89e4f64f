// Package agui maps an agent's responses to events of the AG-UI protocol, and the answers of an
// AG-UI client to contents. It only maps: the caller must provide the server.
//
// A run that has requests ends with a RUN_FINISHED event whose outcome lists the open requests
// as interrupts, in the format of Microsoft's Agent Framework for Python. The input of the next
// run answers all of them in its resume list. The format of the .NET sample, in which a request
// is a call of a tool named request_approval, is supported too (RequestApproval,
// ApprovalResult).
//
// The client's data is only used as answers to requests that the host has: answers are matched
// by id to the open requests, which the caller takes from its own thread
// (agent.Thread.Pending), and the call that runs is the one recorded there.
package agui

import (
	"encoding/json"

	"github.com/assent-dev/assent/agent"
)

// EventType is the discriminator of an Event.
type EventType string

// The types of events that this package writes.
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

// Event is one event of AG-UI, to be written with encoding/json. Only the members of its type
// are set.
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

// Ending is the end of a run: "success", or "interrupt" with the requests to the user.
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

// Run describes the run whose events are written.
type Run struct {
	ThreadID, RunID string
	// Shown lists the ids of calls that an earlier run showed, such as those of the requests
	// that are answered in this run. They are not shown again, because their results belong to
	// the calls that the client already has.
	Shown []string
	// DotNet writes each approval request as a call of request_approval, as the .NET sample
	// does, instead of an interrupt.
	DotNet bool
}

// Outcome returns the RUN_FINISHED event of a response, with an interrupt outcome if it has
// requests, and success otherwise. It returns an error for a request that can't be sent to a
// client, such as one without an id.
func (r Run) Outcome(resp *agent.Response) (Event, error) {
	return r.finished(resp.UserInputRequests())
}

// CodeFailed is the code of a RUN_ERROR without a specific code.
const CodeFailed = "RUN_FAILED"

// ErrorEvent returns the RUN_ERROR event for an error. It includes the text of a *ResumeError.
// For all other errors it only says that the run failed, since their text may contain
// confidential data.
func ErrorEvent(err error) Event {
	if refused, ok := resumeError(err); ok {
		return Event{Type: RunError, Message: refused.Error(), Code: string(refused.Code)}
	}

	return Event{Type: RunError, Message: "the run failed", Code: CodeFailed}
}
