package content

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/value"
)

// Code identifies what is wrong with a content. Codes may be added, but a code never changes
// its meaning.
type Code string

// The codes of a BadError.
const (
	BadJSON      Code = "bad_json"      // not JSON that all parsers read in the same way
	BadShape     Code = "bad_shape"     // a member is missing or has the wrong type
	BadID        Code = "bad_id"        // a request id is missing or blank
	BadKind      Code = "bad_kind"      // a discriminator that is not allowed here
	BadArguments Code = "bad_arguments" // arguments that are not a JSON object
	BadSchema    Code = "bad_schema"    // a JSON Schema that can't be used
	BadData      Code = "bad_data"      // data that the schema rejects
)

// BadError describes why a content is rejected, and names the place. It names members but never
// quotes values.
type BadError struct {
	Code   Code
	Where  string // path such as messages[2].contents[0].toolCall; empty for the whole document
	Detail string // what was expected and what was found
	Err    error
}

// Error returns the place followed by the detail.
func (e *BadError) Error() string {
	if e.Where == "" {
		return e.Detail
	}
	return e.Where + ": " + e.Detail
}

// Unwrap returns the cause.
func (e *BadError) Unwrap() error { return e.Err }

// CreateApproval returns an answer that approves the call.
func (r *ToolApprovalRequest) CreateApproval(reason string) *ToolApprovalResponse {
	return &ToolApprovalResponse{
		RequestID: r.RequestID,
		Approved:  true,
		Call:      CloneCall(r.Call),
		Reason:    reason,
	}
}

// CreateRejection returns an answer that rejects the call.
func (r *ToolApprovalRequest) CreateRejection(reason string) *ToolApprovalResponse {
	out := r.CreateApproval(reason)
	out.Approved = false
	return out
}

// CreateEdit returns an answer that approves the call with other arguments, which must be a
// JSON object. Only function calls can be edited, and the function's name can't be changed: a
// call of another tool needs its own approval.
func (r *ToolApprovalRequest) CreateEdit(
	arguments json.RawMessage,
	reason string,
) (*ToolApprovalResponse, error) {
	call, ok := CloneCall(r.Call).(*FunctionCall)
	if !ok {
		return nil, &BadError{Code: BadKind, Detail: "only calls of functions can be edited"}
	}
	edited := *call
	edited.Arguments = bytes.Clone(arguments)
	if err := edited.CheckArguments(); err != nil {
		return nil, err
	}
	return &ToolApprovalResponse{
		RequestID: r.RequestID,
		Approved:  true,
		Call:      call,
		Reason:    reason,
		Edited:    &edited,
	}, nil
}

// CreateAlwaysApprove returns an answer that approves the call and asks for a standing
// approval.
func (r *ToolApprovalRequest) CreateAlwaysApprove(scope AlwaysScope, reason string) *ToolApprovalResponse {
	out := r.CreateApproval(reason)
	out.Always = scope
	return out
}

// CreateApproval returns an answer that consents to the text.
func (r *TextApprovalRequest) CreateApproval(reason string) *TextApprovalResponse {
	return &TextApprovalResponse{RequestID: r.RequestID, Approved: true, Reason: reason}
}

// CreateRejection returns an answer that rejects the text.
func (r *TextApprovalRequest) CreateRejection(reason string) *TextApprovalResponse {
	return &TextApprovalResponse{RequestID: r.RequestID, Reason: reason}
}

// CreateResponse returns an answer with data. It returns an error if the schema of the request
// rejects the data.
func (r *StructuredInputRequest) CreateResponse(data json.RawMessage) (*StructuredInputResponse, error) {
	out := &StructuredInputResponse{RequestID: r.RequestID, Data: bytes.Clone(data)}
	if err := r.Check(out); err != nil {
		return nil, err
	}
	return out, nil
}

// CreateRejection returns an answer that declines to give data.
func (r *StructuredInputRequest) CreateRejection(reason string) *StructuredInputResponse {
	return &StructuredInputResponse{RequestID: r.RequestID, Declined: true, Reason: reason}
}

