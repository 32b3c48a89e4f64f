// Package content holds chat messages and what stands in them: text,
// calls and their results, and the pairs with which an agent asks its
// user and the user answers. It writes and reads them in the JSON
// shapes of the ecosystem.
//
// The pairs follow the accepted design of user-input contents: function
// approval, text approval and structured input. A run of an agent ends
// with requests in its messages and goes on when it is run again with
// the responses. Each response is made from its request
// (CreateApproval, CreateRejection, CreateEdit, CreateResponse), and
// carries a copy of what was asked; who receives one looks its request
// up and never believes the copy.
//
// A content that this package does not know is an *Unknown and is
// written as it was read, byte for byte.
package content

import (
	"encoding/json"
	"iter"
	"strconv"
	"time"

	"github.com/assent-dev/assent/approval/info"
)

// Role says whose message it is.
type Role string

// The roles of the ecosystem. Others are carried through.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one message of a chat.
type Message struct {
	ID         string // of the message; "" for none
	Role       Role
	AuthorName string
	CreatedAt  string // RFC 3339, as it was read; "" when unknown
	Contents   []Content
	Common
}

// MarshalJSON writes the message in .NET's shape; see Codec for the others.
func (m *Message) MarshalJSON() ([]byte, error) { return DotNet().AppendMessage(nil, m) }

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Message) UnmarshalJSON(data []byte) error {
	out, err := DotNet().DecodeMessage(data)
	if err != nil {
		return err
	}
	*m = *out
	return nil
}

// NewMessage returns a message of some contents.
func NewMessage(role Role, contents ...Content) *Message {
	return &Message{Role: role, Contents: contents}
}

// UserText returns a user's message of one text.
func UserText(text string) *Message { return NewMessage(User, &Text{Text: text}) }

// AssistantText returns an assistant's message of one text.
func AssistantText(text string) *Message { return NewMessage(Assistant, &Text{Text: text}) }

// Text returns the texts of the message, joined.
func (m *Message) Text() string {
	var out string
	for t := range All[*Text]([]*Message{m}) {
		out += t.Text
	}
	return out
}

// All are the contents of one kind in messages, in order.
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

// With returns a copy of the message with other contents; everything
// else is shared.
func (m *Message) With(contents []Content) *Message {
	out := *m
	out.Contents = contents
	return &out
}

// Member is one member of a JSON object with the untouched text of its value.
type Member struct {
	Key string
	Raw json.RawMessage
}

// Common is what messages and contents have in common.
type Common struct {
	// Properties is the text of the additionalProperties object; nil
	// for none. Every side may write it, so nothing rests on it.
	Properties json.RawMessage
	// Extra holds members that are unknown here, in source order. They
	// are written back as they came.
	Extra []Member
}

func (c *Common) common() *Common { return c }

// Content is one part of a message. The types of this package are all
// there are; what they don't know is an *Unknown.
type Content interface {
	common() *Common
}

// CommonOf returns what a content has in common with the others, to be
// read or changed in place.
func CommonOf(c Content) *Common { return c.common() }

// Text is plain text.
type Text struct {
	Common
	Text string
}

// Reasoning is what a model thought, as far as it shows it.
type Reasoning struct {
	Common
	Text      string
	Protected string // the provider's sealed form, to be sent back as it is
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
	// Counts holds the other members of the details, in source order,
	// as they came.
	Counts []Member
}

// ToolCall is a call of some tool: *FunctionCall for those that run
// here, *MCPCall and *HostedCall for those that a service runs.
type ToolCall interface {
	Content
	ID() string       // call id
	ToolName() string // "" where the kind of call has no name
	Args() []byte     // text of the arguments; nil for none
}

// FunctionCall is a model's wish to call a function.
type FunctionCall struct {
	Common
	CallID string
	Name   string
	// Arguments is the text of the arguments exactly as the model wrote
	// it; nil for none. A model may write what is no JSON object;
	// CheckArguments tells.
	Arguments json.RawMessage
	// InformationalOnly says that the call has been handled: it is
	// neither asked about nor run.
	InformationalOnly bool
}

