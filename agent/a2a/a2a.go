// Package a2a maps user-input requests to A2A 1.0 and back: a task that
// waits for input carries the requests of an agent, a message to it
// carries the answers, and a remote task that waits for input becomes
// questions for the user here. Client speaks with a remote agent, and
// Remote makes a tool of it. The host for an agent of ours is in
// package agent/serve.
//
// A request is a data part of RequestMediaType, an answer a data part
// of ResponseMediaType; what stands in them are contents in the .NET
// shape (content.DotNet). A text part for people goes along and decides
// nothing.
//
// The other side is never trusted. Answers are bound by id to the
// requests that are open here, and must show the very call that was
// asked about. What a remote agent asks is shown to the user as text:
// it makes no tool call, no approval of one, and chooses none of the
// ids, so nothing it writes can choose what runs here.
//
// Numbers are exact here. A peer whose JSON is protobuf's, such as
// those of the official SDKs, keeps them as doubles: 5 comes back as
// 5.0, which is the same number, and whole numbers above 2^53 come back
// rounded, which are others. Its answer then shows another call and is
// refused (OtherCall), and the error says that the numbers are the
// reason. A tool that must be approved through such a peer takes its
// large numbers as texts.
package a2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The media types of data parts that hold requests and answers.
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

// Role says who sends a message.
type Role string

// The roles of A2A 1.0.
const (
	RoleUser  Role = "ROLE_USER"  // from the client to the agent
	RoleAgent Role = "ROLE_AGENT" // from the agent to the client
)

// Task is what is read of a task.
type Task struct {
	ID        string     `json:"id"`
	ContextID string     `json:"contextId,omitempty"`
	Status    Status     `json:"status"`
	Artifacts []Artifact `json:"artifacts,omitempty"`
}

// Artifact is something that a task has made.
type Artifact struct {
	ArtifactID string `json:"artifactId"`
	Name       string `json:"name,omitempty"`
	Parts      []Part `json:"parts"`
}

// Status is the state of a task with what its agent says about it.
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

// Text is what the text parts of a message say, joined by line breaks.
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

// Text is what a task has to say: the texts of its artifacts, then that
// of its status. A text that stands there twice is told once.
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

// Ended reports whether a state is one that a task never leaves.
func (s State) Ended() bool {
	return s == Completed || s == Failed || s == Canceled || s == Rejected
}

// Part is one part of a message: a text, data, or one of those that are
// only carried.
type Part struct {
	Text      *string         `json:"text,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	URL       *string         `json:"url,omitempty"`
	Raw       *string         `json:"raw,omitempty"` // base64
	Filename  string          `json:"filename,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
}

// Code says what is wrong with what the other side sent. Codes may grow
// in number; a code never changes its meaning.
type Code string

// The codes of an Error.
const (
	BadMessage     Code = "bad_message"     // no JSON that everybody reads alike, or not in the shape of A2A 1.0
	WrongTask      Code = "wrong_task"      // a message for another task or context, or from the wrong side
	UnknownPart    Code = "unknown_part"    // a part that is no answer
	UnknownRequest Code = "unknown_request" // an answer to a request that is not open
	RepeatedAnswer Code = "repeated_answer" // two answers to one request
	MissingAnswer  Code = "missing_answer"  // no answer where there must be one
	WrongKind      Code = "wrong_kind"      // a response of another kind than the request
	OtherCall      Code = "other_call"      // the answer shows another call than the one that was asked about
	// unreadable, data or an edit that the request doesn't take, or a
	// standing approval
	BadAnswer    Code = "bad_answer"
	BadRequest   Code = "bad_request"   // a request that can't be written or asked
	UnknownState Code = "unknown_state" // no state of A2A 1.0
	// the user gave no answer and the peer has no word for that: cancel
	// the task
	Declined Code = "declined"
	// Contradiction: the peer says what can't be after what it said before
	Contradiction Code = "contradiction"
	Endless       Code = "endless" // more rounds or more time than a task may take
)

// Error refuses a message or a task as a whole. It names ids and
// members, never values.
type Error struct {
	Code      Code
	RequestID string // "" when it is not about one request
	Detail    string
	Err       error
}

// Error puts the request before the sentence.
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

// AuthRequiredError says that a remote task waits for a person to sign
// in. That happens outside of the conversation; afterwards the task
// goes on by itself or by another message.
type AuthRequiredError struct {
	TaskID string
	Text   string // what the remote agent says about it; untrusted
}

// Error does not repeat what the remote agent says.
func (e *AuthRequiredError) Error() string {
	return fmt.Sprintf("a2a: the remote task %q waits for authentication", e.TaskID)
}

var errTwice = errors.New("two requests have this id")
