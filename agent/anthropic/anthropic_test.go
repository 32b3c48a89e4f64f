package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/anthropic"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/replay"
	"github.com/assent-dev/assent/internal/must"
)

const sonnet = "claude-sonnet-4-5"

// dial returns a client for a replayed service. It ignores the environment.
func dial(t *testing.T, file string, more ...anthropic.Option) agent.ChatClient {
	t.Helper()
	options := []anthropic.Option{
		anthropic.WithoutEnvironment(),
		anthropic.WithAPIKey("test"),
		anthropic.WithBaseURL(replay.New(t, file).URL()),
		anthropic.WithModel(sonnet),
		anthropic.WithSDK(option.WithMaxRetries(0)),
	}
	return anthropic.New(append(options, more...)...)
}

// show formats contents one per line, with everything that must be preserved.
func show(contents []content.Content) string {
	var out []string
	for _, c := range contents {
		out = append(out, line(c))
	}
	return strings.Join(out, "\n")
}

func line(c content.Content) string {
	common := content.CommonOf(c)
	var extra string
	for _, m := range common.Extra {
		extra += fmt.Sprintf(" +%s=%s", m.Key, m.Raw)
	}
	switch c := c.(type) {
	case *content.Text:
		return fmt.Sprintf("text %q%s", c.Text, extra)
	case *content.Reasoning:
		return fmt.Sprintf("thought %q %s", c.Text, c.Protected)
	case *content.FunctionCall:
		return fmt.Sprintf("call %s %s %s%s", c.CallID, c.Name, c.Arguments, extra)
	case *content.MCPCall:
		return fmt.Sprintf("mcp %s %s/%s %s", c.CallID, c.ServerName, c.Name, c.Arguments)
	case *content.MCPResult:
		return fmt.Sprintf("mcp result %s [%s]%s", c.CallID, show(c.Outputs), extra)
	case *content.Unknown:
		return fmt.Sprintf("unknown %s %s", c.Kind, c.Raw)
	case *content.Error:
		return fmt.Sprintf("error %s %s %q", c.Code, c.Details, c.Message)
	case *content.Usage:
		return fmt.Sprintf("usage %d+%d=%d %s", c.Input, c.Output, c.Total, c.Properties)
	}

	return fmt.Sprintf("%T", c)
}

// hold compares an answer with the expected lines.
func hold(t *testing.T, r *agent.Response, reason, want string) {
	t.Helper()
	if len(r.Messages) != 1 || r.Messages[0].Role != content.Assistant || r.Messages[0].ID != r.ID || r.ID == "" {
		t.Fatalf("got messages %+v of response %q", r.Messages, r.ID)
	}
	if got := show(r.Messages[0].Contents); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if r.FinishReason != reason {
		t.Errorf("got the reason %q, want %q", r.FinishReason, reason)
	}
}

// ask runs one turn, whole or as a stream, and adds it to the history.
func ask(
	t *testing.T, c agent.ChatClient, stream bool, history *[]*content.Message, opt *agent.Options,
) *agent.Response {
	t.Helper()
	r := c.Respond
	if stream {
		r = func(ctx context.Context, m []*content.Message, o *agent.Options) (*agent.Response, error) {
			return agent.Collect(c.Stream(ctx, m, o))
		}
	}
	out := must.Get(r(t.Context(), *history, opt))(t)
	*history = append(*history, out.Messages...)
	return out
}

func result(id, text string) *content.FunctionResult {
	out := &content.FunctionResult{CallID: id}
	if text != "" {
		out.Result = json.RawMessage(text)
	}
	return out
}

