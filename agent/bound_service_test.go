package agent

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// kept is a model whose service keeps the history.
func kept(t testing.TB, turns ...func([]*content.Message, *Options) ([]*content.Message, error)) *talker {
	k := talk(t, turns...)
	k.keeps = "conv"
	return k
}

func TestServiceKeepsTheHistory(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := kept(
			t,
			said(call("0", "look", "")),
			said(text("?"), call("1", "pay", ""), call("2", "look", "")),
			said(text("ok")),
			said(text("and")),
		)
		a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
		th := NewThread("t")
		resp := t.say(a, th, "x")
		expect(t, "second turn", k.last(), "tool: 0→\"did look\"\n")
		if resp.ConversationID != "conv" || th.ConversationID != "conv" || len(th.Messages) != 0 {
			t.Fatalf("%q %q %s", resp.ConversationID, th.ConversationID, tell(th.Messages))
		}
		q := approvalOf(t, resp, 0)
		th = reload(t, th)
		t.run(a, th, answers(text("before"), q.CreateApproval(""), text("after")))
		expect(
			t,
			"only results are sent",
			k.last(),
			"tool: 1→\"did pay\" 2→\"did look\"\nuser: \"before\" \"after\"\n",
		)
		if k.options[2].ConversationID != "conv" {
			t.Error(k.options[2].ConversationID)
		}
		th = reload(t, th)
		t.say(a, th, "y")
		expect(t, "then the new message", k.last(), "user: \"y\"\n")
	})
}

func TestServiceWaitsForResults(t *testing.T) {
	for _, p := range []NewMessagePolicy{KeepOpen, Supersede} {
		bothWays(t, func(t runner) {
			var c counted
			k := kept(t, said(call("1", "pay", "")), said(text("ok")))
			a := c.asked(k, LoopConfig{OnNewMessage: p})
			th, q := t.asks(a, "x")
			th = reload(t, th)
			resp := t.say(a, th, "one")
			if p == Supersede {
				expect(t, "sent", k.last(), "tool: 1→\""+textSuperseded+"\"\nuser: \"one\"\n")
				return
			}
			if len(k.seen) != 1 || len(resp.UserInputRequests()) != 1 {
				t.Fatal("the service can't take a message now:", tell(resp.Messages))
			}
			th = reload(t, th)
			t.say(a, th, "two")
			th = reload(t, th)
			t.run(a, th, answers(q.CreateRejection(""), text("three")))
			expect(
				t,
				"sent",
				k.last(),
				"tool: 1→\"Tool call invocation rejected.\"\nuser: \"one\"\nuser: \"two\"\nuser: \"three\"\n",
			)
			if raw := string(sure(json.Marshal(th))); strings.Contains(raw, "held_back") {
				t.Error("kept though it was sent:", raw)
			}
		})
	}
}

// TestConversationOfTheBatch answers with options that do not name the
// conversation.
func TestConversationOfTheBatch(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := kept(t, said(call("1", "pay", "")), said(text("ok")))
		l := NewFunctionInvoking(k, LoopConfig{RequestID: plainIDs})
		opt := &Options{Tools: []Tool{RequireApproval(c.tool("pay"))}, Thread: NewThread("t")}
		resp := must.Get(t.client(l, []*content.Message{content.UserText("x")}, opt))(t)
		must.Get(t.client(l, []*content.Message{answers(approvalOf(t, resp, 0).CreateApproval(""))}, opt))(t)

		expect(t, "sent", k.last(), "tool: 1→\"did pay\"\n")
		if k.options[1].ConversationID != "conv" {
			t.Error("sent to another conversation")
		}
	})
}

// hosted tells which answers a model was given.
func hosted(messages []*content.Message) string {
	var out []string
	for _, m := range messages {
		for _, c := range m.Contents {
			switch c := c.(type) {
			case content.InputRequest:
				out = append(out, "?"+c.InputRequestID())
			case content.InputResponse:
				word := "!no "
				if !content.Rejects(c) {
					word = "!yes "
				}
				out = append(out, word+c.InputResponseTo())
			}
		}
	}

	return strings.Join(out, ", ")
}

