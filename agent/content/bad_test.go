package content_test

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

const call = `{"$type":"functionCall","callId":"c","name":"n","arguments":{}}`

func TestBadMessages(t *testing.T) {
	for code, cases := range map[content.Code][]struct{ shape, src, want string }{
		content.BadJSON: {
			{"dotnet", ``, `line 1, column 1: expected a value, found the end of the text`},
			{"dotnet", `[`, `line 1, column 2: expected a value, found the end of the text`},
			{"dotnet", `[]x`, `line 1, column 3: expected the end of the text after the value, found 'x'`},
			{"dotnet", `[{"role":"user","role":"tool"}]`,
				`line 1, column 17: duplicate key "role" (first at column 3)`},
			{"dotnet", "[\"\xff\"]", ``},
			{"dotnet", `["\ud800"]`, ``},
			{"dotnet", strings.Repeat("[", 200) + strings.Repeat("]", 200), ``},
		},
		content.BadShape: {
			{"dotnet", `{"role":"user"}`, `messages: expected an array, found an object`},
			{"dotnet", `[null]`, `messages[0]: expected a message: an object, found null`},
			{"dotnet", `[{"contents":[]}]`, `messages[0].role: expected a string, found nothing`},
			{"dotnet", `[{"role":" "}]`, `messages[0].role: expected a role, found a blank one`},
			{"dotnet", `[{"role":{"value":"user"}}]`, `messages[0].role: expected a string, found an object`},
			{"dotnet", `[{"role":"user","Role":"tool"}]`,
				`messages[0].Role: the member stands twice under different names`},
			{"dotnet", `[{"role":"user","contentſ":[]}]`,
				`messages[0].contentſ: some readers take this name for a known one, others don't`},
			{"dotnet", `[{"role":"user","contents":5}]`, `messages[0].contents: expected an array, found a number`},
			{"dotnet", `[{"role":"user","contents":["x"]}]`,
				`messages[0].contents[0]: expected a content: an object, found a string`},
			{"dotnet", `[{"role":"user","createdAt":5}]`, `messages[0].createdAt: expected a string, found a number`},
			{"dotnet", `[{"role":"user","additionalProperties":[]}]`,
				`messages[0].additionalProperties: expected an object, found an array`},
			{
				"dotnet",
				`[{"role":"user"},{"role":"user"},{"role":"user","contents":[{"$type":"toolApprovalRequest",` +
					`"requestId":"r","toolCall":{"name":"n"}}]}]`,
				`messages[2].contents[0].toolCall.callId: expected a string, found nothing`,
			},
			{
				"dotnet",
				`[{"role":"tool","contents":[{"$type":"mcpServerToolResult","callId":"c","outputs":[{"$type":"text"},` +
					`{"$type":"text","text":1}]}]}]`,
				`messages[0].contents[0].outputs[1].text: expected a string, found a number`,
			},
			{"python", `[{"role":{"type":"role"}}]`, `messages[0].role: expected a role with a value, found none`},
			{"python", `[{"role":"user","contents":[null]}]`,
				`messages[0].contents[0]: expected a content: an object, found null`},
			{"goframework", `[{"Role":"user","role":"tool"}]`,
				`messages[0].role: the member stands twice under different names`},
		},
		content.BadKind: {
			{"python", `[{"type":"text","role":"user"}]`, `messages[0].type: expected a message, found something else`},
		},
	} {
		for _, c := range cases {
			ms, err := codecOf(c.shape).DecodeMessages([]byte(c.src))
			bad := badError(t, err)
			if ms != nil || bad.Code != code || c.want != "" && err.Error() != c.want {
				t.Errorf("%.80s\n%s: %s\nwant %s: %s", c.src, bad.Code, err, code, c.want)
			}
			if code == content.BadJSON && bad.Unwrap() == nil {
				t.Errorf("%.80s: no cause", c.src)
			}
		}
	}
}

