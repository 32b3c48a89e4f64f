package content_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

// pythonRequest returns an approval request in Python's format. Its call has these members in
// addition to id and name.
func pythonRequest(members string) string {
	return `{"type":"function_approval_request","id":"r","function_call":{"type":"function_call","call_id":"c",` +
		`"name":"list"` + members + `}}`
}

func readRequest(t *testing.T, members string) *content.ToolApprovalRequest {
	t.Helper()
	c, err := content.Python().DecodeContent([]byte(pythonRequest(members)))
	if err != nil {
		t.Fatalf("%s: %v", members, err)
	}
	return c.(*content.ToolApprovalRequest)
}

func TestReadsHostedCallsAsCallsOfAService(t *testing.T) {
	for members, server := range map[string]string{
		`,"hosted":true`:                                                                        "",
		`,"hosted":true,"server_name":"drive"`:                                                  "drive",
		`,"hosted":true,"server_name":null`:                                                     "",
		`,"additional_properties":{"server_label":"drive"}`:                                     "drive",
		`,"hosted":true,"additional_properties":{"server_label":"drive"}`:                       "drive",
		`,"hosted":true,"server_name":"drive","additional_properties":{"server_label":null}`:    "drive",
		`,"server_name":"drive","hosted":true,"additional_properties":{"server_label":"drive"}`: "drive",
	} {
		q := readRequest(t, members)
		call, ok := q.Call.(*content.MCPCall)
		if !ok || call.ServerName != server || call.Properties != nil || call.Extra != nil {
			t.Errorf("%s is read as %#v", members, q.Call)
		}
		if _, err := q.CreateEdit(raw(`{}`), ""); err == nil {
			t.Errorf("%s: a call of a service was edited", members)
		}
		out, err := content.DotNet().AppendContent(nil, q)
		if err != nil || !strings.Contains(string(out), `"toolCall":{"$type":"mcpServerToolCall"`) {
			t.Errorf("%s in .NET: %s, %v", members, out, err)
		}
	}
}

// A server name alone doesn't make a call hosted.
func TestReadsLocalCallsAsTheyCame(t *testing.T) {
	for _, members := range []string{
		``,
		`,"hosted":false`,
		`,"server_name":"drive"`,
		`,"hosted":false,"server_name":"drive"`,
	} {
		q := readRequest(t, members)
		if _, ok := q.Call.(*content.FunctionCall); !ok {
			t.Errorf("%s is read as %#v", members, q.Call)
		}
		out, err := content.Python().AppendContent(nil, q)
		if kept := strings.TrimPrefix(members, ","); err != nil || !strings.Contains(string(out), kept) {
			t.Errorf("%s is written as %s, %v", members, out, err)
		}
	}
}

func TestRefusesCallsThatReadersTakeForDifferentOnes(t *testing.T) {
	for members, want := range map[string]string{
		`,"hosted":false,"additional_properties":{"server_label":"drive"}`: `function_call.hosted: expected true ` +
			`beside the property server_label, found false`,
		`,"hosted":null`:   `function_call.hosted: expected true or false, found null`,
		`,"hosted":"true"`: `function_call.hosted: expected true or false, found a string`,
		`,"hosted":true,"server_name":"a","additional_properties":{"server_label":"b"}`: `function_call.server_name: expected the server that the property server_label names, found another`,
		`,"hosted":true,"server_name":5`:                                                `function_call.server_name: expected a string, found a number`,
		`,"additional_properties":{"server_label":["drive"]}`:                           `function_call.additional_properties.server_label: expected a string, found an array`,
	} {
		_, err := content.Python().DecodeContent([]byte(pythonRequest(members)))
		if bad := badError(t, err); bad.Code != content.BadShape || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", members, err, want)
		}
	}
}

// The library can read both members without guessing. Releases before 1.22 reject the member
// hosted.
func TestWritesHostedCallsWithOwnerAndServer(t *testing.T) {
	for server, want := range map[string]string{
		"drive": `"server_name":"drive","hosted":true,"additional_properties":{"a":1,"server_label":"drive"}`,
		"":      `"name":"list","hosted":true,"additional_properties":{"a":1}`,
	} {
		call := &content.MCPCall{CallID: "c", Name: "list", ServerName: server}
		call.Properties = raw(`{"a":1,"server_label":"of another shape"}`)
		out, err := content.Python().AppendContent(nil, &content.ToolApprovalRequest{RequestID: "r", Call: call})
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s, %v\nwant %s", out, err, want)
		}
	}
}

