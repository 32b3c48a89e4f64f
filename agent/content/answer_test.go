package content_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
	"pgregory.net/rapid"
)

func TestAnswersOfACall(t *testing.T) {
	request := &content.ToolApprovalRequest{RequestID: "r", Call: transfer(), NoConfirmation: true, Note: note()}
	approved := request.CreateApproval("fine")
	want := &content.ToolApprovalResponse{RequestID: "r", Approved: true, Call: transfer(), Reason: "fine"}
	if !reflect.DeepEqual(approved, want) {
		t.Errorf("%#v", approved)
	}
	want.Approved = false
	if got := request.CreateRejection("fine"); !reflect.DeepEqual(got, want) {
		t.Errorf("%#v", got)
	}
	if got := request.CreateAlwaysApprove(content.AlwaysArguments, ""); got.Always != content.AlwaysArguments ||
		!got.Approved ||
		got.Reason != "" {
		t.Errorf("%#v", got)
	}
	approved.Call.(*content.FunctionCall).InformationalOnly = true
	if request.Call.(*content.FunctionCall).InformationalOnly {
		t.Error("the answer shares its call with the request")
	}
}

func TestEdit(t *testing.T) {
	request := &content.ToolApprovalRequest{RequestID: "r", Call: transfer()}
	args := raw(`{"amount":4}`)
	got, err := request.CreateEdit(args, "less")
	must.Do(t, err)
	args[1] = 'x'
	edited := &content.FunctionCall{CallID: "call_1", Name: "transfer", Arguments: raw(`{"amount":4}`)}
	want := &content.ToolApprovalResponse{RequestID: "r", Approved: true, Call: transfer(), Reason: "less",
		Edited: edited}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%#v", got)
	}
	for args, want := range map[string]string{
		`[1]`:           "arguments: expected an object, found an array",
		`{"a":1,"a":2}`: "arguments: line 1, column 8: duplicate key",
		`{`:             "arguments: line 1, column 2",
		` "x"`:          "arguments: expected an object, found a string",
	} {
		_, err := request.CreateEdit(raw(args), "")
		if bad := badError(t, err); bad.Code != content.BadArguments || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}

	_, err = (&content.ToolApprovalRequest{RequestID: "r", Call: listFiles()}).CreateEdit(raw(`{}`), "")
	if bad := badError(t, err); bad.Code != content.BadKind || err.Error() != "only calls of functions can be edited" {
		t.Error(err)
	}
}

func TestAnswersOfAText(t *testing.T) {
	request := &content.TextApprovalRequest{RequestID: "t", Text: "Agree?"}
	if got := request.CreateApproval("yes"); !reflect.DeepEqual(got,
		&content.TextApprovalResponse{RequestID: "t", Approved: true, Reason: "yes"}) {
		t.Errorf("%#v", got)
	}

	if got := request.CreateRejection("no"); !reflect.DeepEqual(got,
		&content.TextApprovalResponse{RequestID: "t", Reason: "no"}) {
		t.Errorf("%#v", got)
	}
}

func TestAnswersWithData(t *testing.T) {
	request := &content.StructuredInputRequest{RequestID: "s",
		Schema: raw(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)}
	got, err := request.CreateResponse(raw(`{"city":"Wien"}`))
	if err != nil ||
		!reflect.DeepEqual(got, &content.StructuredInputResponse{RequestID: "s", Data: raw(`{"city":"Wien"}`)}) {
		t.Errorf("%#v, %v", got, err)
	}
	declined := request.CreateRejection("private")
	if !reflect.DeepEqual(declined, &content.StructuredInputResponse{
		RequestID: "s",
		Declined:  true,
		Reason:    "private",
	}) || request.Check(declined) != nil {
		t.Errorf("%#v", declined)
	}

	for _, c := range []struct {
		schema, data string
		code         content.Code
	}{
		{``, `{"a":1}`, ""},
		{``, `{"a":1,"a":2}`, content.BadJSON},
		{`true`, `5`, ""},
		{`{"type":"integer"}`, `9007199254740993`, ""},
		{`{"type":"integer"}`, `1.5`, content.BadData},
		{`{"required":["a","b"]}`, `{}`, content.BadData},
		{`{"type":`, `{}`, content.BadSchema},
		{`{"type":5}`, `{}`, content.BadSchema},
		{`{"type":"object"}`, ``, content.BadJSON},
	} {
		var schema []byte
		if c.schema != "" {
			schema = []byte(c.schema)
		}
		r := &content.StructuredInputRequest{RequestID: "s", Schema: schema}
		_, err := r.CreateResponse(raw(c.data))
		if c.code == "" {
			if err != nil {
				t.Errorf("%s %s: %v", c.schema, c.data, err)
			}
			continue
		}

		if bad := badError(t, err); bad.Code != c.code || bad.Detail == "" {
			t.Errorf("%s %s: %s %v", c.schema, c.data, bad.Code, err)
		}
	}
}

