package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"time"

	"github.com/assent-dev/assent/content"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

func TestMendedAEditSurvivesAuditFailure(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		j := &journal{failAt: func(e Event) bool { return e.Type == "answered" }}
		a := chat(talk(t, said(call("1", "pay", `{"n":5}`)), said(text("ok"))), LoopConfig{Audit: j.take}, nil, RequireApproval(c.tool("pay")))
		th := NewThread("t")
		q := approvalOf(t, r.run(a, th, content.UserText("pay")), 0)
		edit, _ := q.CreateEdit(json.RawMessage(`{"n":500}`), "")
		if _, err := r.try(a, th, answers(edit)); !errors.Is(err, errAudit) {
			t.Fatal(err)
		}
		j.failAt = nil
		r.run(a, th, answers(q.CreateApproval("")))
		if c.runs[`pay{"n":5}`] != 1 || len(c.runs) != 1 {
			t.Fatalf("what ran was %v; approved was n=5", c.runs)
		}
	})
}

func TestMendedBHeldBackLostOnModelError(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		k := talk(t, said(call("1", "pay", "")), fails, said(text("ok")))
		k.keeps = "conv"
		a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")))
		th := NewThread("t")
		q := approvalOf(t, r.run(a, th, content.UserText("pay")), 0)
		r.run(a, th, content.UserText("by the way"))
		if _, err := r.try(a, th, answers(q.CreateApproval(""))); err == nil {
			t.Fatal("no error")
		}
		r.run(a, th)
		expect(t, "sent", k.last(), "tool: 1→\"did pay\"\nuser: \"by the way\"\n")
	})
}

func TestMendedCStopWithServiceHistory(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		stop := NewFunction("halt", "", nil, func(ctx context.Context, _ json.RawMessage) (any, error) {
			InvocationOf(ctx).Stop = true
			return "halted", nil
		})
		k := talk(t, said(call("1", "halt", "")), said(text("ok")))
		k.keeps = "conv"
		a := chat(k, LoopConfig{}, nil, stop)
		th := NewThread("t")
		r.run(a, th, content.UserText("stop"))
		r.run(a, th, content.UserText("more"))
		expect(t, "sent", k.last(), "tool: 1→\"halted\"\nuser: \"more\"\n")
	})
}

func TestMendedC2ApprovedStopWithServiceHistory(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		stop := NewFunction("halt", "", nil, func(ctx context.Context, _ json.RawMessage) (any, error) {
			InvocationOf(ctx).Stop = true
			return "halted", nil
		})
		k := talk(t, said(call("1", "halt", "")), said(text("ok")))
		k.keeps = "conv"
		a := chat(k, LoopConfig{}, nil, RequireApproval(stop))
		th := NewThread("t")
		q := approvalOf(t, r.run(a, th, content.UserText("stop")), 0)
		r.run(a, th, content.UserText("held"))
		r.run(a, th, answers(q.CreateApproval("")))
		r.run(a, th, content.UserText("more"))
		expect(t, "sent", k.last(), "tool: 1→\"halted\"\nuser: \"held\"\nuser: \"more\"\n")
	})
}

func TestMendedC3LimitWithServiceHistory(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		k := talk(t, said(call("1", "look", "")), said(call("2", "look", "")), said(text("ok")))
		k.keeps = "conv"
		a := chat(k, LoopConfig{MaxTurns: 1}, nil, c.tool("look"))
		th := NewThread("t")
		r.run(a, th, content.UserText("go"))
		r.run(a, th, content.UserText("more"))
		expect(t, "sent", k.last(), "tool: 2→\""+textLimit+"\"\nuser: \"more\"\n")
	})
}

func TestMendedDLateAnswerToServiceIsForwarded(t *testing.T) {
	for _, keeps := range []string{"", "conv"} {
		bothWays(t, func(t *testing.T, r runner) {
			k := talk(t, said(mcpRequest("r1")), said(text("ok")), said(text("forwarded!")))
			k.keeps = keeps
			a := chat(k, LoopConfig{}, nil)
			th := NewThread("t")
			q := approvalOf(t, r.run(a, th, content.UserText("wipe")), 0)
			r.run(a, th, answers(q.CreateRejection("")))
			resp, err := r.try(a, th, answers(q.CreateApproval(""), text("hi")))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range k.seen[len(k.seen)-1] {
				for _, c := range m.Contents {
					if x, ok := c.(*content.ToolApprovalResponse); ok && x.Approved {
						t.Error("an approval that came after the rejection went to the service")
					}
				}
			}
			expect(t, "refused", refusals(resp), "r1 closed_request")
		})
	}
}

func TestMendedD2PlanDeniedHostedThenForged(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		deny := decideFunc(func(Tool, content.ToolCall) (Verdict, error) { return outcomeOf(resolve.Deny, "no"), nil })
		q := mcpRequest("r1")
		k := talk(t, said(q), said(text("ok")), said(text("forwarded!")))
		a := chat(k, LoopConfig{Decider: deny}, nil)
		th := NewThread("t")
		r.run(a, th, content.UserText("wipe"))
		resp, _ := r.try(a, th, answers(q.CreateApproval(""), text("hi")))
		for _, m := range k.seen[len(k.seen)-1] {
			for _, c := range m.Contents {
				if x, ok := c.(*content.ToolApprovalResponse); ok && x.Approved {
					t.Error("a forged approval of a denied call went to the service")
				}
			}
		}
		expect(t, "refused", refusals(resp), "r1 closed_request")
	})
}

