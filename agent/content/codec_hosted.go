package content

import (
	"encoding/json"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"slices"
)

// Python has one type for calls that run here and for calls that a service runs. The member
// hosted distinguishes them. Releases before 1.22 only have the property server_label. A server
// name alone doesn't decide it, since local calls may have one too.
const labelProperty = "server_label"

func hostedMember() string { return fieldNames[hostedField][python] }
func serverMember() string { return fieldNames[serverNameField][python] }

// saysHosted reports whether a call is marked as run by a service. Outside of an approval such
// a call belongs to the history and must not run here, so it is read as InformationalOnly. The
// member itself is kept.
func (o *object) saysHosted() bool {
	if o.d.w.shape != python {
		return false
	}
	hosted, _ := o.d.hosted(o.extra)
	return hosted
}

// hosted reads the member hosted, if there is one. Like Python's library, it accepts only true
// and false, and rejects null.
func (t *trail) hosted(members []Member) (hosted, stated bool) {
	raw := memberOf(members, hostedMember())
	switch {
	case raw == nil:
		return false, false
	case string(raw) != "true" && string(raw) != "false":
		t.fail(BadShape, hostedMember(), "expected true or false, found "+jsonmsg.Describe(raw), nil)
	}

	return string(raw) == "true", true
}

// ownedCall converts the call of an approval to an MCP call if a service runs it. It fails if
// releases of Python's library would disagree about who runs the call.
func (d *decoder) ownedCall(c *FunctionCall) ToolCall {
	hosted, stated := d.hosted(c.Extra)
	label, properties := jsonmsg.Take(c.Properties, labelProperty)
	labelled := label != nil && jsonmsg.Describe(label) != "null"
	switch {
	case stated && !hosted && labelled:
		d.fail(
			BadShape,
			hostedMember(),
			"expected true beside the property "+labelProperty+", found false",
			nil,
		)
		return c
	case !hosted && !labelled:
		return c
	}

	out := &MCPCall{
		Common:    c.Common,
		CallID:    c.CallID,
		Name:      c.Name,
		Arguments: c.Arguments,
	}
	out.ServerName = d.serverOf(memberOf(c.Extra, serverMember()), label)
	out.Properties = properties
	out.Extra = slices.DeleteFunc(slices.Clone(c.Extra), func(m Member) bool {
		return m.Key == hostedMember() || m.Key == serverMember()
	})
	if len(out.Extra) == 0 {
		out.Extra = nil
	}
	return out
}

// serverOf returns the server name of a hosted call: the member server_name, or the property of
// older releases. It fails if both exist and differ.
func (d *decoder) serverOf(member, label json.RawMessage) string {
	name, named := d.optionalText(serverMember(), member)
	old, labelled := d.optionalText(propertiesName()+"."+labelProperty, label)
	if named && labelled && name != old {
		d.fail(BadShape, serverMember(),
			"expected the server that the property "+labelProperty+" names, found another", nil)
	}
	if named {
		return name
	}
	return old
}

func propertiesName() string { return fieldNames[propertiesField][python] }

// optionalText reads a string that may be absent or null.
func (d *decoder) optionalText(name string, raw json.RawMessage) (text string, ok bool) {
	if raw == nil || jsonmsg.Describe(raw) == "null" {
		return "", false
	}
	if text, ok = jsonmsg.ReadString(raw); !ok {
		d.fail(BadShape, name, "expected a string, found "+jsonmsg.Describe(raw), nil)
	}
	return text, ok
}

// askedToolCall writes the call of an approval.
func (e *encoder) askedToolCall(c ToolCall) {
	if e.w.shape != python {
		e.call(c)
		return
	}
	switch c := c.(type) {
	case *MCPCall:
		e.hostedMCPCall(c)
	case *FunctionCall:
		e.checkLocal(c)
		e.call(c)
	}
}

// hostedMCPCall writes the members that current releases read, and the property server_label
// for releases before 1.22.
func (e *encoder) hostedMCPCall(c *MCPCall) {
	e.open(hostedMCPKind)
	e.str(callIDField, c.CallID)
	e.str(nameField, c.Name)
	e.arguments(c.Arguments)
	e.optional(serverNameField, c.ServerName)
	e.flag(hostedField, true)

	_, properties := jsonmsg.Take(e.properties(&c.Common), labelProperty)
	if c.ServerName != "" {
		properties = jsonmsg.Put(properties, labelProperty, jsonmsg.AppendString(nil, c.ServerName))
	}
	e.closeWith(hostedMCPKind, &c.Common, properties)
}

// checkLocal fails if a reader would take a function call for a hosted one.
func (e *encoder) checkLocal(c *FunctionCall) {
	if label, _ := jsonmsg.Take(e.properties(&c.Common), labelProperty); label != nil {
		e.fail(BadKind, e.w.name(propertiesField),
			"a call of a function would be read as a hosted one: "+labelProperty, nil)
	}
	if hosted, _ := e.hosted(c.Extra); hosted {
		e.fail(BadKind, hostedMember(), "a call of a function would be read as a hosted one", nil)
	}
}

// checkOwner fails if a call that must run here is marked as hosted. A member named hosted may
// have come from another format.
func (e *encoder) checkOwner(c *FunctionCall) {
	if e.w.shape != python {
		return
	}
	if hosted, _ := e.hosted(c.Extra); hosted && !c.InformationalOnly {
		e.fail(BadKind, hostedMember(), "a call of a function would be read as a hosted one", nil)
	}
}

func memberOf(members []Member, key string) json.RawMessage {
	for _, m := range members {
		if m.Key == key {
			return m.Raw
		}
	}
	return nil
}
