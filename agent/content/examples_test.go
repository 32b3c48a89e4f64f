package content_test

import (
	"encoding/json"
	"time"

	"github.com/assent-dev/assent/agent/content"
)

type shape struct {
	name  string
	codec content.Codec
}

func shapes() []shape {
	return []shape{
		{"dotnet", content.DotNet()},
		{"python", content.Python()},
		{"goframework", content.GoFramework()},
	}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func transfer() *content.FunctionCall {
	return &content.FunctionCall{CallID: "call_1", Name: "transfer", Arguments: raw(`{"amount":5,"to":"Zoë"}`)}
}

func listFiles() *content.MCPCall {
	return &content.MCPCall{CallID: "call_2", Name: "list_files", ServerName: "drive", Arguments: raw(`{"path":"/"}`)}
}

func note() content.Note {
	return content.Note{Message: "Transfer 5 to Zoë?", Expires: time.Date(2026, 8, 5, 12, 0, 0, 5e8, time.UTC),
		Where: "https://inbox.example/r/1", Agent: "payments"}
}

func withProps(c content.Content, props string) content.Content {
	content.CommonOf(c).Properties = raw(props)
	return c
}

func withExtra(c content.Content, key, value string) content.Content {
	common := content.CommonOf(c)
	common.Extra = append(common.Extra, content.Member{Key: key, Raw: raw(value)})
	return c
}

type example struct {
	name  string
	value content.Content
}

// examples returns values that every format carries completely.
func examples() []example {
	edited := transfer()
	edited.Arguments = raw(`{"amount":4,"to":"Zoë"}`)
	handled := transfer()
	handled.InformationalOnly = true
	return []example{
		{"text", &content.Text{Text: "Hello \"you\"\n\u2028 <b>&</b> 😀"}},
		{"text_empty", &content.Text{}},
		{
			"text_extra",
			withExtra(withProps(&content.Text{Text: "x"}, `{ "b" : 1.50, "a":[ ] }`), "annotations", `[ {"k": 1e2} ]`),
		},
		{"reasoning", &content.Reasoning{Text: "think", Protected: "c2VhbGVk"}},
		{"data", &content.Data{URI: "data:image/png;base64,iVBORw0=", MediaType: "image/png", Name: "dot.png"}},
		{"data_own_type", &content.Data{URI: "data:;base64,AA==", MediaType: "image/png"}},
		{"uri", &content.URI{URI: "https://example.com/a.png", MediaType: "image/png"}},
		{"error", &content.Error{Message: "no", Code: "E1", Details: "really not"}},
		{"usage", &content.Usage{Input: 10, Output: 20, Total: 30,
			Counts: []content.Member{{Key: "cached", Raw: raw("7")}}}},
		{"function_call", transfer()},
		{"function_call_none", &content.FunctionCall{CallID: "c", Name: "now"}},
		{"function_call_handled", handled},
		{"function_call_unreadable", &content.FunctionCall{CallID: "c", Name: "now", Arguments: raw(`{"amount":`)}},
		{"function_result", &content.FunctionResult{CallID: "call_1", Result: raw(`{"ok": true, "n": 1.0}`)}},
		{"function_result_none", &content.FunctionResult{CallID: "call_1"}},
		{"mcp_call", listFiles()},
		{
			"mcp_result",
			&content.MCPResult{CallID: "call_2",
				Outputs: []content.Content{&content.Text{Text: "a.txt"}, &content.Text{Text: "b.txt"}}},
		},
		{"approval_request", &content.ToolApprovalRequest{RequestID: "ficc_call_1", Call: transfer()}},
		{"approval_request_sibling", &content.ToolApprovalRequest{RequestID: "ficc_call_1",
			Call: transfer(), NoConfirmation: true}},
		{"approval_request_note", withProps(&content.ToolApprovalRequest{
			RequestID:      "ficc_call_1",
			Call:           transfer(),
			NoConfirmation: true,
			Note:           note(),
		}, `{"key":"val"}`)},
		{"approval_request_mcp", &content.ToolApprovalRequest{RequestID: "ficc_call_2", Call: listFiles()}},
		{
			"approval_request_hosted",
			&content.ToolApprovalRequest{
				RequestID: "r",
				Call: withExtra(&content.HostedCall{Kind: "codeInterpreterToolCall", CallID: "c"}, "inputs",
					`[{"x":1}]`).(content.ToolCall),
			},
		},
		{"approval_approved",
			&content.ToolApprovalResponse{RequestID: "ficc_call_1", Approved: true, Call: transfer()}},
		{"approval_rejected", &content.ToolApprovalResponse{RequestID: "ficc_call_1", Call: transfer(),
			Reason: "over the limit"}},
		{"approval_mcp", &content.ToolApprovalResponse{RequestID: "ficc_call_2", Approved: true, Call: listFiles()}},
		{"approval_edit", &content.ToolApprovalResponse{RequestID: "ficc_call_1", Approved: true,
			Call: transfer(), Edited: edited, Reason: "four will do"}},
		{"approval_always_tool", &content.ToolApprovalResponse{RequestID: "ficc_call_1", Approved: true,
			Call: transfer(), Always: content.AlwaysTool}},
		{"approval_always_arguments", withProps(&content.ToolApprovalResponse{
			RequestID: "ficc_call_1",
			Approved:  true,
			Call:      transfer(),
			Always:    content.AlwaysArguments,
			Reason:    "fine",
		}, `{"key":"val"}`)},
		{"text_request", &content.TextApprovalRequest{RequestID: "t1", Text: "Agree?", Note: note()}},
		{"text_response", &content.TextApprovalResponse{RequestID: "t1", Approved: true, Reason: "read it"}},
		{"input_request", &content.StructuredInputRequest{RequestID: "s1", Text: "Where to?",
			Schema: raw(`{"type": "object"}`), Note: note()}},
		{"input_request_bare", &content.StructuredInputRequest{RequestID: "s1"}},
		{"input_response", &content.StructuredInputResponse{RequestID: "s1", Data: raw(`{"city": "Wien"}`)}},
		{"input_response_null", &content.StructuredInputResponse{RequestID: "s1", Data: raw(`null`)}},
		{"input_declined", &content.StructuredInputResponse{RequestID: "s1", Declined: true, Reason: "private"}},
	}
}

// messages contains every example once.
func messages() []*content.Message {
	m := &content.Message{ID: "m1", Role: content.Assistant, AuthorName: "bank"}
	m.Properties, m.Extra = raw(`{"p":1}`), []content.Member{{Key: "x", Raw: raw(`[1]`)}}
	for _, e := range examples() {
		m.Contents = append(m.Contents, e.value)
	}
	return []*content.Message{
		content.UserText("hi"),
		m,
		content.NewMessage(content.ToolRole),
		content.NewMessage("critic", &content.Text{Text: "hm"}),
	}
}
