package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

// inside wraps an agent in others, each of which calls the next one once.
func inside(t testing.TB, inner Agent, levels int) Agent {
	a := inner
	for i := range levels {
		name := fmt.Sprint("level", i)
		a = chat(talk(t, said(call(fmt.Sprint("c", i), name, `{"input":"go"}`)), said(text(name+" is done"))),
			LoopConfig{}, nil, AsTool(a, NestedConfig{Name: name}))
	}

	return a
}

func TestNestedPartialAnswers(t *testing.T) {
	for levels := 1; levels <= 3; levels++ {
		bothWays(t, func(t runner) {
			var c counted
			k := talk(t, said(call("1", "pay", `{"n":1}`), call("2", "pay", `{"n":2}`)), said(text("paid")))
			a := inside(t, c.asked(k, LoopConfig{}), levels)
			th := NewThread("t")
			resp := t.say(a, th, "x")
			q1, q2 := approvalOf(t, resp, 0), approvalOf(t, resp, 1)
			if q1.RequestID == q2.RequestID || strings.Count(q1.Note.Agent, "/") != levels-1 {
				t.Fatal(q1.RequestID, q2.RequestID, q1.Note.Agent)
			}
			th = reload(t, th)
			forged := q2.CreateApproval("")
			forged.Call.(*content.FunctionCall).Arguments = json.RawMessage(`{"n":3}`)
			resp = t.run(a, th, answers(q1.CreateApproval(""), forged))
			expect(t, "refused", refusals(resp), q2.RequestID+" other_call")
			if len(resp.UserInputRequests()) != 1 {
				t.Fatal(tell(resp.Messages))
			}
			th = reload(t, th)
			resp = t.run(a, th, answers(th.Pending()[0].Request.(*content.ToolApprovalRequest).CreateRejection("no")))
			if c.runs[`pay{"n":1}`] != 1 || len(c.runs) != 1 || len(th.Pending()) > 0 {
				t.Error(c.runs, th.Pending())
			}
			if !strings.Contains(tell(k.seen[1]), `2→"Tool call invocation rejected. no"`) ||
				!strings.HasSuffix(tell(resp.Messages), " is done\"\n") {
				t.Error(tell(k.seen[1]), tell(resp.Messages))
			}
		})
	}
}

func TestNestedAsksTwice(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := talk(t, said(call("1", "pay", `{"n":1}`)), said(call("2", "pay", `{"n":2}`)), said(text("paid")))
		a := inside(t, c.asked(k, LoopConfig{}), 2)
		th := NewThread("t")
		first := approvalOf(t, t.say(a, th, "x"), 0)
		th = reload(t, th)
		second := approvalOf(t, t.yes(a, th, first), 0)
		th = reload(t, th)
		resp := t.yes(a, th, first)
		expect(t, "refused", refusals(resp), first.RequestID+" closed_request")
		t.yes(a, th, second)
		if len(c.runs) != 2 || c.runs[`pay{"n":1}`] != 1 || c.runs[`pay{"n":2}`] != 1 {
			t.Error(c.runs)
		}
	})
}

func TestNestedFails(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		inner := chat(talk(t, said(call("1", "pay", "")), fails, fails, fails), LoopConfig{}, nil,
			RequireApproval(c.tool("pay")))
		k := talk(t, said(call("o", "inner", `{"input":"x"}`)), said(text("sorry")))
		a := chat(k, LoopConfig{}, nil, AsTool(inner, NestedConfig{Name: "inner"}))
		th, q := t.asks(a, "x")
		th = reload(t, th)
		for range maxTries - 1 { // each run continues the agent, because the payment was made
			if _, err := t.try(a, th, answers(q.CreateApproval(""))); !errors.Is(err, errModel) {
				t.Fatal(err)
			}
			th = reload(t, th)
		}

		t.run(a, th)
		if c.runs["pay"] != 1 || !strings.Contains(k.last(), textGivenUp) {
			t.Error(c.runs, k.last())
		}
	})
}

func TestNestedInputs(t *testing.T) {
	inner := chat(talk(t), LoopConfig{}, nil)
	tool := AsTool(inner, NestedConfig{Description: "d"})
	if d := tool.Definition(); d.Name != "test" || d.Description != "d" ||
		content.CheckSchema(d.Schema, json.RawMessage(`{"input":"x"}`)) != nil {
		t.Errorf("%+v", d)
	}
	for _, args := range []string{"", `{}`, `{"input":1}`, `{"input":"x","more":1}`, `[]`} {
		if _, err := tool.Invoke(t.Context(), call("1", "test", args)); err == nil {
			t.Errorf("%s was taken", args)
		}
	}
	if _, err := tool.(Resumer).Resume(t.Context(), call("1", "test", ""), json.RawMessage(`{"version":9}`),
		nil); err == nil {
		t.Error("a thread of a later version was resumed")
	}
}

