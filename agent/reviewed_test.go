package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/resolve"
)

func reviewStorable(t *testing.T, th *Thread) {
	t.Helper()
	raw, err := json.Marshal(th)
	if err != nil {
		t.Errorf("the thread can't be written: %v", err)
		return
	}
	if _, err := loaded(raw, "t"); err != nil {
		t.Errorf("the thread can't be read back: %v", err)
	}
}

// A client's empty result of a declared call bricks the stored thread.
func TestEmptyResultOfTheCaller(t *testing.T) {
	k := talk(t, said(call("1", "ui", ""), call("2", "ui2", "")), said(text("ok")))
	a := chat(k, LoopConfig{}, nil, declaredTool("ui"), declaredTool("ui2"))
	th := NewThread("t")
	mustRun(t, a, th, content.UserText("x"))
	mustRun(t, a, th, content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "1"}))
	reviewStorable(t, th)
}

// What a tool (a remote service behind it) gives as JSON must not make the thread unreadable.
func TestResultsOfToolsThatCantBeStored(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for name, result := range map[string]string{
		"duplicate keys": `{"a":1,"a":2}`, "lone surrogate": `"\ud800"`, "no UTF-8": "\"\xff\"", "deep": deep, "huge number": `1e999`,
	} {
		t.Run(name, func(t *testing.T) {
			look := NewFunction("look", "", nil, func(context.Context, json.RawMessage) (any, error) { return json.RawMessage(result), nil })
			var c counted
			t.Run("in the history", func(t *testing.T) {
				a := chat(talk(t, said(call("1", "look", "")), said(text("ok"))), LoopConfig{}, nil, look)
				th := NewThread("t")
				mustRun(t, a, th, content.UserText("x"))
				reviewStorable(t, th)
			})
			t.Run("beside a request", func(t *testing.T) {
				a := chat(talk(t, said(call("1", "look", ""), call("2", "pay", "")), said(text("ok"))), LoopConfig{}, nil, look, RequireApproval(c.tool("pay")))
				th := NewThread("t")
				q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
				reviewStorable(t, th)
				mustRun(t, a, th, answers(q.CreateApproval("")))
				reviewStorable(t, th)
			})
			t.Run("approved, with a store", func(t *testing.T) {
				ran := 0
				pay := NewFunction("pay", "", nil, func(context.Context, json.RawMessage) (any, error) { ran++; return json.RawMessage(result), nil })
				store := &keeper{}
				a := chat(talk(t, said(call("2", "pay", "")), said(text("ok"))), LoopConfig{}, store, RequireApproval(pay))
				th := NewThread("t")
				q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
				if _, err := a.Run(t.Context(), th, answers(q.CreateApproval(""))); err != nil {
					t.Error("run:", err)
				}
				if _, err := store.Load(t.Context(), "t"); err != nil {
					t.Error("load:", err)
				}
			})
		})
	}
}

// Arguments and names that a model may write.
func TestModelOutputThatCantBeStored(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 150) + "1" + strings.Repeat("}", 150)
	for name, c := range map[string]*content.FunctionCall{
		"no UTF-8 arguments": call("1", "look", "{\"a\":\"\xff\"}"), "deep": call("1", "look", deep), "surrogate": call("1", "look", `{"a":"\ud800"}`),
		"no UTF-8 name": call("1", "lo\xffok", `{}`), "no id": call("", "look", `{}`), "no name": call("1", "", `{}`), "null": call("1", "look", `null`), "blanks": call("1", "look", ` `),
		"bad id": call("a\xff", "look", `{}`),
	} {
		t.Run(name, func(t *testing.T) {
			var n counted
			a := chat(talk(t, said(c, call("p", "pay", "")), said(text("ok"))), LoopConfig{}, nil, n.tool("look"), RequireApproval(n.tool("pay")))
			th := NewThread("t")
			q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
			reviewStorable(t, th)
			mustRun(t, a, th, answers(q.CreateApproval("")))
			reviewStorable(t, th)
		})
	}
}

