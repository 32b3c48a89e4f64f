package openai

import (
	"encoding/json"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
)

// request sends an approval request back to the service, because the answer refers to it. A
// service that keeps the history has it already.
func (w *itemWriter) request(where string, c *content.ToolApprovalRequest) error {
	call, ok := c.Call.(*content.MCPCall) // silent has left only those
	if !ok || c.RequestID == "" || call.Name == "" {
		return bad(content.BadID, where, "expected a request with an id and a name")
	}
	w.history.asked[c.RequestID] = true
	if w.history.kept {
		return nil
	}
	w.add("mcp_approval_request", func(p *jsonmsg.Writer) {
		p.Member("id", c.RequestID)
		p.Member("server_label", call.ServerName)
		p.Member("name", call.Name)
		p.Member("arguments", argumentsText(call.Arguments))
	})
	return nil
}

// answer sends a person's answer about a call of an MCP server. The copy of the call is not
// sent: the service runs the call that it asked about.
func (w *itemWriter) answer(where string, c *content.ToolApprovalResponse) error {
	if _, ok := c.Call.(*content.MCPCall); !ok && (c.Call != nil || !w.history.asked[c.RequestID]) {
		return bad(content.BadKind, where, "an answer about something that this service didn't ask")
	}

	if err := w.history.answer(where, c); err != nil {
		return err
	}
	w.add("mcp_approval_response", func(p *jsonmsg.Writer) {
		p.Member("approval_request_id", c.RequestID)
		p.Name("approve").Bool(c.Approved)
		p.Optional("reason", c.Reason)
	})
	return nil
}

// mcpCall writes a call that the service made, with its result.
func (w *itemWriter) mcpCall(where string, c *content.MCPCall) error {
	if c.CallID == "" || c.Name == "" {
		return bad(content.BadID, where, "expected a call with an id and a name")
	}
	w.add("mcp_call", func(p *jsonmsg.Writer) {
		p.Member("id", c.CallID)
		p.Member("server_label", c.ServerName)
		p.Member("name", c.Name)
		p.Member("arguments", argumentsText(c.Arguments))
		if id := property(c, approvalKey); id != "" {
			p.Member("approval_request_id", id)
		}
		if result := w.history.results[c.CallID]; result != nil {
			outcome(p, where, result)
		}
	})
	return nil
}

func outcome(p *jsonmsg.Writer, where string, r *content.MCPResult) {
	output := ""
	for _, c := range r.Contents() {
		switch c := c.(type) {
		case *content.Text:
			output += c.Text
		case *content.Error:
			failure(p, c)
			return
		default:
			p.Fail(misplaced(where, c, content.Assistant))
			return
		}
	}

	p.Member("output", output)
}

// failure writes an error in its original form if that is known.
func failure(p *jsonmsg.Writer, c *content.Error) {
	if json.Valid([]byte(c.Details)) {
		p.Name("error").Raw([]byte(c.Details))
		return
	}
	p.Member("error", c.Message)
}

// mcpContents reads a call that the service made, and its result if there is one.
func mcpContents(o object) []content.Content {
	call := mcpCallOf(o)
	call.CallID = o.NonEmpty("id")
	call.Properties = properties(approvalKey, o.Text("approval_request_id"))
	out := []content.Content{call}
	result := &content.MCPResult{CallID: call.CallID}
	switch {
	case o.Has("error"):
		result.Outputs = []content.Content{failureOf(o)}
	case o.Has("output"):
		result.Outputs = []content.Content{&content.Text{Text: o.Text("output")}}
	default:
		return out
	}

	return append(out, result)
}

// failureOf reads an error, which is a text or an object with a message.
func failureOf(o object) *content.Error {
	raw := o.Raw("error")
	out := &content.Error{Details: string(raw)}
	if raw[0] == '"' {
		out.Message = o.Text("error")
		return out
	}
	e := o.Object("error")
	out.Message, out.Code = e.Text("message"), e.Text("type")
	return out
}

func mcpCallOf(o object) *content.MCPCall {
	return &content.MCPCall{
		Name:       o.NonEmpty("name"),
		ServerName: o.NonEmpty("server_label"),
		Arguments:  arguments(o.Text("arguments")),
	}
}

// requestOf reads an approval request of the service.
func requestOf(o object) *content.ToolApprovalRequest {
	call := mcpCallOf(o)
	call.CallID = o.NonEmpty("id")
	return &content.ToolApprovalRequest{RequestID: call.CallID, Call: call}
}

// Keys of additional properties. They are optional: without them items are sent back with fewer
// details.
const (
	itemKey     = "itemId"
	phaseKey    = "phase"
	approvalKey = "approvalRequestId"
)

func properties(key, v string) json.RawMessage {
	if v == "" {
		return nil
	}
	out, _ := jsonmsg.Object(func(w *jsonmsg.Writer) { w.Member(key, v) })
	return out
}

// property returns a string from the additional properties, or an empty string.
func property(c content.Content, key string) string {
	raw := content.CommonOf(c).Properties
	if raw == nil {
		return ""
	}
	return read(raw).Text(key)
}