// ID returns the call id.
func (c *FunctionCall) ID() string { return c.CallID }

// ToolName returns the name of the function.
func (c *FunctionCall) ToolName() string { return c.Name }

// Args returns the text of the arguments.
func (c *FunctionCall) Args() []byte { return c.Arguments }

// FunctionResult is what a function gave, or the text that stands instead.
type FunctionResult struct {
	Common
	CallID string
	Result json.RawMessage // any JSON; nil for none
}

// MCPCall is a call that a service makes on an MCP server.
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

// MCPResult is what an MCP server gave to a service: outputs or a
// value, never both.
type MCPResult struct {
	Common
	CallID  string
	Outputs []Content
	// Value is what the server gave where that is neither a text nor a
	// list of contents, as Python allows; nil for none. The other
	// shapes have no place for it and get a text that holds it.
	Value json.RawMessage
}

// Contents returns the outputs, and a value as a text that holds its JSON.
func (r *MCPResult) Contents() []Content {
	if r.Outputs == nil && r.Value != nil {
		return []Content{&Text{Text: string(r.Value)}}
	}
	return r.Outputs
}

// ServerWords returns words that tell a person on which server a call
// runs, with a space before them; "" for every call but an MCPCall.
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

// HostedCall is a call of another hosted tool (code interpreter, image
// generation, web search, or one that is only called a tool call). It
// can stand in an approval; nothing of it but its id is read.
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

// Note is what assent tells the person beside a request. It travels in the
// additional properties ("assent"), is shown and never believed.
type Note struct {
	Message string    // rendered for the approver
	Expires time.Time // when the request ends without an answer; zero for never
	Where   string    // where else it can be answered, such as the page of an inbox
	Agent   string    // the nested agent that asks; "" for the outermost
	// Context is what the agent says about it, for the people who are
	// asked. What info.Check refuses can't be written.
	Context []info.Item
}

// IsZero reports whether there is nothing in the note.
func (n *Note) IsZero() bool {
	return n.Message == "" && n.Expires.IsZero() && n.Where == "" && n.Agent == "" && len(n.Context) == 0
}

// NoteOf returns the note of a request, to be read or changed in place.
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
	// NoConfirmation says that the call is here only because a sibling needs
	// approval (requiresConfirmation: false). It still needs a response.
	NoConfirmation bool
	Note           Note
}

// ToolApprovalResponse is the answer to a ToolApprovalRequest.
type ToolApprovalResponse struct {
	Common
	RequestID string
	Approved  bool
	Call      ToolCall // a copy of the call; nil where a wire does not carry it
	Reason    string
	// Edited is the call that shall run instead; nil for none. It has a
	// discriminator of its own on every wire, so that a reader that
	// does not know edits refuses it instead of running the original.
	Edited *FunctionCall
	// Always asks for a standing approval beside the answer; see AlwaysScope.
	Always AlwaysScope
	// By is who or what answers, for the record; "" for the user. It is
	// known in this process only: no wire carries it.
	By string
}

// AlwaysScope is how much a standing approval covers.
type AlwaysScope uint8

// The scopes of the ecosystem. assent's own standing approvals take
// bounds on top (agent/layer).
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
	// By is who answers, for the record; "" for the user. It is known in
	// this process only: no wire carries it.
	By string
}

// StructuredInputRequest asks for data that a JSON Schema describes.
type StructuredInputRequest struct {
	Common
	RequestID string
	Text      string          // what is asked; may be empty
	Schema    json.RawMessage // JSON Schema of the data
	Note      Note
}

// StructuredInputResponse is the answer to a StructuredInputRequest.
type StructuredInputResponse struct {
	Common
	RequestID string
	Data      json.RawMessage // nil when declined
	Declined  bool            // the person gave none
	Reason    string
	// By is who answers, for the record; "" for the user. It is known in
	// this process only: no wire carries it.
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

// Unknown is a content of another kind.
type Unknown struct {
	Common
	Kind string          // its discriminator; "" when it has none
	Raw  json.RawMessage // the whole content as it was read
}