// TestDelegationIsDecided requires approval before the agent starts, and then for the agent's
// own call.
func TestDelegationIsDecided(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		inner := chat(talk(t, said(call("1", "pay", "")), said(text("paid"))), LoopConfig{}, nil,
			RequireApproval(c.tool("pay")))
		seen := []*Target{}
		d := decideFunc(func(tool Tool, _ content.ToolCall) (hold.Verdict, error) {
			seen = append(seen, targetOf(tool))
			return outcomeOf(resolve.Ask, "delegation"), nil
		})
		tool := AsTool(inner, NestedConfig{Name: "inner", Target: &Target{Kind: resolve.Delegation, Agent: "payments"}})
		a := chat(talk(t, said(call("o", "inner", `{"input":"x"}`)), said(text("done"))), LoopConfig{Decider: d},
			nil, tool)
		th := NewThread("t")
		start := approvalOf(t, t.say(a, th, "x"), 0)
		if start.Call.ToolName() != "inner" || seen[0] == nil || seen[0].Agent != "payments" {
			t.Fatal(start.Call, seen)
		}
		th = reload(t, th)
		pay := approvalOf(t, t.yes(a, th, start), 0)
		if pay.Call.ToolName() != "pay" || pay.RequestID == start.RequestID {
			t.Fatal(pay)
		}
		t.run(a, reload(t, th), answers(pay.CreateApproval("")))
		if c.runs["pay"] != 1 {
			t.Error(c.runs)
		}
	})
}

// TestNestedIsDeniedMeanwhile denies the delegation while the agent waits.
func TestNestedIsDeniedMeanwhile(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		inner := chat(talk(t, said(call("1", "pay", ""))), LoopConfig{}, nil, RequireApproval(c.tool("pay")))
		d := &changing{verdict: outcomeOf(resolve.Allow)}
		k := talk(t, said(call("o", "inner", `{"input":"x"}`)), said(text("done")))
		a := chat(k, LoopConfig{Decider: d}, nil, AsTool(inner, NestedConfig{Name: "inner"}))
		th, q := t.asks(a, "x")
		d.verdict = outcomeOf(resolve.Deny, "closed")
		t.yes(a, reload(t, th), q)
		if len(c.runs) > 0 || !strings.Contains(k.last(), `o→"Tool call denied: rule closed."`) {
			t.Error(c.runs, k.last())
		}
	})
}

// TestNestedWithAHolder polls an agent whose requests are answered elsewhere.
func TestNestedWithAHolder(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		h := pendingStub()
		inner := chat(talk(t, said(call("1", "pay", "")), said(text("paid"))),
			LoopConfig{Holder: h, Decider: asks()}, nil, c.tool("pay"))
		k := talk(t, said(text("?"), call("o", "inner", `{"input":"x"}`)), said(text("done")))
		a := chat(k, LoopConfig{}, nil, AsTool(inner, NestedConfig{Name: "inner", Poll: true}))
		th, q := t.asks(a, "x")
		th = reload(t, th)
		t.yes(a, th, q)
		if len(c.runs) > 0 {
			t.Fatal("the outer user approved what people hold")
		}
		h.later.State = hold.Approved
		t.run(a, reload(t, th))
		if c.runs["pay"] != 1 || !strings.Contains(k.last(), `o→"paid"`) {
			t.Error(c.runs, k.last())
		}
	})
}

// TestNestedFlow nests a flow agent.
func TestNestedFlow(t *testing.T) {
	bothWays(t, func(t runner) {
		var looks, books int
		k := talk(t, said(call("o", "booking", `{"input":"a seat"}`)), said(text("done")))
		a := chat(k, LoopConfig{}, nil, AsTool(booking(&looks, &books), NestedConfig{}))
		th := NewThread("t")
		yes := t.say(a, th, "x").UserInputRequests()[0].(*content.TextApprovalRequest)
		if yes.Note.Agent != "booking" {
			t.Error(yes.Note)
		}
		th = reload(t, th)
		who := t.yes(a, th, yes).UserInputRequests()[0].(*content.StructuredInputRequest)
		th = reload(t, th)
		t.run(a, th, answers(sure(who.CreateResponse(json.RawMessage(`{"name":"Ann"}`)))))
		if looks != 1 || books != 1 || !strings.Contains(k.last(), `Booked for Ann.`) {
			t.Error(looks, books, k.last())
		}
	})
}

// broken is an agent whose runs fail.
type broken struct{ *flowAgent }

func (broken) Run(context.Context, *Thread, ...*content.Message) (*Response, error) {
	return nil, errors.New("broken")
}

func TestNestedAgentThatIsBroken(t *testing.T) {
	if _, err := AsTool(broken{}, NestedConfig{Name: "b"}).Invoke(t.Context(),
		call("1", "b", `{"input":"x"}`)); err == nil {
		t.Error("no error")
	}
}

func TestNestedWaitsForAResult(t *testing.T) {
	inner := chat(talk(t, said(call("i", "theirs", "")), said(text("ok"))), LoopConfig{}, nil, declaredTool("theirs"))
	k := talk(t, said(call("o", "inner", `{"input":"x"}`)), said(text("done")))
	resp := mustRun(t, chat(k, LoopConfig{}, nil, AsTool(inner, NestedConfig{Name: "inner"})), NewThread("t"),
		content.UserText("x"))
	if strings.Contains(tell(resp.Messages), "o→\"\"") {
		t.Errorf("told as finished:\n%s", tell(resp.Messages))
	}
}

