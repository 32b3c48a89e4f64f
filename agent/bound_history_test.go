package agent

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

// TestAnchors tests rules 32 and 33, and which of these messages the thread keeps.
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
			k := talk(t, said(text("?"), call("1", "pay", `{"n":1}`), call("2", "pay", `{"n":2}`)), said(text("ok")))
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

// TestCallersThingsStay checks that a run doesn't change the caller's messages and options.
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
		opt := &Options{Tools: tools, Thread: th, Extra: map[string]any{"a": 1}}
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

// TestStreamLeftEarly stops reading the stream after each of its updates and continues with
// another run. No approved call may run twice.
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

// TestRefusedIsStreamed stops reading at the update with the refusals.
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

// TestRequestSeenInAStreamLeftAtIt answers a request after the reader of the stream stopped at
// it, as many readers do. takeBack (bound.go) must close the request and record an event:
// otherwise the answer would be refused as "unknown", and the journal would contain a request
// without an end.
func TestRequestSeenInAStreamLeftAtIt(t *testing.T) {
	var c counted
	j := &journal{}
	a := chat(talk(t, said(text("a"), call("1", "pay", "")), said(text("ok"))), LoopConfig{Audit: j.take}, nil,
		RequireApproval(c.tool("pay")))
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
			content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "2", Result: json.RawMessage(`"x"`)}),
		)
		must.Get(t.client(l, in, opt))(t)
		if got := k.last(); c.runs["look"] > 0 && !strings.Contains(got, "1→") {
			t.Errorf("look ran, and neither caller nor model ever hears of it:\n%s", got)
		}
	})
}

// A thread that is kept in memory and used with the loop but without an agent must not grow by
// every message.
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

// markedDeclared is a tool that the caller runs and that needs approval.
type markedDeclared struct{ declaredTool }

func (m markedDeclared) Unwrap() Tool { return RequireApproval(toolOf("x", nil)) }

func TestCallerChangesADeclaredCallInPlace(t *testing.T) {
	a := chat(talk(t, said(call("1", "theirs", `{"n":5}`)), said(text("ok"))), LoopConfig{}, nil,
		declaredTool("theirs"))
	th := NewThread("t")
	resp := mustRun(t, a, th, content.UserText("pay"))
	for f := range content.All[*content.FunctionCall](resp.Messages) {
		f.Name = "changed"
	}
	resp = mustRun(t, a, th)
	expect(t, "shown again", tell(resp.Messages), "assistant: 1=theirs({\"n\":5})\n")
}
