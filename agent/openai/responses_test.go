package openai

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/compat"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

func TestResponsesText(t *testing.T) {
	cfg := Config{Strict: true, Include: []string{"reasoning.encrypted_content"},
		Extra: json.RawMessage(`{"reasoning":{"effort":"low"}}`)}
	m := responsesOn(t, "responses_text.json", cfg)
	one := 1.0
	opt := &agent.Options{Model: "gpt-5", Instructions: "Be brief.", Temperature: &one, MaxTokens: 100,
		Schema: json.RawMessage(`{"type":"object"}`)}
	r := ask(t, m, opt,
		content.NewMessage(content.System, &content.Text{Text: "Today is Monday."}),
		content.NewMessage(content.User,
			&content.Text{Text: "What is this?"},
			&content.URI{URI: "https://example.com/a.png", MediaType: "image/png"},
			&content.Data{URI: "data:image/png;base64,AAAA"},
			&content.Data{URI: "data:text/plain;base64,BBBB", MediaType: "text/plain"},
			&content.URI{URI: "https://example.com/a.pdf", MediaType: "application/pdf"}),
		content.NewMessage(content.Assistant,
			&content.Reasoning{Text: "not sealed, so it can't go back"},
			&content.Text{Text: "A cat."},
			&content.Text{Common: content.Common{Properties: json.RawMessage(`{"phase":"commentary"}`)}},
			&content.Text{Text: "Or a dog."},
			&content.Error{Code: refusalCode, Message: "No more."},
			&content.Error{Code: "other", Message: "not the model's"}),
		content.UserText("Which?"))
	shows(t, r, "resp_1 gpt-5-2025-08-07 stop", "usage 36 87 123", "assistant resp_1",
		`  reasoning "Cats purr.\n\nDogs bark." gAAAA1 {"itemId":"rs_1"}`, `  text "A cat."`,
		`  text "" {"phase":"final_answer"}`,
		`  unknown web_search_call {"type": "web_search_call", "id": "ws_1",  "status": "completed", "action": `+
			`{"n": 1.0}}`)
}

func TestReasoningAndCallsGoBack(t *testing.T) {
	m := responsesOn(t, "responses_reasoning.json", Config{Model: "gpt-5"})
	question := content.UserText("Weather?")
	r := ask(t, m, &agent.Options{Tools: []agent.Tool{
		declared("weather", "Tells.", `{"type":"object","properties":{"n":{"minimum":1.0}}}`), declared("now", "", ""),
	}}, question)
	shows(
		t,
		r,
		"resp_2 gpt-5-2025-08-07 tool_calls",
		"usage 1 2 3",
		"assistant resp_2",
		`  reasoning "" gAAAA1 {"itemId":"rs_1"}`,
		`  call call_a weather "{\"n\": 1.0}"`,
		`  unknown web_search_call {"type": "web_search_call", "id": "ws_1",  "status": "completed", "action": `+
			`{"n": 1.0, "ü": "\u00fc"}}`,
		`  reasoning "And the time." gAAAA2 {"itemId":"rs_2"}`,
		`  call call_b now ""`,
	)
	ask(t, m, nil, question, r.Messages[0], result("call_a", `"rain"`), result("call_b", `{"hour": 7}`))
}

// The transcript compares JSON. This test compares bytes.
func TestUnknownGoesBackByteForByte(t *testing.T) {
	raw := `{"type": "web_search_call",` + "\n" + ` "id":"ws_1", "n": 1.00, "s": "\u00fc\/"}`
	items, err := inputItems(
		[]*content.Message{
			content.NewMessage(content.Assistant, &content.Unknown{Kind: "web_search_call", Raw: json.RawMessage(raw)}),
		},
		false,
		false,
	)
	if err != nil || len(items) != 1 || string(items[0]) != raw {
		t.Errorf("got %s, %v", items, err)
	}
}

func TestStored(t *testing.T) {
	m := responsesOn(t, "responses_stored.json", Config{Model: "gpt-5", Store: true})
	question := content.UserText("Weather?")
	r := ask(t, m, nil, question)
	shows(t, r, "resp_1 gpt-5 tool_calls", "goes on with resp_1", "assistant resp_1",
		`  reasoning ""  {"itemId":"rs_1"}`, `  call call_a weather "{}"`)
	if next := ask(t, m, &agent.Options{ConversationID: r.ConversationID},
		result("call_a", `"rain"`)); next.ConversationID != "resp_2" {
		t.Errorf("got %s", show(next))
	}

	ask(t, m, nil, question, r.Messages[0], result("call_a", `"rain"`))
	if named := ask(t, m, &agent.Options{ConversationID: "conv_1"}); named.ConversationID != "conv_1" {
		t.Errorf("got %s", show(named))
	}
}

