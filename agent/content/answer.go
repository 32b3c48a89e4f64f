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

// Code says what is wrong with a content. Codes may grow in number; a
// code never changes its meaning.
type Code string

// The codes of a BadError.
const (
	BadJSON      Code = "bad_json"      // not JSON that everybody reads alike
	BadShape     Code = "bad_shape"     // a member is missing or has the wrong type
	BadID        Code = "bad_id"        // a request id is missing or blank
	BadKind      Code = "bad_kind"      // a discriminator that can't stand here
	BadArguments Code = "bad_arguments" // arguments that are no JSON object
	BadSchema    Code = "bad_schema"    // a JSON Schema that can't be used
	BadData      Code = "bad_data"      // data that the schema refuses
)

// BadError says why a content is refused and where. It names members,
// never values.
type BadError struct {
	Code   Code
	Where  string // path such as messages[2].contents[0].toolCall, "" for the whole
	Detail string // what was found and what was expected
	Err    error
}

// Error puts the place before the sentence.
func (e *BadError) Error() string {
	if e.Where == "" {
		return e.Detail
	}
	return e.Where + ": " + e.Detail
}

// Unwrap returns the cause.
func (e *BadError) Unwrap() error { return e.Err }

// CreateApproval answers that the call may run.
func (r *ToolApprovalRequest) CreateApproval(reason string) *ToolApprovalResponse {
	return &ToolApprovalResponse{
		RequestID: r.RequestID,
		Approved:  true,
		Call:      CloneCall(r.Call),
		Reason:    reason,
	}
}

// CreateRejection answers that the call must not run.
func (r *ToolApprovalRequest) CreateRejection(reason string) *ToolApprovalResponse {
	out := r.CreateApproval(reason)
	out.Approved = false
	return out
}

// CreateEdit approves the call with other arguments, which must be one
// JSON object. Only function calls can be edited, and never their name:
// another tool is another call with approvals of its own.
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

// CreateAlwaysApprove approves the call and asks for a standing approval.
func (r *ToolApprovalRequest) CreateAlwaysApprove(scope AlwaysScope, reason string) *ToolApprovalResponse {
	out := r.CreateApproval(reason)
	out.Always = scope
	return out
}

// CreateApproval answers with consent to the text.
func (r *TextApprovalRequest) CreateApproval(reason string) *TextApprovalResponse {
	return &TextApprovalResponse{RequestID: r.RequestID, Approved: true, Reason: reason}
}

// CreateRejection answers that the text is not agreed to.
func (r *TextApprovalRequest) CreateRejection(reason string) *TextApprovalResponse {
	return &TextApprovalResponse{RequestID: r.RequestID, Reason: reason}
}

// CreateResponse answers with data, which the schema of the request
// must accept.
func (r *StructuredInputRequest) CreateResponse(data json.RawMessage) (*StructuredInputResponse, error) {
	out := &StructuredInputResponse{RequestID: r.RequestID, Data: bytes.Clone(data)}
	if err := r.Check(out); err != nil {
		return nil, err
	}
	return out, nil
}

// CreateRejection answers that there will be no data.
func (r *StructuredInputRequest) CreateRejection(reason string) *StructuredInputResponse {
	return &StructuredInputResponse{RequestID: r.RequestID, Declined: true, Reason: reason}
}

// Rejection is the no to a request of whatever kind, nil for kinds
// that are not of this package.
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

// Check reports whether the schema of the request accepts the data of a
// response. The error is a *BadError.
func (r *StructuredInputRequest) Check(response *StructuredInputResponse) error {
	if response.Declined {
		return nil
	}
	return CheckSchema(r.Schema, response.Data)
}

// CheckSchema reports whether a JSON Schema accepts a JSON text. The
// error is a *BadError: BadSchema, BadJSON or BadData. A nil schema
// accepts everything readable. Who checks often keeps a Schema.
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

// Schema is a JSON Schema of whatever make that judges data again and
// again. It is safe for concurrent use.
type Schema struct{ compiled *jsonschema.Untrusted }

// NewSchema compiles a JSON Schema. One that can't be used, or whose
// use could cost too much, is a *BadError with code BadSchema.
func NewSchema(schema json.RawMessage) (*Schema, error) {
	compiled, err := jsonschema.CompileUntrusted("schema.json", schema)
	if err != nil {
		return nil, &BadError{Code: BadSchema, Detail: err.Error(), Err: err}
	}

	return &Schema{compiled}, nil
}

// CheckValue reports whether the schema accepts a value. The error is a
// *BadError: BadData, or BadSchema when to find out would cost too
// much.
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

// plain is a value as decoders make it, with exact numbers.
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

// sentence says what was expected where. The words of a failure may quote the
// value, which is the user's.
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

// CheckArguments reports whether the arguments are absent or one JSON
// object that everybody reads alike. The error is a *BadError.
func (c *FunctionCall) CheckArguments() error {
	var t trail
	t.checkArguments(c.Arguments, "arguments", value.Limits{})
	return t.problem()
}

// CloneCall copies a call, so that flags set on one are not seen on the
// other. Texts are shared and never changed in place.
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

// SameCall reports whether two calls are the same: kind, call id, name
// and, in canonical form, arguments (and the server of an MCP call).
// Calls with unreadable arguments are the same only letter by letter.
func SameCall(a, b ToolCall) bool { return sameCall(a, b, SameArguments) }

// SameButRounded reports whether two calls differ only by numbers that
// are the same once they are read as doubles. That is what becomes of a
// call on its way through a JSON that knows no other numbers, such as
// protobuf's or JavaScript's: whole numbers above 2^53 come back
// rounded. Such calls are different calls; this says why.
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

// SameArguments compares arguments in canonical form (RFC 8785, exact
// numbers). None, null and {} are the same.
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

// sameRounded compares arguments after their numbers have been read as
// doubles.
func sameRounded(a, b []byte) bool {
	x, errX := value.Parse(a, value.Limits{})
	y, errY := value.Parse(b, value.Limits{})
	return errX == nil && errY == nil &&
		bytes.Equal(rounded(x).AppendCanonical(nil), rounded(y).AppendCanonical(nil))
}

// rounded reads the numbers of a value as doubles, in place.
func rounded(v value.Value) value.Value {
	switch v.Kind {
	case value.Number:
		f, _ := strconv.ParseFloat(v.Num.String(), 64) // in the range of doubles, as all that was parsed
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

// Rejects reports whether a response is a no: not approved, or declined.
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

// SameAnswer reports whether two responses to one request do the same.
// Reasons do nothing.
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
