package layer_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
	"github.com/assent-dev/assent/agent/layer"
)

// A rule about a tool of the outer agent must not approve a tool with the same name in a nested
// agent.
func TestRulesDoNotReachIntoNestedAgents(t *testing.T) {
	s := newShop()
	innerRan := 0
	wire := agent.RequireApproval(
		agent.NewFunction("pay", "wires money abroad", nil, func(context.Context, json.RawMessage) (any, error) {
			innerRan++
			return nil, nil
		}),
	)
	inner := agent.NewChatAgent(
		agent.NewFunctionInvoking(
			says(list(assistant(call("i1", "pay", `{"n":1}`))), list(assistant(text("wired")))),
			agent.LoopConfig{},
		),
		agent.ChatAgentConfig{Name: "bank", Tools: []agent.Tool{wire}},
	)
	m := says(
		list(assistant(call("c1", "pay", `{"n":1}`))),
		list(assistant(text("paid"))),
		list(assistant(call("c2", "bank", `{"input":"x"}`))),
		list(assistant(text("ok"))),
	)
	loop := agent.NewFunctionInvoking(m, agent.LoopConfig{})
	a := agent.NewChatAgent(
		layer.NewStanding(layer.NewBinding(loop, layer.BindingConfig{Log: quiet()}),
			layer.StandingConfig{Log: quiet()}),
		agent.ChatAgentConfig{Tools: append(s.tools, agent.AsTool(inner, agent.NestedConfig{}))},
	)
	thread := agent.NewThread("t")
	q := runAgent(t, a, thread, false, user(text("buy"))).UserInputRequests()[0].(*content.ToolApprovalRequest)
	runAgent(t, a, thread, false, user(q.CreateAlwaysApprove(content.AlwaysArguments, "")))
	r := runAgent(t, a, thread, false, user(text("ask the bank")))
	if innerRan != 0 || len(r.UserInputRequests()) != 1 {
		t.Errorf("another agent's tool ran %d times on a rule about ours", innerRan)
	}
}

func bank(q *content.ToolApprovalRequest) *content.ToolApprovalRequest {
	q.Note.Agent = "bank"
	return q
}

// TestNestedRequests uses a nested tool with the same name as a tool here. Rules, predicates
// and markers of the tool here must not apply to it.
func TestNestedRequests(t *testing.T) {
	pay := call("i1", "pay", `{"n":1}`)
	t.Run("predicate", func(t *testing.T) {
		d := newPayer(t, layer.StandingConfig{Predicates: []layer.Predicate{all}},
			list(assistant(bank(ask("q1", pay)))))
		wantTold(t, "shown", d.run(user(text("go"))).Messages, `assistant: ask[q1 i1 pay({"n":1})]`)
	})
	t.Run("rule", func(t *testing.T) {
		d := newPayer(t, layer.StandingConfig{AllowToolScope: true}, list(assistant(bank(ask("q1", pay)))), done)
		d.run(user(text("go")))
		d.run(user(always(yes("q1", pay), content.AlwaysTool)))
		if wantTold(t, "inner", d.m.last(), `user: yes[q1 i1 pay({"n":1})]`); len(d.rules()) != 0 {
			t.Errorf("the rules are %+v", d.rules())
		}
	})
	t.Run("queue", func(t *testing.T) {
		d := newPayer(t, layer.StandingConfig{OneAtATime: true},
			list(assistant(ask("q0", pay), bank(ask("q1", pay)))), done)
		d.run(user(text("go")))
		wantTold(t, "shown", d.run(user(always(yes("q0", pay), content.AlwaysArguments))).Messages,
			`assistant: ask[q1 i1 pay({"n":1})]`)
	})
	t.Run("bypass", func(t *testing.T) {
		for _, asked := range []*content.ToolApprovalRequest{bank(harmless("q1", pay)), harmless("q1", pay)} {
			opt := on(function("pay"))
			r := respond(t, layer.NewBypass(says(list(assistant(asked))), layer.BypassConfig{Log: quiet()}), opt,
				user(text("go")))
			if shown := len(r.UserInputRequests()) == 1; shown != rounds.Nested(asked) {
				t.Errorf("shown is %t", shown)
			}
		}
	})
	t.Run("edit", func(t *testing.T) {
		for _, asked := range []*content.ToolApprovalRequest{bank(ask("q1", pay)), ask("q1", pay)} {
			ours := agent.NewFunction("pay", "", json.RawMessage(`{"required":["to"]}`), nil)
			opt := on(ours)
			c := layer.NewBinding(says(list(assistant(asked)), done), layer.BindingConfig{Log: quiet()})
			respond(t, c, opt, user(text("go")))
			answer := yes("q1", pay)
			answer.Edited = call("i1", "pay", `{"n":2}`)
			r := respond(t, c, opt, user(answer))
			if refused := len(r.Refused) == 1; refused == rounds.Nested(asked) {
				t.Errorf("refused is %t", refused)
			}
		}
	})
	for _, q := range []content.InputRequest{&content.TextApprovalRequest{}, &content.StructuredInputRequest{}, nil} {
		if rounds.Nested(q) {
			t.Errorf("a %T without a note is nested", q)
		}
	}
	note := content.Note{Agent: "bank"}
	if !rounds.Nested(&content.TextApprovalRequest{Note: note}) ||
		!rounds.Nested(&content.StructuredInputRequest{Note: note}) {
		t.Error("a nested agent's question is none")
	}
}