func TestResponsesStream(t *testing.T) {
	m := responsesOn(t, "responses_stream.json", Config{Model: "gpt-5", Store: true})
	r := stream(t, m, nil, content.UserText("Weather?"))
	shows(t, r, "resp_1 gpt-5-2025-08-07 tool_calls", "goes on with resp_1", "usage 4 5 9", "assistant resp_1",
		`  reasoning "Look outside.\n\nOr ask." gAAAA1 {"itemId":"rs_1"}`, `  text "Let me ask."`,
		`  call call_a weather "{\"n\": 1.0}"`, `  call call_b weather "{}"`)
}

func TestResponsesCutShort(t *testing.T) {
	m := responsesOn(t, "responses_short.json", Config{Model: "gpt-5", Store: true})
	x := content.UserText("x")
	shows(t, stream(t, m, nil, x), "resp_1 gpt-5 length", "goes on with resp_1", "assistant resp_1",
		`  call call_a pay "{\"amount\":1}" inert`, `  call call_b pay_all "" inert`)
	shows(t, ask(t, m, nil, x), "resp_2 gpt-5 content_filter", "goes on with resp_2", "assistant resp_2",
		`  error Refusal "No." `)
	for _, want := range []StatusError{
		{Code: "server_error", Message: "The model broke."},
		{Code: "rate_limit_exceeded", Message: "Slow down."},
	} {
		r, err := agent.Collect(m.Stream(t.Context(), []*content.Message{x}, nil))
		var got *StatusError
		if !errors.As(err, &got) || *got != want || r.FinishReason != "" {
			t.Errorf("got %#v, want %v", err, want)
		}
	}
}

func TestResponsesCut(t *testing.T) {
	m := responsesOn(t, "responses_cut.json", Config{Model: "gpt-5", Store: true})
	for range 3 {
		shows(t, cutStream(t, m, nil), "resp_1 gpt-5 ", "assistant resp_1", `  text "So"`)
	}
}

// mcpTools returns servers with every kind of approval.
func mcpTools() []agent.Tool {
	return []agent.Tool{
		&agent.HostedMCP{
			Name:     "dice",
			URL:      "https://dice.example/mcp",
			Headers:  map[string]string{"X-Tenant": "a", "Authorization": "Bearer dice"},
			Allowed:  []string{"roll", "look"},
			Approval: "listed",
			Ask:      []string{"roll"},
		},
		&agent.HostedMCP{Name: "wiki", URL: "https://wiki.example/mcp"},
		&agent.HostedMCP{Name: "time", URL: "https://time.example/mcp", Allowed: []string{}, Approval: "never"},
	}
}

func TestMCPApprovalStateless(t *testing.T) {
	m := responsesOn(t, "mcp_stateless.json", Config{Model: "gpt-5"})
	question := content.UserText("Roll 2d4+1")
	r := ask(t, m, &agent.Options{Tools: mcpTools()}, question)
	shows(
		t,
		r,
		"resp_1 gpt-5 stop",
		"assistant resp_1",
		`  unknown mcp_list_tools {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "dice", "tools": `+
			`[{"name": "roll", "input_schema": {"type": "object"}, "annotations": null}]}`,
		`  mcp mcp_0 dice.look ""`,
		`  mcp result mcp_0, text "ready"`,
		`  asks mcpr_1: mcp mcpr_1 dice.roll "{\"diceRollExpression\":\"2d4 + 1\"}"`,
		`  asks mcpr_2: mcp mcpr_2 dice.roll "{}"`,
	)
	asked := r.UserInputRequests()
	yes := asked[0].(*content.ToolApprovalRequest).CreateApproval("go on")
	no := asked[1].(*content.ToolApprovalRequest).CreateRejection("once is enough")
	no.Call = nil // a wire format without the call; the request has it
	r = ask(t, m, nil, question, r.Messages[0], content.NewMessage(content.User, yes, no))
	shows(t, r, "resp_2 gpt-5 stop", "assistant resp_2",
		`  mcp mcp_1 dice.roll "{\"diceRollExpression\":\"2d4 + 1\"}" {"approvalRequestId":"mcpr_1"}`,
		`  mcp result mcp_1, error http_error "broken" {"type": "http_error", "code": 500, "message": "broken"}`,
		`  mcp mcp_2 dice.look "{}"`,
		`  mcp result mcp_2, error  "gone" "gone"`,
		`  mcp mcp_3 dice.look "{}"`)
	ask(t, m, nil, r.Messages[0])
}