func TestBadContents(t *testing.T) {
	py := `{"type":"function_call","call_id":"c","name":"n","arguments":`
	edit := func(call, edited string) string {
		return `{"$type":"toolApprovalEdit","requestId":"r","approved":true,"toolCall":` + call + `,"editedCall":` +
			edited + `}`
	}
	for code, cases := range map[content.Code][]struct{ shape, src, want string }{
		content.BadShape: {
			{"dotnet", `{"$type":5}`, `$type: expected a string, found a number`},
			{"dotnet", `{"$type":"text","$TYPE":"error"}`,
				`$TYPE: some readers take this name for a known one, others don't`},
			{"dotnet", `{"$type":"future","$Type":"text"}`, `$Type: the member stands twice in different letters`},
			{"goframework", `{"Type":"future","type":"text"}`, `type: the member stands twice in different letters`},
			{"dotnet", `{"$type":"data"}`, `uri: expected a string, found nothing`},
			{"dotnet", `{"$type":"usage","details":[]}`, `details: expected an object, found an array`},
			{"dotnet", `{"$type":"usage","details":{"inputTokenCount":1.5}}`,
				`details.inputTokenCount: expected an integer of 64 bits, found a number`},
			{"dotnet", `{"$type":"functionCall","callId":"c","name":null}`, `name: expected a string, found null`},
			{"dotnet", `{"$type":"functionCall","callId":"c","name":"n","informationalOnly":"no"}`,
				`informationalOnly: expected true or false, found a string`},
			{"dotnet", `{"$type":"functionResult","result":1}`, `callId: expected a string, found nothing`},
			{"dotnet", `{"$type":"mcpServerToolResult","callId":"c","outputs":"x"}`,
				`outputs: expected an array, found a string`},
			{"dotnet", `{"$type":"functionApprovalRequest","id":"a","approvalId":"b","functionCall":` + call + `}`,
				`approvalId: the member stands twice under different names`},
			{
				"dotnet",
				`{"$type":"toolApprovalRequest","requestId":"r","functionCall":` + call + `,"toolCall":` + call + `}`,
				`toolCall: the member stands twice under different names`,
			},
			{"dotnet", `{"$type":"toolApprovalRequest","requestId":"r"}`,
				`toolCall: expected a tool call: an object, found nothing`},
			{"dotnet", `{"$type":"toolApprovalRequest","requestId":"r","toolCall":null}`,
				`toolCall: expected a tool call: an object, found null`},
			{"dotnet", `{"$type":"toolApprovalRequest","requestId":"r","toolCall":"c"}`,
				`toolCall: expected a tool call: an object, found a string`},
			{"dotnet", `{"$type":"toolApprovalResponse","requestId":"r","toolCall":` + call + `}`,
				`approved: expected true or false, found nothing`},
			{"dotnet", `{"$type":"toolApprovalResponse","requestId":"r","approved":"true","toolCall":` + call + `}`,
				`approved: expected true or false, found a string`},
			{"dotnet", edit(call, `null`), `editedCall: expected a tool call: an object, found null`},
			{"dotnet", edit(call, `{"callId":"c","name":"other"}`),
				`editedCall: expected the same call with other arguments`},
			{"dotnet", edit(call, `{"callId":"d","name":"n"}`),
				`editedCall: expected the same call with other arguments`},
			{"dotnet", strings.Replace(edit(call, call), "true", "false", 1),
				`approved: an edit is an approval: expected true`},
			{"dotnet", `{"$type":"alwaysApproveToolApprovalResponse","alwaysApproveTool":true}`,
				`innerResponse: expected a toolApprovalResponse: an object, found nothing`},
			{
				"dotnet",
				`{"$type":"alwaysApproveToolApprovalResponse","innerResponse":{"requestId":"r","approved":true,"toolCall":` + call + `},"alwaysApproveTool":true,"alwaysApproveToolWithArguments":true}`,
				`alwaysApproveToolWithArguments: expected one scope, found two`,
			},
			{
				"dotnet",
				`{"$type":"alwaysApproveToolApprovalResponse","innerResponse":{"requestId":"r","approved":false,"toolCall":` + call + `},"alwaysApproveTool":true}`,
				`innerResponse: a standing approval needs an approval`,
			},
			{
				"python",
				`{"type":"tool_approval_edit","id":"c","approved":true,"function_call":` + py + `null},"edited_call":` +
					py + `null},"additional_properties":{"tool_approval":{"always_approve":"tool"}}}`,
				`additional_properties: an edited call can't be a standing approval`,
			},
			{"dotnet", `{"$type":"textApprovalRequest","requestId":"r"}`, `text: expected a string, found nothing`},
			{"dotnet", `{"$type":"textApprovalResponse","requestId":"r"}`,
				`approved: expected true or false, found nothing`},
			{"dotnet", `{"$type":"structuredInputRequest","requestId":"r","schema":"x"}`,
				`schema: expected a JSON Schema: an object, found a string`},
			{"dotnet", `{"$type":"structuredInputResponse","requestId":"r"}`,
				`structuredData: expected data, or declined: true, found nothing`},
			{"dotnet", `{"$type":"structuredInputResponse","requestId":"r","structuredData":5,"declined":true}`,
				`structuredData: expected nothing beside declined, found a number`},
		},
		content.BadID: {
			{"dotnet", `{"$type":"toolApprovalRequest","toolCall":` + call + `}`,
				`requestId: expected the id of a request, found nothing`},
			{"dotnet", `{"$type":"toolApprovalRequest","requestId":null,"toolCall":` + call + `}`,
				`requestId: expected the id of a request, found null`},
			{"dotnet", `{"$type":"toolApprovalRequest","requestId":"","toolCall":` + call + `}`,
				`requestId: expected the id of a request, found a blank one`},
			{"dotnet", `{"$type":"toolApprovalResponse","requestId":" \t","approved":true,"toolCall":` + call + `}`,
				`requestId: expected the id of a request, found a blank one`},
			{"dotnet", `{"$type":"textApprovalRequest","requestId":7,"text":"x"}`,
				`requestId: expected the id of a request, found a number`},
		},
		content.BadKind: {
			{"dotnet", `{"$type":"toolApprovalRequest","requestId":"r","toolCall":{"$type":"text"}}`,
				`toolCall.$type: expected a tool call, found another kind of content`},
			{"dotnet", `{"$type":"toolApprovalRequest","requestId":"r","toolCall":{"$type":"newToolCall"}}`,
				`toolCall.$type: expected a tool call, found another kind of content`},
			{"dotnet", `{"$type":"mcpServerToolApprovalRequest","id":"r","toolCall":` + call + `}`,
				`toolCall.$type: expected mcpServerToolCall, found another kind of content`},
			{
				"dotnet",
				`{"$type":"toolApprovalResponse","requestId":"r","approved":true,"toolCall":` + call + `,"editedCall":` +
					call + `}`,
				`editedCall: expected an edit under its own discriminator, found an object`,
			},
			{"dotnet", edit(`{"$type":"mcpServerToolCall","callId":"c","name":"n"}`, call),
				`editedCall: only calls of functions can be edited`},
			{"dotnet", edit(call, `{"$type":"mcpServerToolCall","callId":"c","name":"n"}`),
				`editedCall: only calls of functions can be edited`},
			{"dotnet", `{"$type":"alwaysApproveToolApprovalResponse","innerResponse":{"$type":"toolApprovalEdit"}}`,
				`innerResponse.$type: expected toolApprovalResponse, found another kind of content`},
		},
		content.BadArguments: {
			{
				"dotnet",
				`{"$type":"toolApprovalRequest","requestId":"r","toolCall":{"callId":"c","name":"n","arguments":[]}}`,
				`toolCall.arguments: expected an object, found an array`,
			},
			{
				"dotnet",
				`{"$type":"toolApprovalRequest","requestId":"r","toolCall":{"callId":"c","name":"n",` +
					`"arguments":"{\"a\":1,\"a\":2}"}}`,
				`toolCall.arguments: line 1, column 8: duplicate key "a" (first at column 2)`,
			},
			{"python", `{"type":"function_approval_request","id":"c","function_call":` + py + `"{\"a\":"}}`,
				`function_call.arguments: line 1, column 6: expected a value, found the end of the text`},
			{"python",
				`{"type":"function_approval_response","id":"c","approved":true,"function_call":` + py + `"5"}}`,
				`function_call.arguments: expected an object, found a number`},
		},
	} {
		for _, c := range cases {
			got, err := codecOf(c.shape).DecodeContent([]byte(c.src))
			bad := badError(t, err)
			if got != nil || bad.Code != code || err.Error() != c.want {
				t.Errorf("%s\n%s: %s\nwant %s: %s", c.src, bad.Code, err, code, c.want)
			}
		}
	}
}

