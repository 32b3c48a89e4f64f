package agent

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

func TestNewMessageKeepsOpen(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := talk(
			t,
			said(text("a?"), call("1", "pay", `{"n":1}`)),
			said(text("b?"), call("2", "pay", `{"n":2}`)),
			said(text("sure")),
			said(text("both")),
		)
		a := c.asked(k, LoopConfig{})
		th := NewThread("t")
		q1 := approvalOf(t, t.say(a, th, "one"), 0)
		resp := t.say(a, th, "two")
		if len(resp.UserInputRequests()) != 2 || len(th.Pending()) != 2 {
			t.Fatalf("both must be shown:\n%s", tell(resp.Messages))
		}
		expect(t, "sent", k.last(), "user: \"one\"\nassistant: \"a?\"\nuser: \"two\"\n")
		th = reload(t, th)
		resp = t.say(a, th, "three")
		if len(resp.UserInputRequests()) != 2 {
			t.Fatal(tell(resp.Messages))
		}
		q2 := th.Pending()[1].Request.(*content.ToolApprovalRequest)
		resp = t.yes(a, th, q2)
		if c.runs[`pay{"n":2}`] != 1 || len(resp.UserInputRequests()) != 1 || len(k.seen) != 3 {
			t.Fatalf("runs %v\n%s", c.runs, tell(resp.Messages))
		}
		t.run(a, th, answers(q1.CreateRejection("")))
		expect(
			t,
			"at the end",
			k.last(),
			"user: \"one\"\nassistant: \"a?\"\nuser: \"two\"\nassistant: \"b?\"\nuser: \"three\"\nassistant: \"sure\"\n"+
				"assistant: 2=pay({\"n\":2})\ntool: 2→\"did pay\"\nassistant: 1=pay({\"n\":1})\ntool: 1→\"Tool call "+
				"invocation rejected.\"\n",
		)
	})
}

func TestNewMessageSupersedes(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		j := &journal{}
		k := talk(
			t,
			said(call("1", "pay", ""), call("2", "theirs", ""), call("3", "look", ""), call("4", "send", "")),
			said(text("fine")),
			said(text("late")),
		)
		a := chat(
			k,
			LoopConfig{OnNewMessage: Supersede, Audit: j.take},
			nil,
			RequireApproval(c.tool("pay")),
			declaredTool("theirs"),
			c.tool("look"),
			RequireApproval(c.tool("send")),
		)
		th := NewThread("t")
		resp := t.say(a, th, "go")
		q, send := approvalOf(t, resp, 0), approvalOf(t, resp, 1)
		th = reload(t, th)
		resp = t.run(a, th, answers(send.CreateApproval(""), text("something else")))
		gone := `"` + textSuperseded + `"`
		want := "assistant: 1=pay() 2=theirs() 3=look() 4=send()\ntool: 1→" + gone + " 2→" + gone +
			" 3→\"did look\" 4→\"did send\"\n"
		expect(t, "told", tell(resp.Messages), want+"assistant: \"fine\"\n")
		expect(t, "sent", tell(coalesced(k.seen[1])), "user: \"go\"\n"+want+"user: \"something else\"\n")
		if len(th.Pending()) != 0 || c.runs["pay"] != 0 || c.runs["send"] != 1 {
			t.Fatalf("pending %v, runs %v", th.Pending(), c.runs)
		}
		resp = t.run(a, th, answers(q.CreateApproval(""), text("sorry")))
		expect(t, "refused", refusals(resp), "ficc_1 closed_request")
		if !strings.Contains(j.tell(), "superseded 1 ficc_1\n") {
			t.Error(j.tell())
		}
	})
}

