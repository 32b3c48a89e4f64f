package content

import "encoding/json"

// call writes a call in a message or in an approval.
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
	e.checkOwner(c)
	e.open(callKind)
	e.str(callIDField, c.CallID)
	e.str(nameField, c.Name)
	e.arguments(c.Arguments)
	if c.InformationalOnly || e.w.shape != python {
		e.flag(informationalField, c.InformationalOnly)
	}
	e.close(callKind, &c.Common)
}

func (e *encoder) mcpCall(c *MCPCall) {
	e.open(mcpCallKind)
	e.str(callIDField, c.CallID)
	e.str(toolNameField, c.Name)
	e.optional(serverNameField, c.ServerName)
	e.arguments(c.Arguments)
	e.close(mcpCallKind, &c.Common)
}

// askedCall writes the call of an approval.
func (e *encoder) askedCall(f field, c ToolCall) {
	e.key(f)
	e.enter(e.w.name(f), -1)
	if absent(c) {
		e.fail(BadShape, "", "expected a tool call: an object, found nothing", nil)
	} else if hosted, ok := c.(*HostedCall); ok {
		e.hostedCall(hosted)
	} else {
		e.checkArguments(c.Args(), e.w.name(argumentsField), limits)
		e.askedToolCall(c)
	}

	e.leave()
}

func (e *encoder) hostedCall(c *HostedCall) {
	e.open(hostedKind)
	e.str(typeField, e.hostedName(c.Kind))
	e.optional(callIDField, c.CallID)
	e.close(hostedKind, &c.Common)
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
	props := e.noted(&c.Common, &c.Note)
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
	e.closeWith(toolRequestKind, &c.Common, props)
}

// toolResponse writes an answer. An edit has its own discriminator, so that a reader that
// doesn't support edits rejects it instead of running the original call.
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
	e.closeWith(k, &c.Common, e.reason(c))
}

// reason writes the reason if the format has a member for it. In Python's format the reason is
// part of the properties. reason returns the properties to write.
func (e *encoder) reason(c *ToolApprovalResponse) json.RawMessage {
	props := e.properties(&c.Common)
	if e.w.shape != python {
		e.optional(reasonField, c.Reason)
		return props
	}
	props = withAnswer(props, c)
	again := ToolApprovalResponse{Common: Common{Properties: props}}
	if takeAnswer(&again); again.Always != c.Always || again.Reason != c.Reason {
		e.fail(BadShape, e.w.name(propertiesField),
			"the properties say something else than the answer: "+answerProperty, nil)
	}
	return props
}

// always writes an answer wrapped in a request for a standing approval.
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
	e.Close('}')
}
