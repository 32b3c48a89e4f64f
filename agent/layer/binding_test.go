package layer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/compat"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
	"github.com/assent-dev/assent/agent/layer"
)

// TestBindingAnswers sends answers to a binding that has four open requests. Other answers that
// are always invalid are tested in the loop's TestAnswersThatCannotAct, which covers both
// (agent.CheckAnswer, agent.Agree).
func TestBindingAnswers(t *testing.T) {
	pay := call("c1", "pay", `{"cents":5}`)
	paid := func(args string) *content.ToolApprovalResponse {
		a := yes("q1", pay)
		a.Edited = call("c1", "pay", args)
		return a
	}
	mcp := &content.MCPCall{CallID: "m1", Name: "search", ServerName: "docs"}
	foreign := &content.MCPCall{CallID: "m1", Name: "search", ServerName: "other"}
	shape := func(data string) *content.StructuredInputResponse {
		return &content.StructuredInputResponse{RequestID: "q3", Data: json.RawMessage(data)}
	}
	table := []struct {
		name    string
		answers []content.Content
		inner   string // answers that reach the inner client
		refused []agent.RefusalReason
		open    int // requests that stay open
	}{
		{"approved", []content.Content{yes("q1", pay)}, `user: yes[q1 c1 pay({"cents":5})]`, nil, 3},
		{"other arguments", []content.Content{yes("q1", call("c1", "pay", `{"cents":500}`))}, "",
			[]agent.RefusalReason{agent.OtherCall}, 4},
		{"a tampered one beside the true one",
			[]content.Content{yes("q1", call("c1", "pay", `{"cents":500}`)), yes("q1", pay)},
			`user: yes[q1 c1 pay({"cents":5})]`, []agent.RefusalReason{agent.OtherCall}, 3},
		{"unknown", []content.Content{yes("q9", pay), text("hm")}, `user: "hm"`,
			[]agent.RefusalReason{agent.UnknownRequest}, 4},
		{"twice", []content.Content{yes("q1", pay), yes("q1", pay)}, `user: yes[q1 c1 pay({"cents":5})]`,
			[]agent.RefusalReason{agent.RepeatedAnswer}, 3},
		{"yes and no", []content.Content{yes("q1", pay), no("q1", pay), yes("q1", pay)},
			`user: no[q1 c1 pay({"cents":5})]`, []agent.RefusalReason{agent.Contradiction, agent.Contradiction}, 3},
		{"edited", []content.Content{paid(`{"cents":4}`)},
			`user: yes edited c1 pay({"cents":4})[q1 c1 pay({"cents":5})]`, nil, 3},
		{"edited against the schema", []content.Content{paid(`{"cents":"4"}`)}, "",
			[]agent.RefusalReason{agent.BadAnswer}, 4},
		{"inert", []content.Content{yes("q1", &content.FunctionCall{
			CallID:            "c1",
			Name:              "pay",
			Arguments:         pay.Arguments,
			InformationalOnly: true,
		})}, "", nil, 4},
		{"text", []content.Content{&content.TextApprovalResponse{RequestID: "q2", Approved: true}},
			"user: *content.TextApprovalResponse[q2]", nil, 3},
		{"a call for text", []content.Content{yes("q2", pay)}, "", []agent.RefusalReason{agent.WrongKind}, 4},
		{"data", []content.Content{shape(`{"seats":2}`), shape(`{"seats": 2}`)},
			"user: *content.StructuredInputResponse[q3]", []agent.RefusalReason{agent.RepeatedAnswer}, 3},
		{"bad data", []content.Content{shape(`{"seats":"two"}`)}, "", []agent.RefusalReason{agent.BadAnswer}, 4},
		{"data for text",
			[]content.Content{&content.StructuredInputResponse{RequestID: "q2", Data: json.RawMessage("1")}}, "",
			[]agent.RefusalReason{agent.WrongKind}, 4},
		{"text for data", []content.Content{&content.TextApprovalResponse{RequestID: "q3", Approved: true}}, "",
			[]agent.RefusalReason{agent.WrongKind}, 4},
		{
			"data and none",
			[]content.Content{shape(`{"seats":2}`), &content.StructuredInputResponse{RequestID: "q3", Declined: true}},
			"user: *content.StructuredInputResponse[q3]",
			[]agent.RefusalReason{agent.Contradiction},
			3,
		},
		{"hosted", []content.Content{yes("q4", mcp)}, "user: yes[q4 m1 search()]", nil, 3},
		{"hosted on another server", []content.Content{yes("q4", foreign)}, "",
			[]agent.RefusalReason{agent.OtherCall}, 4},
	}
	schema := json.RawMessage(`{"type":"object","properties":{"cents":{"type":"integer"}}}`)
	tool := agent.NewFunction("pay", "", schema, nil)
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			seats := &content.StructuredInputRequest{RequestID: "q3",
				Schema: json.RawMessage(`{"type":"object","properties":{"seats":{"type":"integer"}}}`)}
			m := says(
				list(
					assistant(ask("q1", pay), &content.TextApprovalRequest{RequestID: "q2", Text: "fine?"}, seats,
						ask("q4", mcp)),
				),
				list(assistant(text("done"))),
			)
			c := layer.NewBinding(m, layer.BindingConfig{})
			opt := on(tool)
			respond(t, c, opt, user(text("go")))
			r := respond(t, c, opt, user(row.answers...))
			wantTold(t, "inner", m.last(), row.inner)
			wantRefused(t, r.Refused, row.refused...)
			if n := len(open(t, opt.Thread)); n != row.open {
				t.Errorf("%d requests are open, want %d", n, row.open)
			}
		})
	}
}

