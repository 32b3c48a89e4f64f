package openai

import (
	"encoding/json"

	"github.com/assent-dev/assent/agent/content"
)

// request sends back what the service asked, so that an answer has something to refer to. A service that keeps the history has it.
func (w *itemWriter) request(where string, c *content.ToolApprovalRequest) error {
	call, ok := c.Call.(*content.MCPCall) // silent has left only those
	if !ok || c.RequestID == "" || call.Name == "" {
		return bad(content.BadID, where, "expected a request with an id and a name")
	}
	w.history.asked[c.RequestID] = true
	if w.history.kept {
		return nil
	}
	w.add("mcp_approval_request", func(p *writer) {
		p.text("id", c.RequestID)
		p.text("server_label", call.ServerName)
		p.text("name", call.Name)
		p.text("arguments", argumentsText(call.Arguments))
	})
	return nil
}

// answer sends what a person said about a call of an MCP server. Neither the reason nor the copy of the call travels: the service runs
// what it asked about.
func (w *itemWriter) answer(where string, c *content.ToolApprovalResponse) error {
	if _, ok := c.Call.(*content.MCPCall); !ok && (c.Call != nil || !w.history.asked[c.RequestID]) {
		return bad(content.BadKind, where, "an answer about something that this service didn't ask")
	}
	if err := w.history.answer(where, c); err != nil {
		return err
	}
	w.add("mcp_approval_response", func(p *writer) {
		p.text("approval_request_id", c.RequestID)
		p.bool("approve", c.Approved)
	})
	return nil
}

// mcpCall writes a call that the service made, with what came of it.
func (w *itemWriter) mcpCall(where string, c *content.MCPCall) error {
	if c.CallID == "" || c.Name == "" {
		return bad(content.BadID, where, "expected a call with an id and a name")
	}
	w.add("mcp_call", func(p *writer) {
		p.text("id", c.CallID)
		p.text("server_label", c.ServerName)
		p.text("name", c.Name)
		p.text("arguments", argumentsText(c.Arguments))
		if id := property(c, approvalKey); id != "" {
			p.text("approval_request_id", id)
		}
		if result := w.history.results[c.CallID]; result != nil {
			outcome(p, where, result)
		}
	})
	return nil
}

func outcome(p *writer, where string, r *content.MCPResult) {
	output := ""
	for _, c := range r.Contents() {
		switch c := c.(type) {
		case *content.Text:
			output += c.Text
		case *content.Error:
			failure(p, c)
			return
		default:
			p.err = misplaced(where, c, content.Assistant)
			return
		}
	}
	p.text("output", output)
}

// failure writes an error as it came, when that is known.
func failure(p *writer, c *content.Error) {
	if json.Valid([]byte(c.Details)) {
		p.raw("error", []byte(c.Details))
		return
	}
	p.text("error", c.Message)
}

// mcpContents reads a call that the service made: with its result, unless there is none yet.
func mcpContents(o object) []content.Content {
	call := mcpCallOf(o)
	call.CallID = o.need("id")
	call.Properties = properties(approvalKey, o.text("approval_request_id"))
	out := []content.Content{call}
	result := &content.MCPResult{CallID: call.CallID}
	switch {
	case o.has("error"):
		result.Outputs = []content.Content{failureOf(o)}
	case o.has("output"):
		result.Outputs = []content.Content{&content.Text{Text: o.text("output")}}
	default:
		return out
	}
	return append(out, result)
}

// failureOf reads an error, which is a text or an object with a message.
func failureOf(o object) *content.Error {
	raw := o.members["error"]
	out := &content.Error{Details: string(raw)}
	if raw[0] == '"' {
		out.Message = o.text("error")
		return out
	}
	e := o.object("error")
	out.Message, out.Code = e.text("message"), e.text("type")
	return out
}

func mcpCallOf(o object) *content.MCPCall {
	return &content.MCPCall{Name: o.need("name"), ServerName: o.need("server_label"), Arguments: arguments(o.text("arguments"))}
}

// requestOf reads an approval that the service asks for.
func requestOf(o object) *content.ToolApprovalRequest {
	call := mcpCallOf(o)
	call.CallID = o.need("id")
	return &content.ToolApprovalRequest{RequestID: call.CallID, Call: call}
}

// Keys of additional properties. Nothing rests on them: without them items go back a little poorer.
const (
	itemKey     = "itemId"
	phaseKey    = "phase"
	approvalKey = "approvalRequestId"
)

func properties(key, v string) json.RawMessage {
	if v == "" {
		return nil
	}
	w := &writer{}
	w.text(key, v)
	return w.bytes()
}

// property reads one text among the additional properties; "" when there is none.
func property(c content.Content, key string) string {
	raw := content.CommonOf(c).Properties
	if raw == nil {
		return ""
	}
	return read(raw).text(key)
}
