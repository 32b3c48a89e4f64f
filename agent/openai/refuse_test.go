package openai

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

// nowhere returns a model to which nothing may be sent.
func nowhere(cfg Config, overChat bool) agent.ChatClient {
	if overChat {
		return NewChat(NewClient("http://127.0.0.1:1/v1", "k"), cfg)
	}
	return NewResponses(NewClient("http://127.0.0.1:1/v1", "k"), cfg)
}

type refused struct {
	name     string
	messages []*content.Message
	opt      *agent.Options
	cfg      Config
	detail   string
}

func (c refused) run(t *testing.T, overChat bool, code content.Code) {
	cfg := c.cfg
	if cfg.Model == "" {
		cfg.Model = "m"
	}
	_, err := nowhere(cfg, overChat).Respond(t.Context(), c.messages, c.opt)
	var got *content.BadError
	if !errors.As(err, &got) || got.Code != code || !strings.Contains(err.Error(), c.detail) {
		t.Errorf("got %v, want %s: %s", err, code, c.detail)
	}
}

func says(role content.Role, contents ...content.Content) []*content.Message {
	return []*content.Message{content.NewMessage(role, contents...)}
}

func call(id string) *content.FunctionCall {
	return &content.FunctionCall{CallID: id, Name: "f", Arguments: json.RawMessage(`{}`)}
}

func gives(id string) *content.FunctionResult { return &content.FunctionResult{CallID: id} }

// wrapped is a tool around another.
type wrapped struct{ agent.Tool }

func (w wrapped) Unwrap() agent.Tool { return w.Tool }

func mcpAsk(id string) *content.ToolApprovalRequest {
	return &content.ToolApprovalRequest{RequestID: id,
		Call: &content.MCPCall{CallID: id, Name: "roll", ServerName: "dice"}}
}

// bothRefuse returns contents that both adapters refuse to send.
func bothRefuse() map[content.Code][]refused {
	nan := math.NaN()
	tool := func(ts ...agent.Tool) *agent.Options { return &agent.Options{Tools: ts} }
	return map[content.Code][]refused{
		content.BadShape: {
			{name: "result without call", messages: says(content.ToolRole, gives("a")),
				detail: `messages[0].contents[0]: expected a call "a"`},
			{name: "second result", messages: says(content.Assistant, call("a"), gives("a"), gives("a")),
				detail: "contents[2]"},
			{name: "result before its call", messages: says(content.Assistant, gives("a"), call("a"))},
			{name: "no message", messages: []*content.Message{nil}},
			{name: "data without data", messages: says(content.User, &content.Data{URI: "https://example.com"})},
			{name: "no model", cfg: Config{Model: " "}, opt: &agent.Options{Temperature: &nan},
				detail: "temperature"},
			{name: "tool without name", opt: tool(declared("", "", "")), detail: "a tool has no name"},
			{name: "extra list", cfg: Config{Extra: json.RawMessage(`[]`)}, detail: "Config.Extra"},
			{name: "extra map", opt: &agent.Options{Extra: map[string]any{ExtraKey: map[string]any{}}},
				detail: "Options.Extra"},
		},
		content.BadID: {{name: "result without id", messages: says(content.ToolRole, gives(""))},
			{name: "call without id", messages: says(content.Assistant, call(""))}},
		content.BadKind: {
			{name: "call of a user", messages: says(content.User, call("a"))},
			{name: "no content", messages: says(content.User, nil)},
			{name: "image of an assistant", messages: says(content.Assistant, &content.Data{URI: "data:image/png,x"})},
			{name: "text of a tool", messages: says(content.ToolRole, &content.Text{Text: "x"})},
			{
				name:     "unknown of elsewhere",
				messages: says(content.Assistant, &content.Unknown{Kind: "x", Raw: json.RawMessage(`{"$type":"x"}`)}),
			},
			{
				name: "answer about a hosted call",
				messages: says(content.User,
					&content.ToolApprovalResponse{RequestID: "r", Call: &content.HostedCall{}}),
			},
			{name: "answer about nothing", messages: says(content.User, &content.ToolApprovalResponse{RequestID: "r"})},
		},
		content.BadJSON: {{name: "no UTF-8", messages: says(content.User, &content.Text{Text: "a\xff"})},
			{name: "extra twice", cfg: Config{Extra: json.RawMessage(`{"model":"other"}`)}, detail: "model"}},
		content.BadSchema: {{name: "schema that is none", opt: tool(declared("f", "", "true")), detail: "tools.f"},
			{name: "schema that goes on", opt: tool(declared("f", "", `{},"strict":false,"x":{}`))},
			{name: "answer's schema", opt: &agent.Options{Schema: json.RawMessage(`[`)}, detail: "schema"}},
	}
}

