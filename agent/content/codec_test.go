package content_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
)

func TestFixtures(t *testing.T) {
	for _, s := range shapes() {
		for _, e := range examples() {
			t.Run(s.name+"/"+e.name, func(t *testing.T) {
				out := must.Get(s.codec.AppendContent([]byte("before "), e.value))(t)
				name := filepath.Join(s.name, e.name+".json")
				golden.Equal(t, name, strings.TrimPrefix(string(out), "before ")+"\n")
				src := must.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
				back, err := s.codec.DecodeContent(src)
				if err != nil || !reflect.DeepEqual(back, e.value) {
					t.Fatalf("%s\nread as %#v, %v\nwant    %#v", src, back, err, e.value)
				}
			})
		}
	}
}

func TestMessages(t *testing.T) {
	for _, s := range shapes() {
		ms := messages()
		if s.name != "python" { // Python's format has no member for it
			ms[1].CreatedAt = "2026-08-05T12:00:00.123+02:00"
		}
		out := must.Get(s.codec.AppendMessages(nil, ms))(t)
		golden.Equal(t, filepath.Join(s.name, "messages.json"), string(out)+"\n")
		back, err := s.codec.DecodeMessages(out)
		if err != nil || !reflect.DeepEqual(back, ms) {
			t.Errorf("%s: %v\n%s", s.name, err, out)
		}
		one, err := s.codec.AppendMessage(nil, ms[0])
		if err != nil || !strings.HasPrefix(string(out), "["+string(one)+",") {
			t.Errorf("%s: %s, %v", s.name, one, err)
		}
		if m, err := s.codec.DecodeMessage(one); err != nil || !reflect.DeepEqual(m, ms[0]) {
			t.Errorf("%s: %v, %v", s.name, m, err)
		}
	}
}

