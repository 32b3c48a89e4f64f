// Package content contains chat messages and their contents: text, calls and their results, and
// the request and response pairs with which an agent asks its user. It writes and reads them in
// the JSON formats of existing frameworks.
//
// The pairs follow the accepted design of user-input contents: function approval, text approval
// and structured input. A run of an agent ends with requests in its messages and continues when
// it is run again with the responses. Each response is made from its request (CreateApproval,
// CreateRejection, CreateEdit, CreateResponse) and carries a copy of the request's contents.
// The receiver must look up the request and must not trust the copy.
//
// A content that this package doesn't know is an *Unknown. It is written back byte for byte.
package content

import (
	"encoding/json"
	"iter"
	"strconv"
	"time"

	"github.com/assent-dev/assent/approval/info"
)

// Role is the role of a message's author.
type Role string

// The roles of the existing frameworks. Other roles are kept unchanged.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one message of a chat.
type Message struct {
	ID         string // id of the message, if any
	Role       Role
	AuthorName string
	CreatedAt  string // RFC 3339, as it was read; empty if unknown
	Contents   []Content
	Common
}

// MarshalJSON writes the message in .NET's format. See Codec for the others.
func (m *Message) MarshalJSON() ([]byte, error) { return DotNet().AppendMessage(nil, m) }

// UnmarshalJSON reads the output of MarshalJSON.
func (m *Message) UnmarshalJSON(data []byte) error {
	out, err := DotNet().DecodeMessage(data)
	if err != nil {
		return err
	}
	*m = *out
	return nil
}

// NewMessage returns a message with the given contents.
func NewMessage(role Role, contents ...Content) *Message {
	return &Message{Role: role, Contents: contents}
}

// UserText returns a user message with one text.
func UserText(text string) *Message { return NewMessage(User, &Text{Text: text}) }

// AssistantText returns an assistant message with one text.
func AssistantText(text string) *Message { return NewMessage(Assistant, &Text{Text: text}) }

// Text returns the texts of the message, joined.
func (m *Message) Text() string {
	var out string
	for t := range All[*Text]([]*Message{m}) {
		out += t.Text
	}
	return out
}

// All iterates over the contents of type T in messages, in order.
func All[T Content](messages []*Message) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, m := range messages {
			for _, c := range m.Contents {
				if one, ok := c.(T); ok && !yield(one) {
					return
				}
			}
		}
	}
}

// With returns a copy of the message with other contents. Everything else is shared.
func (m *Message) With(contents []Content) *Message {
	out := *m
	out.Contents = contents
	return &out
}

// Member is one member of a JSON object with the unchanged text of its value.
type Member struct {
	Key string
	Raw json.RawMessage
}

// Common contains the members that all messages and contents have.
type Common struct {
	// Properties is the text of the additionalProperties object, or nil. Both sides can write
	// it, so no decision may depend on it.
	Properties json.RawMessage
	// Extra lists unknown members in source order. They are written back unchanged.
	Extra []Member
}

func (c *Common) common() *Common { return c }

// Content is one part of a message. All implementations are in this package. Other kinds are
// represented by *Unknown.
type Content interface {
	common() *Common
}

// CommonOf returns the common members of a content, which may be changed in place.
func CommonOf(c Content) *Common { return c.common() }

// Text is plain text.
type Text struct {
	Common
	Text string
}

// Reasoning is the part of a model's reasoning that the model shows.
type Reasoning struct {
	Common
	Text      string
	Protected string // the provider's encrypted form, to be sent back unchanged
}

// Data is inline data as a data URI.
type Data struct {
	Common
	URI       string
	MediaType string
	Name      string
}

// URI points to data.
type URI struct {
	Common
	URI       string
	MediaType string
}

// Error is a problem that a model or service reported inside a message.
type Error struct {
	Common
	Message string
	Code    string
	Details string
}