func TestBindingUsedUpByARunThatFails(t *testing.T) {
	pay := call("c1", "pay", "")
	m := says(list(assistant(ask("q1", pay))))
	c := layer.NewBinding(m, layer.BindingConfig{})
	opt := on()
	respond(t, c, opt, user(text("pay")))
	if _, err := c.Respond(context.Background(), list(user(yes("q1", pay))), opt); err == nil {
		t.Fatal("the run did not fail")
	}
	if len(open(t, opt.Thread)) != 0 {
		t.Error("the answer can act again")
	}
}

// TestBindingHistory sends the whole history each time. Answered requests are removed from it,
// except for calls that a service makes.
func TestBindingHistory(t *testing.T) {
	pay, mcp := call("c1", "pay", ""), &content.MCPCall{CallID: "m1", Name: "search", ServerName: "docs"}
	asked := assistant(text("Two things."), ask("q1", pay), ask("q2", mcp))
	m := says(list(asked), list(assistant(text("done"))), list(assistant(text("hello"))), list(assistant(text("no"))))
	c := layer.NewBinding(m, layer.BindingConfig{})
	opt := on()
	history := list(user(text("pay")))
	history = append(history, respond(t, c, opt, history...).Messages...)
	history = append(history, user(yes("q1", pay), yes("q2", mcp)))
	history = append(history, respond(t, c, opt, history...).Messages...)
	wantTold(t, "answered", m.last(),
		`user: "pay"; assistant: "Two things.", ask[q1 c1 pay()], ask[q2 m1 search()]; user: yes[q1 c1 pay()], `+
			`yes[q2 m1 search()]`)
	r := respond(t, c, opt, append(history, user(text("hi")))...)
	wantRefused(t, r.Refused)
	wantTold(t, "later", m.last(),
		`user: "pay"; assistant: "Two things.", ask[q2 m1 search()]; user: yes[q2 m1 search()]; assistant: "done"; `+
			`user: "hi"`)
	history[2] = user(no("q2", mcp))
	respond(t, c, opt, append(history, user(text("hi")))...)
	wantTold(t, "doctored", m.last(),
		`user: "pay"; assistant: "Two things.", ask[q2 m1 search()]; assistant: "done"; user: "hi"`)
}

func TestBindingReusedID(t *testing.T) {
	small, large := call("c1", "pay", `{"cents":5}`), call("c1", "pay", `{"cents":500}`)
	m := says(
		list(assistant(ask("q1", small))),
		list(assistant(ask("q1", large))),
		list(assistant(text("1"))),
		list(assistant(text("2"))),
	)
	c := layer.NewBinding(m, layer.BindingConfig{})
	opt := on()
	respond(t, c, opt, user(text("pay")))
	respond(t, c, opt, user(text("pay more")))
	wantRefused(t, respond(t, c, opt, user(yes("q1", small), yes("q1", nil))).Refused, agent.OtherCall, agent.OtherCall)
	wantRefused(t, respond(t, c, opt, user(yes("q1", large))).Refused)
	wantTold(t, "inner", m.last(), `user: yes[q1 c1 pay({"cents":500})]`)
}

