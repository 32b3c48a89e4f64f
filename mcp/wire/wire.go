// Package wire defines the messages of the Model Context Protocol that a gateway reads and writes,
// and their strict codec: JSON-RPC 2.0 in the legacy versions (2024-11-05 to 2025-11-25, opened by
// initialize) and the modern one (2026-07-28, stateless). It has no side effects.
//
// Parsing is strict if two readers could understand a text differently: one object, valid UTF-8,
// exact names, no duplicate names. The arguments of a call are not validated here: the decision
// refuses invalid ones, with a message for the agent. Everything that is passed on keeps its bytes.
package wire

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/value"
)

// The versions of the protocol.
const (
	V20241105 = "2024-11-05"
	V20250326 = "2025-03-26"
	V20250618 = "2025-06-18"
	V20251125 = "2025-11-25"
	V20260728 = "2026-07-28"
)

// Legacy returns the versions that begin with initialize, newest first.
func Legacy() []string { return []string{V20251125, V20250618, V20250326, V20241105} }

// Modern returns the versions without sessions, newest first.
func Modern() []string { return []string{V20260728} }

// IsLegacy reports whether a version begins with initialize.
func IsLegacy(version string) bool { return slices.Contains(Legacy(), version) }

// IsModern reports whether a version has no sessions.
func IsModern(version string) bool { return slices.Contains(Modern(), version) }

// Limits returns the bounds of a message: 16 MiB and 1,000 levels of nesting, like the protocol's
// own libraries.
func Limits() value.Limits { return value.Limits{MaxBytes: 16 << 20, MaxDepth: 1000} }

// Message is a request, a notification or a response.
type Message struct {
	ID     ID              // zero: a notification, or the answer to an unreadable message
	Method string          // "" of a response
	Params json.RawMessage // an object, unchanged; nil when absent
	Result json.RawMessage // of a response that is no error; an object
	Error  *Error          // of a response
}

// Kind is the kind of a message.
type Kind int

// The kinds of messages.
const (
	Response Kind = iota
	Request
	Notification
)

// Kind returns the kind of the message.
func (m *Message) Kind() Kind {
	switch {
	case m.Method == "":
		return Response
	case m.ID.IsZero():
		return Notification
	}

	return Request
}

// The codes of errors.
const (
	CodeParse              = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternal           = -32603
	CodeHeaderMismatch     = -32020 // modern: a header differs from the body, or is missing
	CodeMissingCapability  = -32021 // modern: data.requiredCapabilities
	CodeUnsupportedVersion = -32022 // modern: data.supported, data.requested
	CodeURLElicitation     = -32042 // 2025-11-25: data.elicitations
)

// Error is an error of JSON-RPC.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage // nil for none
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Fail returns an error with a code.
func Fail(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// ModernCode reports whether only servers of a modern version use an error code.
func ModernCode(code int) bool {
	return code == CodeHeaderMismatch || code == CodeMissingCapability || code == CodeUnsupportedVersion
}