// Two calls of one id to a tool of the caller: the second can never get its result.
func TestTwoDeclaredCallsOfOneID(t *testing.T) {
	k := talk(t, said(call("1", "ui", `{"n":1}`), call("1", "ui", `{"n":2}`)), said(text("ok")))
	k.keeps = "conv" // waits for ever
	a := chat(k, LoopConfig{}, nil, declaredTool("ui"))
	th := NewThread("t")
	mustRun(t, a, th, content.UserText("x"))
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

// A declared call must get its result although another batch, which waits for a person, has a call of the same id.
func TestDeclaredCallOfAUsedID(t *testing.T) {
	var c counted
	k := talk(t, said(call("1", "pay", "")), said(call("1", "ui", "")), said(text("ok")))
	a := chat(k, LoopConfig{}, nil, declaredTool("ui"), RequireApproval(c.tool("pay")))
	th := NewThread("t")
	mustRun(t, a, th, content.UserText("x"))
	mustRun(t, a, th, content.UserText("y"))
	resp := mustRun(t, a, th, content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "1", Result: json.RawMessage("1")}))
	if len(resp.Refused) > 0 {
		t.Errorf("refused: %v", resp.Refused)
	}
}

// A holder that answers at once, with an edit: the model's own call is left in the history without a result.
func TestHolderEditsAtOnce(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		h := &heldStub{now: hold.Held{Ref: "h1", State: hold.Approved, By: "ann", Arguments: []byte(`{"n":1}`)}}
		var c counted
		k := talk(t, said(call("1", "pay", `{"n":5}`)), said(text("ok")), said(text("again")))
		a := chat(k, LoopConfig{Holder: h, Decider: asks()}, nil, c.tool("pay"))
		th := NewThread("t")
		resp, err := r.try(a, th, content.UserText("x"))
		if err != nil {
			t.Error(err)
			return
		}
		if strings.Contains(tell(resp.Messages), `{"n":5}`) || c.runs[`pay{"n":1}`] != 1 {
			t.Errorf("shown %s ran %v", tell(resp.Messages), c.runs)
		}
	})
}

// What is approved at once when it is asked again runs in the same run: else the caller gets an empty response and nothing to answer.
func TestAskedAgainAndApprovedAtOnce(t *testing.T) {
	d := &changing{verdict: outcomeOf(resolve.Ask, "r")}
	h := pendingStub()
	var c counted
	k := talk(t, said(call("1", "pay", "")), said(text("ok")))
	a := chat(k, LoopConfig{Holder: h, Decider: d}, nil, c.tool("pay"))
	th := NewThread("t")
	mustRun(t, a, th, content.UserText("x"))
	h.later = hold.Held{Ref: "h1", State: hold.Approved, By: "ann"}
	h.now = hold.Held{Ref: "let:2", State: hold.Approved, By: "standing"}
	d.verdict = outcomeOf(resolve.Ask, "r", "r2")
	resp := mustRun(t, a, th)
	if len(resp.UserInputRequests()) == 0 && resp.Text() == "" {
		t.Errorf("an empty response; waiting %v, pending %v, ran %v", th.waiting(), th.Pending(), c.runs)
	}
}

// A request that its holder has no more (a store that was pruned or moved) must not break the thread for good.
func TestHolderForgot(t *testing.T) {
	h := pendingStub()
	var c counted
	k := talk(t, said(call("1", "pay", "")), said(text("ok")), said(text("ok")), said(text("ok")))
	a := chat(k, LoopConfig{Holder: h, Decider: asks(), OnNewMessage: Supersede}, nil, c.tool("pay"))
	th := NewThread("t")
	mustRun(t, a, th, content.UserText("x"))
	h.lookErr = errors.New("not found")
	for range 3 {
		if _, err := a.Run(t.Context(), th, content.UserText("never mind, something else")); err != nil {
			t.Error(err)
		}
	}
}

// An answer that is sent again after the end must not start the flow anew.
func TestFlowStartedByALateAnswer(t *testing.T) {
	reserved := 0
	a := NewFlow("f", FlowConfig{}, func(ctx context.Context, f *Flow) error {
		if err := f.Step(ctx, "reserve", func(context.Context) (any, error) { reserved++; return nil, nil }, nil); err != nil {
			return err
		}
		return f.Approve(ctx, "go", "Go?")
	})
	th := NewThread("t")
	q := mustRun(t, a, th, content.UserText("x")).UserInputRequests()[0].(*content.TextApprovalRequest)
	mustRun(t, a, th, answers(q.CreateApproval("")))
	resp := mustRun(t, a, th, answers(q.CreateApproval(""))) // the client sends it twice
	if reserved != 1 || len(resp.UserInputRequests()) != 0 {
		t.Errorf("reserved %d times, asked again: %d", reserved, len(resp.UserInputRequests()))
	}
}