// Rejection returns a rejection for a request of any kind, or nil if the request's type is not
// one of this package.
func Rejection(q InputRequest, reason string) InputResponse {
	switch q := q.(type) {
	case *ToolApprovalRequest:
		return q.CreateRejection(reason)
	case *TextApprovalRequest:
		return q.CreateRejection(reason)
	case *StructuredInputRequest:
		return q.CreateRejection(reason)
	}

	return nil
}

// Check returns a *BadError if the schema of the request rejects the data of a response. A
// declined response is always valid.
func (r *StructuredInputRequest) Check(response *StructuredInputResponse) error {
	if response.Declined {
		return nil
	}
	return CheckSchema(r.Schema, response.Data)
}

// CheckSchema checks a JSON text against a JSON Schema. The error is a *BadError with code
// BadSchema, BadJSON or BadData. A nil schema accepts every text that can be parsed. To check
// several texts with the same schema, use NewSchema.
func CheckSchema(schema, data json.RawMessage) error {
	v, err := parse(data)
	if err != nil || schema == nil {
		return err
	}
	s, err := NewSchema(schema)
	if err != nil {
		return err
	}
	return s.CheckValue(v)
}

func parse(data json.RawMessage) (value.Value, error) {
	v, err := value.Parse(data, value.Limits{})
	if err != nil {
		return v, &BadError{Code: BadJSON, Detail: err.Error(), Err: err}
	}

	return v, nil
}

// Schema is a compiled JSON Schema, which may come from an untrusted source. It is safe for
// concurrent use.
type Schema struct{ compiled *jsonschema.Untrusted }

// NewSchema compiles a JSON Schema. It returns a *BadError with code BadSchema if the schema is
// invalid or could be too expensive to evaluate.
func NewSchema(schema json.RawMessage) (*Schema, error) {
	compiled, err := jsonschema.CompileUntrusted("schema.json", schema)
	if err != nil {
		return nil, &BadError{Code: BadSchema, Detail: err.Error(), Err: err}
	}

	return &Schema{compiled}, nil
}

// CheckValue checks a value against the schema. The error is a *BadError with code BadData, or
// BadSchema if evaluation would be too expensive.
func (s *Schema) CheckValue(v value.Value) error {
	failures, err := s.compiled.Validate(plain(v))
	if err != nil {
		return &BadError{Code: BadSchema, Detail: "the schema: " + err.Error(), Err: err}
	}

	if len(failures) == 0 {
		return nil
	}
	var all []string
	for _, f := range failures {
		all = append(all, sentence(f))
	}
	detail := strings.Join(all, "; ")
	return &BadError{Code: BadData, Detail: detail, Err: errors.New(detail)}
}

// plain converts a value to the types that encoding/json produces, with numbers as json.Number.
func plain(v value.Value) any {
	switch v.Kind {
	case value.Bool:
		return v.Bool
	case value.Number:
		return json.Number(v.Num.String())
	case value.String:
		return v.Text
	case value.Array:
		out := make([]any, len(v.Items))
		for i, item := range v.Items {
			out[i] = plain(item)
		}
		return out
	case value.Object:
		out := make(map[string]any, len(v.Members))
		for _, m := range v.Members {
			out[m.Key] = plain(m.Value)
		}
		return out
	}

	return nil
}

// sentence describes a failure without the validator's own message where possible, because that
// message may quote the user's data.
func sentence(f jsonschema.Failure) string {
	out := "the schema's " + f.Keyword + " refuses it"
	switch {
	case f.Expected != "":
		out = "expected " + f.Expected
	case f.Property != "":
		out = f.Message
	}

	if len(f.Path) > 0 {
		out = strings.Join(f.Path, ".") + ": " + out
	}
	return out
}

// CheckArguments returns a *BadError unless the arguments are absent or one JSON object that
// all parsers read in the same way.
func (c *FunctionCall) CheckArguments() error {
	var t trail
	t.checkArguments(c.Arguments, "arguments", value.Limits{})
	return t.problem()
}

