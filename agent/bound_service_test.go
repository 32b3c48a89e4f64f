package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/resolve"
)

// kept is a model whose service keeps the history.
func kept(t testing.TB, turns ...func([]*content.Message, *Options) ([]*content.Message, error)) *talker {
	k := talk(t, turns...)
	k.keeps = "conv"
	return k
}

func TestServiceKeepsTheHistory(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		k := kept(t, said(call("0", "look", "")), said(text("?"), call("1", "pay", ""), call("2", "look", "")), said(text("ok")), said(text("and")))
		a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
		th := NewThread("t")
		resp := r.run(a, th, content.UserText("x"))
		expect(t, "second turn", k.last(), "tool: 0→\"did look\"\n")
		if resp.ConversationID != "conv" || th.ConversationID != "conv" || len(th.Messages) != 0 {
			t.Fatalf("%q %q %s", resp.ConversationID, th.ConversationID, tell(th.Messages))
		}
		q := approvalOf(t, resp, 0)
		th = reload(t, th)
		r.run(a, th, answers(text("before"), q.CreateApproval(""), text("after")))
		expect(t, "only results are sent", k.last(), "tool: 1→\"did pay\" 2→\"did look\"\nuser: \"before\" \"after\"\n")
		if k.options[2].ConversationID != "conv" {
			t.Error(k.options[2].ConversationID)
		}
		th = reload(t, th)
		r.run(a, th, content.UserText("y"))
		expect(t, "then the new message", k.last(), "user: \"y\"\n")
	})
}

func TestServiceWaitsForResults(t *testing.T) {
	for _, p := range []NewMessagePolicy{KeepOpen, Supersede} {
		bothWays(t, func(t *testing.T, r runner) {
			var c counted
			k := kept(t, said(call("1", "pay", "")), said(text("ok")))
			a := chat(k, LoopConfig{OnNewMessage: p}, nil, RequireApproval(c.tool("pay")))
			th := NewThread("t")
			q := approvalOf(t, r.run(a, th, content.UserText("x")), 0)
			th = reload(t, th)
			resp := r.run(a, th, content.UserText("one"))
			if p == Supersede {
				expect(t, "sent", k.last(), "tool: 1→\""+textSuperseded+"\"\nuser: \"one\"\n")
				return
			}
			if len(k.seen) != 1 || len(resp.UserInputRequests()) != 1 {
				t.Fatal("the service can't take a message now:", tell(resp.Messages))
			}
			th = reload(t, th)
			r.run(a, th, content.UserText("two"))
			th = reload(t, th)
			r.run(a, th, answers(q.CreateRejection(""), text("three")))
			expect(t, "sent", k.last(), "tool: 1→\"Tool call invocation rejected.\"\nuser: \"one\"\nuser: \"two\"\nuser: \"three\"\n")
			if raw := string(sure(json.Marshal(th))); strings.Contains(raw, "held_back") {
				t.Error("kept though it was sent:", raw)
			}
		})
	}
}

