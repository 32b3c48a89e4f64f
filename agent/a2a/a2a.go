// Package a2a maps user-input requests to A2A 1.0 and back: a task that waits for input carries
// the requests of an agent, a message to it carries the answers, and a remote task that waits
// for input becomes questions for the user here. Client communicates with a remote agent, and
// Remote makes a tool from it. Package agent/serve contains the host for our own agents.
//
// A request is a data part of RequestMediaType, an answer a data part of ResponseMediaType.
// They contain contents in .NET's format (content.DotNet). An additional text part describes
// the requests for people. It has no effect on decisions.
//
// The other side is never trusted. Answers are matched by id to the requests that are open
// here, and must show exactly the requested call. Requests of a remote agent are shown to the
// user as text: they create no tool call and no approval of one, and they don't choose any ids,
// so the remote agent can't influence which calls run here.
//
// Numbers are exact here. Peers that use protobuf's JSON, such as the official SDKs, store
// numbers as doubles: 5 comes back as 5.0, which is the same number, but integers above 2^53
// come back rounded, which are different numbers. The peer's answer then shows a different call
// and is refused (OtherCall), with an error that names this reason. A tool that must be
// approved through such a peer should take large numbers as strings.
package a2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The media types of data parts that contain requests and answers.
const (
	RequestMediaType  = "application/vnd.assent.input-request+json"
	ResponseMediaType = "application/vnd.assent.input-response+json"
)

// State is the state of a task.
type State string

// The states of A2A 1.0.
const (
	Submitted     State = "TASK_STATE_SUBMITTED"
	Working       State = "TASK_STATE_WORKING"
	Completed     State = "TASK_STATE_COMPLETED"
	Failed        State = "TASK_STATE_FAILED"
	Canceled      State = "TASK_STATE_CANCELED"
	Rejected      State = "TASK_STATE_REJECTED"
	InputRequired State = "TASK_STATE_INPUT_REQUIRED"
	AuthRequired  State = "TASK_STATE_AUTH_REQUIRED"
)

// Role identifies the sender of a message.
type Role string

// The roles of A2A 1.0.
const (
	RoleUser  Role = "ROLE_USER"  // from the client to the agent
	RoleAgent Role = "ROLE_AGENT" // from the agent to the client
)

// Task contains the fields of a task that are used here.
type Task struct {
	ID        string     `json:"id"`
	ContextID string     `json:"contextId,omitempty"`
	Status    Status     `json:"status"`
	Artifacts []Artifact `json:"artifacts,omitempty"`
}

// Artifact is a result of a task.
type Artifact struct {
	ArtifactID string `json:"artifactId"`
	Name       string `json:"name,omitempty"`
	Parts      []Part `json:"parts"`
}

// Status is the state of a task with the agent's message about it.
type Status struct {
	State     State    `json:"state"`
	Message   *Message `json:"message,omitempty"`
	Timestamp string   `json:"timestamp,omitempty"`
}

// Message is one message between client and agent.
type Message struct {
	MessageID string `json:"messageId"`
	ContextID string `json:"contextId,omitempty"`
	TaskID    string `json:"taskId,omitempty"`
	Role      Role   `json:"role"`
	Parts     []Part `json:"parts"`
}

// Text returns the text parts of a message, joined by line breaks.
func (m *Message) Text() string { return textOf(m.Parts) }

func textOf(parts []Part) string {
	var all []string
	for _, p := range parts {
		if p.Text != nil {
			all = append(all, *p.Text)
		}
	}
	return strings.Join(all, "\n")
}

// Text returns the texts of the task's artifacts, followed by the text of its status. The
// status text is left out if an artifact has the same text.
func (t *Task) Text() string {
	var all []string
	for _, a := range t.Artifacts {
		all = append(all, textOf(a.Parts))
	}
	if last := t.text(); !slices.Contains(all, last) {
		all = append(all, last)
	}
	return strings.TrimSpace(strings.Join(all, "\n"))
}

func (s State) known() bool {
	return s.Ended() || s == Submitted || s == Working || s == InputRequired || s == AuthRequired
}

// Ended reports whether a task can't leave the state any more.
func (s State) Ended() bool {
	return s == Completed || s == Failed || s == Canceled || s == Rejected
}

// Part is one part of a message: a text, data, or another part that is passed on unchanged.
type Part struct {
	Text      *string         `json:"text,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	URL       *string         `json:"url,omitempty"`
	Raw       *string         `json:"raw,omitempty"` // base64
	Filename  string          `json:"filename,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
}

// Code identifies what is wrong with the other side's data. Codes may be added, but a code
// never changes its meaning.
type Code string

// The codes of an Error.
const (
	// not JSON that all parsers read in the same way, or not in the format of A2A 1.0
	BadMessage     Code = "bad_message"
	WrongTask      Code = "wrong_task"      // a message for another task or context, or from the wrong side
	UnknownPart    Code = "unknown_part"    // a part that is not an answer
	UnknownRequest Code = "unknown_request" // an answer to a request that is not open
	RepeatedAnswer Code = "repeated_answer" // two answers to one request
	MissingAnswer  Code = "missing_answer"  // a required answer is missing
	WrongKind      Code = "wrong_kind"      // a response of a different kind than the request
	OtherCall      Code = "other_call"      // the answer shows a different call than the request
	// BadAnswer: an unreadable answer, data or an edit that the request doesn't accept, or a
	// standing approval
	BadAnswer    Code = "bad_answer"
	BadRequest   Code = "bad_request"   // a request that can't be written or shown
	UnknownState Code = "unknown_state" // not a state of A2A 1.0
	// Declined: the user gave no answer, and the peer's protocol can't express that; cancel the
	// task
	Declined Code = "declined"
	// Contradiction: the peer's data contradicts what it sent before
	Contradiction Code = "contradiction"
	Endless       Code = "endless" // more rounds or more time than a task may take
)

// Error rejects a message or a task as a whole. It contains ids and member names, never values.
type Error struct {
	Code      Code
	RequestID string // the request, if the error is about one
	Detail    string
	Err       error
}

// Error returns the request id followed by the detail.
func (e *Error) Error() string {
	if e.RequestID == "" {
		return "a2a: " + e.Detail
	}
	return fmt.Sprintf("a2a: request %q: %s", e.RequestID, e.Detail)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func refuse(code Code, id, format string, args ...any) *Error {
	return &Error{Code: code, RequestID: id, Detail: fmt.Sprintf(format, args...)}
}

func wrap(code Code, id string, err error) *Error {
	return &Error{Code: code, RequestID: id, Detail: err.Error(), Err: err}
}

// AuthRequiredError is returned for a remote task that waits for a person to sign in. The
// sign-in happens outside of the conversation. Afterwards the task continues by itself or after
// another message.
type AuthRequiredError struct {
	TaskID string
	Text   string // the remote agent's text about it; untrusted
}

// Error does not contain the remote agent's text.
func (e *AuthRequiredError) Error() string {
	return fmt.Sprintf("a2a: the remote task %q waits for authentication", e.TaskID)
}

var errTwice = errors.New("two requests have this id")
