package agui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// The reasons of interrupts that AG-UI defines.
const (
	reasonToolCall     = "tool_call"
	reasonConfirmation = "confirmation"
	reasonInput        = "input_required"
)

// Names in the payload of an answer. Arguments with these names can only be edited in
// editedArgs.
const (
	approvedKey = "approved"
	acceptedKey = "accepted" // the older name of approved
	editedKey   = "editedArgs"
	reasonKey   = "reason"
)

func (r Run) finished(asked []content.InputRequest) (Event, error) {
	out := Event{
		Type:     RunFinished,
		ThreadID: r.ThreadID,
		RunID:    r.RunID,
		Outcome:  &Ending{Type: "success"},
	}
	var all []Interrupt
	for _, q := range asked {
		if _, ok := r.asCall(q); ok {
			continue
		}
		i, err := InterruptOf(q)
		if err != nil {
			return Event{}, err
		}
		if slices.ContainsFunc(all, func(o Interrupt) bool { return o.ID == i.ID }) {
			return Event{}, fmt.Errorf("two requests have the id %q", i.ID)
		}
		all = append(all, i)
	}

	if len(all) > 0 {
		out.Outcome = &Ending{Type: "interrupt", Interrupts: all}
	}
	return out, nil
}

// InterruptOf returns the interrupt for one request. It returns an error if the request has no
// id or contains invalid JSON.
func InterruptOf(q content.InputRequest) (Interrupt, error) {
	if q == nil || q.InputRequestID() == "" {
		return Interrupt{}, fmt.Errorf("a request without an id can't be answered")
	}
	var (
		out Interrupt
		err error
	)
	switch q := q.(type) {
	case *content.ToolApprovalRequest:
		out, err = callInterrupt(q)
	case *content.TextApprovalRequest:
		out, err = textInterrupt(q)
	case *content.StructuredInputRequest:
		out, err = inputInterrupt(q)
	default:
		err = fmt.Errorf("no interrupt is known for a %T", q)
	}

	if err != nil {
		return Interrupt{}, fmt.Errorf("the request %q: %w", q.InputRequestID(), err)
	}
	out.ID = q.InputRequestID()
	return out, nil
}

func callInterrupt(q *content.ToolApprovalRequest) (Interrupt, error) {
	if q.Call == nil {
		return Interrupt{}, fmt.Errorf("it has no call")
	}
	args := parseArguments(q.Call)
	call := obj{{"call_id", q.Call.ID()}, {"name", q.Call.ToolName()}, {"arguments", args.shown}}
	about := obj{{"type", "function_approval_request"}, {"function_call", append(call, ownerOf(q.Call)...)}}
	// Python writes it twice, because generic clients read value.
	about = append(about, pair{"value", slices.Clone(about)})
	if q.NoConfirmation {
		about = append(about, pair{"requires_confirmation", false})
	}
	out := Interrupt{Reason: reasonToolCall, ToolCallID: q.Call.ID()}
	if out.ToolCallID == "" {
		out.Reason = reasonConfirmation // AG-UI requires a call id with reasonToolCall
	}
	what := cmp.Or(q.Call.ToolName(), "this tool") + content.ServerWords(q.Call)
	out.Message = cmp.Or(q.Note.Message, "Approve running "+what+"?")
	return out.with(q.Note, about, approvalSchema(q.Call, args))
}

// ownerOf returns members that say that a service runs a call, and on which server.
func ownerOf(call content.ToolCall) (out obj) {
	if _, local := call.(*content.FunctionCall); local {
		return nil
	}
	out = obj{{"hosted", true}}
	if mcp, ok := call.(*content.MCPCall); ok && mcp.ServerName != "" {
		out = append(out, pair{"server_name", mcp.ServerName})
	}
	return out
}

func textInterrupt(q *content.TextApprovalRequest) (Interrupt, error) {
	out := Interrupt{Reason: reasonConfirmation, Message: cmp.Or(q.Text, q.Note.Message)}
	return out.with(q.Note, obj{{"type", "text_approval_request"}}, approvalSchema(nil, arguments{}))
}

func inputInterrupt(q *content.StructuredInputRequest) (Interrupt, error) {
	out := Interrupt{Reason: reasonInput, Message: cmp.Or(q.Text, q.Note.Message)}
	return out.with(q.Note, obj{{"type", "structured_input_request"}}, rawOr(q.Schema))
}

