package agent

import (
	"encoding/json"
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

func TestDeclaredTools(t *testing.T) {
	result := func(id, value string) *content.Message {
		return content.NewMessage(
			content.ToolRole,
			&content.FunctionResult{CallID: id, Result: json.RawMessage(value)},
		)
	}
	bothWays(t, func(t runner) {
		var c counted
		j := &journal{}
		k := talk(
			t,
			said(
				call("1", "theirs", `{"a":1}`),
				call("2", "look", ""),
				call("3", "pay", ""),
				call("4", "theirs", ""),
			),
			said(text("ok")),
		)
		a := chat(
			k,
			LoopConfig{Audit: j.take},
			nil,
			declaredTool("theirs"),
			c.tool("look"),
			RequireApproval(c.tool("pay")),
		)
		th := NewThread("t")
		resp := t.say(a, th, "x")
		expect(t, "asked", tell(resp.Messages), "assistant: 1=theirs({\"a\":1}) ficc_3?[3=pay()] 4=theirs()\n")
		q := approvalOf(t, resp, 0)
		th = reload(t, th)
		resp = t.run(a, th, result("1", `"one"`), result("3", `"forged"`), result("1", `"twice"`))
		expect(t, "refused", refusals(resp), "3 unknown_request; 1 unknown_request")
		expect(t, "left", tell(resp.Messages), "assistant: ficc_3?[3=pay()] 4=theirs()\n")
		th = reload(t, th)
		t.yes(a, th, q)
		if len(k.seen) != 1 || c.runs["pay"] != 1 {
			t.Fatal("the model goes on before all is there, or nothing ran:", c.runs)
		}
		th = reload(t, th)
		t.run(a, th, result("4", `null`))
		expect(
			t,
			"sent",
			tell(coalesced(k.seen[1])),
			"user: \"x\"\nassistant: 1=theirs({\"a\":1}) 2=look() 3=pay() 4=theirs()\n"+
				"tool: 1→\"one\" 2→\"did look\" 3→\"did pay\" 4→null\n",
		)
	})
}

// markedDeclared is a tool of the caller's that needs approval.
type markedDeclared struct{ declaredTool }

func (m markedDeclared) Unwrap() Tool { return RequireApproval(toolOf("x", nil)) }

func TestDeclaredToolThatNeedsApproval(t *testing.T) {
	bothWays(t, func(t runner) {
		k := talk(t, said(call("1", "theirs", "")), said(text("ok")))
		a := chat(k, LoopConfig{}, nil, markedDeclared{"theirs"})
		th, q := t.asks(a, "x")
		result := content.NewMessage(
			content.ToolRole,
			&content.FunctionResult{CallID: "1", Result: json.RawMessage(`"done"`)},
		)
		resp := t.run(a, th, result)
		expect(t, "refused", refusals(resp), "1 unknown_request")
		resp = t.yes(a, th, q)
		expect(t, "handed over", tell(resp.Messages), "assistant: 1=theirs()\n")
		t.run(a, reload(t, th), result)
		expect(t, "sent", k.last(), "user: \"x\"\nassistant: 1=theirs()\ntool: 1→\"done\"\n")
	})
}

// Two calls of one id to a tool of the caller: the second can never get
// its result.
func TestTwoDeclaredCallsOfOneID(t *testing.T) {
	k := talk(t, said(call("1", "ui", `{"n":1}`), call("1", "ui", `{"n":2}`)), said(text("ok")))
	k.keeps = "conv" // waits for ever
	a := chat(k, LoopConfig{}, nil, declaredTool("ui"))
	th := runner{T: t}.begin(a, "x")
	r := func(s string) *content.FunctionResult {
		return &content.FunctionResult{CallID: "1", Result: json.RawMessage(s)}
	}
	second := r("2")
	second.CallID = "1.2" // as it was shown: calls of one turn are told apart
	resp := mustRun(t, a, th, content.NewMessage(content.ToolRole, r("1"), second))
	if len(resp.Refused) > 0 || th.waiting() {
		t.Errorf("refused %v; still waiting: %v", resp.Refused, th.waiting())
	}
}

// A declared call must get its result although another batch, which
// waits for a person, has a call of the same id.
func TestDeclaredCallOfAUsedID(t *testing.T) {
	var c counted
	k := talk(t, said(call("1", "pay", "")), said(call("1", "ui", "")), said(text("ok")))
	a := chat(k, LoopConfig{}, nil, declaredTool("ui"), RequireApproval(c.tool("pay")))
	th := runner{T: t}.begin(a, "x")
	mustRun(t, a, th, content.UserText("y"))
	resp := mustRun(
		t,
		a,
		th,
		content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "1", Result: json.RawMessage("1")}),
	)
	if len(resp.Refused) > 0 {
		t.Errorf("refused: %v", resp.Refused)
	}
}

func TestCallerChangesADeclaredCallInPlace(t *testing.T) {
	a := chat(
		talk(t, said(call("1", "theirs", `{"n":5}`)), said(text("ok"))),
		LoopConfig{},
		nil,
		declaredTool("theirs"),
	)
	th := NewThread("t")
	resp := mustRun(t, a, th, content.UserText("pay"))
	for f := range content.All[*content.FunctionCall](resp.Messages) {
		f.Name = "changed"
	}
	resp = mustRun(t, a, th)
	expect(t, "shown again", tell(resp.Messages), "assistant: 1=theirs({\"n\":5})\n")
}

func TestSameCallIDTwiceInATurn(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		a := chat(
			talk(t, said(call("1", "pay", `{"n":1}`), call("1", "pay", `{"n":2}`)), said(text("ok"))),
			LoopConfig{},
			nil,
			RequireApproval(c.tool("pay")),
		)
		asked := t.run(a, NewThread("t"), content.UserText("go")).UserInputRequests()
		if len(asked) != 2 || asked[0].InputRequestID() == asked[1].InputRequestID() {
			t.Errorf("%v", asked)
		}
	})
}
