package agent

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/resolve"
)

// Two requests of a service under one id: the pending ones can't be told apart, and AG-UI and A2A
// refuse the list for good.
func TestServiceAsksTwiceUnderOneID(t *testing.T) {
	k := talk(t, said(mcpRequest("r"), mcpRequest("r")), said(text("ok")))
	a := chat(k, LoopConfig{}, nil)
	th := NewThread("t")
	_, err := a.Run(t.Context(), th, content.UserText("x"))
	if p := th.Pending(); err == nil && len(p) == 2 && p[0].Request.InputRequestID() == p[1].Request.InputRequestID() {
		t.Error("two open requests have the id r")
	}
}

// The person is told where a held request of a service is answered.
func TestHeldServiceRequestSaysWhere(t *testing.T) {
	k := talk(t, said(mcpRequest("r")), said(text("ok")))
	a := chat(k, LoopConfig{Holder: pendingStub(), Decider: asks()}, nil)
	q := approvalOf(t, mustRun(t, a, NewThread("t"), content.UserText("x")), 0)
	if q.Note.Where == "" || q.Note.Expires.IsZero() {
		t.Errorf("%+v", q.Note)
	}
}

// A service reuses an id: the later pair must reach it as it was answered.
func TestServiceReusesAnID(t *testing.T) {
	k := talk(t, said(mcpRequest("r")), said(mcpRequest("r")), said(text("ok")), said(text("end")))
	a := chat(k, LoopConfig{}, nil)
	th := NewThread("t")
	q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
	q = approvalOf(t, mustRun(t, a, th, answers(q.CreateRejection(""))), 0)
	mustRun(t, a, th, answers(q.CreateApproval("")))
	mustRun(t, a, th, content.UserText("y"))
	if n := strings.Count(k.last(), "r?["); n != strings.Count(k.last(), "r!") {
		t.Errorf("requests without answers:\n%s", k.last())
	}
}

// An edit must not carry an approval over to a tool that was changed since: a plain approval is
// asked again, an edited one must be too.
func TestEditAfterTheToolChanged(t *testing.T) {
	for _, edit := range []bool{false, true} {
		ran := ""
		tool := func(description string) Function {
			return RequireApproval(NewFunction("pay", description, nil, func(_ context.Context, args json.RawMessage) (any, error) {
				ran = description + string(args)
				return nil, nil
			}))
		}
		k := talk(t, said(call("1", "pay", `{"n":1}`)), said(text("ok")))
		loop := NewFunctionInvoking(k, LoopConfig{})
		th := NewThread("t")
		q := approvalOf(t, mustRun(t, NewChatAgent(loop, ChatAgentConfig{Tools: []Tool{tool("to the box office")}}), th, content.UserText("x")), 0)
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

// An edit to no arguments at all is held against the schema, as an edit to {} is.
func TestEditToNothing(t *testing.T) {
	var c counted
	pay := c.tool("pay").(*function)
	pay.def.Schema = json.RawMessage(`{"type":"object","required":["n"]}`)
	k := talk(t, said(call("1", "pay", `{"n":1}`)), said(text("ok")))
	a := chat(k, LoopConfig{}, nil, RequireApproval(pay))
	th := NewThread("t")
	q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
	edit, err := q.CreateEdit(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	resp := mustRun(t, a, th, answers(edit))
	if len(resp.Refused) != 1 || len(c.runs) != 0 {
		t.Errorf("refused %v ran %v", resp.Refused, c.runs)
	}
}

// What a client or a model leaves out must not make the stored thread unreadable.
func TestMoreThatCantBeStored(t *testing.T) {
	ask := func(q content.InputRequest) []*content.Message {
		return []*content.Message{content.NewMessage(content.Assistant, q)}
	}
	for name, ms := range map[string][]*content.Message{
		"no role":               {{Contents: []content.Content{text("hi")}}},
		"blank id of a request": ask(mcpRequest(" ")),
		"no id of a request":    ask(mcpRequest("")),
		"no name of a tool":     ask(&content.ToolApprovalRequest{RequestID: "r", Call: &content.MCPCall{CallID: "c"}}),
		"schema twice a key":    ask(&content.StructuredInputRequest{RequestID: "r", Schema: json.RawMessage(`{"a":1,"a":1}`)}),
		"no schema":             ask(&content.StructuredInputRequest{RequestID: "r"}),
		"no UTF-8":              {content.AssistantText("a\xff")},
		"code interpreter":      ask(&content.ToolApprovalRequest{RequestID: "r", Call: &content.HostedCall{Kind: "codeInterpreterToolCall", CallID: "c"}}),
	} {
		t.Run(name, func(t *testing.T) {
			k := talk(t, saidAll(ms...))
			a := chat(k, LoopConfig{}, nil)
			th := NewThread("t")
			if _, err := a.Run(t.Context(), th, content.UserText("x")); err != nil {
				t.Log("refused at once:", err)
			}
			reviewStorable(t, th)
		})
	}
	t.Run("a user's message without a role", func(t *testing.T) {
		a := chat(talk(t, said(text("ok"))), LoopConfig{}, nil)
		th := NewThread("t")
		if _, err := a.Run(t.Context(), th, &content.Message{Contents: []content.Content{text("hi")}}); err != nil {
			t.Log("refused at once:", err)
		}
		reviewStorable(t, th)
	})
	t.Run("more than a reader takes", func(t *testing.T) {
		big := content.UserText(strings.Repeat("x", 23<<20))
		a := chat(talk(t, said(text("ok"))), LoopConfig{}, nil)
		th := NewThread("t")
		if _, err := a.Run(t.Context(), th, big, big, big); err != nil {
			t.Log("refused at once:", err)
		}
		if raw, err := json.Marshal(th); err == nil {
			if _, err := loaded(raw, "t"); err != nil {
				t.Errorf("written (%d MB), not read: %v", len(raw)>>20, err)
			}
		}
	})
}

type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// A function that returns a nil pointer as its error must not take the process down, least of all
// after it was begun on an approval.
func TestNilPointersAsErrors(t *testing.T) {
	for name, err := range map[string]error{"suspend": (*Suspend)(nil), "other": (*nilError)(nil)} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("panic: %v", p)
				}
			}()
			pay := &asking{name: "pay", resumed: func(json.RawMessage, []content.InputResponse) (any, error) { return nil, nil }}
			k := talk(t, said(call("1", "pay", "")), said(text("ok")))
			a := chat(k, LoopConfig{}, nil, &failing{pay, err})
			mustRun(t, a, NewThread("t"), content.UserText("x"))
		})
	}
}