func TestZeroCodec(t *testing.T) {
	var zero content.Codec
	out, err := zero.AppendContent(nil, &content.Text{Text: "x"})
	if err != nil || string(out) != `{"$type":"text","text":"x"}` {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := zero.DecodeContent(out); err != nil {
		t.Error(err)
	}
}

// Both texts of a pair mean the same in one format.
func TestReadAlike(t *testing.T) {
	call := `{"$type":"functionCall","callId":"c","name":"n","arguments":{"a":1},"informationalOnly":false}`
	mcp := `{"$type":"mcpServerToolCall","callId":"c","name":"n","serverName":"s","arguments":{"a":1}}`
	request := `{"$type":"toolApprovalRequest","requestId":"r","toolCall":` + call + `,"requiresConfirmation":true}`
	pyCall := `{"type":"function_call","call_id":"c","name":"n","arguments":"{\"a\":1}"}`
	for _, c := range []struct{ shape, src, same string }{
		{"dotnet", `{"text":"x","$type":"text"}`, `{"$type":"text","text":"x"}`},
		{"dotnet", ` { "\u0024type" : "te\u0078t" , "TEXT" : "x" } `, `{"$type":"text","text":"x"}`},
		{"dotnet", `{"$type":null,"$type2":1}`, ``},
		{"dotnet", `{"$type":"text","text":"x","additionalProperties":null}`, `{"$type":"text","text":"x"}`},
		{"dotnet", `{"$type":"text","text":null}`, `{"$type":"text","text":""}`},
		{
			"dotnet",
			`{"$type":"toolApprovalRequest","requestId":"r","toolCall":{"callId":"c","name":"n","arguments":{"a":1}}}`,
			request,
		},
		{
			"dotnet",
			`{"$type":"toolApprovalRequest","requestId":"r","toolCall":{"callId":"c","name":"n",` +
				`"arguments":"{\"a\":1}"}}`,
			request,
		},
		{"dotnet", `{"$type":"functionApprovalRequest","id":"r","functionCall":` + call + `}`, request},
		{"dotnet", `{"$type":"functionApprovalRequest","approvalId":"r","functionCall":` + call + `}`, request},
		{
			"dotnet",
			`{"$type":"mcpServerToolApprovalRequest","id":"r","toolCall":{"callId":"c","toolName":"n",` +
				`"serverName":"s","arguments":{"a":1}}}`,
			`{"$type":"toolApprovalRequest","requestId":"r","toolCall":` + mcp + `}`,
		},
		{
			"dotnet",
			`{"$type":"functionApprovalResponse","approved":true,"id":"r","functionCall":{"callId":"c","name":"n",` +
				`"arguments":{"a":1}},"reason":"ok"}`,
			`{"$type":"toolApprovalResponse","requestId":"r","approved":true,"toolCall":` + call + `,"reason":"ok"}`,
		},
		{"dotnet", `{"$type":"mcpServerToolApprovalResponse","approved":false,"id":"r","toolCall":` + mcp + `}`,
			`{"$type":"toolApprovalResponse","requestId":"r","approved":false,"toolCall":` + mcp + `}`},
		{
			"dotnet",
			`{"$type":"alwaysApproveToolApprovalResponse","innerResponse":{"requestId":"r","approved":true,"toolCall":` + call + `},"additionalProperties":{"k":1},"more":2}`,
			`{"$type":"toolApprovalResponse","requestId":"r","approved":true,"toolCall":` + call +
				`,"additionalProperties":{"k":1},"more":2}`,
		},
		{"dotnet", `{"$type":"mcpServerToolResult","callId":"c","output":[{"$type":"text","text":"x"}]}`,
			`{"$type":"mcpServerToolResult","callId":"c","outputs":[{"$type":"text","text":"x"}]}`},
		{"dotnet", `{"$type":"structuredInputResponse","requestId":"s","structuredData":null,"declined":true}`,
			`{"$type":"structuredInputResponse","requestId":"s","declined":true}`},
		{"dotnet", `{"$type":"usage","details":null}`, `{"$type":"usage"}`},
		{"goframework", `{"type":"text","text":"x"}`, `{"Type":"text","Text":"x"}`},
		{"goframework", `{"Type":"functionCall","CallID":"c","Name":"n","Arguments":{"a":1}}`,
			`{"Type":"functionCall","CallID":"c","Name":"n","Arguments":"{\"a\":1}"}`},
		{"goframework", `{"Type":"functionCall","CallID":"c","Name":"n","Arguments":""}`,
			`{"Type":"functionCall","CallID":"c","Name":"n"}`},
		{"python", `"x"`, `{"type":"text","text":"x"}`},
		{"python", `{"type":"function_call","call_id":"c","name":"n","arguments":{"a":1}}`, pyCall},
		{
			"python",
			`{"type":"function_approval_request","id":"c","function_call":{"type":"mcp_server_tool_call",` +
				`"call_id":"c","tool_name":"n","server_name":"s"}}`,
			`{"type":"function_approval_request","id":"c","function_call":{"type":"function_call","call_id":"c",` +
				`"name":"n","additional_properties":{"server_label":"s"}}}`,
		},
		{"python", `{"type":"mcp_server_tool_result","call_id":"c","output":"sunny"}`,
			`{"type":"mcp_server_tool_result","call_id":"c","output":[{"type":"text","text":"sunny"}]}`},
		{
			"python",
			`{"type":"function_approval_response","id":"c","approved":true,"function_call":` + pyCall +
				`,"additional_properties":{"tool_approval":{"reason":"ok","always_approve":"tool","by":"me"},"z":1}}`,
			`{"type":"function_approval_response","id":"c","approved":true,"function_call":` + pyCall +
				`,"additional_properties":{"z":1,"tool_approval":{"by":"me","always_approve":"tool","reason":"ok"}}}`,
		},
	} {
		codec := codecOf(c.shape)
		a, err := codec.DecodeContent([]byte(c.src))
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		if c.same == "" {
			c.same = c.src
		}
		b, err := codec.DecodeContent([]byte(c.same))
		if err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s\nis read as %#v\nnot as %#v, %v", c.src, a, b, err)
		}
	}
}