func TestText(t *testing.T) {
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "leaked")
	half := 0.5
	c := dial(t, "text.json", anthropic.WithMaxTokens(100),
		anthropic.WithParameters(map[string]any{"top_p": 0.9, "stop_sequences": []string{"x"}}))
	history := []*content.Message{
		content.NewMessage(content.System, &content.Text{Text: "Speak English."}, &content.Text{Text: " "}),
		content.UserText("Hello <&>"),
	}
	r := ask(t, c, false, &history, &agent.Options{Instructions: "Be brief.", Temperature: &half, MaxTokens: 200,
		Extra: map[string]any{anthropic.Parameters: map[string]any{"stop_sequences": []string{"###"}}}})
	hold(t, r, "stop", `text "Hi!"`)
	want := `usage 17+5=22 {"cache_creation_input_tokens":3,"cache_read_input_tokens":4,"input_tokens":10,` +
		`"output_tokens":5}`
	if got := line(r.Usage); got != want || r.Model != "claude-sonnet-4-5-20250929" || r.Text() != "Hi!" {
		t.Errorf("got %s of %s", got, r.Model)
	}
}

func TestEnvironmentIsReadUnlessIgnored(t *testing.T) {
	t.Setenv("ANTHROPIC_BASE_URL", replay.New(t, "environment.json").URL())
	t.Setenv("ANTHROPIC_API_KEY", "of-the-environment")
	history := []*content.Message{content.UserText("Hi")}
	ask(t, anthropic.New(anthropic.WithSDK(option.WithHTTPClient(http.DefaultClient), option.WithMaxRetries(0))),
		false, &history, &agent.Options{Model: "m"})
}

func TestParallelTools(t *testing.T) {
	schema := json.RawMessage(`{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}`)
	weather := agent.NewFunction("weather", "Tells the weather.", schema, nil)
	now := agent.NewFunction("now", "", nil, nil)
	opt := &agent.Options{Tools: []agent.Tool{agent.RequireApproval(weather), now}}
	c := dial(t, "tools.json")
	history := []*content.Message{content.UserText("Weather in Oslo and Rome, and the time?")}
	hold(t, ask(t, c, false, &history, opt), "tool_calls", strings.Join([]string{
		`text "I'll look."`,
		`call toolu_01 weather {"city": "Oslo",  "n": 1.0}`,
		`call toolu_02 weather {"city": "Rome"} +caller={"type": "direct"}`,
		`call toolu_03 now {}`}, "\n"))
	history = append(history, content.NewMessage(content.ToolRole, result("toolu_02", `"sunny"`)),
		content.UserText("Hurry."),
		content.NewMessage(content.ToolRole, result("toolu_01", `{"temp": -3.50}`), result("toolu_03", "")))
	hold(t, ask(t, c, false, &history, opt), "length", `text "Cold and sun"`)
}

func TestStreamedTools(t *testing.T) {
	opt := &agent.Options{
		Tools: []agent.Tool{agent.NewFunction("weather", "", json.RawMessage(`{"type":"object"}`), nil)},
	}
	c := dial(t, "tools_stream.json")
	history := []*content.Message{content.UserText("Weather?")}
	r := ask(t, c, true, &history, opt)
	hold(t, r, "tool_calls", strings.Join([]string{
		`text "Okay, let me see"`,
		`call toolu_11 weather {"city": "Oslo", "n": 1.0}`,
		`call toolu_12 weather {}`}, "\n"))
	if got, want := line(r.Usage), `usage 480+89=569 {"cache_read_input_tokens":8,"input_tokens":472,`+
		`"output_tokens":89}`; got != want {
		t.Errorf("got %s", got)
	}
	history = append(
		history,
		content.NewMessage(content.ToolRole, result("toolu_11", `"cold"`),
			result("toolu_12", `"Tool call invocation rejected."`)),
	)
	hold(t, ask(t, c, true, &history, opt), "stop", `text "Cold."`)
}

func TestThinking(t *testing.T) {
	for file, stream := range map[string]bool{"thinking.json": false, "thinking_stream.json": true} {
		t.Run(file, func(t *testing.T) {
			c := dial(
				t,
				file,
				anthropic.WithParameters(
					map[string]any{"thinking": json.RawMessage(`{"type":"enabled","budget_tokens":1024}`)},
				),
			)
			opt := &agent.Options{Tools: []agent.Tool{agent.NewFunction("pay", "", nil, nil)}}
			history := []*content.Message{content.UserText("Pay it.")}
			r := ask(t, c, stream, &history, opt)
			args := `{"to": "A"}`
			if stream {
				args = `{"to":"A"}`
			}
			hold(t, r, "tool_calls", strings.Join([]string{
				`thought "They want to pay.\nFine." EqMB+/==`,
				`thought "" EmwK+/==`,
				`thought "" EpAC`,
				`call toolu_21 pay ` + args}, "\n"))
			history = append(history, content.NewMessage(content.ToolRole, result("toolu_21", `"paid"`)))
			hold(t, ask(t, c, stream, &history, opt), "stop", `text "Done."`)
		})
	}
}