func TestBindingFresh(t *testing.T) {
	pay := call("c1", "pay", "")
	m := says(list(assistant(ask("q1", pay))), list(assistant(text("1"))), list(assistant(text("2"))))
	c := layer.NewBinding(m, layer.BindingConfig{})
	opt := &agent.Options{Thread: agent.NewThread("t"), Fresh: 1}
	respond(t, c, opt, user(text("pay")))
	respond(t, c, opt, user(yes("q1", pay)), user(text("an old answer does not count")))
	wantTold(t, "old", m.last(), `user: "an old answer does not count"`)
	opt.Fresh = 3
	respond(t, c, opt, user(text("old")), user(yes("q9", pay)), user(yes("q1", pay)), user(text("new")))
	wantTold(t, "new", m.last(), `user: "old"; user: yes[q1 c1 pay()]; user: "new"`)
	if n := m.opts[2].Fresh; n != 2 || opt.Fresh != 3 {
		t.Errorf("the inner client was told of %d new messages; the caller's options say %d", n, opt.Fresh)
	}
	m.turns = append(m.turns, m.turns[1], m.turns[1])
	opt.Fresh = 1
	respond(t, c, opt, user(text("old")), user(yes("q1", pay)))
	opt.Fresh = -1
	if r := respond(t, c, opt, user(yes("q1", pay))); len(r.Refused) != 0 || m.opts[3].Fresh != -1 {
		t.Errorf("no message is new, but %v was refused, and %d were told", r.Refused, m.opts[3].Fresh)
	}
}