// Reasoning whose call waits must wait with it: providers refuse a thought without the call that it led to (OpenAI: "reasoning was provided
// without its required following item"; Anthropic: a tool_use that no thinking block precedes).
func TestReasoningStaysWithItsCall(t *testing.T) {
	var c counted
	k := talk(t, said(&content.Reasoning{Text: "hm", Protected: "seal"}, call("1", "pay", "")), said(text("meanwhile")), said(text("ok")))
	a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")))
	th := NewThread("t")
	q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
	mustRun(t, a, th, content.UserText("wait"))
	if strings.Contains(k.last(), "Reasoning") {
		t.Errorf("a thought without its call:\n%s", k.last())
	}
	mustRun(t, a, th, answers(q.CreateApproval("")))
	if !strings.Contains(k.last(), "assistant: *content.Reasoning 1=pay()") {
		t.Errorf("a call without its thought:\n%s", k.last())
	}
}

// A request of a service must not share its id with one of ours.
func TestServiceRequestOfOurID(t *testing.T) {
	var c counted
	k := talk(t, said(mcpRequest("ficc_1"), call("1", "pay", "")), said(text("ok")))
	a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")))
	th := NewThread("t")
	resp := mustRun(t, a, th, content.UserText("x"))
	asked := resp.UserInputRequests()
	if asked[0].InputRequestID() == asked[1].InputRequestID() {
		t.Errorf("both are %q", asked[0].InputRequestID())
	}
	reviewStorable(t, th)
}