// TestAnchors is rules 32 and 33, and what is kept in the thread of it.
func TestAnchors(t *testing.T) {
	block := "assistant: 1=pay({\"n\":1}) 2=pay({\"n\":2})\ntool: 1→\"did pay\" 2→\"did pay\"\n"
	for name, tt := range map[string]struct {
		in   func(y1, y2 content.Content) []*content.Message
		want string
	}{
		"answers alone": {func(y1, y2 content.Content) []*content.Message {
			return []*content.Message{answers(y1, y2)}
		}, block},
		"two messages": {func(y1, y2 content.Content) []*content.Message {
			return []*content.Message{answers(y1), answers(y2)}
		}, block},
		"text after": {func(y1, y2 content.Content) []*content.Message {
			return []*content.Message{answers(y1, y2, text("x"))}
		}, block + "user: \"x\"\n"},
		"text before": {func(y1, y2 content.Content) []*content.Message {
			return []*content.Message{answers(text("x"), y1, y2)}
		}, block + "user: \"x\"\n"},
		"a message after": {func(y1, y2 content.Content) []*content.Message {
			return []*content.Message{answers(y1, y2), content.UserText("x")}
		}, block + "user: \"x\"\n"},
		"a message before": {func(y1, y2 content.Content) []*content.Message {
			return []*content.Message{content.UserText("x"), answers(y2, y1)}
		}, "user: \"x\"\n" + block},
		"a message between": {func(y1, y2 content.Content) []*content.Message {
			return []*content.Message{answers(y1), content.UserText("x"), answers(y2)}
		}, "user: \"x\"\n" + block},
		"texts in both": {func(y1, y2 content.Content) []*content.Message {
			return []*content.Message{answers(y1, text("x")), answers(text("y"), y2)}
		}, "user: \"x\"\n" + block + "user: \"y\"\n"},
		"before and after": {func(y1, y2 content.Content) []*content.Message {
			return []*content.Message{content.UserText("x"), answers(y1, y2), content.UserText("y")}
		}, "user: \"x\"\n" + block + "user: \"y\"\n"},
	} {
		bothWaysOf(t, name, func(t runner) {
			var c counted
			k := talk(
				t,
				said(text("?"), call("1", "pay", `{"n":1}`), call("2", "pay", `{"n":2}`)),
				said(text("ok")),
			)
			l := NewFunctionInvoking(k, LoopConfig{RequestID: plainIDs})
			opt := &Options{Tools: []Tool{RequireApproval(c.tool("pay"))}, Thread: NewThread("t")}
			resp, err := t.client(l, []*content.Message{content.UserText("pay")}, opt)
			must.Do(t, err)
			y1, y2 := approvalOf(t, resp, 0).CreateApproval(""), approvalOf(t, resp, 1).CreateApproval("")
			in := append([]*content.Message{content.UserText("pay")}, resp.Messages...)
			if _, err = t.client(l, append(in, tt.in(y1, y2)...), opt); err != nil {
				t.Fatal(err)
			}
			expect(t, "sent", k.last(), "user: \"pay\"\nassistant: \"?\"\n"+tt.want)
		})
	}
}

// TestDotNetOrder is rule 23 as a switch.
func TestDotNetOrder(t *testing.T) {
	for dotNet, calls := range map[bool]string{
		false: "assistant: 1=pay({\"n\":1}) 2=pay({\"n\":2}) 3=pay({\"n\":3})\n",
		true:  "assistant: 2=pay({\"n\":2}) 1=pay({\"n\":1}) 3=pay({\"n\":3})\n",
	} {
		bothWays(t, func(t runner) {
			var c counted
			k := talk(
				t,
				said(call("1", "pay", `{"n":1}`), call("2", "pay", `{"n":2}`), call("3", "pay", `{"n":3}`)),
				said(text("ok")),
			)
			a := c.asked(k, LoopConfig{DotNetOrder: dotNet})
			th := NewThread("t")
			resp := t.say(a, th, "pay")
			t.run(
				a,
				th,
				answers(
					approvalOf(t, resp, 0).CreateApproval(""),
					approvalOf(t, resp, 1).CreateRejection(""),
					approvalOf(t, resp, 2).CreateApproval(""),
				),
			)
			got := k.last()
			if !strings.Contains(got, calls) {
				t.Errorf("calls:\n%s\nwant\n%s", got, calls)
			}
			if dotNet &&
				!strings.Contains(
					got,
					"tool: 2→\"Tool call invocation rejected.\"\ntool: 1→\"did pay\" 3→\"did pay\"\n",
				) {
				t.Errorf("results:\n%s", got)
			}
		})
	}
}