func TestBadAppend(t *testing.T) {
	deep := content.Content(&content.Text{})
	for range 200 {
		deep = &content.MCPResult{Outputs: []content.Content{deep}}
	}
	request := func(c content.ToolCall) content.Content {
		return &content.ToolApprovalRequest{RequestID: "r", Call: c}
	}
	answer := func(always content.AlwaysScope, approved bool, edited *content.FunctionCall) content.Content {
		return &content.ToolApprovalResponse{RequestID: "r", Approved: approved, Call: transfer(),
			Always: always, Edited: edited}
	}
	for code, cases := range map[content.Code][]struct {
		shape string
		value content.Content
		want  string
	}{
		content.BadShape: {
			{"dotnet", nil, `expected a content, found nothing`},
			{"dotnet", (*content.Text)(nil), `expected a content, found nothing`},
			{"dotnet", request((*content.FunctionCall)(nil)),
				`toolCall: expected a tool call: an object, found nothing`},
			{"dotnet", request(nil), `toolCall: expected a tool call: an object, found nothing`},
			{"dotnet", answer(content.AlwaysTool, false, nil), `a standing approval needs an approval`},
			{"dotnet", answer(content.AlwaysTool, true, transfer()), `an edited call can't be a standing approval`},
			{"dotnet", answer(9, true, nil), `an unknown scope of a standing approval`},
			{"dotnet", answer(0, false, transfer()), `approved: an edit is an approval: expected true`},
			{"python", withProps(answer(0, true, nil), `{"tool_approval":{"always_approve":"tool"}}`),
				`additional_properties: the properties say something else than the answer: tool_approval`},
			{"dotnet", &content.StructuredInputRequest{RequestID: "r", Schema: raw(`5`)},
				`schema: expected a JSON Schema: an object, found a number`},
			{"dotnet", &content.StructuredInputResponse{RequestID: "r"},
				`structuredData: expected data, or declined: true, found nothing`},
			{"dotnet", withProps(&content.Text{}, `[]`), `additionalProperties: expected an object, found an array`},
			{"dotnet", withExtra(&content.Text{}, "Text", `1`), `Text: an unknown member has the name of a known one`},
			{"python", withExtra(&content.Text{}, "type", `"error"`),
				`type: an unknown member has the name of a known one`},
			{"dotnet", &content.Unknown{Raw: raw(`5`)}, `expected a content: an object, found a number`},
		},
		content.BadJSON: {
			{"dotnet", deep, ``},
			{"dotnet", &content.FunctionResult{CallID: "c", Result: raw(`{"a":`)},
				`result: line 1, column 6: expected a value, found the end of the text`},
			{"dotnet", withProps(&content.Text{}, `{"a`),
				`additionalProperties: line 1, column 2: the string has no closing quote`},
			{"dotnet", withProps(&content.TextApprovalRequest{RequestID: "r", Note: note()}, `{"a`), ``},
			{"python", withProps(answer(1, true, nil), `{"a`), ``},
			{"python", withExtra(withExtra(&content.Text{}, "x", `1`), "x", `2`), ``},
			{"python", withExtra(&content.Text{}, "x", `nope`), ``},
			{"dotnet", &content.Unknown{Raw: raw(`{"$type":`)}, ``},
			{"dotnet", &content.Unknown{}, ``},
		},
		content.BadKind: {
			{"dotnet", &content.HostedCall{Kind: "toolCall"}, `a hosted call can stand in an approval only`},
			{"dotnet", request(&content.HostedCall{Kind: "text"}), `toolCall.$type: an unknown kind of hosted call`},
			{
				"python",
				request(withProps(transfer(), `{"server_label":"s"}`).(content.ToolCall)),
				`function_call.additional_properties: a call of a function would be read as a hosted one: server_label`,
			},
			{"python", &content.Unknown{Raw: raw(`{"$type":"x","type":"function_approval_response"}`)},
				`an unknown content would be read as a known one`},
			{"dotnet", &content.Unknown{Raw: raw(`{"$type":"x","$Type":"x"}`)},
				`an unknown content would be read as a known one`},
		},
		content.BadArguments: {
			{"dotnet", request(&content.FunctionCall{Arguments: raw(`[]`)}),
				`toolCall.arguments: expected an object, found an array`},
			{"python", request(&content.MCPCall{Arguments: raw(`{`)}), ``},
		},
		content.BadID: {
			{"dotnet", &content.ToolApprovalRequest{Call: transfer()},
				`requestId: expected the id of a request, found a blank one`},
		},
	} {
		for _, c := range cases {
			out, err := codecOf(c.shape).AppendContent([]byte("x"), c.value)
			bad := badError(t, err)
			if string(out) != "x" || bad.Code != code || c.want != "" && err.Error() != c.want {
				t.Errorf("%#v\n%s: %s\nwant %s: %s", c.value, bad.Code, err, code, c.want)
			}
		}
	}
}

