// Package runstate reads what waits for an approval in a saved RunState
// of OpenAI's Agents SDK for Python, so that people can be asked about
// it here.
//
// Nothing is written back: the program that owns the state looks up the
// interruption by the id of the request, and approves or rejects it
// there (state.approve, state.reject with a rejection_message).
package runstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// Newest is the version of the latest form that is known here, that of
// release 0.24 of the SDK. The SDK refuses later ones too.
const Newest = "1.21"

const newestMinor = 21

// Read returns a request for each interruption, in order; none when the
// state waits for nobody. Its id is that of the call. Interruptions of
// agents that are used as tools stand among the others, and the note
// names their agent. The error is a *content.BadError: an interruption
// that can't be shown as a whole is no question.
func Read(state []byte) ([]*content.ToolApprovalRequest, error) {
	o := jsonmsg.Read(state, jsonmsg.Limits())
	if o.Err() != nil {
		return nil, bad(o.Err())
	}
	checkVersion(o)
	step := o.Object("current_step")
	if step.Text("type") != "next_step_interruption" {
		return nil, bad(o.Err())
	}

	outermost := agentOf(o, "current_agent")
	seen := map[string]bool{}
	var out []*content.ToolApprovalRequest
	for _, item := range step.Required("data").Objects("interruptions") {
		q := request(item)
		if q == nil || o.Err() != nil {
			continue
		}
		if seen[q.RequestID] {
			item.Fail(refuse(
				content.BadID,
				item.Path,
				"the call id %q stands for two interruptions",
				q.RequestID,
			))
		}

		seen[q.RequestID] = true
		if agent := agentOf(item, "agent"); agent != outermost {
			q.Note.Agent = agent.name
		}
		out = append(out, q)
	}

	if err := bad(o.Err()); err != nil {
		return nil, err
	}
	return out, nil
}

func checkVersion(o jsonmsg.Fields) {
	version := o.NonEmpty("$schemaVersion")
	major, minor, ok := strings.Cut(version, ".")
	n, err := strconv.Atoi(minor)
	if o.Err() == nil && (!ok || major != "1" || err != nil || n < 0 || n > newestMinor || strconv.Itoa(n) != minor) {
		o.Fail(refuse(content.BadShape, "$schemaVersion", "expected 1.0 to %s, found %q", Newest, version))
	}
}

// agentName tells agents of one name apart, as the SDK does.
type agentName struct{ name, identity string }

func agentOf(o jsonmsg.Fields, member string) agentName {
	a := o.Required(member)
	return agentName{name: a.NonEmpty("name"), identity: a.Text("identity")}
}

// request makes the question of an interruption; nil when there is none.
func request(item jsonmsg.Fields) *content.ToolApprovalRequest {
	if kind := item.Text("type"); kind != "tool_approval_item" {
		item.Fail(refuse(content.BadKind, item.At("type"), "expected tool_approval_item, found %q", kind))
		return nil
	}

	raw := item.Required("raw_item")
	if raw.Text("type") == "mcp_approval_request" {
		call := &content.MCPCall{
			CallID:     raw.NonEmpty("id"),
			Name:       raw.NonEmpty("name"),
			ServerName: raw.NonEmpty("server_label"),
			Arguments:  arguments(raw),
		}
		return &content.ToolApprovalRequest{RequestID: call.CallID, Call: call}
	}

	call := &content.FunctionCall{
		CallID:    raw.NonEmpty("call_id"),
		Name:      nameOf(item, raw),
		Arguments: argumentsOf(raw),
	}
	return &content.ToolApprovalRequest{RequestID: call.CallID, Call: call}
}

// nameOf is the name of a tool with its namespace before it, since two
// namespaces may hold tools of one name. A namespace that is the name
// itself is none.
func nameOf(item, raw jsonmsg.Fields) string {
	name, namespace := item.Text("tool_name"), item.Text("tool_namespace")
	if name == "" {
		name = raw.NonEmpty("name")
	}
	if namespace == "" {
		namespace = raw.Text("namespace")
	}
	if namespace == "" || namespace == name {
		return name
	}
	return namespace + "." + name
}

// what are the members that tell what a call other than a function's
// would do.
func what() map[string]string {
	return map[string]string{
		"shell_call":       "action",
		"local_shell_call": "action",
		"apply_patch_call": "operation",
		"custom_tool_call": "input",
	}
}

// argumentsOf are the arguments of a function's call, and what any other
// call would do as an object of one member.
func argumentsOf(raw jsonmsg.Fields) json.RawMessage {
	kind := raw.NonEmpty("type")
	if kind == "function_call" {
		return arguments(raw)
	}
	member, ok := what()[kind]
	switch {
	case !ok:
		raw.Fail(refuse(
			content.BadKind,
			raw.At("type"),
			"expected a call that people can be shown, found %q",
			kind,
		))
		return nil
	case !raw.Has(member):
		raw.Fail(refuse(content.BadShape, raw.At(member), "expected what the call would do, found none"))
		return nil
	}

	out, _ := jsonmsg.Object(func(w *jsonmsg.Writer) { w.Name(member).Raw(raw.Raw(member)) })
	return out
}

// arguments must be an object, or nobody knows what is approved.
func arguments(raw jsonmsg.Fields) json.RawMessage {
	text := raw.Text("arguments")
	if text == "" {
		return nil
	}
	if kind, err := jsonmsg.Check([]byte(text), jsonmsg.Limits()); err != nil || kind != value.Object {
		raw.Fail(refuse(content.BadArguments, raw.At("arguments"), "expected the text of one object"))
		return nil
	}
	return json.RawMessage(text)
}

func refuse(code content.Code, where, format string, args ...any) error {
	return &content.BadError{Code: code, Where: where, Detail: fmt.Sprintf(format, args...)}
}

// bad is what is wrong with a state, as a *content.BadError; nil for nil.
func bad(err error) error {
	problem := jsonmsg.Problem(err)
	switch {
	case err == nil || errors.As(err, new(*content.BadError)):
		return err
	case errors.As(err, new(*value.Error)):
		return &content.BadError{Code: content.BadJSON, Detail: err.Error(), Err: err}
	}

	return &content.BadError{
		Code:   content.BadShape,
		Where:  problem.Path,
		Detail: problem.Detail(),
	}
}