// Errors about the user's data must not quote the data.
func TestBadDataIsNotQuoted(t *testing.T) {
	schema := raw(
		`{"type":"object","required":["pin"],"additionalProperties":false,"properties":{"pin":{"type":"string","pattern":"^[0-9]{4}$","maxLength":4},
		"n":{"type":"integer","maximum":9,"not":{"const":3}},"c":{"enum":["a","b"]},"s":false,"u":{"uniqueItems":true},"any":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`,
	)
	for data, want := range map[string]string{
		`{}`:                               ``,
		`{"pin":77777}`:                    `pin: expected `,
		`{"pin":"77777"}`:                  `pin: expected `,
		`{"pin":"1234","n":77777}`:         `n: expected `,
		`{"pin":"1234","n":3}`:             `n: `,
		`{"pin":"1234","c":"77777"}`:       `c: expected `,
		`{"pin":"1234","s":77777}`:         `s: `,
		`{"pin":"1234","u":[77777,77777]}`: `u: `,
		`{"pin":"1234","any":77777}`:       `any: `,
		`{"pin":"1234","more":"77777"}`:    ``,
		`[77777]`:                          `expected `,
	} {
		err := content.CheckSchema(schema, raw(data))
		if bad := badError(t, err); bad.Code != content.BadData || !strings.HasPrefix(bad.Detail, want) ||
			strings.Contains(err.Error(), "7777") {
			t.Errorf("%s: %v", data, err)
		}
	}
}