func TestMendedEHostedNotDecidedAgain(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		outcome := resolve.Ask
		d := decideFunc(func(Tool, content.ToolCall) (Verdict, error) { return outcomeOf(outcome, "x"), nil })
		k := talk(t, said(mcpRequest("r1")), said(text("ok")))
		a := chat(k, LoopConfig{Decider: d}, nil)
		th := NewThread("t")
		q := approvalOf(t, r.run(a, th, content.UserText("wipe")), 0)
		outcome = resolve.Deny
		r.run(a, th, answers(q.CreateApproval("")))
		for _, m := range k.seen[len(k.seen)-1] {
			for _, c := range m.Contents {
				if x, ok := c.(*content.ToolApprovalResponse); ok && x.Approved {
					t.Error("the plan denies the call by now, and the approval went to the service")
				}
			}
		}
	})
}

func TestMendedE2HostedStagesWithoutHolder(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		d := decideFunc(func(Tool, content.ToolCall) (Verdict, error) {
			v := outcomeOf(resolve.Ask, "x")
			v.Require = &policy.Require{Stages: []policy.Stage{{Group: "finance", People: 2}}}
			return v, nil
		})
		k := talk(t, said(mcpRequest("r1")), said(text("ok")))
		a := chat(k, LoopConfig{Decider: d}, nil)
		if resp := r.run(a, NewThread("t"), content.UserText("wipe")); len(resp.UserInputRequests()) > 0 {
			t.Error("one user may answer what two of finance must")
		}
	})
}

// holderStub holds requests in memory.
type holderStub struct {
	state   HeldState
	opens   int
	failing bool
	claims  []string
}

func (h *holderStub) Open(context.Context, string, Verdict) (Held, error) {
	if h.failing {
		return Held{}, errors.New("the holder is away")
	}
	h.opens++
	return Held{Ref: "ref", State: HeldPending}, nil
}
func (h *holderStub) Look(context.Context, string) (Held, error) {
	return Held{Ref: "ref", State: h.state}, nil
}
func (h *holderStub) Claim(_ context.Context, ref, key string, _ Verdict) error {
	h.claims = append(h.claims, key)
	return nil
}
func (h *holderStub) Cancel(context.Context, string, string) error { return nil }

func TestMendedFHolderBypassedAfterFailedReopen(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		h := &holderStub{state: HeldPending}
		rule := "one"
		d := decideFunc(func(Tool, content.ToolCall) (Verdict, error) { return outcomeOf(resolve.Ask, rule), nil })
		a := chat(talk(t, said(call("1", "pay", "")), said(text("ok"))), LoopConfig{Decider: d, Holder: h}, nil, c.tool("pay"))
		th := NewThread("t")
		r.run(a, th, content.UserText("pay"))
		h.state, h.failing, rule = HeldApproved, true, "two"
		if _, err := r.try(a, th, answers()); err == nil {
			t.Fatal("no error though the holder is away")
		}
		h.state, h.failing = HeldPending, false
		for _, p := range th.Pending() {
			r.try(a, th, answers(p.Request.(*content.ToolApprovalRequest).CreateApproval("")))
		}
		if len(c.runs) > 0 {
			t.Fatalf("ran on the word of the messages: %v, claims %v", c.runs, h.claims)
		}
	})
}

func TestMendedGPolledCallAfterFailedSave(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		tool := &asking{name: "wait", ask: func() *Suspend {
			return &Suspend{State: json.RawMessage(`1`), Poll: true, Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "x", Text: "?"}}}
		}}
		k := &keeper{}
		a := chat(talk(t, said(call("1", "wait", "")), said(text("ok"))), LoopConfig{}, k, tool)
		th := NewThread("t")
		r.run(a, th, content.UserText("go"))
		k.failAt, k.err = 1, errors.New("disk")
		if _, err := r.try(a, th, answers()); err == nil {
			t.Fatal("no error")
		}
		raw, err := json.Marshal(th)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := loaded(raw, "t"); err != nil {
			t.Error(err)
		}
		if len(th.Pending()) != 1 {
			t.Error("the request is open no more, and nobody answered it")
		}
	})
}

func TestMendedHNoThreadHarmlessBesideDeclared(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		k := talk(t, said(call("1", "look", ""), call("2", "theirs", "")), said(text("ok")))
		l := NewFunctionInvoking(k, LoopConfig{})
		opt := &Options{Tools: []Tool{c.tool("look"), declaredTool("theirs")}}
		in := []*content.Message{content.UserText("go")}
		resp, err := r.client(l, in, opt)
		if err != nil {
			if len(c.runs) > 0 {
				t.Fatal("ran before the error")
			}
			return
		}
		in = append(append(in, resp.Messages...), content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "2", Result: json.RawMessage(`"x"`)}))
		if _, err := r.client(l, in, opt); err != nil {
			t.Fatal(err)
		}
		if got := k.last(); c.runs["look"] > 0 && !contains(got, "1→") {
			t.Errorf("look ran, and neither caller nor model ever hears of it:\n%s", got)
		}
	})
}

