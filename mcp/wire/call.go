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
	// Arguments are byte for byte as they came, {} when absent. They
	// are not judged: whoever decides refuses what is unsound.
	Arguments json.RawMessage
	Task      *Task // 2025-11-25: the client wants a task; nil when absent, and ignored in a modern request
	// modern: what the client answers to an input_required result, and
	// the state that came with it; nil and "" when absent
	Responses json.RawMessage
	State     string
	Meta      Meta
}

// Task is how a client of 2025-11-25 wants a call as a task.
type Task struct {
	TTL int64 // milliseconds; 0 when it says nothing
}

// ReadCall reads the params of tools/call. A member that the protocol
// doesn't have is refused, since nobody who approves the call would see
// it.
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

// readName reads the tool's name, by which no server is told apart: the
// gateway's table does that.
func (c *Call) readName(all members) *Error {
	name, sound := jsonmsg.ReadString(all["name"])
	if !sound || name == "" {
		return Fail(CodeInvalidParams, "params.name: expected a tool's name")
	}
	c.Name = name
	return nil
}

// readArguments keeps the arguments byte for byte, and {} where there
// are none. Null is no object.
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

// readTask reads that a client of 2025-11-25 wants a task.
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

// readRetry reads what a modern client brings back: its answers, and
// the state that came with the questions.
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

// objectOr is a text, or that of an empty object where there is none.
func objectOr(text []byte) []byte {
	if len(text) == 0 {
		return []byte("{}")
	}
	return text
}
