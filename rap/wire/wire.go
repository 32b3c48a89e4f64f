// Package wire holds every message of RAP (Reactive Agent Protocol),
// user choice included, and its strict codec. Pure: bytes in, values
// out.
//
// Reading is strict where Go's own decoder is lenient, since two
// readers that understand one text differently are a hole: exact-case
// names, no duplicate names, valid UTF-8, one document and nothing
// after it, integers where the protocol has indexes, and missing told
// from zero. Unknown fields are passed over. What other implementations
// leave out or write as null is accepted (Tolerances in
// docs/contracts/rap.md); writing keeps to the letter.
package wire

import (
	"encoding/json"
	"fmt"

	"github.com/assent-dev/assent/internal/jsonschema"
)

// Error says what is wrong with a message.
type Error struct {
	Field    string // "choices[2]"; "" for the message as a whole
	Expected string // in words
}

func (e *Error) Error() string {
	if e.Field == "" {
		return "expected " + e.Expected
	}
	return fmt.Sprintf("%s: expected %s", e.Field, e.Expected)
}

// Toolset is what a tool server offers (GET {base}/.well-known/rap-toolset).
type Toolset struct {
	Name           string // 1 to 128 characters
	Description    string // untrusted
	Endpoint       string // absolute http(s) URL: where invocations go
	Tools          []Tool // at least one; names are unique
	NeedsMigration bool
}

// Tool is one operation.
type Tool struct {
	Name          string // 1 to 128 of [A-Za-z0-9_.-]
	Description   string // for the model; untrusted
	InputSchema   json.RawMessage
	Annotations   Annotations
	DisplayScript string // cosmetic; never run here

	// of InputSchema as it was read, which is not to be changed; nil in
	// a tool made by hand
	schema *jsonschema.Untrusted
}

// Annotations are a tool's word about itself. Nothing may become looser
// by them.
type Annotations struct {
	RequiresAuth string
	ReadOnly     *bool // nil: not said
	Destructive  *bool
	Idempotent   *bool
	LongRunning  *bool
}

// Invocation asks a tool server to run an operation.
type Invocation struct {
	Operation   string
	Arguments   json.RawMessage // an object, byte for byte; {} when absent or null
	ID          string          // of the call; opaque
	CallID      *string         // echoed; nil when absent or null
	CallbackURL string
	GroupID     string   // the thread; opaque
	Ancestors   []string // root to parent; nil at the root
	UserID      string   // "" for none
}

// Callback is a message from a tool to the runtime: *Result, *Choice, *OAuth,
// *Event or *View.
type Callback interface {
	Group() string // group_id
	Call() string  // id of the call it is about (an Event's tool_call_id); "" for a View
	Append(dst []byte) []byte
}

// Result is a tool_result: how a call ended.
type Result struct {
	GroupID      string
	ID           string
	CallID       *string
	Text         *string   // nil when absent
	Content      []Content // supersedes Text when not nil
	DisplayAs    json.RawMessage
	Subscription bool
}

// Content is an item of a result.
type Content struct {
	Text      string // of a text item
	Image     string // base64, of an image item
	MediaType string // "" for a text item
}

// Choice is a user_choice: the tool asks the user.
type Choice struct {
	GroupID     string
	ID          string
	CallID      *string
	Prompt      string   // untrusted
	Choices     []string // at least one; untrusted
	Default     int      // index of the one that a dismissal picks
	ResponseURL string   // may hold the tool's secret
}

// OAuth asks the user to sign in somewhere. Nothing is sent back.
type OAuth struct {
	GroupID string
	ID      string
	CallID  *string
	AuthURL string // https; untrusted
}

// Event is a subscription_event: news of a call that ended with Subscription.
type Event struct {
	GroupID     string
	ToolCallID  string // the original call's id
	Text        string
	Associative bool
	Final       bool
}

// View is a view_update. It is passed through unread and matched to a
// thread only.
type View struct {
	GroupID  string
	ViewType string
	Content  json.RawMessage // an object
}

// Answer is the user choice response: what the user picked.
type Answer struct {
	ID       string
	Selected int
}

// CloseThread says that a thread has ended.
type CloseThread struct{ ThreadID string }

// CancelCall says that a call is not waited for any more.
type CancelCall struct{ ThreadID, ToolCallID string }

// Status asks whether the tool still works on a call (a proposal of the
// protocol).
type Status struct{ ThreadID, ToolCallID string }