func TestRefused(t *testing.T) {
	for code, all := range bothRefuse() {
		for _, c := range all {
			t.Run(c.name+"/chat", func(t *testing.T) { c.run(t, true, code) })
			t.Run(c.name+"/responses", func(t *testing.T) { c.run(t, false, code) })
		}
	}

	_, err := nowhere(Config{}, true).Respond(t.Context(), nil, nil)
	var got *content.BadError
	if !errors.As(err, &got) || got.Where != "model" {
		t.Errorf("got %v", err)
	}
}

func TestChatRefused(t *testing.T) {
	for code, all := range map[content.Code][]refused{
		content.BadShape: {{name: "conversation", opt: &agent.Options{ConversationID: "c"}, detail: "ConversationID"}},
		content.BadKind: {
			{name: "hosted server", opt: &agent.Options{Tools: mcpTools()}, detail: "tools.dice"},
			{name: "MCP call", messages: says(content.Assistant, &content.MCPCall{CallID: "a", Name: "f"}),
				detail: "MCPCall"},
			{name: "MCP request", messages: says(content.Assistant, mcpAsk("r")), detail: "ToolApprovalRequest"},
			{name: "MCP answer", messages: says(content.User, mcpAsk("r").CreateApproval("")),
				detail: "ToolApprovalResponse"},
			{name: "address of a film",
				messages: says(content.User, &content.URI{URI: "https://x", MediaType: "video/mp4"}),
				detail:   "video/mp4"},
			{name: "sound of another kind",
				messages: says(content.User, &content.Data{URI: "data:audio/ogg;base64,x"}), detail: "audio/ogg"},
		},
	} {
		for _, c := range all {
			t.Run(c.name, func(t *testing.T) { c.run(t, true, code) })
		}
	}
}

func TestResponsesRefused(t *testing.T) {
	edited := mcpAsk("r").CreateApproval("")
	edited.Edited = call("r")
	server := func(approval string, ask ...string) *agent.Options {
		return &agent.Options{Tools: []agent.Tool{&agent.HostedMCP{Name: "dice",
			URL: "https://dice.example/mcp", Approval: approval, Ask: ask}}}
	}
	stored, going := Config{Store: true}, &agent.Options{ConversationID: "resp_1"}
	for code, all := range map[content.Code][]refused{
		content.BadShape: {
			{name: "conversation that isn't kept", opt: going, detail: "Config.Store"},
			{name: "server without address",
				opt:    &agent.Options{Tools: []agent.Tool{wrapped{&agent.HostedMCP{Name: "dice"}}}},
				detail: "tools.dice: an MCP server"},
			{name: "approval that nobody knows", opt: server("sometimes"), detail: "sometimes"},
			{name: "listed without list", opt: server("listed"), detail: "tools.dice"},
			{name: "answer without request", messages: says(content.User, mcpAsk("r").CreateApproval("")),
				detail: `request "r"`},
			{
				name: "second answer",
				messages: says(content.Assistant, mcpAsk("r"), mcpAsk("r").CreateRejection(""),
					mcpAsk("r").CreateApproval("")),
				detail: "contents[2]",
			},
			{name: "second answer, kept", cfg: stored, opt: going,
				messages: says(content.User, mcpAsk("r").CreateRejection(""), mcpAsk("r").CreateApproval("")),
				detail:   "contents[1]"},
			{
				name: "second answer beside its request, kept",
				cfg:  stored,
				opt:  going,
				messages: says(content.Assistant, mcpAsk("r"), mcpAsk("r").CreateRejection(""),
					mcpAsk("r").CreateApproval("")),
				detail: "contents[2]",
			},
		},
		content.BadKind: {
			{name: "request of a user", cfg: stored, opt: going, messages: says(content.User, mcpAsk("r"))},
			{name: "edit", messages: says(content.Assistant, mcpAsk("r"), edited), detail: "edited"},
			{
				name: "MCP result of another kind",
				messages: says(content.Assistant, &content.MCPCall{CallID: "a", Name: "f"},
					&content.MCPResult{CallID: "a", Outputs: []content.Content{&content.Data{}}}),
				detail: "Data",
			},
			{name: "refusal of a user", messages: says(content.User, &content.Error{Code: refusalCode})},
			{name: "hosted call", messages: says(content.Assistant, &content.HostedCall{})},
			{
				name:     "unknown that is no JSON",
				messages: says(content.Assistant, &content.Unknown{Kind: "x", Raw: json.RawMessage(`{"type":"x"},{}`)}),
			},
		},
		content.BadID: {
			{name: "answer without id", messages: says(content.Assistant, mcpAsk("").CreateApproval(""))},
			{name: "request without id", messages: says(content.Assistant, mcpAsk(""))},
			{name: "MCP call without id", messages: says(content.Assistant, &content.MCPCall{Name: "f"})},
		},
	} {
		for _, c := range all {
			t.Run(c.name, func(t *testing.T) { c.run(t, false, code) })
		}
	}
}

