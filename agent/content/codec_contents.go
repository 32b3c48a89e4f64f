package content

import (
	"encoding/json"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"reflect"

	"github.com/assent-dev/assent/value"
)

// content writes one content.
func (e *encoder) content(c Content) {
	if len(e.path) > limits.MaxDepth {
		e.fail(BadJSON, "", "contents stand in contents too deeply", nil)
		return
	}
	if absent(c) {
		e.fail(BadShape, "", "expected a content, found nothing", nil)
		return
	}
	switch c := c.(type) {
	case *Text:
		e.open(textKind)
		e.str(textField, c.Text)
		e.close(textKind, &c.Common)
	case *Reasoning:
		e.open(reasoningKind)
		e.str(textField, c.Text)
		e.optional(protectedField, c.Protected)
		e.close(reasoningKind, &c.Common)
	case *Data:
		e.data(c)
	case *URI:
		e.open(uriKind)
		e.str(uriField, c.URI)
		e.optional(mediaTypeField, c.MediaType)
		e.close(uriKind, &c.Common)
	case *Error:
		e.open(errorKind)
		e.str(messageField, c.Message)
		e.optional(codeField, c.Code)
		e.optional(errorDetailsField, c.Details)
		e.close(errorKind, &c.Common)
	case *Usage:
		e.usage(c)
	case *FunctionResult:
		e.open(resultKind)
		e.str(callIDField, c.CallID)
		e.raw(resultField, c.Result)
		e.close(resultKind, &c.Common)
	case *MCPResult:
		e.mcpResult(c)
	case ToolCall:
		e.call(c)
	case *Unknown:
		e.unknown(c)
	default:
		e.input(c)
	}
}

// input writes a request or a response.
func (e *encoder) input(c Content) {
	switch c := c.(type) {
	case *ToolApprovalRequest:
		e.toolRequest(c)
	case *ToolApprovalResponse:
		e.toolResponse(c)
	case *TextApprovalRequest:
		e.openInput(textRequestKind, c.RequestID)
		e.str(textField, c.Text)
		e.asking()
		e.closeWith(textRequestKind, &c.Common, e.noted(&c.Common, &c.Note))
	case *TextApprovalResponse:
		e.openInput(textResponseKind, c.RequestID)
		e.flag(approvedField, c.Approved)
		e.optional(reasonField, c.Reason)
		e.close(textResponseKind, &c.Common)
	case *StructuredInputRequest:
		e.inputRequest(c)
	case *StructuredInputResponse:
		e.inputResponse(c)
	}
}

// absent reports whether c is nil or a nil pointer.
func absent(c Content) bool { return c == nil || reflect.ValueOf(c).IsNil() }

// openInput begins a request or a response with its id.
func (e *encoder) openInput(k kind, id string) {
	e.open(k)
	if blank(id) {
		e.fail(BadID, e.w.name(requestIDField), "expected the id of a request, found a blank one", nil)
	}
	e.str(requestIDField, id)
}

// asking writes the member with which Python marks contents that wait for the user.
func (e *encoder) asking() { e.flag(askingField, true) }

// data writes a Data. As in .NET and Go, the media type is left out if the URI contains it.
func (e *encoder) data(c *Data) {
	e.open(dataKind)
	e.str(uriField, c.URI)
	if e.w.shape == python || c.MediaType != mediaTypeOf(c.URI) {
		e.optional(mediaTypeField, c.MediaType)
	}
	e.optional(nameField, c.Name)
	e.close(dataKind, &c.Common)
}

func (e *encoder) usage(c *Usage) {
	e.open(usageKind)
	e.key(usageField)
	e.enter(e.w.name(usageField), -1)
	e.open(countsKind)
	e.count(inputField, c.Input)
	e.count(outputField, c.Output)
	e.count(totalField, c.Total)
	e.members(countsKind, c.Counts)
	e.Close('}')
	e.leave()
	e.close(usageKind, &c.Common)
}

// count writes a token count. .NET and Python leave out zero.
func (e *encoder) count(f field, n int64) {
	if n != 0 || e.w.shape == goFramework {
		e.key(f)
		e.Int(n)
	}
}

func (e *encoder) mcpResult(c *MCPResult) {
	e.open(mcpResultKind)
	e.str(callIDField, c.CallID)
	switch {
	case c.Outputs != nil && c.Value != nil:
		e.fail(BadShape, e.w.name(outputsField), "expected outputs or a value, found both", nil)
	case c.Value != nil && e.w.shape == python:
		e.value(c.Value)
	case c.Contents() != nil:
		e.contents(outputsField, c.Contents())
	}

	e.close(mcpResultKind, &c.Common)
}

// value writes an output of an MCP server that is not a list of contents. It fails for a text
// or a list of objects, because these would be read as contents.
func (e *encoder) value(output json.RawMessage) {
	e.raw(outputsField, output)
	if e.err != nil {
		return
	}
	d := newDecoder(e.w, jsonmsg.Trim(output))
	if d.text[0] == '"' || d.isList(jsonmsg.Span{}) {
		e.fail(
			BadShape,
			e.w.name(outputsField),
			"expected a value that is neither a text nor a list of contents, found "+jsonmsg.Describe(output),
			nil,
		)
	}
}

// unknown writes a content byte for byte. It fails if this format knows the content, because a
// reader would then read something that was not sent.
func (e *encoder) unknown(c *Unknown) {
	kind, err := e.checker.Check(c.Raw, limits)
	switch {
	case err != nil:
		e.fail(BadJSON, "", err.Error(), err)
		return
	case kind != value.Object:
		e.fail(BadShape, "", "expected a content: an object, found "+jsonmsg.Describe(c.Raw), nil)
		return
	}

	d := newDecoder(e.w, c.Raw)
	again := d.content(d.cursor(0))
	if _, ok := again.(*Unknown); !ok || d.err != nil {
		e.fail(BadKind, "", "an unknown content would be read as a known one", nil)
	}
	e.Verbatim(c.Raw)
}

func (e *encoder) inputRequest(c *StructuredInputRequest) {
	e.openInput(inputRequestKind, c.RequestID)
	e.optional(textField, c.Text)
	if c.Schema != nil && !isSchema(c.Schema) {
		e.fail(BadShape, e.w.name(schemaField),
			"expected a JSON Schema: an object, found "+jsonmsg.Describe(c.Schema), nil)
	}
	e.raw(schemaField, c.Schema)
	e.asking()
	e.closeWith(inputRequestKind, &c.Common, e.noted(&c.Common, &c.Note))
}

func (e *encoder) inputResponse(c *StructuredInputResponse) {
	e.openInput(inputResponseKind, c.RequestID)
	if fault := c.fault(); fault != "" {
		e.fail(BadShape, e.w.name(structuredField), "expected "+fault+", found "+jsonmsg.Describe(c.Data), nil)
	}
	e.raw(structuredField, c.Data)
	e.flag(declinedField, c.Declined)
	e.optional(reasonField, c.Reason)
	e.close(inputResponseKind, &c.Common)
}