func TestMCPApprovalStored(t *testing.T) {
	m := responsesOn(t, "mcp_stored.json", Config{Model: "gpt-5", Store: true})
	r := stream(t, m,
		&agent.Options{Tools: []agent.Tool{&agent.HostedMCP{Name: "dice", URL: "https://dice.example/mcp"}}},
		content.UserText("Roll"))
	shows(t, r, "resp_1 gpt-5 stop", "goes on with resp_1", "assistant resp_1",
		`  unknown mcp_list_tools {"type":"mcp_list_tools","id":"mcpl_1","server_label":"dice","tools":[]}`,
		`  asks mcpr_1: mcp mcpr_1 dice.roll "{\"n\": 1.0}"`)
	request := r.UserInputRequests()[0].(*content.ToolApprovalRequest)
	r = ask(t, m, &agent.Options{ConversationID: r.ConversationID},
		content.NewMessage(content.Assistant, request), // the service has it, so it is not sent
		content.NewMessage(content.User, request.CreateApproval("")))
	shows(t, r, "resp_2 gpt-5 stop", "goes on with resp_2", "assistant resp_2",
		`  mcp mcp_1 dice.roll "{\"n\": 1.0}" {"approvalRequestId":"mcpr_1"}`, `  mcp result mcp_1, text "4"`,
		`  text "4."`)
}

// payer returns a marked function that counts its runs.
func payer(runs *[]string) agent.Function {
	return agent.RequireApproval(agent.NewFunction("pay", "Pays.", json.RawMessage(`{"type":"object"}`),
		func(_ context.Context, arguments json.RawMessage) (any, error) {
			*runs = append(*runs, string(arguments))
			return "paid", nil
		}))
}

// The complete sequence: the model calls a marked function, the run ends with a request, the
// answer arrives, the function runs once with exactly the model's arguments, and the model gets
// a history that the service accepts.
func TestLoopCompatible(t *testing.T) {
	type runner func(*testing.T, agent.ChatClient, *agent.Options, ...*content.Message) *agent.Response
	for name, run := range map[string]runner{"whole": ask, "stream": stream} {
		t.Run(name, func(t *testing.T) {
			file := map[string]string{"whole": "loop.json", "stream": "loop_stream.json"}[name]
			var runs []string
			loop := compat.NewFunctionInvoking(responsesOn(t, file, Config{Model: "gpt-5"}), compat.Config{})
			opt := &agent.Options{Tools: []agent.Tool{payer(&runs)}}
			question := content.UserText("Pay 5 to Ann")
			first := run(t, loop, opt, question)
			asked := first.UserInputRequests()
			if len(asked) != 1 || len(runs) != 0 {
				t.Fatalf("%d runs, got %s", len(runs), show(first))
			}
			yes := asked[0].(*content.ToolApprovalRequest).CreateApproval("")
			history := append([]*content.Message{question}, first.Messages...)
			last := run(t, loop, opt, append(history, content.NewMessage(content.User, yes))...)
			if len(runs) != 1 || runs[0] != `{"to":"Ann", "amount": 5.00}` || last.Text() != "Done." {
				t.Errorf("runs %q, got %s", runs, show(last))
			}
		})
	}
}

// The default profile keeps waiting calls in the thread, so the caller need not send the
// history again. Another loop continues with the thread, as in another process.
func TestLoopDefault(t *testing.T) {
	var runs []string
	model := responsesOn(t, "loop.json", Config{Model: "gpt-5"})
	thread := agent.NewThread("t")
	run := func(m *content.Message) *agent.Response {
		loop := agent.NewFunctionInvoking(model, agent.LoopConfig{})
		r := must.Get(agent.NewChatAgent(loop, agent.ChatAgentConfig{Tools: []agent.Tool{payer(&runs)}}).
			Run(t.Context(), thread, m))(t)
		return r
	}
	asked := run(content.UserText("Pay 5 to Ann")).UserInputRequests()
	if len(asked) != 1 || len(runs) != 0 {
		t.Fatalf("%d runs, got %v", len(runs), asked)
	}
	last := run(content.NewMessage(content.User, asked[0].(*content.ToolApprovalRequest).CreateApproval("")))
	if len(runs) != 1 || last.Text() != "Done." || len(last.Refused) != 0 {
		t.Errorf("runs %q, refused %v, got %s", runs, last.Refused, show(last))
	}
}