func TestWrapSiblings(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := talk(
			t,
			said(call("1", "pay", ""), call("2", "look", ""), call("3", "nothing", "")),
			said(text("ok")),
		)
		a := chat(k, LoopConfig{WrapSiblings: true}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
		th := NewThread("t")
		resp := t.say(a, th, "x")
		q1, q2 := approvalOf(t, resp, 0), approvalOf(t, resp, 1)
		if q1.NoConfirmation || !q2.NoConfirmation || len(c.runs) > 0 {
			t.Fatalf("%v %v %v", q1.NoConfirmation, q2.NoConfirmation, c.runs)
		}
		th = reload(t, th)
		t.run(a, th, answers(q1.CreateRejection("")))
		t.yes(a, th, q2)
		if len(c.runs) != 1 || c.runs["look"] != 1 {
			t.Error(c.runs)
		}
		expect(
			t,
			"sent",
			tell(coalesced(k.seen[1])),
			"user: \"x\"\nassistant: 1=pay() 2=look() 3=nothing()\n"+
				"tool: 1→\"Tool call invocation rejected.\" 2→\"did look\" 3→\"Error: Requested function "+
				"\\\"nothing\\\" not found.\"\n",
		)
	})
}

func TestNothingToAskNothingWrapped(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := talk(t, said(call("1", "look", ""), call("2", "nothing", "")), said(text("ok")))
		a := chat(k, LoopConfig{WrapSiblings: true}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
		resp := t.run(a, NewThread("t"), content.UserText("x"))
		expect(t, "told", tell(resp.Messages), "assistant: 1=look() 2=nothing()\n"+
			"tool: 1→\"did look\" 2→\"Error: Requested function \\\"nothing\\\" not found.\"\nassistant: \"ok\"\n")
	})
}

// TestCallersThingsStay compares messages and options before and after.
func TestCallersThingsStay(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		add := NewFunction("add", "", nil, func(ctx context.Context, _ json.RawMessage) (any, error) {
			inv := InvocationOf(ctx)
			inv.Options.Tools = append(inv.Options.Tools, c.tool("more"))
			inv.Options.Model = "other"
			inv.Call.Name = "changed"
			return nil, nil
		})
		k := talk(t, said(text("?"), call("1", "pay", ""), call("2", "add", "")), said(text("ok")))
		l := NewFunctionInvoking(k, LoopConfig{RequestID: plainIDs})
		fresh := func() []*content.Message {
			return []*content.Message{
				content.UserText("x"),
				content.NewMessage(content.Assistant, call("0", "look", "")),
				content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "0"}),
				content.UserText("y"),
			}
		}
		tools := []Tool{RequireApproval(c.tool("pay")), add}
		th := NewThread("t")
		opt := &Options{
			Tools:  tools,
			Thread: th,
			Extra:  map[string]any{"a": 1},
		}
		in := fresh()
		resp := must.Get(t.client(l, in, opt))(t)
		if !reflect.DeepEqual(in, fresh()) {
			t.Error("the messages were changed")
		}
		q := approvalOf(t, resp, 0)
		yes := q.CreateApproval("")
		reply := []*content.Message{answers(yes, text("z"))}
		whole := append(in, append(resp.Messages, reply...)...)
		told := tell(whole)
		must.Get(t.client(l, whole, opt))(t)
		if tell(whole) != told ||
			!reflect.DeepEqual(reply, []*content.Message{answers(q.CreateApproval(""), text("z"))}) {
			t.Error("the messages were changed")
		}
		if len(opt.Tools) != 2 || opt.Model != "" || len(opt.Extra) != 1 || opt.Thread != th ||
			opt.ConversationID != "" ||
			opt.Fresh != 0 {
			t.Errorf("the options were changed: %+v", opt)
		}
		if got := k.options[1]; len(got.Tools) < 2 {
			t.Errorf("the model was offered %d tools", len(got.Tools))
		}
	})
}

