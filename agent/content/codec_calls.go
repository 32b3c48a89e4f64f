package content

import (
	"cmp"
	"github.com/assent-dev/assent/internal/jsonmsg"

	"github.com/assent-dev/assent/value"
)

// call makes a call in a message.
func (o *object) call() ToolCall {
	if o.kind == mcpCallKind {
		return &MCPCall{
			Common:     o.common(),
			CallID:     o.need(callIDField),
			Name:       o.need(toolNameField),
			ServerName: o.text(serverNameField),
			Arguments:  o.arguments(),
		}
	}

	return &FunctionCall{
		Common:            o.common(),
		CallID:            o.need(callIDField),
		Name:              o.need(nameField),
		Arguments:         o.arguments(),
		InformationalOnly: o.flag(informationalField, false) || o.saysHosted(),
	}
}

// askedCall reads the call that an approval is about, or its edited form.
func (o *object) askedCall(f field) ToolCall {
	at := o.at[f]
	if !o.has(f) || o.d.text[at.From] != '{' {
		o.bad(BadShape, f, "a tool call: an object")
		return nil
	}
	o.d.enter(o.name(f), -1)
	defer o.d.leave()
	members := o.d.splitAt(at)
	ref := o.d.callKind(members, o.ref.call)
	call := object{d: o.d, kind: ref.kind, ref: ref}
	call.sortAll(members)
	return call.checkedCall()
}

// callKind finds the kind of a call. Without a discriminator it is the expected kind.
func (d *decoder) callKind(members []named, only kind) kindRef {
	ref := kindRef{kind: cmp.Or(only, callKind)}
	name := d.discriminator(members)
	if name == "" {
		return ref
	}
	if ref = d.w.kinds[name]; only != unknownKind && ref.kind != only {
		d.fail(BadKind, d.w.name(typeField),
			"expected "+kindNames[only][d.w.shape]+", found another kind of content", nil)
	}
	switch ref.kind {
	case callKind, mcpCallKind, hostedKind:
		return ref
	}
	d.fail(BadKind, d.w.name(typeField), "expected a tool call, found another kind of content", nil)
	return kindRef{kind: hostedKind}
}

// checkedCall makes a call for an approval. A person is asked about it, so all parsers must
// read its arguments in the same way.
func (o *object) checkedCall() ToolCall {
	if o.kind == hostedKind {
		return &HostedCall{Common: o.common(), Kind: o.ref.hosted, CallID: o.text(callIDField)}
	}

	call := o.call()
	// Arguments that are an object were checked with the whole document.
	if o.has(argumentsField) && o.d.text[o.at[argumentsField].From] != '{' {
		o.d.checkArguments(call.Args(), o.name(argumentsField), limits)
	}
	if f, ok := call.(*FunctionCall); ok && o.d.w.shape == python {
		return o.d.ownedCall(f)
	}
	return call
}

// checkArguments fails unless the arguments are absent or one object.
func (t *trail) checkArguments(args []byte, name string, lim value.Limits) {
	if len(args) > 0 {
		t.checkObject(name, args, lim, BadArguments, BadArguments)
	}
}

func (o *object) toolRequest() *ToolApprovalRequest {
	r := &ToolApprovalRequest{
		Common:    o.common(),
		RequestID: o.id(),
		Call:      o.askedCall(toolCallField),
	}
	r.NoConfirmation = !o.flag(confirmationField, true)
	if o.d.w.shape == python {
		r.NoConfirmation = takeUnconfirmed(&r.Common)
	}
	r.Note = o.takeNote(&r.Common)
	return r
}

func (o *object) toolResponse() *ToolApprovalResponse {
	r := &ToolApprovalResponse{
		Common:    o.common(),
		RequestID: o.id(),
		Approved:  o.needFlag(approvedField),
		Call:      o.askedCall(toolCallField),
		Reason:    o.text(reasonField),
	}
	if o.d.w.shape == python {
		takeAnswer(r)
	}
	switch {
	case o.kind == toolEditKind:
		r.Edited, _ = o.askedCall(editedField).(*FunctionCall)
		o.d.checkEdit(r, o.d.w)
	case o.at[editedField].Exists():
		o.bad(BadKind, editedField, "an edit under its own discriminator")
	}

	o.d.checkAlways(r, o.d.w.name(propertiesField))
	return r
}

// checkEdit fails if an edit changes more than the arguments: a call of another tool needs its
// own approval.
func (t *trail) checkEdit(r *ToolApprovalResponse, w *wire) {
	call, ok := r.Call.(*FunctionCall)
	switch {
	case t.err != nil:
	case !ok || r.Edited == nil:
		t.fail(BadKind, w.name(editedField), "only calls of functions can be edited", nil)
	case !r.Approved:
		t.fail(BadShape, w.name(approvedField), "an edit is an approval: expected true", nil)
	case call.CallID != r.Edited.CallID || call.Name != r.Edited.Name:
		t.fail(BadShape, w.name(editedField), "expected the same call with other arguments", nil)
	}
}

// checkAlways fails if a standing approval contradicts the answer that contains it.
func (t *trail) checkAlways(r *ToolApprovalResponse, name string) {
	switch {
	case r.Always == AlwaysNot:
	case r.Always > AlwaysArguments:
		t.fail(BadShape, name, "an unknown scope of a standing approval", nil)
	case !r.Approved:
		t.fail(BadShape, name, "a standing approval needs an approval", nil)
	case r.Edited != nil:
		t.fail(BadShape, name, "an edited call can't be a standing approval", nil)
	}
}

// always reads an answer that is wrapped in a request for a standing approval.
func (o *object) always() Content {
	at := o.at[innerField]
	if !o.has(innerField) || o.d.text[at.From] != '{' {
		o.bad(BadShape, innerField, "a toolApprovalResponse: an object")
		return nil
	}
	r := o.innerResponse(at)
	tool, arguments := o.flag(alwaysToolField, false), o.flag(alwaysArgumentsField, false)
	switch {
	case tool && arguments:
		o.d.fail(BadShape, o.name(alwaysArgumentsField), "expected one scope, found two", nil)
	case tool:
		r.Always = AlwaysTool
	case arguments:
		r.Always = AlwaysArguments
	}

	o.d.checkAlways(r, o.name(innerField))
	r.adopt(o.common(), o.d.w)
	return r
}

func (o *object) innerResponse(at jsonmsg.Span) *ToolApprovalResponse {
	o.d.enter(o.name(innerField), -1)
	defer o.d.leave()
	members := o.d.splitAt(at)
	if name := o.d.discriminator(members); name != "" && o.d.w.kinds[name].kind != toolResponseKind {
		o.d.fail(BadKind, o.name(typeField), "expected toolApprovalResponse, found another kind of content", nil)
	}
	inner := object{d: o.d, kind: toolResponseKind}
	inner.sortAll(members)
	return inner.toolResponse()
}

// adopt copies the properties and unknown members of the outer object to an answer, unless the
// answer has its own.
func (r *ToolApprovalResponse) adopt(outer Common, w *wire) {
	if r.Properties == nil {
		r.Properties = outer.Properties
	}
	known := map[string]bool{}
	for _, m := range r.Extra {
		known[m.Key] = true
	}
	for _, m := range outer.Extra {
		if w.field(toolResponseKind, m.Key) == noField && !known[m.Key] {
			r.Extra = append(r.Extra, m)
		}
	}
}