// with adds the members that all interrupts have.
func (i Interrupt) with(n content.Note, about obj, schema any) (Interrupt, error) {
	metadata := obj{{"agent_framework", about}}
	if ours := noteOf(n); len(ours) > 0 {
		metadata = append(metadata, pair{"assent", ours})
	}
	var err error
	if i.Metadata, err = jsonmsg.Marshal(metadata); err != nil {
		return i, err
	}
	if i.ResponseSchema, err = jsonmsg.Marshal(schema); err != nil {
		return i, err
	}
	if !n.Expires.IsZero() {
		i.ExpiresAt = n.Expires.UTC().Format(time.RFC3339Nano)
	}
	return i, nil
}

// noteOf returns the parts of a note that AG-UI has no member for.
func noteOf(n content.Note) (out obj) {
	if n.Where != "" {
		out = append(out, pair{"where", n.Where})
	}
	if n.Agent != "" {
		out = append(out, pair{"agent", n.Agent})
	}
	return out
}

// approvalSchema describes the payload of an answer: the decision, the reason, and for
// functions the edited arguments.
func approvalSchema(call content.ToolCall, args arguments) obj {
	props := obj{
		{approvedKey, obj{{"type", "boolean"}, {"description", "Whether this is approved."}}},
		{acceptedKey, obj{{"type", "boolean"}, {"description", "Older name of approved."}}},
	}
	props = append(props, pair{reasonKey, obj{{"type", "string"}, {"description", reasonWords(args)}}})
	if _, editable := call.(*content.FunctionCall); editable && args.readable {
		props = append(props, editSchemas(args)...)
	}
	return obj{
		{"type", "object"},
		{"properties", props},
		{"anyOf", []obj{{{"required", []string{approvedKey}}}, {{"required", []string{acceptedKey}}}}},
		{"additionalProperties", false},
	}
}

func reasonWords(args arguments) string {
	words := "What the agent is told about the decision."
	if _, named := args.get(reasonKey); named {
		words += " The argument of this name is edited in editedArgs; an approval with a reason needs editedArgs."
	}
	return words
}

func editSchemas(args arguments) obj {
	var direct, whole obj
	names := []string{}
	for _, m := range args.members {
		schema := obj{{"type", typeName(m.Value)}}
		if !isReserved(m.Key) {
			direct = append(
				direct,
				pair{m.Key, append(schema, pair{"description", "Edited value of this argument."})},
			)
		}

		whole = append(whole, pair{m.Key, schema})
		names = append(names, m.Key)
	}

	return append(direct, pair{editedKey, obj{
		{"type", "object"},
		{"description", "All arguments anew, in place of the proposed ones."},
		{"properties", whole},
		{"required", names},
		{"additionalProperties", false},
	}})
}

// isReserved reports whether a name is part of the decision.
func isReserved(name string) bool {
	return name == approvedKey || name == acceptedKey || name == editedKey || name == reasonKey
}

// typeName returns the type of a value as in JSON Schema.
func typeName(v value.Value) string {
	switch v.Kind {
	case value.Object:
		return "object"
	case value.Array:
		return "array"
	case value.String:
		return "string"
	case value.Bool:
		return "boolean"
	case value.Number:
		if v.Num.IsInt() {
			return "integer"
		}
		return "number"
	default:
		return "null"
	}
}

// arguments are the arguments of a call in a form that can be shown and edited.
type arguments struct {
	shown    json.RawMessage
	members  []value.Member
	readable bool // one object, or none at all
}

// parseArguments parses arguments. If they are not an object, they are shown as a string.
func parseArguments(call content.ToolCall) arguments {
	text := call.Args()
	if len(text) == 0 {
		return arguments{shown: json.RawMessage("{}"), readable: true}
	}
	v, err := value.Parse(text, value.Limits{})
	if err == nil && v.Kind == value.Object {
		return arguments{shown: bytes.Clone(text), members: v.Members, readable: true}
	}

	return arguments{shown: jsonmsg.AppendString(nil, string(text))}
}

// get returns the argument with a name.
func (a arguments) get(name string) (v value.Value, ok bool) {
	i := slices.IndexFunc(a.members, func(m value.Member) bool { return m.Key == name })
	if i < 0 {
		return value.Value{}, false
	}
	return a.members[i].Value, true
}

func rawOr(schema json.RawMessage) json.RawMessage {
	if len(schema) == 0 {
		return json.RawMessage("{}")
	}
	return schema
}

// obj is a JSON object that keeps the order of its members.
type obj []pair

type pair struct {
	key string
	val any
}

// MarshalJSON writes the members in order.
func (o obj) MarshalJSON() ([]byte, error) {
	return jsonmsg.Object(func(w *jsonmsg.Writer) {
		for _, p := range o {
			w.Name(p.key).Value(p.val)
		}
	})
}