func codecOf(name string) content.Codec {
	for _, s := range shapes() {
		if s.name == name {
			return s.codec
		}
	}
	panic(name)
}

func TestReadMessagesAlike(t *testing.T) {
	for _, c := range []struct{ shape, src, same string }{
		{"dotnet", `{"ROLE":"User","contents":null}`, `{"role":"user","contents":[]}`},
		{"dotnet", `{"role":"user","$type":"x"}`, `{"role":"user","contents":[],"$type":"x"}`},
		{"python", `{"type":"chat_message","role":{"type":"role","value":"user"},"contents":["a"],"text":"b"}`,
			`{"type":"message","role":"user","contents":["a","b"]}`},
		{"python", `{"role":"user"}`, `{"type":"message","role":"user","contents":[],"additional_properties":{}}`},
		{"goframework", `{"role":"user","id":"m"}`, `{"Contents":[],"Role":"user","ID":"m"}`},
	} {
		codec := codecOf(c.shape)
		a, err := codec.DecodeMessage([]byte(c.src))
		b, err2 := codec.DecodeMessage([]byte(c.same))
		if err != nil || err2 != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s\nis read as %#v, %v\nnot as %#v, %v", c.src, a, err, b, err2)
		}
	}
}

// The role must not be changed to lower case in formats that don't ignore case.
func TestRoleIsKept(t *testing.T) {
	for _, s := range shapes()[1:] {
		out, err := s.codec.AppendMessage(nil, content.NewMessage("USER"))
		m, err2 := s.codec.DecodeMessage(out)
		if err != nil || err2 != nil || m.Role != "USER" {
			t.Errorf("%s: %v %v %v", s.name, m, err, err2)
		}
	}
}

func TestUnknownIsKeptByteForByte(t *testing.T) {
	for shape, kinds := range map[string][]string{
		"dotnet": {
			`{ "$type":"hostedFile", "fileId" : "f" , "n":1.50 }`,
			`{"fileId":"f","$type":"hostedVectorStore"}`,
			`{"no":"kind"}`,
			`{}`,
			`{"$type":"inputRequest","requestId":"r"}`,
			`{"$type":"codeInterpreterToolCall","callId":"c"}`,
			`{"$type":"text_reasoning"}`,
			`{"$type":"toolCall","callId":"c"}`,
			`{"$Type":"futureThing"}`,
			`{"type":"text","text":"of another shape"}`,
		},
		"python": {`{ "type":"oauth_consent_request" , "x":[1, 2]}`, `{"$type":"text","text":"x"}`, `{"Type":"text"}`},
		"goframework": {`{ "Type":"futureContent", "Value" : 42}`, `{"$type":"text","text":"x"}`,
			`{"Provider":"github","Payload":{"value":42}}`},
	} {
		codec := codecOf(shape)
		for _, src := range kinds {
			c, err := codec.DecodeContent([]byte("\n" + src + " "))
			u, ok := c.(*content.Unknown)
			if err != nil || !ok || string(u.Raw) != src {
				t.Errorf("%s: %s: %#v, %v", shape, src, c, err)
				continue
			}
			m := content.NewMessage(content.User, u, &content.MCPResult{CallID: "c", Outputs: []content.Content{u}})
			out, err := codec.AppendMessages(nil, []*content.Message{m})
			if err != nil || strings.Count(string(out), src) != 2 {
				t.Errorf("%s: %s, %v", shape, out, err)
			}
			back, err := codec.DecodeMessages(out)
			if err != nil || !reflect.DeepEqual(back[0], m) {
				t.Errorf("%s: %s: %v", shape, out, err)
			}
		}
	}
}