func TestBindingWithoutThread(t *testing.T) {
	for _, p := range []profile{safe, compatible} {
		var log bytes.Buffer
		m := says(list(assistant(ask("q1", call("c1", "pay", "")))), list(assistant(text("x"))))
		c := p.binding(m, layer.BindingConfig{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if r := respond(t, c, nil, user(text("pay"))); len(r.UserInputRequests()) != 1 {
			t.Error("the request did not pass")
		}
		r := respond(t, c, &agent.Options{}, user(yes("q1", call("c1", "pay", ""))))
		if p == safe {
			wantRefused(t, r.Refused, agent.UnknownRequest)
			wantTold(t, "inner", m.last(), "")
		} else {
			wantTold(t, "inner", m.last(), "user: yes[q1 c1 pay()]")
		}

		if n := strings.Count(log.String(), "level=WARN"); n != 1 {
			t.Errorf("%d warnings, want 1", n)
		}
	}
}

func TestTornStates(t *testing.T) {
	keys := map[string]func(agent.ChatClient) agent.ChatClient{
		layer.BindingState: func(c agent.ChatClient) agent.ChatClient {
			return layer.NewBinding(c, layer.BindingConfig{Log: quiet()})
		},
		layer.BypassState: func(c agent.ChatClient) agent.ChatClient {
			return layer.NewBypass(c, layer.BypassConfig{Log: quiet()})
		},
		layer.InvocableState: func(c agent.ChatClient) agent.ChatClient {
			return layer.NewInvocableBypass(c, layer.BypassConfig{Log: quiet()})
		},
		layer.StandingState: func(c agent.ChatClient) agent.ChatClient {
			return layer.NewStanding(c, layer.StandingConfig{Log: quiet()})
		},
	}
	torn := map[string][]string{
		layer.BindingState: {
			`[]`,
			`{"open":[null]}`,
			`{"open":[{"id":"q1"}]}`,
			`{"open":[{"id":"q1","request":{"content":{"$type":"text","text":"x"}}}]}`,
			`{"open":[{"id":"q1","request":{"content":{"$type":"text","text":"x"},"arguments":"{}"}}]}`,
			`{"open":[{"id":"q1","request":{"content":1}}]}`,
			`{"closed":[null]}`,
			`{"open":[{"id":"q1","request":{"content":{"$type":"toolApprovalRequest","requestId":"q2",` +
				`"toolCall":{"$type":"functionCall","callId":"c","name":"f"}}}}]}`,
		},
		layer.BypassState:    {`1`, `{"requests":[null]}`, `{"requests":[{}]}`},
		layer.InvocableState: {`1`, `{"requests":[null]}`},
		layer.StandingState: {`1`, `{"queue":[null]}`, `{"waiting":[{}]}`, `{"shown":{"open":[{}]}}`,
			`{"answers":[1]}`},
	}
	for key, list := range torn {
		for _, raw := range list {
			opt := on()
			opt.Thread.State[key] = json.RawMessage(raw)
			m := says()
			m.err = fmt.Errorf("the inner client was asked")
			if r, err := keys[key](m).Respond(context.Background(), []*content.Message{user(text("hi"))}, opt); len(
				m.seen,
			) > 0 ||
				err == nil && len(r.UserInputRequests()) == 0 {
				t.Errorf("%s %s: the run went on (%v)", key, raw, err)
			}
		}
	}
}

func TestCompatibleKeepsInertAnswers(t *testing.T) {
	inertCall := &content.FunctionCall{CallID: "c1", Name: "pay", InformationalOnly: true}
	m := says(list(assistant(text("hi"))))
	c := compat.NewBinding(m, compat.BindingConfig{Log: quiet()})
	respond(t, c, on(), assistant(ask("q1", call("c1", "pay", ""))), user(yes("q1", inertCall)))
	if got := m.last()[1].Contents[0].(*content.ToolApprovalResponse); !rounds.Inert(got) {
		t.Error("an answer that was handled came to life")
	}
}

// TestBindingKeepsOpenRequests sends requests of each kind as part of the history. Unchanged
// open requests stay, modified ones are removed.
func TestBindingKeepsOpenRequests(t *testing.T) {
	schema := json.RawMessage(`{"type":"object"}`)
	asked := []content.Content{
		&content.TextApprovalRequest{RequestID: "q1", Text: "fine?"},
		&content.StructuredInputRequest{RequestID: "q2", Text: "seats?", Schema: schema},
		ask("q3", &content.HostedCall{Kind: "codeInterpreterToolCall", CallID: "h1"}),
	}
	doctored := []content.Content{
		&content.TextApprovalRequest{RequestID: "q1", Text: "all of it?"},
		&content.StructuredInputRequest{RequestID: "q2", Text: "seats?", Schema: json.RawMessage(`{"type":"string"}`)},
		ask("q3", call("h1", "codeInterpreterToolCall", "")),
		&content.TextApprovalRequest{RequestID: "q2", Text: "seats?"},
		&content.StructuredInputRequest{RequestID: "q1", Text: "fine?"},
		ask("q1", call("c", "f", "")),
	}
	m := says(list(assistant(asked...)), list(assistant(text("hm"))))
	c := layer.NewBinding(m, layer.BindingConfig{})
	opt := on()
	respond(t, c, opt, user(text("go")))
	respond(t, c, opt, assistant(append(doctored, asked...)...), user(text("hm")))
	want := tell(list(assistant(asked...), user(text("hm"))))
	wantTold(t, "inner", m.last(), want)
	left := open(t, opt.Thread)
	if len(left) != 3 {
		t.Fatalf("%d are open", len(left))
	}
	for i, q := range left {
		if !rounds.SameRequest(q, asked[i].(content.InputRequest)) {
			t.Errorf("on record is %s", tellOne(q))
		}
	}
}

func TestBindingAroundBypass(t *testing.T) {
	pay, look := ask("q1", call("c1", "pay", `{"n":1}`)), harmless("q2", call("c2", "look", ""))
	opt := on(function("look"))
	m := says(list(assistant(pay, look)), done)
	c := layer.NewBinding(layer.NewBypass(m, layer.BypassConfig{}), layer.BindingConfig{})
	respond(t, c, opt, user(text("go")))
	respond(t, c, opt, user(pay.CreateApproval("")))
	wantTold(t, "inner", m.last(), `user: yes[q2 c2 look()]; user: yes[q1 c1 pay({"n":1})]`)
}
