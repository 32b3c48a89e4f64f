package content

import (
	"encoding/json"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// content makes the content that the members of an object describe.
func (o *object) content() Content {
	switch o.kind {
	case textKind:
		return &Text{Common: o.common(), Text: o.text(textField)}
	case reasoningKind:
		return &Reasoning{
			Common:    o.common(),
			Text:      o.text(textField),
			Protected: o.text(protectedField),
		}
	case dataKind:
		return o.data()
	case uriKind:
		return &URI{
			Common:    o.common(),
			URI:       o.need(uriField),
			MediaType: o.text(mediaTypeField),
		}
	case errorKind:
		return &Error{
			Common:  o.common(),
			Message: o.text(messageField),
			Code:    o.text(codeField),
			Details: o.text(errorDetailsField),
		}
	case usageKind:
		return o.usage()
	case resultKind:
		return &FunctionResult{
			Common: o.common(),
			CallID: o.need(callIDField),
			Result: o.raw(resultField),
		}
	case mcpResultKind:
		return o.mcpResult()
	case callKind, mcpCallKind:
		return o.call()
	}

	return o.input()
}

// input makes a request or a response.
func (o *object) input() Content {
	switch o.kind {
	case toolRequestKind:
		return o.toolRequest()
	case toolResponseKind, toolEditKind:
		return o.toolResponse()
	case alwaysKind:
		return o.always()
	case textRequestKind:
		r := &TextApprovalRequest{
			Common:    o.common(),
			RequestID: o.id(),
			Text:      o.need(textField),
		}
		r.Note = o.takeNote(&r.Common)
		return r
	case textResponseKind:
		return &TextApprovalResponse{
			Common:    o.common(),
			RequestID: o.id(),
			Approved:  o.needFlag(approvedField),
			Reason:    o.text(reasonField),
		}
	case inputRequestKind:
		return o.inputRequest()
	}

	return o.inputResponse()
}

// data makes a Data. If the object has no media type, it is taken from the data URI, because
// some formats don't repeat it.
func (o *object) data() *Data {
	out := &Data{
		Common:    o.common(),
		URI:       o.need(uriField),
		MediaType: o.text(mediaTypeField),
		Name:      o.text(nameField),
	}
	if out.MediaType == "" {
		out.MediaType = mediaTypeOf(out.URI)
	}
	return out
}

func (o *object) usage() *Usage {
	out := &Usage{Common: o.common()}
	at := o.at[usageField]
	if !o.has(usageField) {
		return out
	}
	if o.d.text[at.From] != '{' {
		o.bad(BadShape, usageField, "an object")
		return out
	}
	counts := object{d: o.d, kind: countsKind}
	o.d.enter(o.name(usageField), -1)
	counts.sortAll(o.d.splitAt(at))
	out.Input = counts.count(inputField)
	out.Output = counts.count(outputField)
	out.Total = counts.count(totalField)
	out.Counts = counts.extra
	o.d.leave()
	return out
}

// mcpResult reads the outputs of an MCP call. Python allows any value there.
func (o *object) mcpResult() *MCPResult {
	out := &MCPResult{Common: o.common(), CallID: o.need(callIDField)}
	at := o.at[outputsField]
	switch {
	case !o.has(outputsField):
	case o.d.isList(at):
		out.Outputs = o.d.contents(o.d.cursor(int(at.From)), o.name(outputsField))
		if out.Outputs == nil {
			out.Outputs = []Content{}
		}
	case o.d.w.shape != python:
		o.bad(BadShape, outputsField, "an array")
	case o.d.text[at.From] == '"':
		out.Outputs = []Content{&Text{Text: o.need(outputsField)}}
	default:
		out.Value = o.raw(outputsField)
	}

	return out
}

// isList reports whether a value is a list of contents. Python's outputs may be lists of other
// values.
func (d *decoder) isList(at jsonmsg.Span) bool {
	all := d.text[at.From] == '['
	if !all || d.w.shape != python {
		return all
	}
	c := d.cursor(int(at.From))
	for range c.Elements() {
		all = all && d.text[c.Next()] == '{'
	}
	return all
}

func (o *object) inputRequest() *StructuredInputRequest {
	r := &StructuredInputRequest{
		Common:    o.common(),
		RequestID: o.id(),
		Text:      o.text(textField),
		Schema:    o.raw(schemaField),
	}
	if r.Schema != nil && !isSchema(r.Schema) {
		o.bad(BadShape, schemaField, "a JSON Schema: an object")
	}
	r.Note = o.takeNote(&r.Common)
	return r
}

// isSchema reports whether a JSON text has a type that a JSON Schema may have.
func isSchema(raw json.RawMessage) bool {
	return jsonmsg.IsObject(raw) || jsonmsg.Describe(raw) == "a boolean"
}

// inputResponse distinguishes null, which may be the requested data, from missing data.
func (o *object) inputResponse() *StructuredInputResponse {
	r := &StructuredInputResponse{
		Common:    o.common(),
		RequestID: o.id(),
		Declined:  o.flag(declinedField, false),
		Reason:    o.text(reasonField),
	}
	if at := o.at[structuredField]; at.Exists() {
		r.Data = o.d.raw(at)
	}
	if r.Declined && jsonmsg.Describe(r.Data) == "null" {
		r.Data = nil
	}
	if fault := r.fault(); fault != "" {
		o.bad(BadShape, structuredField, fault)
	}
	return r
}

// fault describes the data that would have been expected, or returns an empty string if the
// data is valid.
func (r *StructuredInputResponse) fault() string {
	switch {
	case r.Declined && r.Data != nil:
		return "nothing beside declined"
	case !r.Declined && r.Data == nil:
		return "data, or declined: true"
	}

	return ""
}