func TestHostedRequestsGoBack(t *testing.T) {
	for _, keeps := range []string{"", "conv"} {
		bothWays(t, func(t runner) {
			var c counted
			k := talk(
				t,
				said(text("?"), mcpRequest("r1"), call("1", "pay", ""), mcpRequest("r2"), call("2", "look", "")),
				said(text("ok")),
				said(text("more")),
			)
			k.keeps = keeps
			a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
			th := NewThread("t")
			resp := t.say(a, th, "x")
			q1 := approvalOf(t, resp, 0)
			pay := approvalOf(t, resp, 1)
			q2 := approvalOf(t, resp, 2)
			if len(resp.UserInputRequests()) != 3 || c.runs["look"] != 1 {
				t.Fatal(tell(resp.Messages), c.runs)
			}
			th = reload(t, th)
			forged := q2.CreateApproval("")
			forged.Call.(*content.MCPCall).Arguments = json.RawMessage(`{}`)
			resp = t.run(
				a,
				th,
				answers(
					q1.CreateApproval(""),
					forged,
					&content.ToolApprovalResponse{RequestID: "r9", Approved: true},
				),
			)
			expect(t, "refused", refusals(resp), "r2 other_call; r9 unknown_request")
			if len(k.seen) != 1 || len(th.Pending()) != 2 {
				t.Fatal("partial answers went to the service")
			}
			th = reload(t, th)
			t.run(a, th, answers(q2.CreateRejection("")))
			th = reload(t, th)
			t.yes(a, th, pay)
			want := "?r1, ?r2, !yes r1, !no r2"
			if keeps != "" {
				want = "!yes r1, !no r2"
			}
			expect(t, "pairs", hosted(k.seen[1]), want)
			if got := k.last(); !strings.Contains(got, "1→\"did pay\" 2→\"did look\"") {
				t.Error(got)
			}
			th = reload(t, th)
			t.say(a, th, "y")
			if keeps == "" {
				expect(t, "pairs, later", hosted(k.seen[2]), want)
			}
			if c.runs["pay"] != 1 || c.runs["look"] != 1 {
				t.Error(c.runs)
			}
		})
	}
}

func TestPlanDeniesAHostedCall(t *testing.T) {
	for name, d := range map[string]*changing{
		"denied":    {verdict: outcomeOf(resolve.Deny, "r")},
		"undecided": {err: errors.New("away")},
	} {
		bothWaysOf(t, name, func(t runner) {
			var c counted
			j := &journal{}
			k := talk(t, said(mcpRequest("r1")), said(text("ok")))
			resp := t.run(
				chat(k, LoopConfig{Decider: d, Audit: j.take}, nil),
				NewThread("t"),
				content.UserText("x"),
			)
			if len(resp.UserInputRequests()) > 0 && len(k.seen) != 2 {
				t.Fatal(tell(resp.Messages))
			}
			expect(t, "pairs", hosted(k.seen[1]), "?r1, !no r1")
			expect(t, "journal", j.tell(), "denied call-r1\n")

			k = talk(t, said(mcpRequest("r1"), call("1", "look", "")), said(text("ok")))
			k.keeps = "conv"
			t.run(
				chat(k, LoopConfig{Decider: &onlyHosted{d}}, nil, c.tool("look")),
				NewThread("t"),
				content.UserText("x"),
			)
			expect(t, "sent", tell(k.seen[1]), "tool: 1→\"did look\"\nuser: r1!false\n")
		})
	}
}

// onlyHosted decides hosted calls; others may run.
type onlyHosted struct{ inner Decider }

func (d *onlyHosted) Decide(ctx context.Context, t Tool, call content.ToolCall) (hold.Verdict, error) {
	if _, ok := call.(*content.MCPCall); ok {
		return d.inner.Decide(ctx, t, call)
	}
	return outcomeOf(resolve.Allow), nil
}

func TestPlanAllowsAHostedCall(t *testing.T) {
	bothWays(t, func(t runner) {
		k := talk(t, said(mcpRequest("r1")), said(text("ok")))
		a := chat(k, LoopConfig{Decider: &changing{verdict: outcomeOf(resolve.Allow)}}, nil)
		th, q := t.asks(a, "x")
		t.yes(a, th, q)
		expect(t, "pairs", hosted(k.seen[1]), "?r1, !yes r1")
	})
}

func TestHostedRequestIsSuperseded(t *testing.T) {
	bothWays(t, func(t runner) {
		k := talk(
			t,
			said(
				mcpRequest("r1"),
				&content.StructuredInputRequest{RequestID: "s"},
				&content.TextApprovalRequest{RequestID: "w"},
			),
			said(text("ok")),
		)
		a := chat(k, LoopConfig{OnNewMessage: Supersede}, nil)
		th := t.begin(a, "x")
		t.say(a, th, "y")
		expect(t, "pairs", hosted(k.seen[1]), "?r1, ?s, ?w, !no r1, !no s, !no w")
	})
}

func TestModelErrorAfterAHostedAnswer(t *testing.T) {
	bothWays(t, func(t runner) {
		k := talk(t, said(mcpRequest("r1")), fails, said(text("ok")), said(text("more")))
		a := chat(k, LoopConfig{}, nil)
		th, q := t.asks(a, "x")
		if _, err := t.try(a, th, answers(q.CreateApproval(""))); !errors.Is(err, errModel) {
			t.Fatal(err)
		}
		t.run(a, reload(t, th))
		expect(t, "pairs", hosted(k.seen[2]), "?r1, !yes r1")
	})
}