// CloneCall copies a call, so that a flag set on the copy doesn't change the original. The
// texts are shared and must not be changed in place.
func CloneCall(c ToolCall) ToolCall {
	switch c := c.(type) {
	case *FunctionCall:
		out := *c
		return &out
	case *MCPCall:
		out := *c
		return &out
	case *HostedCall:
		out := *c
		return &out
	}

	return nil
}

// SameCall reports whether two calls have the same kind, call id, name and, in canonical form,
// arguments, and for MCP calls the same server. Arguments that can't be parsed must be equal
// byte by byte.
func SameCall(a, b ToolCall) bool { return sameCall(a, b, SameArguments) }

// SameButRounded reports whether two calls differ only in numbers that are equal as float64.
// JSON implementations that store all numbers as doubles, such as those of protobuf and
// JavaScript, round integers above 2^53 in this way. The calls are different. SameButRounded is
// used to explain the difference to the user.
func SameButRounded(a, b ToolCall) bool { return !SameCall(a, b) && sameCall(a, b, sameRounded) }

func sameCall(a, b ToolCall, same func(a, b []byte) bool) bool {
	if a == nil || b == nil || a.ID() != b.ID() || a.ToolName() != b.ToolName() {
		return false
	}
	switch x := a.(type) {
	case *FunctionCall:
		_, ok := b.(*FunctionCall)
		return ok && same(a.Args(), b.Args())
	case *MCPCall:
		y, ok := b.(*MCPCall)
		return ok && x.ServerName == y.ServerName && same(a.Args(), b.Args())
	case *HostedCall:
		_, ok := b.(*HostedCall)
		return ok
	}

	return false
}

// SameArguments compares arguments in canonical form (RFC 8785, with exact numbers). No
// arguments, null and {} are equal.
func SameArguments(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := canonical(a)
	y, errY := canonical(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func canonical(args []byte) ([]byte, error) {
	if len(args) == 0 || string(args) == "null" {
		return []byte("{}"), nil
	}
	v, err := value.Parse(args, value.Limits{})
	if err != nil {
		return nil, err
	}
	return v.AppendCanonical(nil), nil
}

// sameRounded compares arguments after converting their numbers to float64.
func sameRounded(a, b []byte) bool {
	x, errX := value.Parse(a, value.Limits{})
	y, errY := value.Parse(b, value.Limits{})
	return errX == nil && errY == nil &&
		bytes.Equal(rounded(x).AppendCanonical(nil), rounded(y).AppendCanonical(nil))
}

// rounded converts the numbers of a value to float64, in place.
func rounded(v value.Value) value.Value {
	switch v.Kind {
	case value.Number:
		f, _ := strconv.ParseFloat(v.Num.String(), 64) // within the range of float64, as value.Parse guarantees
		v.Num, _ = value.FloatNum(f)
	case value.Array:
		for i, item := range v.Items {
			v.Items[i] = rounded(item)
		}
	case value.Object:
		for i, m := range v.Members {
			v.Members[i].Value = rounded(m.Value)
		}
	}

	return v
}

// Rejects reports whether a response is a rejection: not approved, or declined.
func Rejects(a InputResponse) bool {
	switch a := a.(type) {
	case *ToolApprovalResponse:
		return !a.Approved
	case *TextApprovalResponse:
		return !a.Approved
	case *StructuredInputResponse:
		return a.Declined
	}

	return true
}

// SameAnswer reports whether two responses to one request have the same effect. Reasons don't
// count.
func SameAnswer(a, b InputResponse) bool {
	if Rejects(a) != Rejects(b) {
		return false
	}
	switch x := a.(type) {
	case *ToolApprovalResponse:
		y, ok := b.(*ToolApprovalResponse)
		return ok && x.Always == y.Always && sameEdit(x.Edited, y.Edited)
	case *TextApprovalResponse:
		_, ok := b.(*TextApprovalResponse)
		return ok
	case *StructuredInputResponse:
		y, ok := b.(*StructuredInputResponse)
		return ok && (x.Declined || SameArguments(x.Data, y.Data))
	}

	return false
}

func sameEdit(a, b *FunctionCall) bool {
	if a == nil || b == nil {
		return a == b
	}
	return SameCall(a, b)
}
