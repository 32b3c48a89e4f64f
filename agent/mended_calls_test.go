package agent

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

func TestSameRequestIDTwice(t *testing.T) {
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

func TestSameCallIDTwiceInATurn(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		a := chat(talk(t, said(call("1", "pay", `{"n":1}`), call("1", "pay", `{"n":2}`)), said(text("ok"))), LoopConfig{}, nil, RequireApproval(c.tool("pay")))
		asked := r.run(a, NewThread("t"), content.UserText("go")).UserInputRequests()
		if len(asked) != 2 || asked[0].InputRequestID() == asked[1].InputRequestID() {
			t.Errorf("%v", asked)
		}
	})
}

func TestReusedCallIDHidesHistory(t *testing.T) {
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

func TestResultForUnknownCall(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		k := talk(t, said(text("ok")))
		k.keeps = "conv"
		a := chat(k, LoopConfig{}, nil)
		resp := r.run(a, NewThread("t"), content.UserText("hi"), content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "no", Result: json.RawMessage(`1`)}))
		expect(t, "refused", refusals(resp), "no unknown_request")
		expect(t, "sent", k.last(), "user: \"hi\"\n")
	})
}

func TestLateAnswerAsksTheModel(t *testing.T) {
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

func TestResultLostOnAuditErrorAfterwards(t *testing.T) {
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

func TestConcurrentResultLostInMemory(t *testing.T) {
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

func TestCancelledAfterTheCall(t *testing.T) {
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

func TestFlowOnForeignThreadPanics(t *testing.T) {
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

func TestFlowAnswerActsBeforeAudit(t *testing.T) {
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

func TestFlowRefusalsAreNotAudited(t *testing.T) {
	j := &journal{}
	a := NewFlow("f", FlowConfig{Audit: j.take}, func(ctx context.Context, f *Flow) error { return f.Approve(ctx, "k", "?") })
	th := NewThread("t")
	mustRun(t, a, th, content.UserText("hi"))
	mustRun(t, a, th, answers(&content.TextApprovalResponse{RequestID: "no"}))
	if !contains(j.tell(), "refused") {
		t.Error(j.tell())
	}
}

func TestThreadsThatCantBeStored(t *testing.T) {
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

func TestCallerChangesTheRequestInPlace(t *testing.T) {
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

func TestCallerChangesADeclaredCallInPlace(t *testing.T) {
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

func TestStreamLeftEarlyKeepsRequestWithoutHistory(t *testing.T) {
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

func TestFinishedWithOpenAsksClosesThem(t *testing.T) {
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