// The inner agent has its own store. Its threads are named after call ids, which providers
// reuse.
func TestNestedAgentWithAStore(t *testing.T) {
	store := &byID{threads: map[string][]byte{}}
	inner := NewChatAgent(NewFunctionInvoking(talk(t, said(text("one")), said(text("two"))), LoopConfig{}),
		ChatAgentConfig{Name: "inner", Store: store})
	for i := range 2 {
		k := talk(t, said(call("call_0", "inner", `{"input":"x"}`)), said(text("ok")))
		outer := chat(k, LoopConfig{DetailedErrors: true}, nil, AsTool(inner, NestedConfig{}))
		mustRun(t, outer, NewThread(fmt.Sprint("t", i)), content.UserText("x"))
		if strings.Contains(k.last(), "Error") {
			t.Errorf("thread %d:\n%s", i, k.last())
		}
	}

	if len(store.threads) == 1 {
		t.Error("two conversations have one thread in the store")
	}
}

type byID struct{ threads map[string][]byte }

func (b *byID) Load(_ context.Context, id string) (*Thread, error) { return loaded(b.threads[id], id) }

func (b *byID) Save(_ context.Context, t *Thread) error {
	if raw, ok := b.threads[t.ID]; ok {
		if before, err := loaded(raw, t.ID); err != nil || before.Revision != t.Revision {
			return ErrConflict
		}
	} else if t.Revision != 0 {
		return ErrConflict
	}

	t.Revision++
	raw, err := json.Marshal(t)
	b.threads[t.ID] = raw
	return err
}

// The inner model fails once, after the inner call has run on an approval. The payment was
// made: it must not be reported as failed and requested again.
func TestNestedModelFailsAfterTheCall(t *testing.T) {
	var c counted
	inner := chat(talk(t, said(call("i", "pay", "")), fails, said(text("paid"))), LoopConfig{}, nil,
		RequireApproval(c.tool("pay")))
	k := talk(t, said(call("o", "test", `{"input":"pay"}`)), said(text("ok")), said(text("ok")))
	outer := chat(k, LoopConfig{}, nil, AsTool(inner, NestedConfig{}))
	th, q := runner{T: t}.asks(outer, "x")
	_, err := outer.Run(t.Context(), th, answers(q.CreateApproval("")))
	if c.runs["pay"] != 1 {
		t.Fatal(c.runs)
	}
	if err == nil && strings.Contains(k.last(), textFailed) {
		t.Errorf("the call ran, and the model is told that it failed:\n%s", k.last())
	}
}

// An answer that a nested agent refuses must be reported to the outer caller. Otherwise the
// caller sees the same question again, and RunToEnd asks forever.
func TestAnswersThatNestedAgentsRefuse(t *testing.T) {
	var c counted
	d := decideFunc(func(_ Tool, call content.ToolCall) (hold.Verdict, error) {
		if strings.Contains(string(call.Args()), "9") {
			return outcomeOf(resolve.Deny, "nine"), nil
		}
		return outcomeOf(resolve.Ask, "r"), nil
	})
	inner := chat(talk(t, said(call("i", "pay", `{"n":1}`)), said(text("paid"))), LoopConfig{Decider: d}, nil,
		c.tool("pay"))
	outer := chat(talk(t, said(call("o", "test", `{"input":"pay"}`)), said(text("ok"))), LoopConfig{}, nil,
		AsTool(inner, NestedConfig{}))
	th, q := runner{T: t}.asks(outer, "x")
	edit, _ := q.CreateEdit(json.RawMessage(`{"n":9}`), "")
	resp := mustRun(t, outer, th, answers(edit))
	if len(resp.UserInputRequests()) == 1 && len(resp.Refused) == 0 {
		t.Error("the same question again, and nobody says why the answer did not act")
	}
}

func TestEditOfNestedRequest(t *testing.T) {
	bothWays(t, func(t runner) {
		var c, outerPay counted
		inner := chat(talk(t, said(call("i1", "pay", `{"n":5}`)), said(text("paid"))), LoopConfig{}, nil,
			RequireApproval(c.tool("pay")))
		outer := chat(talk(t, said(call("o1", "teller", `{"input":"pay"}`)), said(text("done"))), LoopConfig{}, nil,
			AsTool(inner, NestedConfig{Name: "teller"}), outerPay.tool("pay"))
		th, q := t.asks(outer, "pay")
		edit := must.Get(q.CreateEdit(json.RawMessage(`{"n":4}`), ""))(t)
		resp := t.run(outer, th, answers(edit))
		expect(t, "refused", refusals(resp), "")
		if c.runs[`pay{"n":4}`] != 1 || len(outerPay.runs) != 0 {
			t.Errorf("inner %v, outer %v\n%s", c.runs, outerPay.runs, tell(resp.Messages))
		}
	})
}