func contains(s, sub string) bool {
	return len(s) >= len(sub) && (func() bool {
		for i := range s {
			if len(s)-i >= len(sub) && s[i:i+len(sub)] == sub {
				return true
			}
		}
		return false
	})()
}

func TestMendedIStoppedOutlivesItsRun(t *testing.T) {
	for _, again := range []bool{false, true} {
		bothWays(t, func(t *testing.T, r runner) {
			var c counted
			halt := NewFunction("halt", "", nil, func(ctx context.Context, _ json.RawMessage) (any, error) {
				InvocationOf(ctx).Stop = true
				return "halted", nil
			})
			a := chat(talk(t, said(call("1", "halt", ""), call("2", "pay", "")), said(text("ok"))), LoopConfig{}, nil, RequireApproval(halt), RequireApproval(c.tool("pay")))
			th := NewThread("t")
			resp := r.run(a, th, content.UserText("go"))
			q1, q2 := approvalOf(t, resp, 0), approvalOf(t, resp, 1)
			r.run(a, th, answers(q1.CreateApproval("")))
			if again {
				th = reload(t, th)
			}
			r.run(a, th, answers(q2.CreateApproval("")))
			if c.runs["pay"] != 1 {
				t.Errorf("reloaded %v: approved in a later run and not run: %v", again, c.runs)
			}
		})
	}
}

func TestMendedJConcurrentApprovedLosesAddedTool(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		add := NewFunction("add", "", nil, func(ctx context.Context, _ json.RawMessage) (any, error) {
			inv := InvocationOf(ctx)
			inv.Options.Tools = append(inv.Options.Tools, c.tool("extra"))
			return nil, nil
		})
		k := talk(t, said(call("1", "add", ""), call("2", "pay", "")), said(text("ok")))
		a := chat(k, LoopConfig{Concurrent: true}, nil, RequireApproval(add), RequireApproval(c.tool("pay")))
		th := NewThread("t")
		resp := r.run(a, th, content.UserText("go"))
		r.run(a, th, answers(approvalOf(t, resp, 0).CreateApproval(""), approvalOf(t, resp, 1).CreateApproval("")))
		if findTool("extra", k.options[1], nil) == nil {
			t.Error("the tool that an approved call added is lost")
		}
	})
}

func TestMendedKSiblingSwapsTool(t *testing.T) {
	for _, approve := range []bool{false, true} {
		bothWays(t, func(t *testing.T, r runner) {
			var c, swapped counted
			swap := NewFunction("swap", "", nil, func(ctx context.Context, _ json.RawMessage) (any, error) {
				inv := InvocationOf(ctx)
				inv.Options.Tools = append(without(inv.Options.Tools, "pay"), RequireApproval(swapped.tool("pay")))
				return nil, nil
			})
			k := talk(t, said(call("1", "swap", ""), call("2", "pay", "")), said(text("ok")))
			tools := []Tool{swap, c.tool("pay")}
			if approve {
				tools = []Tool{RequireApproval(swap), RequireApproval(c.tool("pay"))}
			}
			a := chat(k, LoopConfig{}, nil, tools...)
			th := NewThread("t")
			resp := r.run(a, th, content.UserText("go"))
			if approve {
				r.run(a, th, answers(approvalOf(t, resp, 0).CreateApproval(""), approvalOf(t, resp, 1).CreateApproval("")))
			}
			if swapped.runs["pay"] > 0 {
				t.Errorf("approved %v: a tool ran that was never decided", approve)
			}
		})
	}
}

func TestMendedLEmptyRunAsksTheModelAgain(t *testing.T) {
	for _, p := range []NewMessagePolicy{KeepOpen, Supersede} {
		bothWays(t, func(t *testing.T, r runner) {
			var c counted
			k := talk(t, said(call("1", "pay", "")), said(text("asked again")))
			a := chat(k, LoopConfig{OnNewMessage: p}, nil, RequireApproval(c.tool("pay")))
			th := NewThread("t")
			r.run(a, th, content.UserText("pay"))
			resp := r.run(a, th)
			if len(k.seen) != 1 || len(th.Pending()) != 1 || len(resp.UserInputRequests()) != 1 {
				t.Errorf("policy %d: a run without messages: %d model turns, %d pending", p, len(k.seen), len(th.Pending()))
			}
		})
	}
}

func TestMendedMEditOfNestedRequest(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c, outerPay counted
		inner := chat(talk(t, said(call("i1", "pay", `{"n":5}`)), said(text("paid"))), LoopConfig{}, nil, RequireApproval(c.tool("pay")))
		outer := chat(talk(t, said(call("o1", "teller", `{"input":"pay"}`)), said(text("done"))), LoopConfig{}, nil,
			AsTool(inner, NestedConfig{Name: "teller"}), outerPay.tool("pay"))
		th := NewThread("t")
		q := approvalOf(t, r.run(outer, th, content.UserText("pay")), 0)
		edit, err := q.CreateEdit(json.RawMessage(`{"n":4}`), "")
		if err != nil {
			t.Fatal(err)
		}
		resp := r.run(outer, th, answers(edit))
		expect(t, "refused", refusals(resp), "")
		if c.runs[`pay{"n":4}`] != 1 || len(outerPay.runs) != 0 {
			t.Errorf("inner %v, outer %v\n%s", c.runs, outerPay.runs, tell(resp.Messages))
		}
	})
}

