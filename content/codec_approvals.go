package content

import "encoding/json"

// call writes a call that stands in a message or in an approval.
func (e *encoder) call(c ToolCall) {
	switch c := c.(type) {
	case *FunctionCall:
		e.functionCall(c)
	case *MCPCall:
		e.mcpCall(c)
	case *HostedCall:
		e.fail(BadKind, "", "a hosted call can stand in an approval only", nil)
	}
}

func (e *encoder) functionCall(c *FunctionCall) {
	e.open(callKind)
	e.str(callIDField, c.CallID)
	e.str(nameField, c.Name)
	e.arguments(c.Arguments)
	if c.InformationalOnly || e.w.shape != python {
		e.flag(informationalField, c.InformationalOnly)
	}
	e.close(&c.Common, c.Properties)
}

func (e *encoder) mcpCall(c *MCPCall) {
	e.open(mcpCallKind)
	e.str(callIDField, c.CallID)
	e.str(toolNameField, c.Name)
	e.optional(serverNameField, c.ServerName)
	e.arguments(c.Arguments)
	e.close(&c.Common, c.Properties)
}

// askedCall writes the call of an approval.
func (e *encoder) askedCall(f field, c ToolCall) {
	outer := e.kind
	e.key(f)
	e.enter(e.w.name(f), -1)
	switch c := c.(type) {
	case nil:
		e.fail(BadShape, "", "expected a tool call: an object, found nothing", nil)
	case *HostedCall:
		e.hostedCall(c)
	default:
		e.checkArguments(&e.scratch, c.Args(), e.w.name(argumentsField))
		e.call(e.unlabelled(c))
	}
	e.leave()
	e.kind = outer
}

// unlabelled makes an MCP call the function call with a server's label that Python has for it.
func (e *encoder) unlabelled(c ToolCall) ToolCall {
	m, ok := c.(*MCPCall)
	if !ok || e.w.shape != python {
		return c
	}
	out := &FunctionCall{Common: m.Common, CallID: m.CallID, Name: m.Name, Arguments: m.Arguments}
	out.Properties = put(m.Properties, labelProperty, appendString(nil, m.ServerName))
	return out
}

func (e *encoder) hostedCall(c *HostedCall) {
	e.open(hostedKind)
	e.str(typeField, e.hostedName(c.Kind))
	e.optional(callIDField, c.CallID)
	e.close(&c.Common, c.Properties)
}

func (e *encoder) hostedName(kind string) string {
	for _, names := range hostedNames {
		if names[dotNet] == kind {
			return names[e.w.shape]
		}
	}
	e.fail(BadKind, e.w.name(typeField), "an unknown kind of hosted call", nil)
	return ""
}

func (e *encoder) toolRequest(c *ToolApprovalRequest) {
	props := withNote(c.Properties, c.Note)
	e.openInput(toolRequestKind, c.RequestID)
	e.askedCall(toolCallField, c.Call)
	switch {
	case e.w.shape == dotNet:
		e.flag(confirmationField, !c.NoConfirmation)
	case e.w.shape == python && c.NoConfirmation:
		props = withUnconfirmed(props)
	case c.NoConfirmation:
		e.flag(confirmationField, false)
	}
	e.asking()
	e.close(&c.Common, props)
}

// toolResponse writes an answer. An edit has a discriminator of its own, so that whoever does not know it refuses it instead of
// running the original call.
func (e *encoder) toolResponse(c *ToolApprovalResponse) {
	e.checkAlways(c, "")
	switch {
	case c.Edited != nil:
		e.checkEdit(c, e.w)
		e.answer(toolEditKind, c)
	case c.Always != AlwaysNot && e.w.shape != python:
		e.always(c)
	default:
		e.answer(toolResponseKind, c)
	}
}

func (e *encoder) answer(k kind, c *ToolApprovalResponse) {
	e.openInput(k, c.RequestID)
	e.flag(approvedField, c.Approved)
	e.askedCall(toolCallField, c.Call)
	if k == toolEditKind && c.Edited != nil {
		e.askedCall(editedField, c.Edited)
	}
	e.close(&c.Common, e.reason(c))
}

// reason writes the reason where the shape has it, and returns the properties, which are Python's place for it.
func (e *encoder) reason(c *ToolApprovalResponse) json.RawMessage {
	if e.w.shape == python {
		return withAnswer(c.Properties, c)
	}
	e.optional(reasonField, c.Reason)
	return c.Properties
}

// always puts an answer inside the wish for a standing approval.
func (e *encoder) always(c *ToolApprovalResponse) {
	e.open(alwaysKind)
	e.key(innerField)
	e.enter(e.w.name(innerField), -1)
	e.answer(toolResponseKind, c)
	e.leave()
	if c.Always == AlwaysTool || e.w.shape == dotNet {
		e.flag(alwaysToolField, c.Always == AlwaysTool)
	}
	if c.Always == AlwaysArguments || e.w.shape == dotNet {
		e.flag(alwaysArgumentsField, c.Always == AlwaysArguments)
	}
	e.dst = append(e.dst, '}')
}