func TestHeldBackLostOnModelError(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := talk(t, said(call("1", "pay", "")), fails, said(text("ok")))
		k.keeps = "conv"
		a := c.asked(k, LoopConfig{})
		th, q := t.asks(a, "pay")
		t.say(a, th, "by the way")
		if _, err := t.try(a, th, answers(q.CreateApproval(""))); err == nil {
			t.Fatal("no error")
		}
		t.run(a, th)
		expect(t, "sent", k.last(), "tool: 1→\"did pay\"\nuser: \"by the way\"\n")
	})
}

func TestStopWithServiceHistory(t *testing.T) {
	bothWays(t, func(t runner) {
		k := talk(t, said(call("1", "halt", "")), said(text("ok")))
		k.keeps = "conv"
		a := chat(k, LoopConfig{}, nil, halting("halt"))
		th := t.begin(a, "stop")
		t.say(a, th, "more")
		expect(t, "sent", k.last(), "tool: 1→\"halted\"\nuser: \"more\"\n")
	})
}

func TestApprovedStopWithServiceHistory(t *testing.T) {
	bothWays(t, func(t runner) {
		k := talk(t, said(call("1", "halt", "")), said(text("ok")))
		k.keeps = "conv"
		a := chat(k, LoopConfig{}, nil, RequireApproval(halting("halt")))
		th, q := t.asks(a, "stop")
		t.say(a, th, "held")
		t.yes(a, th, q)
		t.say(a, th, "more")
		expect(t, "sent", k.last(), "tool: 1→\"halted\"\nuser: \"held\"\nuser: \"more\"\n")
	})
}

func TestLimitWithServiceHistory(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := talk(t, said(call("1", "look", "")), said(call("2", "look", "")), said(text("ok")))
		k.keeps = "conv"
		a := chat(k, LoopConfig{MaxTurns: 1}, nil, c.tool("look"))
		th := t.begin(a, "go")
		t.say(a, th, "more")
		expect(t, "sent", k.last(), "tool: 2→\""+textLimit+"\"\nuser: \"more\"\n")
	})
}

func TestLateAnswerToServiceIsForwarded(t *testing.T) {
	for _, keeps := range []string{"", "conv"} {
		bothWays(t, func(t runner) {
			k := talk(t, said(mcpRequest("r1")), said(text("ok")), said(text("forwarded!")))
			k.keeps = keeps
			a := chat(k, LoopConfig{}, nil)
			th, q := t.asks(a, "wipe")
			t.run(a, th, answers(q.CreateRejection("")))
			resp := must.Get(t.try(a, th, answers(q.CreateApproval(""), text("hi"))))(t)
			if sent := hosted(k.seen[len(k.seen)-1]); strings.Contains(sent, "!yes") {
				t.Errorf("an approval that came after the rejection went to the service: %s", sent)
			}
			expect(t, "refused", refusals(resp), "r1 closed_request")
		})
	}
}

func TestPlanDeniedHostedThenForged(t *testing.T) {
	bothWays(t, func(t runner) {
		deny := decideFunc(func(Tool, content.ToolCall) (hold.Verdict, error) {
			return outcomeOf(resolve.Deny, "no"), nil
		})
		q := mcpRequest("r1")
		k := talk(t, said(q), said(text("ok")), said(text("forwarded!")))
		a := chat(k, LoopConfig{Decider: deny}, nil)
		th := t.begin(a, "wipe")
		resp, _ := t.try(a, th, answers(q.CreateApproval(""), text("hi")))
		if sent := hosted(k.seen[len(k.seen)-1]); strings.Contains(sent, "!yes") {
			t.Errorf("a forged approval of a denied call went to the service: %s", sent)
		}
		expect(t, "refused", refusals(resp), "r1 closed_request")
	})
}

func TestHostedNotDecidedAgain(t *testing.T) {
	bothWays(t, func(t runner) {
		outcome := resolve.Ask
		d := decideFunc(
			func(Tool, content.ToolCall) (hold.Verdict, error) { return outcomeOf(outcome, "x"), nil },
		)
		k := talk(t, said(mcpRequest("r1")), said(text("ok")))
		a := chat(k, LoopConfig{Decider: d}, nil)
		th, q := t.asks(a, "wipe")
		outcome = resolve.Deny
		t.yes(a, th, q)
		expect(t, "pairs", hosted(k.seen[len(k.seen)-1]), "?r1, !no r1")
	})
}