// A call is the same in whatever format it arrived.
func TestSameCallInAllShapes(t *testing.T) {
	for _, call := range []content.ToolCall{
		transfer(),
		listFiles(),
		&content.HostedCall{Kind: "webSearchToolCall", CallID: "w"},
	} {
		var calls []content.ToolCall
		for _, s := range shapes() {
			out := must.Get(s.codec.AppendContent(nil, &content.ToolApprovalRequest{RequestID: "r", Call: call}))(t)
			c := must.Get(s.codec.DecodeContent(out))(t)
			calls = append(calls, c.(*content.ToolApprovalRequest).Call)
		}

		for _, other := range calls {
			if !content.SameCall(call, other) || !content.SameCall(calls[0], other) {
				t.Errorf("%#v is not %#v", other, call)
			}
		}
	}
}

// Every JSON escape is decoded as the standard requires.
func TestEscapes(t *testing.T) {
	const text = `"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00\u00AF é\\"`
	var want string
	must.Do(t, json.Unmarshal([]byte(text), &want))
	c, err := content.DotNet().DecodeContent([]byte(`{"$type":"text","te\u0078t":` + text + `,"\u00e9":1}`))
	if err != nil || c.(*content.Text).Text != want || content.CommonOf(c).Extra[0].Key != "é" {
		t.Errorf("%#v, %v", c, err)
	}
}

// Arguments that a model wrote can always be stored, even if they are nested too deeply for a
// document.
func TestDeepArgumentsAreKept(t *testing.T) {
	for _, depth := range []int{90, 100, 127, 500} {
		call := &content.FunctionCall{CallID: "c", Name: "n",
			Arguments: raw(`{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`)}
		ms := []*content.Message{content.NewMessage(content.Assistant, call)}
		for _, s := range shapes() {
			out := must.Get(s.codec.AppendMessages(nil, ms))(t)
			if back, err := s.codec.DecodeMessages(out); err != nil || !reflect.DeepEqual(back, ms) {
				t.Errorf("%s, %d levels: %v", s.name, depth, err)
			}
		}
	}
}

// A content that can be read alone can also be written in a list of messages, up to the maximum
// depth.
func TestDepth(t *testing.T) {
	nested := func(depth int) []byte {
		return []byte(
			`{"$type":"functionResult","callId":"c","result":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`,
		)
	}
	c := must.Get(content.DotNet().DecodeContent(nested(124)))(t)
	m := content.NewMessage(content.ToolRole, c)
	out := must.Get(content.DotNet().AppendMessages(nil, []*content.Message{m}))(t)
	if _, err := content.DotNet().DecodeMessages(out); err != nil {
		t.Error(err)
	}
	if _, err := content.DotNet().DecodeContent(nested(125)); err == nil || badError(t, err).Code != content.BadJSON {
		t.Error(err)
	}
	c.(*content.FunctionResult).Result = raw(strings.Repeat("[", 125) + strings.Repeat("]", 125))
	if _, err := content.DotNet().AppendContent(nil, c); err == nil || badError(t, err).Code != content.BadJSON {
		t.Error(err)
	}
}

// Reading many unknown members must take linear time. Quadratic time would be about a minute.
func TestManyMembers(t *testing.T) {
	var members strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&members, `,"m%d":0`, i)
	}
	inner := `{"requestId":"r","approved":true,"toolCall":{"callId":"c","name":"n"}` + members.String() + `}`
	src := `{"$type":"alwaysApproveToolApprovalResponse","innerResponse":` + inner + strings.ReplaceAll(
		members.String(),
		"m",
		"o",
	) + `,"alwaysApproveTool":true}`
	c, err := content.DotNet().DecodeContent([]byte(src))
	if err != nil || len(content.CommonOf(c).Extra) != 200_000 {
		t.Fatal(err)
	}
	if _, err := content.Python().AppendContent(nil, c); err != nil {
		t.Error(err)
	}
}