// A member named hosted that came from another format must not turn a local call into a hosted
// one, or a hosted call into a local one.
func TestWritesNoCallThatTurnsIntoAnother(t *testing.T) {
	local := withExtra(transfer(), "hosted", `true`).(content.ToolCall)
	hosted := withExtra(listFiles(), "hosted", `false`).(content.ToolCall)
	handled := transfer()
	handled.InformationalOnly = true
	served := *handled
	served.Extra = []content.Member{{Key: "hosted", Raw: raw(`true`)}}
	if _, err := content.Python().AppendContent(nil,
		&content.ToolApprovalRequest{RequestID: "r", Call: &served}); err == nil {
		t.Error("a call that a service handled stands in an approval as one of a function")
	}

	for want, c := range map[string]content.Content{
		`function_call.hosted: a call of a function would be read as a hosted one`: &content.ToolApprovalRequest{
			RequestID: "r",
			Call:      local,
		},
		`hosted: a call of a function would be read as a hosted one`: local,
		`function_call.hosted: an unknown member has the name of a known one`: &content.ToolApprovalRequest{
			RequestID: "r",
			Call:      hosted,
		},
		`function_call.hosted: expected true or false, found a number`: &content.ToolApprovalRequest{RequestID: "r",
			Call: withExtra(handled, "hosted", `1`).(content.ToolCall)},
	} {
		if out, err := content.Python().AppendContent(nil, c); err == nil || err.Error() != want {
			t.Errorf("%s, %v\nwant %s", out, err, want)
		}
	}
}

// Outside of an approval a hosted call belongs to the history. It must not run again in any
// format.
func TestReadsHostedCallsOfAHistoryAsHandled(t *testing.T) {
	c := must.Get(content.Python().
		DecodeContent([]byte(`{"type":"function_call","call_id":"c","name":"list","hosted":true,"server_name":"drive"}`)))(t)
	for _, s := range shapes() {
		out := must.Get(s.codec.AppendContent(nil, c))(t)
		back := must.Get(s.codec.DecodeContent(out))(t)
		call, ok := back.(*content.FunctionCall)
		if !ok || !call.InformationalOnly || !strings.Contains(string(out), `"server_name":"drive"`) {
			t.Errorf("%s: %s", s.name, out)
		}
	}
}