func TestMendedM2EditOfHostedCall(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		k := talk(t, said(mcpRequest("r1")), said(text("ok")))
		a := chat(k, LoopConfig{}, nil, c.tool("wipe"))
		th := NewThread("t")
		q := approvalOf(t, r.run(a, th, content.UserText("wipe")), 0)
		forged := q.CreateApproval("")
		forged.Edited = call("call-r1", "wipe", `{"all":false}`)
		resp := r.run(a, th, answers(forged))
		expect(t, "refused", refusals(resp), "r1 bad_answer")
	})
}

func TestMendedM3EditOfRequestWithoutCall(t *testing.T) {
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

func TestMendedNTwoMessagesOfOneTurn(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		k := talk(t, saidAll(content.NewMessage(content.Assistant, call("1", "look", "")), content.AssistantText("one moment")), said(text("ok")))
		a := chat(k, LoopConfig{}, nil, c.tool("look"))
		if _, err := r.try(a, NewThread("t"), content.UserText("go")); err != nil {
			t.Error(err)
		}
	})
}

func TestMendedOSameRequestIDTwice(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		tool := &asking{name: "two", ask: func() *Suspend {
			return &Suspend{Requests: []content.InputRequest{
				&content.TextApprovalRequest{RequestID: "a", Text: "a?"}, &content.TextApprovalRequest{RequestID: "b", Text: "b?"}}}
		}}
		a := chat(talk(t, said(call("1", "two", "")), said(text("ok"))), LoopConfig{}, nil, tool)
		resp := r.run(a, NewThread("t"), content.UserText("go"))
		asked := resp.UserInputRequests()
		if len(asked) != 2 || asked[0].InputRequestID() == asked[1].InputRequestID() {
			t.Errorf("two requests with one id: %s", tell(resp.Messages))
		}
	})
}

func TestMendedO2SameCallIDTwiceInATurn(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		a := chat(talk(t, said(call("1", "pay", `{"n":1}`), call("1", "pay", `{"n":2}`)), said(text("ok"))), LoopConfig{}, nil, RequireApproval(c.tool("pay")))
		asked := r.run(a, NewThread("t"), content.UserText("go")).UserInputRequests()
		if len(asked) != 2 || asked[0].InputRequestID() == asked[1].InputRequestID() {
			t.Errorf("%v", asked)
		}
	})
}

func TestMendedPReusedCallIDHidesHistory(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		k := talk(t, said(call("1", "look", "")), said(text("seen")), said(call("1", "pay", "")), said(text("yes?")))
		a := chat(k, LoopConfig{}, nil, c.tool("look"), RequireApproval(c.tool("pay")))
		th := NewThread("t")
		r.run(a, th, content.UserText("look"))
		r.run(a, th, content.UserText("pay"))
		r.run(a, th, content.UserText("still there?"))
		expect(t, "sent", k.last(), "user: \"look\"\nassistant: 1=look()\ntool: 1→\"did look\"\nassistant: \"seen\"\nuser: \"pay\"\nuser: \"still there?\"\n")
	})
}

func TestMendedQResultForUnknownCall(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		k := talk(t, said(text("ok")))
		k.keeps = "conv"
		a := chat(k, LoopConfig{}, nil)
		resp := r.run(a, NewThread("t"), content.UserText("hi"), content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "no", Result: json.RawMessage(`1`)}))
		expect(t, "refused", refusals(resp), "no unknown_request")
		expect(t, "sent", k.last(), "user: \"hi\"\n")
	})
}

func TestMendedRLateAnswerAsksTheModel(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		k := talk(t, said(call("1", "pay", "")), said(text("ok")), said(text("what?")))
		a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")))
		th := NewThread("t")
		q := approvalOf(t, r.run(a, th, content.UserText("pay")), 0)
		r.run(a, th, answers(q.CreateApproval("")))
		resp := r.run(a, th, answers(q.CreateApproval("")))
		expect(t, "refused", refusals(resp), "ficc_1 closed_request")
		if len(k.seen) != 2 {
			t.Errorf("the model was asked again with nothing new:\n%s", k.last())
		}
	})
}

func TestMendedSResultLostOnAuditErrorAfterwards(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		j := &journal{failAt: func(e Event) bool { return e.Type == "finished" && e.CallID == "1" }}
		store := &keeper{}
		k := talk(t, said(call("1", "pay", ""), call("2", "send", "")), said(text("ok")))
		a := chat(k, LoopConfig{Audit: j.take, Concurrent: false}, store, RequireApproval(c.tool("pay")), RequireApproval(c.tool("send")))
		th := NewThread("t")
		resp := r.run(a, th, content.UserText("go"))
		if _, err := r.try(a, th, answers(approvalOf(t, resp, 0).CreateApproval(""), approvalOf(t, resp, 1).CreateApproval(""))); !errors.Is(err, errAudit) {
			t.Fatal(err)
		}
		j.failAt = nil
		th, err := store.Load(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		r.run(a, th)
		if !contains(k.last(), `1→"did pay"`) {
			t.Errorf("the result of a call that ended is lost:\n%s", k.last())
		}
	})
}