// Usage counts tokens.
type Usage struct {
	Common
	Input, Output, Total int64
	// Counts lists the other members of the details, unchanged and in source order.
	Counts []Member
}

// ToolCall is a call of a tool: a *FunctionCall if it runs here, a *MCPCall or *HostedCall if a
// service runs it.
type ToolCall interface {
	Content
	ID() string       // call id
	ToolName() string // name of the tool
	Args() []byte     // text of the arguments, or nil
}

// FunctionCall is a model's request to call a function.
type FunctionCall struct {
	Common
	CallID string
	Name   string
	// Arguments is the text of the arguments exactly as the model wrote it, or nil. It may be
	// anything but a JSON object: use CheckArguments.
	Arguments json.RawMessage
	// InformationalOnly marks a call that has been handled: it is neither asked about nor run.
	InformationalOnly bool
}

// ID returns the call id.
func (c *FunctionCall) ID() string { return c.CallID }

// ToolName returns the name of the function.
func (c *FunctionCall) ToolName() string { return c.Name }

// Args returns the text of the arguments.
func (c *FunctionCall) Args() []byte { return c.Arguments }

// FunctionResult is the result of a function, or a text in place of a result.
type FunctionResult struct {
	Common
	CallID string
	Result json.RawMessage // any JSON, or nil
}

// MCPCall is a call that a service makes to an MCP server.
type MCPCall struct {
	Common
	CallID     string
	Name       string
	ServerName string
	Arguments  json.RawMessage
}

// ID returns the call id.
func (c *MCPCall) ID() string { return c.CallID }

// ToolName returns the name of the tool.
func (c *MCPCall) ToolName() string { return c.Name }

// Args returns the text of the arguments.
func (c *MCPCall) Args() []byte { return c.Arguments }

// MCPResult is the result of an MCP call that a service made. It has either outputs or a value,
// never both.
type MCPResult struct {
	Common
	CallID  string
	Outputs []Content
	// Value is a result that is neither a text nor a list of contents, which Python allows. The
	// other formats have no place for it and get a text that contains it.
	Value json.RawMessage
}

// Contents returns the outputs, or the value as a text that contains its JSON.
func (r *MCPResult) Contents() []Content {
	if r.Outputs == nil && r.Value != nil {
		return []Content{&Text{Text: string(r.Value)}}
	}
	return r.Outputs
}

// ServerWords returns words that name the server of an MCPCall, with a space before them. It
// returns an empty string for all other calls.
func ServerWords(c ToolCall) string {
	mcp, ok := c.(*MCPCall)
	switch {
	case !ok:
		return ""
	case mcp.ServerName == "":
		return " on a server without a name"
	}

	return " on the server " + strconv.Quote(mcp.ServerName)
}

// HostedCall is a call of another hosted tool: code interpreter, image generation, web search,
// or the generic toolCall. It may be part of an approval. Only its id is read.
type HostedCall struct {
	Common
	Kind   string // discriminator, such as codeInterpreterToolCall
	CallID string
}

// ID returns the call id.
func (c *HostedCall) ID() string { return c.CallID }

// ToolName returns the kind of call.
func (c *HostedCall) ToolName() string { return c.Kind }

// Args returns nil.
func (c *HostedCall) Args() []byte { return nil }

// InputRequest is a content that asks the user.
type InputRequest interface {
	Content
	InputRequestID() string
}

// InputResponse is a content that answers an InputRequest.
type InputResponse interface {
	Content
	InputResponseTo() string // id of the request
}

// Note is information for the person who is asked. It is stored in the additional properties
// ("assent"). It is only shown and must not be trusted.
type Note struct {
	Message string    // message for the approver
	Expires time.Time // when the request expires; never if zero
	Where   string    // another place to answer it, such as the page of an inbox
	Agent   string    // the nested agent that asks; empty for the outermost agent
	// Context is the agent's explanation for the people who are asked. Writing fails if
	// info.Check rejects it.
	Context []info.Item
}