func TestTellsTheServerToPeople(t *testing.T) {
	for want, call := range map[string]content.ToolCall{
		"":                            transfer(),
		` on the server "drive"`:      listFiles(),
		` on the server "a\nb"`:       &content.MCPCall{ServerName: "a\nb"},
		" on a server without a name": &content.MCPCall{},
	} {
		if got := content.ServerWords(call); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestKeepsOutputsOfAnyKindAsTheyCame(t *testing.T) {
	for _, output := range []string{
		`5`,
		`true`,
		`{ "a":1 }`,
		`{"type":"text","text":"x"}`,
		`[1, "x"]`,
		`[{"a":1},2]`,
		`[]`,
		`[{ "a":1 }]`,
	} {
		src := `{"type":"mcp_server_tool_result","call_id":"c","output":` + output + `,"additional_properties":{}}`
		c := must.Get(content.Python().DecodeContent([]byte(src)))(t)
		out, err := content.Python().AppendContent(nil, c)
		if err != nil || string(out) != src {
			t.Errorf("%s\nis written as %s, %v", src, out, err)
		}
	}
}

// .NET and Go accept only contents of known kinds.
func TestWritesValuesAsTextsElsewhere(t *testing.T) {
	result := &content.MCPResult{CallID: "c", Value: raw(`{"a":1}`)}
	for _, s := range shapes() {
		out := must.Get(s.codec.AppendContent(nil, result))(t)
		back := must.Get(s.codec.DecodeContent(out))(t)
		if got := content.NewMessage(
			content.ToolRole,
			back.(*content.MCPResult).Contents()...,
		).Text(); got != `{"a":1}` {
			t.Errorf("%s: %s gives %s", s.name, out, got)
		}
	}
}

func TestRefusesValuesThatWouldBeReadAsContents(t *testing.T) {
	outputs := []content.Content{&content.Text{Text: "x"}}
	for want, result := range map[string]*content.MCPResult{
		"output: expected outputs or a value, found both":                                        {CallID: "c", Outputs: outputs, Value: raw(`5`)},
		"output: expected a value that is neither a text nor a list of contents, found a string": {CallID: "c", Value: raw(`"x"`)},
		"output: expected a value that is neither a text nor a list of contents, found an array": {CallID: "c",
			Value: raw(` [{"type":"text","text":"x"}]`)},
		"output: line 1, column 2: expected a key in double quotes, found the end of the text": {CallID: "c", Value: raw(`{`)},
	} {
		if out, err := content.Python().AppendContent(nil, result); err == nil || err.Error() != want {
			t.Errorf("%s, %v\nwant %s", out, err, want)
		}
	}
}

// pythonMembers lists the members that a content of release 1.23 accepts. internal/peers/run
// compares them with the library.
func pythonMembers(t *testing.T) []string {
	t.Helper()
	src := must.Get(os.ReadFile("testdata/python_members.txt"))(t)
	return strings.Fields(string(src))
}

// The page says that a Python that doesn't know our types rejects those with additional members
// and reads the others.
func TestSaysWhatPythonDoesWithOurTypes(t *testing.T) {
	if !strings.Contains(strings.Join(strings.Fields(page(t)), " "),
		"Python refuses members that it doesn't know, and so edits, schemas, data and reasons.") {
		t.Error("the page says something else")
	}

	edit := must.Get((&content.ToolApprovalRequest{RequestID: "r", Call: transfer()}).CreateEdit(raw(`{}`), ""))(t)
	known := pythonMembers(t)
	refused := map[string]bool{}
	for name, c := range map[string]content.Content{
		"edit":              edit,
		"text request":      &content.TextApprovalRequest{RequestID: "t", Text: "Agree?", Note: note()},
		"text response":     &content.TextApprovalResponse{RequestID: "t", Approved: true},
		"reason":            &content.TextApprovalResponse{RequestID: "t", Reason: "no"},
		"schema":            &content.StructuredInputRequest{RequestID: "s", Schema: raw(`{}`)},
		"request for input": &content.StructuredInputRequest{RequestID: "s"},
		"data":              &content.StructuredInputResponse{RequestID: "s", Data: raw(`1`)},
		"no data":           &content.StructuredInputResponse{RequestID: "s", Declined: true},
	} {
		out := must.Get(content.Python().AppendContent(nil, c))(t)
		var members map[string]json.RawMessage
		must.Do(t, json.Unmarshal(out, &members))
		for member := range members {
			refused[name] = refused[name] || !slices.Contains(known, member)
		}
	}

	want := map[string]bool{
		"edit":              true,
		"reason":            true,
		"schema":            true,
		"data":              true,
		"no data":           true,
		"text request":      false,
		"text response":     false,
		"request for input": false,
	}
	for name, refuses := range want {
		if refused[name] != refuses {
			t.Errorf("%s: refused %v, want %v", name, refused[name], refuses)
		}
	}
}

func TestTellsRoundedCallsFromOthers(t *testing.T) {
	call := func(args string) content.ToolCall {
		return &content.FunctionCall{CallID: "c", Name: "pay", Arguments: raw(args)}
	}
	for _, c := range []struct {
		asked, shown string
		rounded      bool
	}{
		{`{"id":9007199254740993}`, `{"id":9007199254740992}`, true},
		{`{"id":9007199254740993,"list":[0.1000000000000000055]}`, `{"id":9.007199254740992e15,"list":[0.1]}`, true},
		{`{"id":9007199254740992}`, `{"id":9007199254740992.0}`, false}, // the same call
		{`{"id":9007199254740993}`, `{"id":9007199254740995}`, false},
		{`{"id":9007199254740993,"to":"bob"}`, `{"id":9007199254740992,"to":"eve"}`, false},
		{`{"id":9007199254740993}`, `{"id":"9007199254740992"}`, false},
		{`{"id":`, `{}`, false},
	} {
		if got := content.SameButRounded(call(c.asked), call(c.shown)); got != c.rounded {
			t.Errorf("%s shown as %s: %v", c.asked, c.shown, got)
		}
	}

	other := &content.FunctionCall{CallID: "c", Name: "wipe", Arguments: raw(`{"id":9007199254740992}`)}
	if content.SameButRounded(call(`{"id":9007199254740993}`), other) {
		t.Error("another tool is taken for a rounded call")
	}
}
