package agent

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

func TestEdits(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)
	for name, tt := range map[string]struct {
		edit    string
		refused string
		again   bool // the user is asked again
	}{
		"smaller":       {edit: `{"n":4}`},
		"needs no one":  {edit: `{"n":1}`},
		"the same":      {edit: `{"n":5}`},
		"asks more":     {edit: `{"n":9}`, again: true},
		"denied":        {edit: `{"n":99}`, refused: "ficc_1 bad_answer"},
		"wrong type":    {edit: `{"n":"4"}`, refused: "ficc_1 bad_answer"},
		"other members": {edit: `{"n":4,"to":"eve"}`, refused: "ficc_1 bad_answer"},
	} {
		bothWaysOf(t, name, func(t runner) {
			ran := []string{}
			pay := NewFunction("pay", "", schema, func(_ context.Context, args json.RawMessage) (any, error) {
				ran = append(ran, string(args))
				return nil, nil
			})
			k := paying(t, `{"n":5}`)
			a := chat(k, LoopConfig{Decider: decideFunc(byAmount)}, nil, pay)
			th, q := t.asks(a, "x")
			resp := t.run(a, reload(t, th), answers(sure(q.CreateEdit(json.RawMessage(tt.edit), ""))))
			expect(t, "refused", refusals(resp), tt.refused)
			if tt.refused != "" || tt.again {
				if len(ran) > 0 {
					t.Fatal(ran)
				}
				again := approvalOf(t, resp, 0)
				if shown := string(again.Call.Args()); tt.again != (again.RequestID != q.RequestID) ||
					tt.again && shown != tt.edit ||
					!tt.again && shown != `{"n":5}` {
					t.Errorf("%s about %s", again.RequestID, shown)
				}
				return
			}

			if len(ran) != 1 || ran[0] != tt.edit {
				t.Errorf("ran %v", ran)
			}
			expect(t, "the model sees what ran", k.last(),
				"user: \"x\"\nassistant: 1=pay("+tt.edit+")\ntool: 1→\"Success: Function completed.\"\n")
		})
	}
}

func TestEditSurvivesAuditFailure(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		j := &journal{failAt: func(e Event) bool { return e.Type == "answered" }}
		a := c.asked(paying(t, `{"n":5}`), LoopConfig{Audit: j.take})
		th, q := t.asks(a, "pay")
		edit, _ := q.CreateEdit(json.RawMessage(`{"n":500}`), "")
		if _, err := t.try(a, th, answers(edit)); !errors.Is(err, errAudit) {
			t.Fatal(err)
		}
		j.failAt = nil
		t.yes(a, th, q)
		if c.runs[`pay{"n":5}`] != 1 || len(c.runs) != 1 {
			t.Fatalf("what ran was %v; approved was n=5", c.runs)
		}
	})
}

func TestEditOfHostedCall(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := talk(t, said(mcpRequest("r1")), said(text("ok")))
		a := chat(k, LoopConfig{}, nil, c.tool("wipe"))
		th, q := t.asks(a, "wipe")
		forged := q.CreateApproval("")
		forged.Edited = call("call-r1", "wipe", `{"all":false}`)
		resp := t.run(a, th, answers(forged))
		expect(t, "refused", refusals(resp), "r1 bad_answer")
	})
}

func TestEditOfRequestWithoutCall(t *testing.T) {
	defer func() {
		if p := recover(); p != nil {
			t.Error("panic:", p)
		}
	}()
	a := chat(talk(t, said(&content.ToolApprovalRequest{RequestID: "r1"}), said(text("ok"))), LoopConfig{}, nil)
	var bad *content.BadError
	if _, err := a.Run(t.Context(), NewThread("t"), content.UserText("go")); !errors.As(err, &bad) {
		t.Error(err)
	}
}

// An edit must not transfer an approval to a tool that has changed since. After such a change a
// plain approval is asked again, and so must an edited one be.
func TestEditAfterTheToolChanged(t *testing.T) {
	for _, edit := range []bool{false, true} {
		ran := ""
		tool := func(description string) Function {
			return RequireApproval(
				NewFunction("pay", description, nil, func(_ context.Context, args json.RawMessage) (any, error) {
					ran = description + string(args)
					return nil, nil
				}),
			)
		}
		k := paying(t, `{"n":1}`)
		loop := NewFunctionInvoking(k, LoopConfig{})
		th := NewThread("t")
		q := approvalOf(
			t,
			mustRun(t, NewChatAgent(loop, ChatAgentConfig{Tools: []Tool{tool("to the box office")}}), th,
				content.UserText("x")),
			0,
		)
		answer := q.CreateApproval("")
		if edit {
			answer, _ = q.CreateEdit(json.RawMessage(`{"n":2}`), "")
		}
		resp := mustRun(t, NewChatAgent(loop, ChatAgentConfig{Tools: []Tool{tool("to mallory")}}), th, answers(answer))
		if ran != "" || len(resp.UserInputRequests()) != 1 {
			t.Errorf("edit %v: ran %q", edit, ran)
		}
	}
}

// An edit that removes the arguments is checked against the schema, in the same way as an edit
// to {}.
func TestEditToNothing(t *testing.T) {
	var c counted
	pay := c.tool("pay").(*function)
	pay.def.Schema = json.RawMessage(`{"type":"object","required":["n"]}`)
	k := paying(t, `{"n":1}`)
	a := chat(k, LoopConfig{}, nil, RequireApproval(pay))
	th, q := runner{T: t}.asks(a, "x")
	edit := must.Get(q.CreateEdit(nil, ""))(t)
	resp := mustRun(t, a, th, answers(edit))
	if len(resp.Refused) != 1 || len(c.runs) != 0 {
		t.Errorf("refused %v ran %v", resp.Refused, c.runs)
	}
}