func TestSameCall(t *testing.T) {
	other := func(change func(*content.FunctionCall)) content.ToolCall {
		c := transfer()
		change(c)
		return c
	}
	for _, c := range []struct {
		name string
		a, b content.ToolCall
		want bool
	}{
		{"itself", transfer(), transfer(), true},
		{"flags and properties", transfer(), other(func(c *content.FunctionCall) {
			c.InformationalOnly, c.Properties = true, raw(`{}`)
		}), true},
		{"order and spelling", transfer(), other(func(c *content.FunctionCall) {
			c.Arguments = raw(`{"to":"Zo\u00eb", "amount":5.0}`)
		}), true},
		{"arguments", transfer(), other(func(c *content.FunctionCall) { c.Arguments = raw(`{"amount":5}`) }), false},
		{"call id", transfer(), other(func(c *content.FunctionCall) { c.CallID = "x" }), false},
		{"name", transfer(), other(func(c *content.FunctionCall) { c.Name = "Transfer" }), false},
		{"kind", transfer(),
			&content.MCPCall{CallID: "call_1", Name: "transfer", Arguments: transfer().Arguments}, false},
		{"kind, from the other side",
			&content.MCPCall{CallID: "call_1", Name: "transfer", Arguments: transfer().Arguments},
			transfer(), false},
		{"server", listFiles(), &content.MCPCall{
			CallID:     "call_2",
			Name:       "list_files",
			ServerName: "other",
			Arguments:  listFiles().Arguments,
		}, false},
		{"mcp", listFiles(), listFiles(), true},
		{"hosted", &content.HostedCall{Kind: "toolCall", CallID: "h"},
			&content.HostedCall{Kind: "toolCall", CallID: "h"}, true},
		{"hosted kinds", &content.HostedCall{Kind: "toolCall", CallID: "h"},
			&content.HostedCall{Kind: "webSearchToolCall", CallID: "h"}, false},
		{"hosted and function", &content.HostedCall{Kind: "x", CallID: "h"},
			&content.FunctionCall{Name: "x", CallID: "h"}, false},
		{"nothing", nil, transfer(), false},
		{"nothing at all", nil, nil, false},
	} {
		if got := content.SameCall(c.a, c.b); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestSameArguments(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{``, `{}`, true}, {``, `null`, true}, {`null`, ` { } `, true},
		{`{"a":1e2}`, `{"a":100}`, true}, {`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{"a":1}`, `{"a":"1"}`, false}, {`{"a":1}`, `{"A":1}`, false}, {`{"a":null}`, `{}`, false},
		{`{"a":`, `{"a":`, true}, {`{"a":`, `{"a": `, false}, {`{"a":1,"a":1}`, `{"a":1}`, false},
	} {
		if got := content.SameArguments([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
		if got := content.SameArguments([]byte(c.b), []byte(c.a)); got != c.want {
			t.Errorf("%s and %s: %v", c.b, c.a, got)
		}
	}
}

func TestSameArgumentsHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := gen{t}.function()
		b := content.CloneCall(a).(*content.FunctionCall)
		b.Arguments = append(raw("\n "), a.Arguments...)
		if len(a.Arguments) == 0 {
			b.Arguments = raw(`{}`)
		}
		if !content.SameCall(a, b) || !content.SameCall(b, a) {
			t.Fatalf("%s and %s", a.Arguments, b.Arguments)
		}
	})
}

func TestCloneCall(t *testing.T) {
	for _, c := range []content.ToolCall{transfer(), listFiles(), &content.HostedCall{Kind: "toolCall", CallID: "h"}} {
		clone := content.CloneCall(c)
		if clone == c || !reflect.DeepEqual(clone, c) {
			t.Errorf("%#v", clone)
		}
	}

	if content.CloneCall(nil) != nil {
		t.Error("a clone of nothing")
	}
}

func TestMessage(t *testing.T) {
	m := content.NewMessage(content.Assistant, &content.Text{Text: "a"}, &content.Reasoning{Text: "b"},
		&content.Text{Text: "c"})
	if m.Text() != "ac" {
		t.Error(m.Text())
	}
	other := m.With(content.UserText("x").Contents)
	if other.Text() != "x" || other.Role != content.Assistant || m.Text() != "ac" {
		t.Errorf("%#v", other)
	}
	if a := content.AssistantText("y"); a.Role != content.Assistant || a.Text() != "y" ||
		content.UserText("z").Role != content.User {
		t.Errorf("%#v", a)
	}
}

func TestIDs(t *testing.T) {
	for _, e := range examples() {
		switch c := e.value.(type) {
		case content.InputRequest:
			if c.InputRequestID() == "" {
				t.Error(e.name)
			}
		case content.InputResponse:
			if c.InputResponseTo() == "" {
				t.Error(e.name)
			}
		case content.ToolCall:
			if c.ID() == "" || c.ToolName() == "" {
				t.Error(e.name)
			}
		}
	}

	if h := (&content.HostedCall{Kind: "toolCall", CallID: "h"}); h.ID() != "h" || h.ToolName() != "toolCall" ||
		h.Args() != nil {
		t.Errorf("%#v", h)
	}
}