// IsZero reports whether the note is empty.
func (n *Note) IsZero() bool {
	return n.Message == "" && n.Expires.IsZero() && n.Where == "" && n.Agent == "" && len(n.Context) == 0
}

// NoteOf returns the note of a request, which may be changed in place.
func NoteOf(q InputRequest) *Note {
	switch q := q.(type) {
	case *ToolApprovalRequest:
		return &q.Note
	case *TextApprovalRequest:
		return &q.Note
	case *StructuredInputRequest:
		return &q.Note
	}

	return &Note{}
}

// ToolApprovalRequest asks whether a call may run.
type ToolApprovalRequest struct {
	Common
	RequestID string
	Call      ToolCall
	// NoConfirmation is set if the request exists only because another call of the same turn
	// needs approval (requiresConfirmation: false). It still needs a response.
	NoConfirmation bool
	Note           Note
}

// ToolApprovalResponse is the answer to a ToolApprovalRequest.
type ToolApprovalResponse struct {
	Common
	RequestID string
	Approved  bool
	Call      ToolCall // a copy of the call; nil if the wire format doesn't carry it
	Reason    string
	// Edited is the call to run instead, or nil. An edit has its own discriminator in every
	// format, so that a reader that doesn't support edits rejects it instead of running the
	// original call.
	Edited *FunctionCall
	// Always asks for a standing approval in addition to the answer. See AlwaysScope.
	Always AlwaysScope
	// By names the person or rule that answered, for the record. It is empty for the user. It
	// exists only in this process: no wire format carries it.
	By string
}

// AlwaysScope is the scope of a standing approval.
type AlwaysScope uint8

// The scopes of the existing frameworks. assent's own standing approvals have further limits
// (agent/layer).
const (
	AlwaysNot       AlwaysScope = iota
	AlwaysTool                  // any call of this tool
	AlwaysArguments             // this tool with exactly these arguments
)

// TextApprovalRequest asks for consent to a text.
type TextApprovalRequest struct {
	Common
	RequestID string
	Text      string
	Note      Note
}

// TextApprovalResponse is the answer to a TextApprovalRequest.
type TextApprovalResponse struct {
	Common
	RequestID string
	Approved  bool
	Reason    string
	// By names the person who answered, for the record. It is empty for the user. It exists
	// only in this process: no wire format carries it.
	By string
}

// StructuredInputRequest asks for data that a JSON Schema describes.
type StructuredInputRequest struct {
	Common
	RequestID string
	Text      string          // the question; may be empty
	Schema    json.RawMessage // JSON Schema of the data
	Note      Note
}

// StructuredInputResponse is the answer to a StructuredInputRequest.
type StructuredInputResponse struct {
	Common
	RequestID string
	Data      json.RawMessage // nil if declined
	Declined  bool            // the person gave no data
	Reason    string
	// By names the person who answered, for the record. It is empty for the user. It exists
	// only in this process: no wire format carries it.
	By string
}

// InputRequestID returns the id of the request.
func (r *ToolApprovalRequest) InputRequestID() string { return r.RequestID }

// InputRequestID returns the id of the request.
func (r *TextApprovalRequest) InputRequestID() string { return r.RequestID }

// InputRequestID returns the id of the request.
func (r *StructuredInputRequest) InputRequestID() string { return r.RequestID }

// InputResponseTo returns the id of the request.
func (r *ToolApprovalResponse) InputResponseTo() string { return r.RequestID }

// InputResponseTo returns the id of the request.
func (r *TextApprovalResponse) InputResponseTo() string { return r.RequestID }

// InputResponseTo returns the id of the request.
func (r *StructuredInputResponse) InputResponseTo() string { return r.RequestID }

// Unknown is a content of a kind that this package doesn't know.
type Unknown struct {
	Common
	Kind string          // its discriminator, if any
	Raw  json.RawMessage // the whole content as it was read
}
