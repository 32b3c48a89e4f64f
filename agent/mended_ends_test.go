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

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

func TestEventsOfEnds(t *testing.T) {
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
		d := decideFunc(func(_ Tool, call content.ToolCall) (hold.Verdict, error) {
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
		d := decideFunc(func(Tool, content.ToolCall) (hold.Verdict, error) {
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

func TestCorruptStages(t *testing.T) {
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

func TestGoexitOfAHarmlessCall(t *testing.T) {
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

func TestWrapSiblingsBecauseOfAHostedRequest(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		a := chat(talk(t, said(mcpRequest("r1"), call("1", "look", ""))), LoopConfig{WrapSiblings: true}, nil, c.tool("look"))
		if n := len(r.run(a, NewThread("t"), content.UserText("go")).UserInputRequests()); n != 1 {
			t.Errorf("%d requests: a hosted one takes local calls along (rule 11)", n)
		}
	})
}

func TestConversationIDOnAHiddenUpdate(t *testing.T) {
	var c counted
	k := &hiddenID{contents: says(call("1", "pay", ""), call("2", "look", ""))}
	a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
	resp, err := Collect(a.Stream(t.Context(), NewThread("t"), content.UserText("go")))
	if err != nil || resp.ConversationID != "conv" {
		t.Errorf("%v, conversation %q", err, resp.ConversationID)
	}
}

func TestRunToEndForEver(t *testing.T) {
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

func TestPolledAtOnceInTheSameRun(t *testing.T) {
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

func TestPolledAndAnswered(t *testing.T) {
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
func TestReasonEscaped(t *testing.T) {
	if got := string(jsonText("a<b & c>d")); got != `"a<b & c>d"` {
		t.Error(got)
	}
}

func TestResultWithoutAValueIsStored(t *testing.T) {
	a := chat(talk(t, said(call("1", "theirs", ""), call("2", "theirs", "")), said(text("ok"))), LoopConfig{}, nil, declaredTool("theirs"))
	th := NewThread("t")
	mustRun(t, a, th, content.UserText("x"))
	mustRun(t, a, th, content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "1"}))
	th = reload(t, th)
	mustRun(t, a, th, content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "2"}))
}

// Arguments come back to the letter, whatever letters they hold.
func TestArgumentsToTheLetter(t *testing.T) {
	var c counted
	a := chat(talk(t, said(call("1", "pay", `{"a":"<&>"}`)), said(text("ok"))), LoopConfig{}, nil, RequireApproval(c.tool("pay")))
	th := NewThread("t")
	q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
	mustRun(t, a, reload(t, th), answers(q.CreateApproval("")))
	if c.runs[`pay{"a":"<&>"}`] != 1 {
		t.Error(c.runs)
	}
}

func TestNestedWaitsForAResult(t *testing.T) {
	inner := chat(talk(t, said(call("i", "theirs", "")), said(text("ok"))), LoopConfig{}, nil, declaredTool("theirs"))
	k := talk(t, said(call("o", "inner", `{"input":"x"}`)), said(text("done")))
	resp := mustRun(t, chat(k, LoopConfig{}, nil, AsTool(inner, NestedConfig{Name: "inner"})), NewThread("t"), content.UserText("x"))
	if contains(tell(resp.Messages), "o→\"\"") {
		t.Errorf("told as finished:\n%s", tell(resp.Messages))
	}
}

// Flow.begin appends to t.Messages before what can fail: a run that is repeated has its messages twice.
func TestFlowMessagesTwice(t *testing.T) {
	j := &journal{failAt: func(e Event) bool { return e.Type == "refused" }}
	a := flowOf(FlowConfig{Audit: j.take}, func(ctx ctxOf, f *Flow) error { return f.Approve(ctx, "k", "?") })
	th := NewThread("t")
	mustRun(t, a, th, content.UserText("x"))
	in := answers(&content.TextApprovalResponse{RequestID: "no"}, text("hi"))
	if _, err := a.Run(t.Context(), th, in); !errors.Is(err, errAudit) {
		t.Fatal(err)
	}
	j.failAt = nil
	mustRun(t, a, th, in)
	expect(t, "history", tell(th.Messages), "user: \"x\"\nuser: \"hi\"\n")
}

// Flow.Ask keeps the question before it is recorded: when the record fails the question is open and on no record.
func TestFlowAsksWithoutARecord(t *testing.T) {
	j := &journal{failAt: func(e Event) bool { return e.Type == "requested" }}
	a := flowOf(FlowConfig{Audit: j.take}, func(ctx ctxOf, f *Flow) error { return f.Approve(ctx, "k", "?") })
	th := NewThread("t")
	if _, err := a.Run(t.Context(), th, content.UserText("x")); !errors.Is(err, errAudit) {
		t.Fatal(err)
	}
	j.failAt = nil
	mustRun(t, a, th)
	if !contains(j.tell(), "requested k") {
		t.Errorf("%d open, journal %q", len(th.Pending()), j.tell())
	}
}

// A flow that returns nil with a question open drops it: the late answer is "unknown", not "closed" (Flow.end).
func TestFlowEndsWithAQuestionOpen(t *testing.T) {
	a := flowOf(FlowConfig{}, func(ctx ctxOf, f *Flow) error {
		_, _ = f.Ask(ctx, "k", &content.TextApprovalRequest{Text: "?"})
		return nil
	})
	b := flowOf(FlowConfig{}, func(ctx ctxOf, f *Flow) error {
		if len(f.Later()) > 0 {
			return nil
		}
		return f.Approve(ctx, "k", "?")
	})
	_ = a
	th := NewThread("t")
	q := mustRun(t, b, th, content.UserText("x")).UserInputRequests()[0].(*content.TextApprovalRequest)
	mustRun(t, b, th, content.UserText("never mind"))
	resp := mustRun(t, b, th, answers(q.CreateApproval("")))
	expect(t, "refused", refusals(resp), "q-k closed_request")
}

// A reader that stops at the request (as many do) answers it: run.takeBack (bound.go) drops the batch without close() and without an
// event, so the answer is "unknown" and the journal has a request without an end.
func TestRequestSeenInAStreamLeftAtIt(t *testing.T) {
	var c counted
	j := &journal{}
	a := chat(talk(t, said(text("a"), call("1", "pay", "")), said(text("ok"))), LoopConfig{Audit: j.take}, nil, RequireApproval(c.tool("pay")))
	th := NewThread("t")
	var q *content.ToolApprovalRequest
	for u := range a.Stream(t.Context(), th, content.UserText("pay")) {
		if len(u.Contents) == 1 {
			if asked, ok := u.Contents[0].(*content.ToolApprovalRequest); ok {
				q = asked
				break
			}
		}
	}
	n := len(j.events)
	resp, err := a.Run(t.Context(), th, answers(q.CreateApproval("")))
	if err != nil || c.runs["pay"] != 1 && refusals(resp) != "ficc_1 closed_request" {
		t.Errorf("%v, refused %q", err, refusals(resp))
	}
	if n < 2 {
		t.Errorf("no end on record:\n%s", j.tell())
	}
}

// An empty message (no contents) is given to the model and kept: providers refuse it. input.go readInput lets it through.
func TestEmptyMessage(t *testing.T) {
	k := talk(t, said(text("ok")))
	mustRun(t, chat(k, LoopConfig{}, nil), NewThread("t"), content.UserText("x"), content.NewMessage(content.User))
	expect(t, "sent", k.last(), "user: \"x\"\n")
}

// One "denied" too many: claim records it, and clearService again (bound_run.go).
func TestHostedClaimRefusedTwice(t *testing.T) {
	h, j := pendingStub(), &journal{}
	h.claimErr = hold.ErrNotClaimed
	a := chat(talk(t, said(mcpRequest("r1")), said(text("ok"))), LoopConfig{Holder: h, Decider: asks(), Audit: j.take}, nil)
	th := NewThread("t")
	mustRun(t, a, th, content.UserText("x"))
	h.later.State = hold.Approved
	mustRun(t, a, th)
	n := 0
	for _, e := range j.events {
		if e.Type == "denied" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d denials:\n%s", n, j.tell())
	}
}

// An approval kept by the holder for a call that the caller runs: the permit is
// never consumed (bound_run.go clear, case callerRuns before claim).
func TestHeldCallOfTheCallersIsNotClaimed(t *testing.T) {
	h := pendingStub()
	a := chat(talk(t, said(text("?"), call("1", "theirs", ""))), LoopConfig{Holder: h, Decider: asks()}, nil, declaredTool("theirs"))
	th := NewThread("t")
	mustRun(t, a, th, content.UserText("x"))
	h.later.State = hold.Approved
	resp := mustRun(t, a, th)
	if !contains(tell(resp.Messages), "1=theirs()") || h.log[len(h.log)-1] != "claim h1" {
		t.Errorf("handed over without a claim: %v\n%s", h.log, tell(resp.Messages))
	}
}