type failing struct {
	*asking
	err error
}

func (f *failing) Invoke(context.Context, *content.FunctionCall) (any, error) { return nil, f.err }

// A held call that the caller runs uses up its approval like any other: else the one run of a
// shared card is handed out twice.
func TestHeldDeclaredCallIsClaimed(t *testing.T) {
	h := &strictHolder{map[string]bool{}, map[string]string{}}
	k := talk(t, said(call("1", "ui", "")), said(text("ok")))
	a := chat(k, LoopConfig{Holder: h, Decider: asks()}, nil, declaredTool("ui"))
	th := NewThread("t")
	mustRun(t, a, th, content.UserText("x"))
	for _, p := range th.Pending() {
		h.approved[p.Ref] = true
	}
	resp := mustRun(t, a, th)
	if strings.Contains(tell(resp.Messages), "1=ui()") && len(h.taken) != 1 {
		t.Errorf("handed to the caller, claimed %v", h.taken)
	}
}

// A polled function that asks two things under one id of its own leaves a thread that can't be
// read.
func TestPolledRequestsOfOneID(t *testing.T) {
	two := func() *Suspend {
		return &Suspend{Poll: true, Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "i", Text: "a"}, &content.TextApprovalRequest{RequestID: "i", Text: "b"}}}
	}
	f := &asking{name: "f", ask: two, resumed: func(json.RawMessage, []content.InputResponse) (any, error) { return nil, two() }}
	a := chat(talk(t, said(call("1", "f", "")), said(text("ok"))), LoopConfig{}, nil, f)
	th := NewThread("t")
	mustRun(t, a, th, content.UserText("x"))
	mustRun(t, a, th)
	reviewStorable(t, th)
}

// A suspended function without a state, stored in between, is resumed with a no.
func TestSuspendedWithoutStateStored(t *testing.T) {
	f := &asking{name: "f", ask: func() *Suspend {
		return &Suspend{Requests: []content.InputRequest{&content.ToolApprovalRequest{RequestID: "i", Call: call("x", "y", "")}}}
	}}
	k := talk(t, said(call("1", "f", "")), said(text("ok")))
	a := chat(k, LoopConfig{}, nil, f)
	th := NewThread("t")
	q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
	mustRun(t, a, reload(t, th), answers(q.CreateRejection("")))
	if !strings.Contains(k.last(), `"i false"`) {
		t.Error(k.last())
	}
}

// Who uses the loop without an agent and keeps a thread in memory must not have it grow by every
// message for ever.
func TestALoopWithoutAnAgentKeepsNothing(t *testing.T) {
	k := talk(t, said(text("1")), said(text("2")), said(text("3")))
	loop := NewFunctionInvoking(k, LoopConfig{})
	th := NewThread("t")
	for range 3 {
		if _, err := loop.Respond(t.Context(), []*content.Message{content.UserText("x")}, &Options{Thread: th}); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(th, NewThread("t")) {
		t.Errorf("something is kept for nobody: %+v", th)
	}
}

// An answer that a nested agent refuses is told to the outer caller: else he sees the same question
// again, and RunToEnd asks for ever.
func TestAnswersThatNestedAgentsRefuse(t *testing.T) {
	var c counted
	d := decideFunc(func(_ Tool, call content.ToolCall) (hold.Verdict, error) {
		if strings.Contains(string(call.Args()), "9") {
			return outcomeOf(resolve.Deny, "nine"), nil
		}
		return outcomeOf(resolve.Ask, "r"), nil
	})
	inner := chat(talk(t, said(call("i", "pay", `{"n":1}`)), said(text("paid"))), LoopConfig{Decider: d}, nil, c.tool("pay"))
	outer := chat(talk(t, said(call("o", "test", `{"input":"pay"}`)), said(text("ok"))), LoopConfig{}, nil, AsTool(inner, NestedConfig{}))
	th := NewThread("t")
	q := approvalOf(t, mustRun(t, outer, th, content.UserText("x")), 0)
	edit, _ := q.CreateEdit(json.RawMessage(`{"n":9}`), "")
	resp := mustRun(t, outer, th, answers(edit))
	if len(resp.UserInputRequests()) == 1 && len(resp.Refused) == 0 {
		t.Error("the same question again, and nobody says why the answer did not act")
	}
}
