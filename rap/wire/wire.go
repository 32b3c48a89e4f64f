// Package wire defines every message of RAP (Reactive Agent Protocol), including user choice,
// and a strict codec for them. It does no I/O.
//
// Parsing is stricter than Go's own decoder, because two readers that understand one text
// differently are a security hole. It requires names in the exact case, no duplicate names,
// valid UTF-8, a single document, and integers for indexes, and it distinguishes missing
// members from zero values. Unknown members are ignored. Members that other implementations
// omit or write as null are accepted (Tolerances in docs/contracts/rap.md). Encoding follows
// the protocol exactly.
package wire

import (
	"encoding/json"
	"fmt"

	"github.com/assent-dev/assent/internal/jsonschema"
)

// Error describes what is wrong with a message.
type Error struct {
	Field    string // such as "choices[2]"; empty for the message as a whole
	Expected string // description of the expected value
}

func (e *Error) Error() string {
	if e.Field == "" {
		return "expected " + e.Expected
	}
	return fmt.Sprintf("%s: expected %s", e.Field, e.Expected)
}

// Toolset is the manifest of a tool server (GET {base}/.well-known/rap-toolset).
type Toolset struct {
	Name           string // 1 to 128 characters
	Description    string // untrusted
	Endpoint       string // absolute http(s) URL for invocations
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

	// schema is the compiled InputSchema of a parsed tool, which must not be modified. It is
	// nil in a Tool built in code.
	schema *jsonschema.Untrusted
}

// Annotations are a tool's claims about itself. They must never loosen a decision.
type Annotations struct {
	RequiresAuth string
	ReadOnly     *bool // nil if absent
	Destructive  *bool
	Idempotent   *bool
	LongRunning  *bool
}

// Invocation asks a tool server to run an operation.
type Invocation struct {
	Operation   string
	Arguments   json.RawMessage // an object, byte for byte; {} if absent or null
	ID          string          // of the call; opaque
	CallID      *string         // echoed; nil if absent or null
	CallbackURL string
	GroupID     string   // the thread; opaque
	Ancestors   []string // root to parent; nil in a root thread
	UserID      string   // may be empty
}

// Callback is a message from a tool to the runtime: *Result, *Choice, *OAuth, *Event or *View.
type Callback interface {
	Group() string // group_id
	Call() string  // id of its call (an Event's tool_call_id); empty for a View
	Append(dst []byte) []byte
}

// Result is a tool_result, which ends a call.
type Result struct {
	GroupID      string
	ID           string
	CallID       *string
	Text         *string   // nil if absent
	Content      []Content // replaces Text unless nil
	DisplayAs    json.RawMessage
	Subscription bool
}

// Content is an item of a result.
type Content struct {
	Text      string // of a text item
	Image     string // base64, of an image item
	MediaType string // empty for a text item
}

// Choice is a user_choice: the tool asks the user.
type Choice struct {
	GroupID     string
	ID          string
	CallID      *string
	Prompt      string   // untrusted
	Choices     []string // at least one; untrusted
	Default     int      // index of the choice for a dismissal
	ResponseURL string   // may contain the tool's secret
}

// OAuth asks the user to sign in. There is no response.
type OAuth struct {
	GroupID string
	ID      string
	CallID  *string
	AuthURL string // https; untrusted
}

// Event is a subscription_event. It follows a Result with Subscription.
type Event struct {
	GroupID     string
	ToolCallID  string // the original call's id
	Text        string
	Associative bool
	Final       bool
}

// View is a view_update. Its content is passed on without interpretation. It belongs to a
// thread.
type View struct {
	GroupID  string
	ViewType string
	Content  json.RawMessage // an object
}

// Answer is the user choice response.
type Answer struct {
	ID       string
	Selected int
}

// CloseThread announces that a thread has ended.
type CloseThread struct{ ThreadID string }

// CancelCall announces that the result of a call is no longer needed.
type CancelCall struct{ ThreadID, ToolCallID string }

// Status asks whether a call is still in progress (a proposed extension of the protocol).
type Status struct{ ThreadID, ToolCallID string }