func TestSameAnswer(t *testing.T) {
	call := &content.FunctionCall{CallID: "1", Name: "pay", Arguments: json.RawMessage(`{"n":1}`)}
	q := &content.ToolApprovalRequest{RequestID: "r", Call: call}
	edit := must.Get(q.CreateEdit(json.RawMessage(`{"n":2}`), ""))(t)
	yes, no := q.CreateApproval("a"), q.CreateRejection("b")
	one := &content.StructuredInputResponse{RequestID: "r", Data: json.RawMessage(`{"a":1,"b":2}`)}
	all := []content.InputResponse{
		yes,
		no,
		edit,
		q.CreateAlwaysApprove(content.AlwaysTool, ""),
		&content.TextApprovalResponse{Approved: true},
		&content.TextApprovalResponse{},
		one,
		&content.StructuredInputResponse{Data: json.RawMessage(`{"a":2}`)},
		&content.StructuredInputResponse{Declined: true},
	}
	for i, a := range all {
		for j, b := range all {
			if same := content.SameAnswer(a, b); same != (i == j) {
				t.Errorf("%d and %d: %v", i, j, same)
			}
		}
	}

	if !content.SameAnswer(yes, q.CreateApproval("other words")) ||
		!content.SameAnswer(one, &content.StructuredInputResponse{Data: json.RawMessage(`{"b":2.0,"a":1}`)}) {
		t.Error("the same in other words is not the same")
	}
	if !content.Rejects(no) || content.Rejects(edit) ||
		!content.Rejects(&content.StructuredInputResponse{Declined: true}) ||
		!content.Rejects(nil) {
		t.Error("what is a no")
	}
}

func TestMessagesAreJSON(t *testing.T) {
	m := content.NewMessage(content.User, &content.Text{Text: "hi"}, transfer())
	raw := must.Get(json.Marshal([]*content.Message{m}))(t)
	var back []*content.Message
	must.Do(t, json.Unmarshal(raw, &back))
	if !reflect.DeepEqual(back[0].Contents, m.Contents) || !strings.Contains(string(raw), `"$type":"text"`) {
		t.Errorf("%s", raw)
	}
	if err := json.Unmarshal([]byte(`{"role":1}`), m); err == nil || m.Role != content.User {
		t.Errorf("a message without a role was read: %v", err)
	}
}

// The first line is the output of Python's library, the second one an item of a service.
func TestConsentIsRead(t *testing.T) {
	for src, want := range map[string]content.Consent{
		`{"type":"oauth_consent_request","consent_link":"https://login.example/consent?a=1","user_input_request":true,` +
			`"additional_properties":{}}`: {Link: "https://login.example/consent?a=1", Host: "login.example"},
		`{"type":"oauth_consent_request","id":"oacr_1","consent_link":"https://login.example:8443/","server_label":"drive"}`: {
			Link:   "https://login.example:8443/",
			Host:   "login.example:8443",
			Server: "drive",
		},
	} {
		c := must.Get(content.Python().DecodeContent([]byte(src)))(t)
		if got, ok := content.ConsentOf(c); !ok || got != want {
			t.Errorf("%s: %+v, %v", src, got, ok)
		}
		if out := must.Get(content.Python().AppendContent(nil, c))(t); string(out) != src {
			t.Errorf("%s\nwent back as\n%s", src, out)
		}
	}
}

func TestConsentThatNobodyShouldBeShown(t *testing.T) {
	for _, src := range []string{
		`{"type":"oauth_consent_request"}`,
		`{"type":"oauth_consent_request","consent_link":5}`,
		`{"type":"oauth_consent_request","consent_link":"http://login.example/"}`,
		`{"type":"oauth_consent_request","consent_link":"https://login.example@evil.example/"}`,
		`{"type":"oauth_consent_request","consent_link":"javascript:alert(1)"}`,
		`{"type":"oauth_consent_request","consent_link":"https://login.example/","server_label":["drive"]}`,
		`{"type":"hosted_file","consent_link":"https://login.example/"}`,
		`{"type":"text","text":"https://login.example/"}`,
	} {
		c := must.Get(content.Python().DecodeContent([]byte(src)))(t)
		if got, ok := content.ConsentOf(c); ok {
			t.Errorf("%s: %+v", src, got)
		}
	}

	half := &content.Unknown{Kind: "oauth_consent_request", Raw: []byte(`{"consent_link":`)}
	if _, ok := content.ConsentOf(half); ok {
		t.Error("half a consent is read")
	}
}
