package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/replay"
	_ "github.com/assent-dev/assent/internal/golden" // registers the flag -update
	"github.com/assent-dev/assent/internal/must"

	"github.com/openai/openai-go/v3/option"
)

// chatOn and responsesOn return a model whose service replays a transcript.
func chatOn(t *testing.T, file string, cfg Config) agent.ChatClient {
	t.Helper()
	return NewChat(NewClient(replay.New(t, file).URL()+"/v1", "test-key"), cfg)
}

func responsesOn(t *testing.T, file string, cfg Config) agent.ChatClient {
	t.Helper()
	return NewResponses(NewClient(replay.New(t, file).URL()+"/v1", "test-key"), cfg)
}

func ask(t *testing.T, m agent.ChatClient, opt *agent.Options, messages ...*content.Message) *agent.Response {
	t.Helper()
	return must.Get(m.Respond(t.Context(), messages, opt))(t)
}

func stream(t *testing.T, m agent.ChatClient, opt *agent.Options, messages ...*content.Message) *agent.Response {
	t.Helper()
	return must.Get(agent.Collect(m.Stream(t.Context(), messages, opt)))(t)
}

// shows compares a response with lines in the format of show.
func shows(t *testing.T, r *agent.Response, want ...string) {
	t.Helper()
	if got := show(r); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\n\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func show(r *agent.Response) string {
	lines := []string{fmt.Sprintf("%s %s %s", r.ID, r.Model, r.FinishReason)}
	if r.ConversationID != "" {
		lines = append(lines, "goes on with "+r.ConversationID)
	}
	if r.Usage != nil {
		lines = append(lines, fmt.Sprintf("usage %d %d %d", r.Usage.Input, r.Usage.Output, r.Usage.Total))
	}
	for _, m := range r.Messages {
		lines = append(lines, fmt.Sprintf("%s %s", m.Role, m.ID))
		for _, c := range m.Contents {
			lines = append(lines, "  "+showContent(c))
		}
	}

	return strings.Join(lines, "\n")
}

func showContent(c content.Content) string {
	out := ""
	switch c := c.(type) {
	case *content.Text:
		out = fmt.Sprintf("text %q", c.Text)
	case *content.Reasoning:
		out = fmt.Sprintf("reasoning %q %s", c.Text, c.Protected)
	case *content.Error:
		out = fmt.Sprintf("error %s %q %s", c.Code, c.Message, c.Details)
	case *content.FunctionCall:
		out = fmt.Sprintf("call %s %s %q", c.CallID, c.Name, c.Arguments)
		if c.InformationalOnly {
			out += " inert"
		}
	case *content.MCPCall:
		out = fmt.Sprintf("mcp %s %s.%s %q", c.CallID, c.ServerName, c.Name, c.Arguments)
	case *content.MCPResult:
		out = "mcp result " + c.CallID
		for _, o := range c.Outputs {
			out += ", " + showContent(o)
		}
	case *content.ToolApprovalRequest:
		out = "asks " + c.RequestID + ": " + showContent(c.Call)
	case *content.Unknown:
		out = "unknown " + c.Kind + " " + string(c.Raw)
	default:
		out = fmt.Sprintf("%T", c)
	}

	if p := content.CommonOf(c).Properties; p != nil {
		out += " " + string(p)
	}
	return out
}

func declared(name, description, schema string) agent.Tool {
	return agent.NewFunction(name, description, json.RawMessage(schema), nil)
}

func result(id, v string) *content.Message {
	return content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: id, Result: json.RawMessage(v)})
}

func TestChatText(t *testing.T) {
	t.Setenv("OPENAI_ORG_ID", "org") // the environment must have no effect
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-From-Environment: yes")
	warm := 0.5
	m := chatOn(t, "chat_text.json", Config{Model: "gpt-4.1"})
	r := ask(
		t,
		m,
		&agent.Options{Instructions: "Be brief.", Temperature: &warm, MaxTokens: 20},
		content.NewMessage(content.System, &content.Text{Text: "Today is Monday."}),
		content.UserText("Say \"hi\"\n\tin <b>ü</b>"),
		content.NewMessage(content.Assistant, &content.Reasoning{Text: "hm"}, &content.Text{Text: "h"},
			&content.Usage{Input: 1}, &content.Text{Text: "i"}),
		content.UserText("Again"),
	)
	shows(t, r, "chatcmpl-1 gpt-4.1-2025-04-14 stop", "usage 19 10 29", "assistant chatcmpl-1", `  text "Hi again."`)
}

func TestChatTools(t *testing.T) {
	m := chatOn(t, "chat_tools.json", Config{})
	question := content.UserText("Weather in Oslo and Bergen?")
	r := ask(t, m, &agent.Options{
		Model: "gpt-4.1",
		Tools: []agent.Tool{
			declared("weather", "Tells the weather.",
				`{"type":"object","properties":{"city":{"type":"string"},"days":{"maximum":1.0}}}`),
			agent.RequireApproval(declared("now", "", "").(agent.Function)),
		},
	}, question)
	shows(t, r, "chatcmpl-2 gpt-4.1-2025-04-14 tool_calls", "usage 82 17 99", "assistant chatcmpl-2",
		`  call call_a weather "{ \"city\":\"Oslo\",\n\"days\":1.0}"`,
		`  call call_b weather "{\"city\": \"Bergen\", \"city\": \"x\""`, `  call call_c now ""`)
	both := content.NewMessage(content.ToolRole,
		&content.FunctionResult{CallID: "call_a", Result: json.RawMessage(`"rain \u0026 \"wind\""`)},
		&content.FunctionResult{CallID: "call_b", Result: json.RawMessage(`{"degrees": 7.50}`)})
	r = ask(t, m, &agent.Options{Model: "gpt-4.1"}, question, r.Messages[0], both, result("call_c", ""))
	shows(t, r, "chatcmpl-3 gpt-4.1-2025-04-14 stop", "assistant chatcmpl-3", `  text "Rain."`)
}