func TestBadAppendMessages(t *testing.T) {
	for want, ms := range map[string][]*content.Message{
		"messages[1]: expected a message, found nothing":       {content.UserText(""), nil},
		"messages[0].role: expected a role, found a blank one": {content.NewMessage("")},
		"messages[0].contents[1].requestId: expected the id of a request, found a blank one": {
			content.NewMessage(content.User, &content.Text{}, &content.TextApprovalRequest{}),
		},
		"messages[0].contents[0].outputs[0].text: an unknown member has the name of a known one": {
			content.NewMessage(content.User,
				&content.MCPResult{Outputs: []content.Content{withExtra(&content.Text{}, "text", "1")}}),
		},
		"messages[0].contents[0].details.inputTokenCount: an unknown member has the name of a known one": {
			content.NewMessage(content.User,
				&content.Usage{Counts: []content.Member{{Key: "inputTokenCount", Raw: raw("1")}}}),
		},
	} {
		if _, err := content.DotNet().AppendMessages(nil, ms); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestBadMessage(t *testing.T) {
	for _, s := range shapes() {
		m, err := s.codec.DecodeMessage([]byte(`5`))
		if bad := badError(t, err); m != nil || bad.Code != content.BadShape ||
			err.Error() != "expected a message: an object, found a number" {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

// Invalid UTF-8 in a program's text is replaced by U+FFFD.
func TestInvalidTextIsReplaced(t *testing.T) {
	out, err := content.DotNet().AppendContent(nil, &content.Text{Text: "a\xff"})
	if err != nil || string(out) != "{\"$type\":\"text\",\"text\":\"a\ufffd\"}" {
		t.Errorf("%s, %v", out, err)
	}
}