// A note that can't be read stays in the properties, since no decision depends on it.
func TestNotes(t *testing.T) {
	for _, note := range []string{
		`"x"`,
		`5`,
		`{}`,
		`{"message":5}`,
		`{"expires":"tomorrow"}`,
		`{"expires":"9999-12-31T23:59:59-01:00"}`,
		`{"later":1}`,
		`{"agent":["x"]}`,
		`{"context":"why"}`,
		`{"message":"m","context":[{"label":"Why"}]}`,
		`{"context":[{"label":"Fares","link":"http://fares.example"}]}`,
	} {
		for _, s := range shapes() {
			out := must.Get(s.codec.AppendContent(nil,
				withProps(&content.TextApprovalRequest{RequestID: "t", Text: "x"}, `{"assent":`+note+`}`)))(t)
			c, err := s.codec.DecodeContent(out)
			if r, ok := c.(*content.TextApprovalRequest); err != nil || !ok || !r.Note.IsZero() ||
				string(r.Properties) != `{"assent":`+note+`}` {
				t.Errorf("%s: %#v, %v", note, c, err)
			}
		}
	}

	for _, name := range []string{"message", "where", "agent"} {
		c, err := content.DotNet().
			DecodeContent([]byte(`{"$type":"textApprovalRequest","requestId":"t","text":"x",` +
				`"additionalProperties":{ "a":1 , "assent":{"` + name + `":"y","later":1}, "b": 2}}`))
		if err != nil || content.NoteOf(c.(*content.TextApprovalRequest)).IsZero() ||
			string(content.CommonOf(c).Properties) != `{ "a":1, "b": 2}` {
			t.Errorf("%s: %#v %v", name, c, err)
		}
	}
}

// The limits of an agent's context are checked when it is written, in every format.
func TestContextIsRefusedWithItsPlace(t *testing.T) {
	for want, item := range map[string]info.Item{
		".assent.context.0.link: expected an https address": {Label: "Fares", Link: "javascript:x"},
		".assent.context.0: expected one of text":           {Label: "Why"},
		".assent.context.0.label: expected 1 to 100":        {Text: "because"},
	} {
		for _, s := range shapes() {
			for _, q := range []content.InputRequest{
				&content.TextApprovalRequest{RequestID: "t", Text: "x"},
				&content.StructuredInputRequest{RequestID: "t", Schema: raw(`{}`)},
				&content.ToolApprovalRequest{RequestID: "t", Call: listFiles()},
			} {
				content.NoteOf(q).Context = []info.Item{item}
				_, err := s.codec.AppendContent(nil, q)
				var bad *content.BadError
				if !errors.As(err, &bad) || bad.Code != content.BadShape || !strings.Contains(err.Error(), want) {
					t.Errorf("%T: got %v, want %q", q, err, want)
				}
			}
		}
	}
}

// Writing a note replaces an existing one.
func TestNoteReplaces(t *testing.T) {
	r := withProps(&content.TextApprovalRequest{RequestID: "t", Note: content.Note{Agent: "a"}},
		`{"assent":{"message":"old"},"k":1 }`)
	out, err := content.DotNet().AppendContent(nil, r)
	if want := `{"$type":"textApprovalRequest","requestId":"t","text":"","additionalProperties":{"k":1,` +
		`"assent":{"agent":"a"} }}`; err != nil || string(out) != want {
		t.Errorf("%s, %v", out, err)
	}
}

// Decoded values don't share memory with the source.
func TestSourceMayChange(t *testing.T) {
	src := []byte(`{"$type":"functionCall","callId":"c","name":"n","arguments":{"a":1}}`)
	c := must.Get(content.DotNet().DecodeContent(src))(t)
	for i := range src {
		src[i] = 'x'
	}
	call := c.(*content.FunctionCall)
	if _ = append(call.Arguments, "overwritten"...); call.CallID != "c" || call.Name != "n" ||
		string(call.Arguments) != `{"a":1}` {
		t.Errorf("%#v", call)
	}
}

func badError(t *testing.T, err error) *content.BadError {
	t.Helper()
	var bad *content.BadError
	if !errors.As(err, &bad) {
		t.Fatalf("%T %v is no BadError", err, err)
	}
	return bad
}