// An agent with a store of its own, as a tool: its threads are named by call ids, which providers use again.
func TestNestedAgentWithAStore(t *testing.T) {
	store := &byID{threads: map[string][]byte{}}
	inner := NewChatAgent(NewFunctionInvoking(talk(t, said(text("one")), said(text("two"))), LoopConfig{}), ChatAgentConfig{Name: "inner", Store: store})
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

// The inner model fails once after the inner call has run on an approval. The payment is made; it must not be told as failed and asked anew.
func TestNestedModelFailsAfterTheCall(t *testing.T) {
	var c counted
	inner := chat(talk(t, said(call("i", "pay", "")), fails, said(text("paid"))), LoopConfig{}, nil, RequireApproval(c.tool("pay")))
	k := talk(t, said(call("o", "test", `{"input":"pay"}`)), said(text("ok")), said(text("ok")))
	outer := chat(k, LoopConfig{}, nil, AsTool(inner, NestedConfig{}))
	th := NewThread("t")
	q := approvalOf(t, mustRun(t, outer, th, content.UserText("x")), 0)
	_, err := outer.Run(t.Context(), th, answers(q.CreateApproval("")))
	if c.runs["pay"] != 1 {
		t.Fatal(c.runs)
	}
	if err == nil && strings.Contains(k.last(), textFailed) {
		t.Errorf("the call ran, and the model is told that it failed:\n%s", k.last())
	}
}

// What is held back while a conversation waits and that the service refuses must not block the thread for good.
func TestHeldBackMessageThatTheServiceRefuses(t *testing.T) {
	var c counted
	refuse := func(ms []*content.Message, _ *Options) ([]*content.Message, error) {
		for _, m := range ms {
			if strings.Contains(m.Text(), "too big") {
				return nil, errors.New("400: the input is too big")
			}
		}
		return []*content.Message{content.AssistantText("ok")}, nil
	}
	k := talk(t, said(call("1", "pay", "")), refuse, refuse, refuse, refuse)
	k.keeps = "conv"
	a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")))
	th := NewThread("t")
	q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
	mustRun(t, a, th, content.UserText("too big"))
	_, err := a.Run(t.Context(), th, answers(q.CreateApproval("")))
	for range 2 {
		_, err = a.Run(t.Context(), th, content.UserText("hello?"))
	}
	if err != nil {
		t.Errorf("no run of this thread goes through any more: %v", err)
	}
}

// An approval whose run could not begin (a store that was away) is used a week after its requirement ended.
func TestApprovalOutlivesItsDeadline(t *testing.T) {
	clk := newClock()
	v := required(outcomeOf(resolve.Ask, "r"), time.Hour)
	var c counted
	store := &keeper{}
	k := talk(t, said(call("1", "pay", "")), said(text("ok")))
	a := chat(k, LoopConfig{Decider: &changing{verdict: v}, Now: clk.now}, store, c.tool("pay"))
	th := NewThread("t")
	q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
	store.failAt, store.err = 1, errors.New("disk full")
	if _, err := a.Run(t.Context(), th, answers(q.CreateApproval(""))); err == nil {
		t.Fatal("saved")
	}
	clk.at = clk.at.Add(7 * 24 * time.Hour)
	_, err := a.Run(t.Context(), th, content.UserText("good morning"))
	if c.runs["pay"] != 0 {
		t.Errorf("ran on an approval of last week that was good for an hour (%v)", err)
	}
}

// A key in other letters: the decision reads one value, a Go function the other.
func TestKeysInOtherLetters(t *testing.T) {
	d := decideFunc(func(_ Tool, c content.ToolCall) (hold.Verdict, error) {
		var args map[string]int
		if err := json.Unmarshal(c.Args(), &args); err != nil || args["amount"] > 100 {
			return outcomeOf(resolve.Ask, "over 100"), err
		}
		return outcomeOf(resolve.Allow), nil
	})
	paid := 0
	pay := NewFunction("pay", "", json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer"}},"required":["amount"],"additionalProperties":false}`),
		func(_ context.Context, args json.RawMessage) (any, error) {
			var in struct{ Amount int }
			err := json.Unmarshal(args, &in)
			paid = in.Amount
			return nil, err
		})
	a := chat(talk(t, said(call("1", "pay", `{"amount":1,"Amount":1000}`)), said(text("ok"))), LoopConfig{Decider: d}, nil, pay)
	mustRun(t, a, NewThread("t"), content.UserText("x"))
	if paid > 100 {
		t.Errorf("paid %d, decided about 1; the schema allows no such member", paid)
	}
}

// strictHolder keeps to the contract of Holder: one request for a key, one run for a request, the same answer for the same key.
type strictHolder struct {
	approved map[string]bool   // by key, which is the ref too
	taken    map[string]string // claim keys by ref
}

func (h *strictHolder) Open(_ context.Context, key string, _ hold.Verdict) (hold.Held, error) {
	return h.Look(context.Background(), key)
}

func (h *strictHolder) Look(_ context.Context, ref string) (hold.Held, error) {
	if h.approved[ref] {
		return hold.Held{Ref: ref, State: hold.Approved, By: "ann"}, nil
	}
	return hold.Held{Ref: ref, State: hold.Pending}, nil
}

func (h *strictHolder) Claim(_ context.Context, ref, key string, _ hold.Verdict) error {
	if by, ok := h.taken[ref]; ok && by != key {
		return hold.ErrNotClaimed
	}
	h.taken[ref] = key
	return nil
}

func (h *strictHolder) Cancel(context.Context, string, string) error { return nil }

// With ids that a configuration makes of call ids alone, one approval lets the same call of another thread run: the key is no thread's.
func TestHolderKeyOfAnotherThread(t *testing.T) {
	h := &strictHolder{map[string]bool{}, map[string]string{}}
	var c counted
	for i := range 2 {
		k := talk(t, said(call("call_0", "pay", `{"n":5}`)), said(text("ok")))
		a := chat(k, LoopConfig{Holder: h, Decider: asks()}, &keeper{}, c.tool("pay"))
		th := NewThread(fmt.Sprint("thread", i))
		mustRun(t, a, th, content.UserText("x"))
		if i == 0 {
			for _, p := range th.Pending() {
				h.approved[p.Ref] = true
			}
			mustRun(t, a, th)
		}
	}
	if n := c.runs[`pay{"n":5}`]; n != 1 {
		t.Errorf("one approval, %d runs", n)
	}
}