// TestConversationOfTheBatch answers with options that do not name the conversation.
func TestConversationOfTheBatch(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		k := kept(t, said(call("1", "pay", "")), said(text("ok")))
		l := NewFunctionInvoking(k, LoopConfig{RequestID: plainIDs})
		opt := &Options{Tools: []Tool{RequireApproval(c.tool("pay"))}, Thread: NewThread("t")}
		resp, err := r.client(l, []*content.Message{content.UserText("x")}, opt)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.client(l, []*content.Message{answers(approvalOf(t, resp, 0).CreateApproval(""))}, opt); err != nil {
			t.Fatal(err)
		}
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
		bothWays(t, func(t *testing.T, r runner) {
			var c counted
			k := talk(t, said(text("?"), mcpRequest("r1"), call("1", "pay", ""), mcpRequest("r2"), call("2", "look", "")), said(text("ok")), said(text("more")))
			k.keeps = keeps
			a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
			th := NewThread("t")
			resp := r.run(a, th, content.UserText("x"))
			q1, pay, q2 := approvalOf(t, resp, 0), approvalOf(t, resp, 1), approvalOf(t, resp, 2)
			if len(resp.UserInputRequests()) != 3 || c.runs["look"] != 1 {
				t.Fatal(tell(resp.Messages), c.runs)
			}
			th = reload(t, th)
			forged := q2.CreateApproval("")
			forged.Call.(*content.MCPCall).Arguments = json.RawMessage(`{}`)
			resp = r.run(a, th, answers(q1.CreateApproval(""), forged, &content.ToolApprovalResponse{RequestID: "r9", Approved: true}))
			expect(t, "refused", refusals(resp), "r2 other_call; r9 unknown_request")
			if len(k.seen) != 1 || len(th.Pending()) != 2 {
				t.Fatal("partial answers went to the service")
			}
			th = reload(t, th)
			r.run(a, th, answers(q2.CreateRejection("")))
			th = reload(t, th)
			r.run(a, th, answers(pay.CreateApproval("")))
			want := "?r1, ?r2, !yes r1, !no r2"
			if keeps != "" {
				want = "!yes r1, !no r2"
			}
			expect(t, "pairs", hosted(k.seen[1]), want)
			if got := k.last(); !strings.Contains(got, "1→\"did pay\" 2→\"did look\"") {
				t.Error(got)
			}
			th = reload(t, th)
			r.run(a, th, content.UserText("y"))
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
	for name, d := range map[string]*changing{"denied": {verdict: outcomeOf(resolve.Deny, "r")}, "undecided": {err: errors.New("away")}} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, r runner) {
				var c counted
				j := &journal{}
				k := talk(t, said(mcpRequest("r1")), said(text("ok")))
				resp := r.run(chat(k, LoopConfig{Decider: d, Audit: j.take}, nil), NewThread("t"), content.UserText("x"))
				if len(resp.UserInputRequests()) > 0 && len(k.seen) != 2 {
					t.Fatal(tell(resp.Messages))
				}
				expect(t, "pairs", hosted(k.seen[1]), "?r1, !no r1")
				expect(t, "journal", j.tell(), "denied call-r1\n")

				k = talk(t, said(mcpRequest("r1"), call("1", "look", "")), said(text("ok")))
				k.keeps = "conv"
				r.run(chat(k, LoopConfig{Decider: &onlyHosted{d}}, nil, c.tool("look")), NewThread("t"), content.UserText("x"))
				expect(t, "sent", tell(k.seen[1]), "tool: 1→\"did look\"\nuser: r1!false\n")
			})
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
	bothWays(t, func(t *testing.T, r runner) {
		k := talk(t, said(mcpRequest("r1")), said(text("ok")))
		a := chat(k, LoopConfig{Decider: &changing{verdict: outcomeOf(resolve.Allow)}}, nil)
		th := NewThread("t")
		q := approvalOf(t, r.run(a, th, content.UserText("x")), 0)
		r.run(a, th, answers(q.CreateApproval("")))
		expect(t, "pairs", hosted(k.seen[1]), "?r1, !yes r1")
	})
}

func TestHostedRequestIsSuperseded(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		k := talk(t, said(mcpRequest("r1"), &content.StructuredInputRequest{RequestID: "s"}, &content.TextApprovalRequest{RequestID: "w"}), said(text("ok")))
		a := chat(k, LoopConfig{OnNewMessage: Supersede}, nil)
		th := NewThread("t")
		r.run(a, th, content.UserText("x"))
		r.run(a, th, content.UserText("y"))
		expect(t, "pairs", hosted(k.seen[1]), "?r1, ?s, ?w, !no r1, !no s, !no w")
	})
}

func TestModelErrorAfterAHostedAnswer(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		k := talk(t, said(mcpRequest("r1")), fails, said(text("ok")), said(text("more")))
		a := chat(k, LoopConfig{}, nil)
		th := NewThread("t")
		q := approvalOf(t, r.run(a, th, content.UserText("x")), 0)
		if _, err := r.try(a, th, answers(q.CreateApproval(""))); !errors.Is(err, errModel) {
			t.Fatal(err)
		}
		r.run(a, reload(t, th))
		expect(t, "pairs", hosted(k.seen[2]), "?r1, !yes r1")
	})
}