func TestModelErrorLosesNothing(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := talk(t, fails, said(call("1", "pay", ""), call("2", "look", "")), fails, fails, said(text("ok")))
		a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
		th := NewThread("t")
		if _, err := t.try(a, th, content.UserText("x")); !errors.Is(err, errModel) {
			t.Fatal(err)
		}
		if len(th.Messages) != 0 || len(th.Pending()) != 0 {
			t.Fatalf("an error left %s and %v", tell(th.Messages), th.Pending())
		}
		q := approvalOf(t, t.say(a, th, "x"), 0)
		if _, err := t.try(a, th, answers(q.CreateApproval(""))); !errors.Is(err, errModel) {
			t.Fatal(err)
		}
		th = reload(t, th)
		resp, err := t.try(a, th, answers(q.CreateApproval("")))
		if !errors.Is(err, errModel) {
			t.Fatal(err)
		}
		if resp != nil && refusals(resp) != "" && refusals(resp) != "ficc_1 closed_request" {
			t.Error(refusals(resp))
		}
		resp = t.run(a, th)
		want := "assistant: 1=pay() 2=look()\ntool: 1→\"did pay\" 2→\"did look\"\n"
		expect(t, "told", tell(resp.Messages), want+"assistant: \"ok\"\n")
		expect(t, "kept", tell(th.Messages), "user: \"x\"\n"+want+"assistant: \"ok\"\n")
		if c.runs["pay"] != 1 || c.runs["look"] != 1 {
			t.Error(c.runs)
		}
	})
}

func TestModelErrorBetweenHarmlessTurns(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := talk(t, said(call("1", "look", "")), fails, said(text("ok")))
		a := chat(k, LoopConfig{}, nil, c.tool("look"))
		th := NewThread("t")
		if _, err := t.try(a, th, content.UserText("x")); !errors.Is(err, errModel) {
			t.Fatal(err)
		}
		if len(th.Messages) != 0 {
			t.Error("half a run was kept:", tell(th.Messages))
		}
		t.say(a, th, "x")
	})
}

// TestStreamLeftEarly leaves the stream after each of its updates and
// goes on: no approved call runs twice.
func TestStreamLeftEarly(t *testing.T) {
	for leave := 1; leave < 12; leave++ {
		var c counted
		k := talk(
			t,
			said(text("?"), call("1", "pay", "")),
			said(text("a"), text("b"), call("2", "look", "")),
			said(text("c")),
			said(text("again")),
			said(text("again")),
			said(text("again")),
		)
		a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
		th, q := runner{T: t}.asks(a, "x")
		n := 0
		for _, err := range a.Stream(t.Context(), th, answers(q.CreateApproval(""))) {
			must.Do(t, err)
			if n++; n == leave {
				break
			}
		}

		th = reload(t, th)
		mustRun(t, a, th, content.UserText("go on"))
		if c.runs["pay"] != 1 || len(th.Pending()) != 0 {
			t.Errorf("left after %d updates: runs %v, pending %v", leave, c.runs, th.Pending())
		}
		if !strings.Contains(tell(th.Messages), "assistant: 1=pay()\ntool: 1→\"did pay\"\n") {
			t.Errorf("left after %d updates: the result is lost:\n%s", leave, tell(th.Messages))
		}
	}
}

// TestRefusedIsStreamed leaves at the refusals.
func TestRefusedIsStreamed(t *testing.T) {
	var c counted
	a := chat(talk(t, said(text("?"), call("1", "pay", ""))), LoopConfig{}, nil, RequireApproval(c.tool("pay")))
	th := runner{T: t}.begin(a, "x")
	n := 0
	for u, err := range a.Stream(t.Context(), th, answers(&content.ToolApprovalResponse{RequestID: "no"})) {
		if err != nil || len(u.Refused) != 1 {
			t.Fatal(err, u)
		}
		n++
		break
	}

	result := content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "1"})
	for u, err := range a.Stream(t.Context(), th, result) {
		if err != nil || len(u.Refused) != 1 {
			t.Fatal(err, u)
		}
		n++
		break
	}

	if n != 2 || len(th.Pending()) != 1 {
		t.Error(n, th.Pending())
	}
}