func TestRefusal(t *testing.T) {
	c := dial(t, "refusal.json")
	history := []*content.Message{content.UserText("Something bad")}
	hold(t, ask(t, c, false, &history, nil), "content_filter", `error refusal cyber "Not this."`)
	history = history[:1]
	hold(t, ask(t, c, true, &history, nil), "content_filter", "text \"Well\"\nerror refusal cyber \"Not this.\"")
}

func TestServices(t *testing.T) {
	c := dial(t, "services.json")
	docs := &agent.HostedMCP{Name: "docs", URL: "https://docs.example.com/mcp",
		Headers: map[string]string{"authorization": "Bearer s3cret"},
		Allowed: []string{"search", "read", "search"}, Approval: "never"}
	open := &agent.HostedMCP{Name: "open", URL: "https://open.example.com/mcp", Approval: "never"}
	search := anthropic.ServerTool("web_search",
		json.RawMessage(`{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}`))
	history := []*content.Message{content.UserText("Look it up")}
	hold(
		t,
		ask(t, c, false, &history, &agent.Options{Tools: []agent.Tool{docs, wrapped{open}, wrapped{search}}}),
		"pause_turn",
		strings.Join(
			[]string{
				`mcp mcptoolu_01 docs/search {"q": "x"}`,
				`mcp result mcptoolu_01 [text "found"] +is_error=false`,
				`unknown server_tool_use {"type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search", ` +
					`"input": {"query":  "x", "n": 1.50}}`,
				`unknown web_search_tool_result {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01", ` +
					`"content": [{"type": "web_search_result", "url": "https://example.com", "title": "T", ` +
					`"encrypted_content": "Eo8B=", "page_age": null}]}`,
				`text "It says so" +citations=[{"type": "web_search_result_location", "url": "https://example.com", ` +
					`"encrypted_index": "Eo4B=", "cited_text": "so"}]`},
			"\n",
		),
	)
	hold(t, ask(t, c, false, &history, nil), "stop",
		"mcp mcptoolu_02 docs/read {}\nmcp result mcptoolu_02 [text \"gone\"] +is_error=true")
}

// wrapped is a tool around another.
type wrapped struct{ agent.Tool }

func (w wrapped) Unwrap() agent.Tool { return w.Tool }

func TestErrors(t *testing.T) {
	c := dial(t, "errors.json", anthropic.WithModel("m"))
	messages := []*content.Message{content.UserText("Hi")}
	for i, want := range []anthropic.StatusError{
		{Status: 429, Type: "rate_limit_error", Message: "Slow down", RetryAfter: 17 * time.Second,
			RequestID: "req_429"},
		{Status: 529, Type: "overloaded_error", Message: "Overloaded",
			RetryAfter: 250 * time.Millisecond, RequestID: "req_529"},
		{Status: 400, Type: "invalid_request_error", Message: "max_tokens: too large"},
		{Status: 502},
	} {
		var r *agent.Response
		var err error
		if i == 1 {
			r, err = agent.Collect(c.Stream(t.Context(), messages, nil))
			if len(r.Messages) > 0 {
				t.Errorf("got %v", r.Messages)
			}
		} else if r, err = c.Respond(t.Context(), messages, nil); r != nil {
			t.Errorf("got %v", r)
		}

		var got *anthropic.StatusError
		if !errors.As(err, &got) || got.Unwrap() == nil {
			t.Fatalf("got %v", err)
		}
		want.Err = got.Err
		if *got != want {
			t.Errorf("got %+v, want %+v", *got, want)
		}
	}

	if _, err := c.Respond(t.Context(), messages, nil); !errors.Is(err, anthropic.ErrBadResponse) {
		t.Errorf("got %v", err)
	}
	if r, err := c.Respond(t.Context(), messages, nil); err == nil || r != nil {
		t.Errorf("half a response is %v, %v", r, err)
	}
}

