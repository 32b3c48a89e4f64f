package held_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/server/openapi"
)

// TestPollWhilePending: running an agent again without a message asks how its requests stand, and nothing else.
func TestPollWhilePending(t *testing.T) {
	inOffices(t, `{"amount":7}`, func(t *testing.T, o *office) {
		o.begin()
		for range 2 {
			if r := o.run(); len(r.UserInputRequests()) != 1 || len(o.model.seen) != 1 || len(o.load().Pending()) != 1 {
				t.Fatalf("the model was asked %d times, the user is asked %+v", len(o.model.seen), r.UserInputRequests())
			}
		}
	})
}

func TestInboxEditBelowTheThreshold(t *testing.T) {
	for name, c := range map[string]struct{ asked, edited string }{
		"still asked about":         {`{"amount":20000}`, `{"amount": 15000}`},
		"needs nobody by the rules": {`{"amount":20000}`, `{"amount":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			inOffices(t, c.asked, func(t *testing.T, o *office) {
				o.h.rewrite("agents/desk.agf.yaml", `Sell {{tool_args.amount}}?"}`, `Sell {{tool_args.amount}}?", condition: {args_match: {amount: {gt: 10}}}}`)
				o.begin()
				r := o.inList()
				_, err := o.people("mara").Edit(t.Context(), r.ID, r.Version, openapi.EditBody{Arguments: c.edited, Binding: r.Binding(), ShownFully: true}, false)
				must(t, err)
				o.ends([]string{c.edited}, "sold")
			})
		})
	}
}

// TestMarkedToolNeedsSomebody: a marked tool that the rules let run is not run without anybody's word.
func TestMarkedToolNeedsSomebody(t *testing.T) {
	h := newHouse(t)
	compiled, err := h.plans.Plan(t.Context(), "acme", "desk")
	must(t, err)
	ran := 0
	quote := agent.RequireApproval(agent.NewFunction("quote", "Looks.", nil, func(context.Context, json.RawMessage) (any, error) { ran++; return 1, nil }))
	model := &script{says: []content.Content{&content.FunctionCall{CallID: "c", Name: "quote"}, &content.Text{Text: "done"}}}
	holder := sides()["service"](h, "rt", "desk")
	loop := agent.NewFunctionInvoking(model, agent.LoopConfig{Decider: agent.ByPlan(compiled.Plan, agent.PlanOptions{}), Holder: holder})
	r, err := agent.NewChatAgent(loop, agent.ChatAgentConfig{Tools: []agent.Tool{quote}}).Run(t.Context(), agent.NewThread("t"), content.UserText("q"))
	if ran != 0 {
		t.Errorf("it ran without anybody's word: %+v, %v", r, err)
	}
}