func TestHostedStagesWithoutHolder(t *testing.T) {
	bothWays(t, func(t runner) {
		d := decideFunc(func(Tool, content.ToolCall) (hold.Verdict, error) {
			v := outcomeOf(resolve.Ask, "x")
			v.Require = &policy.Require{Stages: []policy.Stage{{Group: "finance", People: 2}}}
			return v, nil
		})
		k := talk(t, said(mcpRequest("r1")), said(text("ok")))
		a := chat(k, LoopConfig{Decider: d}, nil)
		if resp := t.run(a, NewThread("t"), content.UserText("wipe")); len(resp.UserInputRequests()) > 0 {
			t.Error("one user may answer what two of finance must")
		}
	})
}

// What is held back while a conversation waits and that the service
// refuses must not block the thread for good.
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
	a := c.asked(k, LoopConfig{})
	th, q := runner{T: t}.asks(a, "x")
	mustRun(t, a, th, content.UserText("too big"))
	_, err := a.Run(t.Context(), th, answers(q.CreateApproval("")))
	for range 2 {
		_, err = a.Run(t.Context(), th, content.UserText("hello?"))
	}
	if err != nil {
		t.Errorf("no run of this thread goes through any more: %v", err)
	}
}

// Two requests of a service under one id: the pending ones can't be
// told apart, and AG-UI and A2A refuse the list for good.
func TestServiceAsksTwiceUnderOneID(t *testing.T) {
	k := talk(t, said(mcpRequest("r"), mcpRequest("r")), said(text("ok")))
	a := chat(k, LoopConfig{}, nil)
	th := NewThread("t")
	_, err := a.Run(t.Context(), th, content.UserText("x"))
	if p := th.Pending(); err == nil && len(p) == 2 &&
		p[0].Request.InputRequestID() == p[1].Request.InputRequestID() {
		t.Error("two open requests have the id r")
	}
}

// A service reuses an id: the later pair must reach it as it was answered.
func TestServiceReusesAnID(t *testing.T) {
	k := talk(t, said(mcpRequest("r")), said(mcpRequest("r")), said(text("ok")), said(text("end")))
	a := chat(k, LoopConfig{}, nil)
	th, q := runner{T: t}.asks(a, "x")
	q = approvalOf(t, mustRun(t, a, th, answers(q.CreateRejection(""))), 0)
	mustRun(t, a, th, answers(q.CreateApproval("")))
	mustRun(t, a, th, content.UserText("y"))
	if n := strings.Count(k.last(), "r?["); n != strings.Count(k.last(), "r!") {
		t.Errorf("requests without answers:\n%s", k.last())
	}
}

// A request of a service must not share its id with one of ours.
func TestServiceRequestOfOurID(t *testing.T) {
	var c counted
	k := talk(t, said(mcpRequest("ficc_1"), call("1", "pay", "")), said(text("ok")))
	a := c.asked(k, LoopConfig{})
	th := NewThread("t")
	resp := mustRun(t, a, th, content.UserText("x"))
	asked := resp.UserInputRequests()
	if asked[0].InputRequestID() == asked[1].InputRequestID() {
		t.Errorf("both are %q", asked[0].InputRequestID())
	}
	storable(t, th)
}

func TestResultForUnknownCall(t *testing.T) {
	bothWays(t, func(t runner) {
		k := talk(t, said(text("ok")))
		k.keeps = "conv"
		a := chat(k, LoopConfig{}, nil)
		resp := t.run(
			a,
			NewThread("t"),
			content.UserText("hi"),
			content.NewMessage(
				content.ToolRole,
				&content.FunctionResult{CallID: "no", Result: json.RawMessage(`1`)},
			),
		)
		expect(t, "refused", refusals(resp), "no unknown_request")
		expect(t, "sent", k.last(), "user: \"hi\"\n")
	})
}

func TestWrapSiblingsBecauseOfAHostedRequest(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		a := chat(
			talk(t, said(mcpRequest("r1"), call("1", "look", ""))),
			LoopConfig{WrapSiblings: true},
			nil,
			c.tool("look"),
		)
		if n := len(t.run(a, NewThread("t"), content.UserText("go")).UserInputRequests()); n != 1 {
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

// hiddenID names the conversation on the piece of its last call only.
type hiddenID struct{ contents []content.Content }

func (h *hiddenID) Respond(context.Context, []*content.Message, *Options) (*Response, error) {
	return nil, errModel
}

func (h *hiddenID) Stream(context.Context, []*content.Message, *Options) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		for i, c := range h.contents {
			u := &Update{
				Role:      content.Assistant,
				MessageID: "m",
				Contents:  []content.Content{c},
			}
			if i == len(h.contents)-1 {
				u.ConversationID = "conv"
			}
			if !yield(u, nil) {
				return
			}
		}
	}
}