func TestMendedS2ConcurrentResultLostInMemory(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c1, c2 counted
		j := &journal{failAt: func(e Event) bool { return e.Type == "finished" }}
		k := talk(t, said(call("1", "pay", ""), call("2", "send", "")), said(text("ok")))
		a := chat(k, LoopConfig{Audit: j.take, Concurrent: true}, nil, RequireApproval(c1.tool("pay")), RequireApproval(c2.tool("send")))
		th := NewThread("t")
		resp := r.run(a, th, content.UserText("go"))
		if _, err := r.try(a, th, answers(approvalOf(t, resp, 0).CreateApproval(""), approvalOf(t, resp, 1).CreateApproval(""))); !errors.Is(err, errAudit) {
			t.Fatal(err)
		}
		j.failAt = nil
		r.run(a, th, content.UserText("and?"))
		if !contains(k.last(), `2→"did send"`) {
			t.Errorf("the result of a call that ended is lost:\n%s", k.last())
		}
	})
}

func TestMendedTCancelledAfterTheCall(t *testing.T) {
	store := &ctxKeeper{}
	ctx, cancel := context.WithCancel(t.Context())
	pay := NewFunction("pay", "", nil, func(context.Context, json.RawMessage) (any, error) { cancel(); return "paid", nil })
	k := talk(t, said(call("1", "pay", "")), said(text("ok")), said(text("ok")))
	a := chat(k, LoopConfig{}, store, RequireApproval(pay))
	th := NewThread("t")
	q := approvalOf(t, mustRun(t, a, th, content.UserText("go")), 0)
	a.Run(ctx, th, answers(q.CreateApproval("")))
	th, err := store.Load(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	mustRun(t, a, th, content.UserText("and?"))
	if !contains(k.last(), `1→"paid"`) {
		t.Errorf("the result of a call that ended is lost:\n%s", k.last())
	}
}

// ctxKeeper does nothing for a context that is over, as databases do.
type ctxKeeper struct{ keeper }

func (k *ctxKeeper) Save(ctx context.Context, t *Thread) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return k.keeper.Save(ctx, t)
}

