package wire

import (
	"encoding/json"
	"slices"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// The methods that a gateway decides on.
const (
	MethodCall   = "tools/call"
	MethodRead   = "resources/read"
	MethodPrompt = "prompts/get"
)

// Call is the params of tools/call.
type Call struct {
	Name string // as the client has it
	// Arguments are the received bytes, or {} when absent. They are not validated here: the
	// decision refuses invalid ones.
	Arguments json.RawMessage
	Task      *Task // 2025-11-25: the client wants a task; nil when absent, and ignored in a modern request
	// Responses are a modern client's answers to an input_required result, and State is the state
	// that came with it. They are nil and empty when absent.
	Responses json.RawMessage
	State     string
	Meta      Meta
}

// Task is the request of a client of 2025-11-25 to run a call as a task.
type Task struct {
	TTL int64 // milliseconds; 0 when it says nothing
}

// ReadCall reads the params of tools/call. It refuses members that the protocol doesn't have,
// because approvers would not see them.
func ReadCall(params []byte) (*Call, *Error) {
	known := []string{"name", "arguments", "_meta", "task", "inputResponses", "requestState"}
	all, err := split(objectOr(params), known...)
	if err != nil {
		return nil, badParams(err)
	}
	for name := range all {
		if !slices.Contains(known, name) {
			return nil, Fail(CodeInvalidParams, "params: unknown member %q of a tool call", name)
		}
	}

	call := &Call{}
	for _, read := range []func(members) *Error{call.readName, call.readArguments, call.readTask, call.readRetry} {
		if bad := read(all); bad != nil {
			return nil, bad
		}
	}
	meta, bad := readMeta(all["_meta"])
	call.Meta = meta
	return call, bad
}

// readName reads the tool's name. It isn't split into a server and a tool here: the gateway's table
// does that.
func (c *Call) readName(all members) *Error {
	name, sound := jsonmsg.ReadString(all["name"])
	if !sound || name == "" {
		return Fail(CodeInvalidParams, "params.name: expected a tool's name")
	}
	c.Name = name
	return nil
}

// readArguments keeps the arguments byte for byte, and uses {} if there are none. Null is refused
// because it is no object.
func (c *Call) readArguments(all members) *Error {
	raw, there := all["arguments"]
	if !there {
		c.Arguments = json.RawMessage("{}")
		return nil
	}
	if !jsonmsg.IsObject(raw) {
		return Fail(CodeInvalidParams, "params.arguments: expected an object, found %s", jsonmsg.Describe(raw))
	}
	c.Arguments = raw
	return nil
}

// readTask reads the task that a client of 2025-11-25 requests.
func (c *Call) readTask(all members) *Error {
	raw, there := all["task"]
	if !there {
		return nil
	}
	f := jsonmsg.Read(raw, Limits())
	c.Task = &Task{TTL: f.Int("ttl", 0, maxID)}
	if f.Err() != nil {
		return Fail(CodeInvalidParams, "params.task: %v", f.Err())
	}
	return nil
}

// readRetry reads what a modern client brings back: its answers, and the state that came with the
// questions.
func (c *Call) readRetry(all members) *Error {
	if raw, there := all["inputResponses"]; there {
		if kind, err := jsonmsg.Check(raw, Limits()); err != nil || kind != value.Object {
			return Fail(CodeInvalidParams, "params.inputResponses: expected an object")
		}
		c.Responses = raw
	}

	raw, there := all["requestState"]
	if !there {
		return nil
	}
	state, sound := jsonmsg.ReadString(raw)
	if !sound {
		return Fail(CodeInvalidParams, "params.requestState: expected a string")
	}
	c.State = state
	return nil
}

func badParams(err error) *Error { return Fail(CodeInvalidParams, "params: %v", err) }

// objectOr returns the text, or an empty object if the text is empty.
func objectOr(text []byte) []byte {
	if len(text) == 0 {
		return []byte("{}")
	}
	return text
}