// A reader that stops at the request (as many do) answers it:
// run.takeBack (bound.go) drops the batch without close() and without
// an event, so the answer is "unknown" and the journal has a request
// without an end.
func TestRequestSeenInAStreamLeftAtIt(t *testing.T) {
	var c counted
	j := &journal{}
	a := chat(
		talk(t, said(text("a"), call("1", "pay", "")), said(text("ok"))),
		LoopConfig{Audit: j.take},
		nil,
		RequireApproval(c.tool("pay")),
	)
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

	if len(th.Pending()) == 1 && len(th.Messages) == 0 {
		t.Error("the request stays, and what it was asked for is not in the history")
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

func TestReusedCallIDHidesHistory(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := talk(
			t,
			said(call("1", "look", "")),
			said(text("seen")),
			said(call("1", "pay", "")),
			said(text("yes?")),
		)
		a := chat(k, LoopConfig{}, nil, c.tool("look"), RequireApproval(c.tool("pay")))
		th := t.begin(a, "look")
		t.say(a, th, "pay")
		t.say(a, th, "still there?")
		expect(
			t,
			"sent",
			k.last(),
			"user: \"look\"\nassistant: 1=look()\ntool: 1→\"did look\"\nassistant: \"seen\"\nuser: \"pay\"\nuser: "+
				"\"still there?\"\n",
		)
	})
}

func TestEmptyRunAsksTheModelAgain(t *testing.T) {
	for _, p := range []NewMessagePolicy{KeepOpen, Supersede} {
		bothWays(t, func(t runner) {
			var c counted
			k := talk(t, said(call("1", "pay", "")), said(text("asked again")))
			a := c.asked(k, LoopConfig{OnNewMessage: p})
			th := t.begin(a, "pay")
			resp := t.run(a, th)
			if len(k.seen) != 1 || len(th.Pending()) != 1 || len(resp.UserInputRequests()) != 1 {
				t.Errorf(
					"policy %d: a run without messages: %d model turns, %d pending",
					p,
					len(k.seen),
					len(th.Pending()),
				)
			}
		})
	}
}

func TestTwoMessagesOfOneTurn(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := talk(
			t,
			saidAll(
				content.NewMessage(content.Assistant, call("1", "look", "")),
				content.AssistantText("one moment"),
			),
			said(text("ok")),
		)
		a := chat(k, LoopConfig{}, nil, c.tool("look"))
		if _, err := t.try(a, NewThread("t"), content.UserText("go")); err != nil {
			t.Error(err)
		}
	})
}

func TestNoThreadHarmlessBesideDeclared(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := talk(t, said(call("1", "look", ""), call("2", "theirs", "")), said(text("ok")))
		l := NewFunctionInvoking(k, LoopConfig{})
		opt := &Options{Tools: []Tool{c.tool("look"), declaredTool("theirs")}}
		in := []*content.Message{content.UserText("go")}
		resp, err := t.client(l, in, opt)
		if err != nil {
			if len(c.runs) > 0 {
				t.Fatal("ran before the error")
			}
			return
		}

		in = append(
			append(in, resp.Messages...),
			content.NewMessage(
				content.ToolRole,
				&content.FunctionResult{CallID: "2", Result: json.RawMessage(`"x"`)},
			),
		)
		must.Get(t.client(l, in, opt))(t)
		if got := k.last(); c.runs["look"] > 0 && !strings.Contains(got, "1→") {
			t.Errorf("look ran, and neither caller nor model ever hears of it:\n%s", got)
		}
	})
}

func TestLateAnswerAsksTheModel(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := talk(t, said(call("1", "pay", "")), said(text("ok")), said(text("what?")))
		a := c.asked(k, LoopConfig{})
		th, q := t.asks(a, "pay")
		t.yes(a, th, q)
		resp := t.yes(a, th, q)
		expect(t, "refused", refusals(resp), "ficc_1 closed_request")
		if len(k.seen) != 2 {
			t.Errorf("the model was asked again with nothing new:\n%s", k.last())
		}
	})
}