func TestMendedUFlowOnForeignThreadPanics(t *testing.T) {
	for name, raw := range map[string]string{
		"no calls": `{"version":1,"id":"t","revision":0,"messages":[],"pending":[{"calls":[]}]}`,
		"no asks":  `{"version":1,"id":"t","revision":0,"messages":[],"pending":[{"calls":[{"call":{"$type":"functionCall","callId":"1","name":"x"},"stage":"external"}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Error("panic:", p)
				}
			}()
			th, err := loaded([]byte(raw), "t")
			if err != nil {
				return
			}
			a := NewFlow("f", FlowConfig{}, func(context.Context, *Flow) error { return nil })
			a.Run(t.Context(), th, content.UserText("hi"))
		})
	}
}

func TestMendedVFlowAnswerActsBeforeAudit(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		j := &journal{failAt: func(e Event) bool { return e.Type == "answered" }}
		a := NewFlow("f", FlowConfig{Audit: j.take}, func(ctx context.Context, f *Flow) error { return f.Approve(ctx, "k", "?") })
		th := NewThread("t")
		q := r.run(a, th, content.UserText("hi")).UserInputRequests()[0].(*content.TextApprovalRequest)
		if _, err := r.try(a, th, answers(q.CreateApproval(""))); !errors.Is(err, errAudit) {
			t.Fatal(err)
		}
		if len(th.Pending()) != 1 {
			t.Error("an answer without a record acts")
		}
	})
}

func TestMendedV2FlowRefusalsAreNotAudited(t *testing.T) {
	j := &journal{}
	a := NewFlow("f", FlowConfig{Audit: j.take}, func(ctx context.Context, f *Flow) error { return f.Approve(ctx, "k", "?") })
	th := NewThread("t")
	mustRun(t, a, th, content.UserText("hi"))
	mustRun(t, a, th, answers(&content.TextApprovalResponse{RequestID: "no"}))
	if !contains(j.tell(), "refused") {
		t.Error(j.tell())
	}
}

func TestMendedWThreadsThatCantBeStored(t *testing.T) {
	store := func(t *testing.T, th *Thread) {
		t.Helper()
		raw, err := json.Marshal(th)
		if err != nil {
			t.Error("write:", err)
			return
		}
		if _, err := loaded(raw, "t"); err != nil {
			t.Error("read:", err)
		}
	}
	t.Run("text request of the model's side", func(t *testing.T) {
		a := chat(talk(t, said(&content.TextApprovalRequest{RequestID: "r", Text: "?"})), LoopConfig{}, nil)
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		store(t, th)
	})
	t.Run("arguments that are no JSON beside a request", func(t *testing.T) {
		var c counted
		a := chat(talk(t, said(call("1", "pay", ""), call("2", "look", "{oops"))), LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		store(t, th)
	})
	t.Run("arguments that are no JSON in the history", func(t *testing.T) {
		var c counted
		a := chat(talk(t, said(call("2", "look", "{oops")), said(text("ok"))), LoopConfig{}, nil, c.tool("look"))
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		store(t, th)
	})
	t.Run("a list for arguments", func(t *testing.T) {
		var c counted
		a := chat(talk(t, said(call("1", "pay", ""), call("2", "look", "[1]"))), LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		store(t, th)
	})
	t.Run("duplicate keys in arguments", func(t *testing.T) {
		var c counted
		a := chat(talk(t, said(call("1", "pay", ""), call("2", "look", `{"a":1,"a":2}`))), LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		store(t, th)
	})
	t.Run("a result of the caller that is no JSON", func(t *testing.T) {
		a := chat(talk(t, said(call("1", "theirs", ""), call("2", "theirs", ""))), LoopConfig{}, nil, declaredTool("theirs"))
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		mustRun(t, a, th, content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "1", Result: json.RawMessage(`oops`)}))
		store(t, th)
	})
	t.Run("a state that is no JSON", func(t *testing.T) {
		tool := &asking{name: "w", ask: func() *Suspend {
			return &Suspend{State: json.RawMessage(`oops`), Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "x", Text: "?"}}}
		}}
		a := chat(talk(t, said(call("1", "w", "")), said(text("ok"))), LoopConfig{}, nil, tool)
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		store(t, th)
	})
	t.Run("a schema that is no JSON", func(t *testing.T) {
		tool := &asking{name: "w", ask: func() *Suspend {
			return &Suspend{Requests: []content.InputRequest{&content.StructuredInputRequest{RequestID: "x", Schema: json.RawMessage(`oops`)}}}
		}}
		a := chat(talk(t, said(call("1", "w", "")), said(text("ok"))), LoopConfig{}, nil, tool)
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		store(t, th)
	})
}

func TestMendedXCallerChangesTheRequestInPlace(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		a := chat(talk(t, said(call("1", "pay", `{"n":5}`)), said(text("ok"))), LoopConfig{}, nil, RequireApproval(c.tool("pay")))
		th := NewThread("t")
		q := approvalOf(t, r.run(a, th, content.UserText("pay")), 0)
		q.Call.(*content.FunctionCall).Arguments = json.RawMessage(`{"n":1}`)
		resp := r.run(a, th, answers(q.CreateApproval("")))
		expect(t, "refused", refusals(resp), "ficc_1 other_call")
	})
}

func TestMendedX2CallerChangesADeclaredCallInPlace(t *testing.T) {
	a := chat(talk(t, said(call("1", "theirs", `{"n":5}`)), said(text("ok"))), LoopConfig{}, nil, declaredTool("theirs"))
	th := NewThread("t")
	resp := mustRun(t, a, th, content.UserText("pay"))
	for _, m := range resp.Messages {
		for _, c := range m.Contents {
			if f, ok := c.(*content.FunctionCall); ok {
				f.Name = "changed"
			}
		}
	}
	resp = mustRun(t, a, th)
	expect(t, "shown again", tell(resp.Messages), "assistant: 1=theirs({\"n\":5})\n")
}

func TestMendedYStreamLeftEarlyKeepsRequestWithoutHistory(t *testing.T) {
	var c counted
	a := chat(talk(t, said(text("a"), call("1", "pay", "")), said(text("ok"))), LoopConfig{}, nil, RequireApproval(c.tool("pay")))
	th := NewThread("t")
	for u := range a.Stream(t.Context(), th, content.UserText("pay")) {
		if len(u.Contents) == 1 {
			if _, ok := u.Contents[0].(content.InputRequest); ok {
				break
			}
		}
	}
	if len(th.Pending()) == 1 && len(th.Messages) == 0 {
		t.Error("the request stays, and what it was asked for is not in the history")
	}
}

func TestMendedZFinishedWithOpenAsksClosesThem(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		tool := &asking{name: "wait", ask: func() *Suspend {
			return &Suspend{Poll: true, Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "x", Text: "?"}}}
		}}
		a := chat(talk(t, said(text("w"), call("1", "wait", "")), said(text("ok")), said(text("hm"))), LoopConfig{}, nil, tool)
		th := NewThread("t")
		q := r.run(a, th, content.UserText("go")).UserInputRequests()[0].(*content.TextApprovalRequest)
		r.run(a, th, answers())
		resp := r.run(a, th, answers(q.CreateApproval(""), text("x")))
		expect(t, "refused", refusals(resp), "ficc_1 closed_request")
	})
}

func TestMendedAAEventsOfEnds(t *testing.T) {
	t.Run("a suspend without requests", func(t *testing.T) {
		j := &journal{}
		tool := &asking{name: "w", ask: func() *Suspend { return &Suspend{} }}
		mustRun(t, chat(talk(t, said(call("1", "w", "")), said(text("ok"))), LoopConfig{Audit: j.take}, nil, tool), NewThread("t"), content.UserText("x"))
		if !contains(j.tell(), "finished 1") {
			t.Errorf("no end:\n%s", j.tell())
		}
	})
	t.Run("an edit that is asked about again", func(t *testing.T) {
		j := &journal{}
		var c counted
		d := decideFunc(func(_ Tool, call content.ToolCall) (Verdict, error) {
			if contains(string(call.Args()), "500") {
				return outcomeOf(resolve.Ask, "small", "big"), nil
			}
			return outcomeOf(resolve.Ask, "small"), nil
		})
		a := chat(talk(t, said(call("1", "pay", `{"n":5}`))), LoopConfig{Audit: j.take, Decider: d}, nil, c.tool("pay"))
		th := NewThread("t")
		q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
		edit, _ := q.CreateEdit(json.RawMessage(`{"n":500}`), "")
		mustRun(t, a, th, answers(edit))
		if got := j.tell(); got == "requested 1 ficc_1\nrequested 1 ficc_1.2\n" {
			t.Errorf("who edited, and that the first request has ended, is on no record:\n%s", got)
		}
	})
	t.Run("an approved call that a sibling's stop leaves out", func(t *testing.T) {
		j := &journal{}
		var c counted
		halt := NewFunction("halt", "", nil, func(ctx context.Context, _ json.RawMessage) (any, error) {
			InvocationOf(ctx).Stop = true
			return 1, nil
		})
		a := chat(talk(t, said(call("1", "halt", ""), call("2", "pay", ""))), LoopConfig{Audit: j.take}, nil, RequireApproval(halt), RequireApproval(c.tool("pay")))
		th := NewThread("t")
		resp := mustRun(t, a, th, content.UserText("x"))
		n := len(j.events)
		mustRun(t, a, th, answers(approvalOf(t, resp, 0).CreateApproval(""), approvalOf(t, resp, 1).CreateApproval("")))
		ends := 0
		for _, e := range j.events[n:] {
			if e.CallID == "2" && e.Type != "answered" {
				ends++
			}
		}
		if ends == 0 {
			t.Errorf("no end of call 2:\n%s", j.tell())
		}
	})
	t.Run("a declared call that is superseded", func(t *testing.T) {
		j := &journal{}
		a := chat(talk(t, said(call("1", "theirs", "")), said(text("ok"))), LoopConfig{Audit: j.take, OnNewMessage: Supersede}, nil, declaredTool("theirs"))
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("x"))
		mustRun(t, a, th, content.UserText("y"))
		if !contains(j.tell(), "superseded 1") {
			t.Errorf("no end:\n%s", j.tell())
		}
	})
	t.Run("an ended request is recorded once the journal works again", func(t *testing.T) {
		j := &journal{failAt: func(e Event) bool { return e.Type == "expired" }}
		cl := newClock()
		var c counted
		d := decideFunc(func(Tool, content.ToolCall) (Verdict, error) {
			v := outcomeOf(resolve.Ask, "x")
			v.Require = &policy.Require{}
			v.Require.Within = time.Minute
			return v, nil
		})
		a := chat(talk(t, said(call("1", "pay", "")), said(text("ok"))), LoopConfig{Audit: j.take, Decider: d, Now: cl.now}, nil, c.tool("pay"))
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("x"))
		cl.at = cl.at.Add(time.Hour)
		if _, err := a.Run(t.Context(), th, content.UserText("y")); !errors.Is(err, errAudit) {
			t.Fatal(err)
		}
		j.failAt = nil
		mustRun(t, a, th, content.UserText("y"))
		if !contains(j.tell(), "expired 1") {
			t.Error(j.tell())
		}
	})
	t.Run("a lost call is recorded once the journal works again", func(t *testing.T) {
		store := &keeper{}
		var c counted
		a := chat(talk(t, said(call("1", "pay", "")), said(text("ok"))), LoopConfig{}, store, RequireApproval(c.tool("pay")))
		th := NewThread("t")
		q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
		mustRun(t, a, th, answers(q.CreateApproval("")))
		crashed, err := loaded(store.saved[1], "t")
		if err != nil {
			t.Fatal(err)
		}
		j := &journal{failAt: func(e Event) bool { return e.Type == "lost" }}
		b := chat(talk(t, said(text("ok"))), LoopConfig{Audit: j.take}, nil, RequireApproval(c.tool("pay")))
		if _, err := b.Run(t.Context(), crashed, content.UserText("y")); !errors.Is(err, errAudit) {
			t.Fatal(err)
		}
		j.failAt = nil
		mustRun(t, b, crashed, content.UserText("y"))
		if !contains(j.tell(), "lost 1") {
			t.Error("the loss is on no record")
		}
	})
	t.Run("a result of the caller is recorded once the journal works again", func(t *testing.T) {
		j := &journal{failAt: func(e Event) bool { return e.Type == "finished" }}
		a := chat(talk(t, said(call("1", "theirs", "")), said(text("ok"))), LoopConfig{Audit: j.take}, nil, declaredTool("theirs"))
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("x"))
		result := content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "1", Result: json.RawMessage(`1`)})
		if _, err := a.Run(t.Context(), th, result); !errors.Is(err, errAudit) {
			t.Fatal(err)
		}
		j.failAt = nil
		resp := mustRun(t, a, th, result)
		if !contains(j.tell(), "finished 1") {
			t.Errorf("on no record; refused %q", refusals(resp))
		}
	})
}

func TestMendedBBCorruptStages(t *testing.T) {
	ask := `{"request":{"$type":"toolApprovalRequest","requestId":"r","toolCall":{"$type":"functionCall","callId":"1","name":"x"}},"since":"2026-08-01T00:00:00Z"%s}`
	no := `,"answer":{"$type":"toolApprovalResponse","requestId":"r","approved":false,"toolCall":{"$type":"functionCall","callId":"1","name":"x"}}`
	one := func(stage, more string) string {
		return `{"version":1,"id":"t","revision":0,"messages":[],"pending":[{"calls":[{"call":{"$type":"functionCall","callId":"1","name":"x"},"stage":"` + stage + `"` + more + `}]}]}`
	}
	for name, raw := range map[string]string{
		"approved by a rejection": one("approved", `,"asks":[`+sprintf(ask, no)+`]`),
		"done without a result":   one("done", ""),
		"a batch without calls":   `{"version":1,"id":"t","revision":0,"messages":[],"pending":[{"calls":[]}]}`,
		"two requests of one id":  one("open", `,"asks":[`+sprintf(ask, "")+`,`+sprintf(ask, "")+`]`),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := loaded([]byte(raw), "t"); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestMendedCCGoexitOfAHarmlessCall(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		die := NewFunction("die", "", nil, func(context.Context, json.RawMessage) (any, error) { goexit(); return nil, nil })
		a := chat(talk(t, said(call("1", "die", "")), said(text("ok"))), LoopConfig{}, nil, die)
		back := make(chan bool, 1)
		go func() {
			came := false
			defer func() { back <- came }()
			r.try(a, NewThread("t"), content.UserText("go"))
			came = true
		}()
		if !<-back {
			t.Error("the caller's goroutine is gone")
		}
	})
}

func TestMendedDDWrapSiblingsBecauseOfAHostedRequest(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		a := chat(talk(t, said(mcpRequest("r1"), call("1", "look", ""))), LoopConfig{WrapSiblings: true}, nil, c.tool("look"))
		if n := len(r.run(a, NewThread("t"), content.UserText("go")).UserInputRequests()); n != 1 {
			t.Errorf("%d requests: a hosted one takes local calls along (rule 11)", n)
		}
	})
}

func TestMendedEEConversationIDOnAHiddenUpdate(t *testing.T) {
	var c counted
	k := &hiddenID{contents: says(call("1", "pay", ""), call("2", "look", ""))}
	a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
	resp, err := Collect(a.Stream(t.Context(), NewThread("t"), content.UserText("go")))
	if err != nil || resp.ConversationID != "conv" {
		t.Errorf("%v, conversation %q", err, resp.ConversationID)
	}
}

func TestMendedFFRunToEndForEver(t *testing.T) {
	var c counted
	a := chat(talk(t, said(call("1", "pay", ""))), LoopConfig{}, nil, RequireApproval(c.tool("pay")))
	n := 0
	_, err := RunToEnd(t.Context(), a, NewThread("t"), []*content.Message{content.UserText("x")}, func(_ context.Context, q content.InputRequest) (content.InputResponse, error) {
		if n++; n > 50 {
			return nil, errors.New("for ever")
		}
		return &content.TextApprovalResponse{RequestID: q.InputRequestID()}, nil
	})
	if n > 50 {
		t.Error("answers that are all refused, again and again:", err)
	}
}

func goexit() { runtime.Goexit() }

func sprintf(f string, a ...any) string { return fmt.Sprintf(f, a...) }

// hiddenID names the conversation on the piece of its last call only.
type hiddenID struct{ contents []content.Content }

func (h *hiddenID) Respond(context.Context, []*content.Message, *Options) (*Response, error) {
	return nil, errModel
}

func (h *hiddenID) Stream(context.Context, []*content.Message, *Options) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		for i, c := range h.contents {
			u := &Update{Role: content.Assistant, MessageID: "m", Contents: []content.Content{c}}
			if i == len(h.contents)-1 {
				u.ConversationID = "conv"
			}
			if !yield(u, nil) {
				return
			}
		}
	}
}

func TestMendedGGPolledAtOnceInTheSameRun(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		polls := 0
		ask := func() *Suspend {
			return &Suspend{State: json.RawMessage(`1`), Poll: true, Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "x", Text: "?"}}}
		}
		tool := &asking{name: "wait", ask: ask}
		tool.resumed = func(_ json.RawMessage, given []content.InputResponse) (any, error) {
			if polls++; polls < 3 && len(given) == 0 {
				return nil, ask()
			}
			return len(given), nil
		}
		k := talk(t, said(text("w"), call("1", "wait", "")), said(text("ok")))
		a := chat(k, LoopConfig{}, nil, tool)
		th := NewThread("t")
		id := r.run(a, th, content.UserText("x")).UserInputRequests()[0].InputRequestID()
		for range 2 {
			th = reload(t, th)
			resp := r.run(a, th, answers())
			if asked := resp.UserInputRequests(); len(asked) != 1 || asked[0].InputRequestID() != id {
				t.Fatalf("a poll that changes nothing must not change the request:\n%s", tell(resp.Messages))
			}
		}
		r.run(a, th, answers())
		if polls != 3 || !contains(k.last(), "1→0\n") {
			t.Error(polls, k.last())
		}
	})
}

func TestMendedGG2PolledAndAnswered(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		tool := &asking{name: "wait", ask: func() *Suspend {
			return &Suspend{Poll: true, Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "x", Text: "?"}}}
		}}
		k := talk(t, said(text("w"), call("1", "wait", "")), said(text("ok")))
		a := chat(k, LoopConfig{}, nil, tool)
		th := NewThread("t")
		q := r.run(a, th, content.UserText("x")).UserInputRequests()[0].(*content.TextApprovalRequest)
		r.run(a, th, answers(q.CreateApproval("")))
		if !contains(k.last(), "1→\"x true\"\n") {
			t.Error(k.last())
		}
	})
}

// TestFaultHH: what a person wrote reaches the model with its letters escaped (pending.go quote; invoke.go jsonText does not).
func TestMendedHHReasonEscaped(t *testing.T) {
	if got := string(jsonText("a<b & c>d")); got != `"a<b & c>d"` {
		t.Error(got)
	}
}
