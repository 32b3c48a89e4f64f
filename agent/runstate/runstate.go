// Package runstate reads the calls that wait for approval in a saved RunState of OpenAI's
// Agents SDK for Python, so that people can be asked about them here.
//
// It writes nothing back: the program that owns the state must find the interruption by the id
// of the request, and approve or reject it there (state.approve, state.reject with a
// rejection_message).
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

// Newest is the latest supported schema version, which release 0.24 of the SDK writes. The SDK
// rejects later versions too.
const Newest = "1.21"

const newestMinor = 21

// Read returns a request for each interruption, in order. It returns none if the state doesn't
// wait for approval. The id of a request is the call id. Interruptions of agents that are used
// as tools are included, with the agent's name in the note. The error is a *content.BadError.
// An interruption that can't be shown completely is an error.
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

// agentName distinguishes agents with the same name, as the SDK does.
type agentName struct{ name, identity string }

func agentOf(o jsonmsg.Fields, member string) agentName {
	a := o.Required(member)
	return agentName{name: a.NonEmpty("name"), identity: a.Text("identity")}
}

// request returns the request for an interruption, or nil after an error.
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

// nameOf returns the name of a tool with its namespace as prefix, since tools in different
// namespaces may have the same name. A namespace that is equal to the name is ignored.
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

// what returns the member that describes the action of a call, for calls other than function
// calls.
func what() map[string]string {
	return map[string]string{
		"shell_call":       "action",
		"local_shell_call": "action",
		"apply_patch_call": "operation",
		"custom_tool_call": "input",
	}
}

// argumentsOf returns the arguments of a function call. For any other call it returns an object
// with the member that describes the action.
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

// arguments returns the arguments. It fails unless they are an object, since it would not be
// clear what is approved.
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

// bad converts an error in a state to a *content.BadError. It returns nil for nil.
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