func TestErrorText(t *testing.T) {
	for want, err := range map[string]error{
		"anthropic: 429 rate_limit_error: Slow down": &anthropic.StatusError{Status: 429,
			Type: "rate_limit_error", Message: "Slow down"},
		"anthropic: 502 Bad Gateway": &anthropic.StatusError{Status: 502},
		"anthropic: messages[0]: not a valid history: no result follows": &anthropic.RequestError{
			Where:  "messages[0]",
			Detail: "no result follows",
			Err:    anthropic.ErrHistory,
		},
	} {
		if err.Error() != want {
			t.Errorf("got %s, want %s", err, want)
		}
	}
}

func TestBrokenStreams(t *testing.T) {
	c := dial(t, "broken_streams.json", anthropic.WithModel("m"))
	messages := []*content.Message{content.UserText("Hi")}
	r, err := agent.Collect(c.Stream(t.Context(), messages, nil))
	var overloaded *anthropic.StatusError
	if !errors.As(err, &overloaded) || overloaded.Type != "overloaded_error" || overloaded.Status != 200 ||
		overloaded.RequestID != "req_12" {
		t.Errorf("got %v", err)
	}
	if r.FinishReason != "" || r.Text() != "Half" {
		t.Errorf("got %+v", r)
	}
	for range 2 {
		if r, err = agent.Collect(c.Stream(t.Context(), messages, nil)); !errors.Is(err, anthropic.ErrCut) ||
			r.FinishReason != "" ||
			r.Text() != "Half" {
			t.Errorf("got %+v, %v", r, err)
		}
	}

	// An answer that may take this long is streamed. A partial answer must not be returned.
	if r, err = c.Respond(t.Context(), messages, &agent.Options{MaxTokens: 100000}); !errors.Is(err,
		anthropic.ErrCut) ||
		r != nil {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestLongAnswersAreStreamed(t *testing.T) {
	history := []*content.Message{content.UserText("Hi")}
	hold(t, ask(t, dial(t, "long.json"), false, &history, &agent.Options{MaxTokens: 100000}), "max_turns",
		`text "Long"`)
}

func TestReaderStops(t *testing.T) {
	c := dial(t, "long.json")
	for u, err := range c.Stream(t.Context(), []*content.Message{content.UserText("Hi")},
		&agent.Options{MaxTokens: 100000}) {
		if err != nil || u.MessageID != "msg_17" || u.FinishReason != "" {
			t.Errorf("got %+v, %v", u, err)
		}
		break
	}
}

func TestUnreachable(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := anthropic.New(anthropic.WithoutEnvironment(), anthropic.WithBaseURL("http://127.0.0.1:1"),
		anthropic.WithSDK(option.WithMaxRetries(0)), anthropic.WithModel("m"))
	if _, err := c.Respond(ctx, []*content.Message{content.UserText("Hi")}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}

	_, err := agent.Collect(c.Stream(t.Context(), []*content.Message{content.UserText("Hi")}, nil))
	var status *anthropic.StatusError
	if err == nil || errors.As(err, &status) {
		t.Errorf("got %v", err)
	}
}

func TestRequestsThatAreNotSent(t *testing.T) {
	nan := math.NaN()
	hosted := func(change func(*agent.HostedMCP)) *agent.Options {
		h := &agent.HostedMCP{Name: "docs", URL: "https://example.com", Approval: "never"}
		change(h)
		return &agent.Options{Tools: []agent.Tool{h}}
	}
	extra := func(v any) *agent.Options {
		return &agent.Options{Extra: map[string]any{anthropic.Parameters: v}}
	}
	tool := func(t agent.Tool) *agent.Options { return &agent.Options{Tools: []agent.Tool{t}} }
	for want, refused := range map[error]map[string]*agent.Options{
		anthropic.ErrUnsupported: {
			"conversation":     {ConversationID: "c"},
			"default approval": hosted(func(h *agent.HostedMCP) { h.Approval = "" }),
			"always approval":  hosted(func(h *agent.HostedMCP) { h.Approval = "always" }),
			"listed approval": hosted(func(h *agent.HostedMCP) {
				h.Approval = "listed"
				h.Ask = []string{"x"}
			}),
			"never, but listed": hosted(func(h *agent.HostedMCP) { h.Ask = []string{"x"} }),
			"other header": hosted(func(h *agent.HostedMCP) {
				h.Headers = map[string]string{"X-Key": "Bearer k"}
			}),
			"other scheme": hosted(func(h *agent.HostedMCP) {
				h.Headers = map[string]string{"Authorization": "Basic k"}
			}),
			"parameters":    extra("x"),
			"our parameter": extra(map[string]any{"messages": []any{}}),
		},
		anthropic.ErrContent: {
			"max tokens":    {MaxTokens: -1},
			"temperature":   {Temperature: &nan},
			"no URL":        hosted(func(h *agent.HostedMCP) { h.URL = "" }),
			"no tool":       tool(nil),
			"no name":       tool(agent.NewFunction("", "", nil, nil)),
			"tool's schema": tool(agent.NewFunction("f", "", json.RawMessage(`true`), nil)),
			"server tool":   tool(anthropic.ServerTool("x", json.RawMessage(`[]`))),
			"schema":        {Schema: json.RawMessage(`{`)},
			"odd parameter": extra(map[string]any{"x": func() {}}),
			"odd output": {Schema: json.RawMessage(`{}`),
				Extra: map[string]any{anthropic.Parameters: map[string]any{"output_config": 1}}},
		},
	} {
		for name, opt := range refused {
			t.Run(name, func(t *testing.T) {
				client := dial(t, "nothing.json")
				_, err := client.Respond(t.Context(), []*content.Message{content.UserText("Hi")}, opt)
				var typed *anthropic.RequestError
				if !errors.Is(err, want) || !errors.As(err, &typed) || typed.Where == "" {
					t.Errorf("got %v", err)
				}
				if _, err := agent.Collect(client.Stream(t.Context(), []*content.Message{content.UserText("Hi")},
					opt)); !errors.Is(err, want) {
					t.Errorf("streamed, got %v", err)
				}
			})
		}
	}

	bare := anthropic.New(anthropic.WithoutEnvironment())
	if name := anthropic.ServerTool("x", nil).Definition().Name; name != "x" {
		t.Errorf("got %q", name)
	}
	if _, err := bare.Respond(t.Context(), []*content.Message{content.UserText("Hi")}, nil); !errors.Is(err,
		anthropic.ErrContent) {
		t.Errorf("without a model, got %v", err)
	}
}

func TestSchema(t *testing.T) {
	c := dial(t, "schema.json")
	schema := json.RawMessage(
		`{"type":"object","properties":{"n":{"type":"number"}},"required":["n"],"additionalProperties":false}`,
	)
	history := []*content.Message{content.UserText("Count")}
	hold(t, ask(t, c, false, &history, &agent.Options{Schema: schema}), "stop", `text "{\"n\": 1}"`)
	history = history[:1]
	hold(t, ask(t, c, false, &history, &agent.Options{Schema: schema,
		Extra: map[string]any{
			anthropic.Parameters: map[string]any{"output_config": map[string]any{"effort": "low"}},
		}}), "stop", `text "{\"n\": 1}"`)
}

// Other settings in the environment, in addition to credentials, are ignored too.
func TestCustomHeadersAreIgnored(t *testing.T) {
	for _, name := range []string{
		"ANTHROPIC_API_KEY",
		"ANTHROPIC_AUTH_TOKEN",
		"ANTHROPIC_PROFILE",
		"ANTHROPIC_FEDERATION_RULE_ID",
	} {
		t.Setenv(name, "")
	}

	t.Setenv("ANTHROPIC_CONFIG_DIR", t.TempDir())
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "anthropic-beta: leaked")
	history := []*content.Message{content.UserText("Hi")}
	ask(t, dial(t, "bare.json", anthropic.WithModel("m")), false, &history, nil)
}