// Requests and answers about functions, and calls that were handled elsewhere, are not sent to
// the service.
func TestSilent(t *testing.T) {
	inert := call("a")
	inert.InformationalOnly = true
	ask := &content.ToolApprovalRequest{RequestID: "r", Call: call("b")}
	form := &content.StructuredInputRequest{RequestID: "f"}
	text := &content.TextApprovalRequest{RequestID: "t"}
	messages := says(content.Assistant, gives("a"), inert, ask, form, text, &content.Usage{},
		ask.CreateApproval("because"), form.CreateRejection(""), text.CreateApproval(""),
		&content.ToolApprovalRequest{RequestID: "h", Call: &content.HostedCall{}}, &content.Error{})
	if all, err := chatMessages(messages, ""); err != nil || len(all) != 0 {
		t.Errorf("chat: %s, %v", all, err)
	}
	if all, err := inputItems(messages, false, false); err != nil || len(all) != 0 {
		t.Errorf("responses: %s, %v", all, err)
	}
}

// A loop marks the calls that it has run. With their results they are part of the history.
func TestHandledCallsAreSent(t *testing.T) {
	inert, again := call("a"), call("a")
	inert.InformationalOnly, again.InformationalOnly = true, true
	messages := says(content.Assistant, inert, gives("a"), again) // the second has no result
	if all, err := chatMessages(messages, ""); err != nil || len(all) != 2 {
		t.Errorf("chat: %s, %v", all, err)
	}
	if all, err := inputItems(messages, false, false); err != nil || len(all) != 2 {
		t.Errorf("responses: %s, %v", all, err)
	}
}

// A call id may be reused after the earlier call has its result.
func TestCallIDAgain(t *testing.T) {
	messages := says(content.Assistant, call("a"), gives("a"), call("a"), gives("a"))
	if all, err := chatMessages(messages, ""); err != nil || len(all) != 4 {
		t.Errorf("chat: %s, %v", all, err)
	}
	if all, err := inputItems(messages, false, false); err != nil || len(all) != 4 {
		t.Errorf("responses: %s, %v", all, err)
	}
}

// In the service's own types, a message with parts has an id and a status. Some servers check
// every request against these types, so assistant messages are sent as text.
func TestSendsWhatAnAssistantSaidAsText(t *testing.T) {
	items := must.Get(inputItems([]*content.Message{content.NewMessage(
		content.Assistant,
		&content.Text{Text: "A"},
		&content.Text{Text: " cat."},
		&content.Error{Code: refusalCode, Message: "No more."},
		call("c"),
		&content.Error{Code: refusalCode, Message: "Nothing."},
	), content.NewMessage(content.ToolRole, gives("c"))}, false, false))(t)
	var got []string
	for _, raw := range items {
		var item struct {
			Type, Role string
			Content    json.RawMessage
		}
		must.Do(t, json.Unmarshal(raw, &item))
		got = append(got, strings.TrimSpace(item.Type+" "+item.Role+" "+string(item.Content)))
	}

	want := []string{
		`message assistant "A cat.\n\nNo more."`,
		"function_call",
		`message assistant "Nothing."`,
		"function_call_output",
	}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The error for an invalid whole answer names the problem.
func TestTellsWhatIsWrongWithACall(t *testing.T) {
	for src, want := range map[string]string{
		`{"choices":[{"message":{"tool_calls":[{"function":{"name":"f"}}]},"finish_reason":"tool_calls"}]}`: "tool_calls[0]: the call has no id or no name",
		`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f"}},{"id":"b","function":{}}]},` +
			`"finish_reason":"tool_calls"}]}`: "tool_calls[1]: the call has no id or no name",
		`{"choices":[{"message":{"content":"x"}}]}`: "choices: the answer has no finish reason",
	} {
		_, err := (&chatAnswer{}).whole([]byte(src))
		var bad *content.BadError
		if !errors.As(err, &bad) || err.Error() != want {
			t.Errorf("%s\n%v, want %s", src, err, want)
		}
	}
}