// Reasoning whose call waits must wait with it: providers refuse a
// thought without the call that it led to (OpenAI: "reasoning was
// provided without its required following item"; Anthropic: a tool_use
// that no thinking block precedes).
func TestReasoningStaysWithItsCall(t *testing.T) {
	var c counted
	k := talk(
		t,
		said(&content.Reasoning{Text: "hm", Protected: "seal"}, call("1", "pay", "")),
		said(text("meanwhile")),
		said(text("ok")),
	)
	a := c.asked(k, LoopConfig{})
	th, q := runner{T: t}.asks(a, "x")
	mustRun(t, a, th, content.UserText("wait"))
	if strings.Contains(k.last(), "Reasoning") {
		t.Errorf("a thought without its call:\n%s", k.last())
	}
	if resp := mustRun(t, a, th, answers(q.CreateApproval(""))); strings.Contains(tell(resp.Messages), "Reasoning") {
		t.Errorf("a thought is shown twice:\n%s", tell(resp.Messages))
	}

	if !strings.Contains(k.last(), "assistant: *content.Reasoning 1=pay()") {
		t.Errorf("a call without its thought:\n%s", k.last())
	}
}

// An empty message (no contents) is given to the model and kept:
// providers refuse it. input.go readInput lets it through.
func TestEmptyMessage(t *testing.T) {
	k := talk(t, said(text("ok")))
	mustRun(
		t,
		chat(k, LoopConfig{}, nil),
		NewThread("t"),
		content.UserText("x"),
		content.NewMessage(content.User),
	)
	expect(t, "sent", k.last(), "user: \"x\"\n")
}

// Who uses the loop without an agent and keeps a thread in memory must
// not have it grow by every message for ever.
func TestALoopWithoutAnAgentKeepsNothing(t *testing.T) {
	k := talk(t, said(text("1")), said(text("2")), said(text("3")))
	loop := NewFunctionInvoking(k, LoopConfig{})
	th := NewThread("t")
	for range 3 {
		must.Get(loop.Respond(t.Context(), []*content.Message{content.UserText("x")}, &Options{Thread: th}))(t)
	}

	if !reflect.DeepEqual(th, NewThread("t")) {
		t.Errorf("something is kept for nobody: %+v", th)
	}
}

func TestCallerChangesTheRequestInPlace(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		a := c.asked(paying(t, `{"n":5}`), LoopConfig{})
		th, q := t.asks(a, "pay")
		q.Call.(*content.FunctionCall).Arguments = json.RawMessage(`{"n":1}`)
		resp := t.yes(a, th, q)
		expect(t, "refused", refusals(resp), "ficc_1 other_call")
	})
}

func TestApprovalInAnotherProcess(t *testing.T) {
	var c counted
	model := talk(
		t,
		said(text("Let me."), call("1", "pay", `{"to":"bob"}`), call("2", "look", "")),
		said(text("Done.")),
	)
	a := chat(model, LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
	thread := NewThread("t")

	resp := mustRun(t, a, thread, content.UserText("pay bob"))
	expect(t, "first response", tell(resp.Messages), "assistant: \"Let me.\" ficc_1?[1=pay({\"to\":\"bob\"})]\n")
	expect(t, "history", tell(thread.Messages), "user: \"pay bob\"\nassistant: \"Let me.\"\n")
	if c.runs["look"] != 1 || len(thread.Pending()) != 1 {
		t.Fatalf("runs %v, pending %v", c.runs, thread.Pending())
	}

	thread = reload(t, thread)
	resp = mustRun(t, a, thread, answers(approvalOf(t, resp, 0).CreateApproval("")))
	want := "assistant: 1=pay({\"to\":\"bob\"}) 2=look()\ntool: 1→\"did pay\" 2→\"did look\"\nassistant: \"Done.\"\n"
	expect(t, "second response", tell(resp.Messages), want)
	expect(t, "history", tell(thread.Messages), "user: \"pay bob\"\nassistant: \"Let me.\"\n"+want)
	if c.runs["look"] != 1 || c.runs[`pay{"to":"bob"}`] != 1 || len(thread.Pending()) != 0 {
		t.Fatalf("runs %v, pending %v", c.runs, thread.Pending())
	}
}