func TestChatStream(t *testing.T) {
	m := chatOn(t, "chat_stream.json", Config{Model: "gpt-4.1"})
	r := stream(t, m, nil, content.UserText("Weather?"))
	shows(t, r, "chatcmpl-4 gpt-4.1-2025-04-14 tool_calls", "usage 5 6 11", "assistant chatcmpl-4",
		`  text "Let me look."`, `  call call_a weather "{\"city\": \"Oslo\"}"`,
		`  call call_b weather "{\"n\":1.0}"`)
}

func TestChatRefusal(t *testing.T) {
	m := chatOn(t, "chat_refusal.json", Config{Model: "gpt-4.1"})
	r := ask(t, m,
		&agent.Options{Schema: json.RawMessage(`{"type":"object","properties":{"steps":{"type":"array"}}}`)},
		content.UserText("How?"))
	shows(t, r, "chatcmpl-5 gpt-4.1-2025-04-14 stop", "assistant chatcmpl-5",
		`  error Refusal "I can't help with that." `)
	r = stream(t, m, nil, content.UserText("How?"), r.Messages[0], content.UserText("Why?"))
	shows(t, r, "chatcmpl-6 gpt-4.1-2025-04-14 stop", "assistant chatcmpl-6", `  error Refusal "No again." `)
}

func TestChatCutShort(t *testing.T) {
	m := chatOn(t, "chat_short.json", Config{Model: "gpt-4.1"})
	r := ask(t, m, nil, content.UserText("Pay"))
	shows(t, r, "chatcmpl-7 gpt-4.1-2025-04-14 length", "assistant chatcmpl-7", `  text "So"`,
		`  call call_a pay "{\"amount\":1}" inert`, `  call call_b pay_all "" inert`)
	r = ask(t, m, nil, content.UserText("Pay"), r.Messages[0], content.UserText("Go on"))
	if r.FinishReason != "content_filter" || r.Text() != "" {
		t.Errorf("got %s", show(r))
	}
}

func TestChatParts(t *testing.T) {
	m := chatOn(t, "chat_parts.json",
		Config{Model: "gpt-4.1", Strict: true, Extra: json.RawMessage(` {"reasoning_effort":"low"} `)})
	opt := &agent.Options{Tools: []agent.Tool{declared("now", "", "")},
		Extra: map[string]any{ExtraKey: json.RawMessage(`{"parallel_tool_calls":false}`), "other": 1}}
	ask(t, m, opt, content.NewMessage(content.User,
		&content.Text{Text: "What is this?"},
		&content.URI{URI: "https://example.com/a.png", MediaType: "image/png"},
		&content.Data{URI: "data:image/png;base64,AAAA"},
		&content.Data{URI: "data:audio/wav;base64,BBBB"},
		&content.Data{URI: "data:application/pdf;base64,CCCC", MediaType: "application/pdf", Name: "a.pdf"}))
}

func TestFailures(t *testing.T) {
	m := chatOn(t, "chat_failures.json", Config{Model: "m", Request: []option.RequestOption{option.WithMaxRetries(0)}})
	cases := []struct {
		stream bool
		want   StatusError
		text   string
	}{
		{false, StatusError{
			Status:     429,
			Code:       "rate_limit_exceeded",
			Type:       "requests",
			Message:    "Rate limit reached for key sk-secret",
			RetryAfter: 3e9,
			RequestID:  "req_2",
		}, "openai: status 429: rate_limit_exceeded"},
		{false, StatusError{Status: 500}, "openai: status 500"},
		{false, StatusError{
			Status:  400,
			Type:    "invalid_request_error",
			Param:   "messages[0]",
			Message: "Invalid parameter",
		}, "openai: status 400: invalid_request_error"},
		{true, StatusError{
			Status:     429,
			Code:       "insufficient_quota",
			Type:       "insufficient_quota",
			Message:    "Quota",
			RetryAfter: 25e7,
		}, "openai: status 429: insufficient_quota"},
		{true, StatusError{Code: "503", Type: "server_error", Message: "The server had an error"},
			"openai: the service reports a failure: 503"},
		{false, StatusError{Code: "overloaded", Type: "server_error", Message: "no"},
			"openai: the service reports a failure: overloaded"},
	}
	for _, c := range cases {
		var err error
		if c.stream {
			_, err = agent.Collect(m.Stream(t.Context(), []*content.Message{content.UserText("x")}, nil))
		} else {
			_, err = m.Respond(t.Context(), []*content.Message{content.UserText("x")}, nil)
		}
		var got *StatusError
		if !errors.As(err, &got) {
			t.Errorf("got %v, want a StatusError", err)
			continue
		}
		if (got.Status != 0) != (errors.Unwrap(got) != nil) || got.Error() != c.text {
			t.Errorf("got %q around %v", got, got.Err)
		}
		bare := *got
		bare.Err = nil
		if bare != c.want {
			t.Errorf("got %+v\nwant %+v", bare, c.want)
		}
	}
}

func TestRetry(t *testing.T) {
	if r := ask(t, chatOn(t, "chat_retry.json", Config{Model: "m"}), nil, content.UserText("x")); r.Text() != "done" {
		t.Errorf("got %s", show(r))
	}
}
