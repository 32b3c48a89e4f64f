package resolve

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// JSON returns the call in the form that ParseCall reads (docs/contracts/decide.md), with the
// arguments byte for byte. It is not named MarshalJSON, because encoding/json changes the white
// space of what a Marshaler returns.
func (c *Call) JSON() ([]byte, error) {
	if c.Args == nil && c.Values != nil {
		return nil, errors.New(
			"the call holds decoded arguments: expected their exact text, which is what is approved",
		)
	}
	o := &callObject{}
	o.text("kind", string(c.Kind))
	o.text("tool", c.Tool)
	o.text("server", c.Server)
	o.text("agent", c.Agent)
	o.text("skill", c.Skill)
	o.raw("args", c.Args)
	if c.ParentInput != nil {
		in := &callObject{}
		in.raw("input", c.ParentInput)
		o.object("parent", in)
	}
	if len(c.Annotations) > 0 {
		o.value("annotations", c.Annotations)
	}
	if len(c.Declared) > 0 {
		o.value("declared", c.Declared)
	}
	if c.Remote != RemoteUnstated {
		o.value("remote", c.Remote)
	}
	o.text("principal", c.Principal)
	o.text("session", c.Session)
	o.text("tool_definition", c.ToolDefinition)
	if c.Workspace != nil {
		o.value("workspace", c.Workspace)
	}
	if !c.At.IsZero() {
		o.text("at", c.At.UTC().Format(time.RFC3339Nano))
	}
	if c.HistoryKnown {
		o.history(c.History)
	}
	return o.end()
}

// callObject writes a JSON object. Every value must be valid JSON by itself, so that no value can
// add a field.
type callObject struct {
	out []byte
	err error
}

// raw adds a member with a JSON text, byte for byte. It adds nothing if the text is nil.
func (o *callObject) raw(name string, text []byte) {
	switch {
	case text == nil || o.err != nil:
	case !json.Valid(text):
		o.err = fmt.Errorf("the call's %s: expected JSON", name)
	default:
		o.out = append(append(append(o.out, `,"`+name...), `":`...), text...)
	}
}

// text adds a member with a string. It adds nothing if the string is empty. Broken UTF-8 is an
// error: an encoder would replace it, so that the call would name something else.
func (o *callObject) text(name, s string) {
	switch {
	case s == "":
	case !utf8.ValidString(s):
		o.err = errors.Join(o.err, fmt.Errorf("the call's %s: expected UTF-8", name))
	default:
		o.value(name, s)
	}
}

func (o *callObject) value(name string, v any) {
	text, err := json.Marshal(v)
	o.err = errors.Join(o.err, err)
	o.raw(name, text)
}

func (o *callObject) object(name string, in *callObject) {
	text, err := in.end()
	o.err = errors.Join(o.err, err)
	o.raw(name, text)
}

func (o *callObject) end() ([]byte, error) {
	if o.err != nil {
		return nil, o.err
	}
	return append(append([]byte{'{'}, o.out[min(1, len(o.out)):]...), '}'), nil
}
