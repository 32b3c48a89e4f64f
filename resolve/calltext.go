package resolve

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// JSON writes the call as ParseCall reads it
// (docs/contracts/decide.md): the arguments byte for byte. It is no
// MarshalJSON, since encoding/json changes the white space of what a
// Marshaler returns.
func (c *Call) JSON() ([]byte, error) {
	if c.Args == nil && c.Values != nil {
		return nil, errors.New(
			"the call holds decoded arguments: expected their exact text, which is what is approved",
		)
	}
	out, err := jsonmsg.Object(c.members)
	if err != nil {
		return nil, fmt.Errorf("the call's %w", err)
	}
	return out, nil
}

func (c *Call) members(w *jsonmsg.Writer) {
	w.Optional("kind", string(c.Kind))
	w.Optional("tool", c.Tool)
	w.Optional("server", c.Server)
	w.Optional("agent", c.Agent)
	w.Optional("skill", c.Skill)
	writeRaw(w, "args", c.Args)
	if c.ParentInput != nil {
		w.Name("parent").Object(func(w *jsonmsg.Writer) { writeRaw(w, "input", c.ParentInput) })
	}
	if len(c.Annotations) > 0 {
		w.Name("annotations").Value(c.Annotations)
	}
	if c.Remote != RemoteUnstated {
		w.Name("remote").Value(c.Remote)
	}
	w.Optional("principal", c.Principal)
	w.Optional("session", c.Session)
	w.Optional("tool_definition", c.ToolDefinition)
}

// writeRaw puts a JSON text in, byte for byte; nil is nothing.
// Arguments that two readers could read differently are written too:
// deciding denies them.
func writeRaw(w *jsonmsg.Writer, name string, text []byte) {
	switch {
	case text == nil:
	case !json.Valid(text):
		w.Fail(&jsonmsg.Error{Path: name, Expected: "JSON"})
	default:
		w.Name(name).Verbatim(text)
	}
}
