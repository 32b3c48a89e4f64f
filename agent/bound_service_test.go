package agent

import (
	"context"
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

// kept returns a model whose service keeps the history.
func kept(t testing.TB, turns ...func([]*content.Message, *Options) ([]*content.Message, error)) *talker {
	k := talk(t, turns...)
	k.keeps = "conv"
	return k
}

// TestConversationOfTheBatch answers with options that don't name the conversation.
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

// hosted lists the answers that a model was given.
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

func TestPlanDeniesAHostedCall(t *testing.T) {
	for name, d := range map[string]*changing{
		"denied":    {verdict: outcomeOf(resolve.Deny, "r")},
		"undecided": {err: errors.New("away")},
	} {
		bothWaysOf(t, name, func(t runner) {
			var c counted
			j := &journal{}
			k := talk(t, said(mcpRequest("r1")), said(text("ok")))
			resp := t.run(chat(k, LoopConfig{Decider: d, Audit: j.take}, nil), NewThread("t"), content.UserText("x"))
			if len(resp.UserInputRequests()) > 0 && len(k.seen) != 2 {
				t.Fatal(tell(resp.Messages))
			}
			expect(t, "pairs", hosted(k.seen[1]), "?r1, !no r1")
			expect(t, "journal", j.tell(), "denied call-r1\n")

			k = talk(t, said(mcpRequest("r1"), call("1", "look", "")), said(text("ok")))
			k.keeps = "conv"
			t.run(chat(k, LoopConfig{Decider: &onlyHosted{d}}, nil, c.tool("look")), NewThread("t"),
				content.UserText("x"))
			expect(t, "sent", tell(k.seen[1]), "tool: 1→\"did look\"\nuser: r1!false\n")
		})
	}
}

// onlyHosted uses the inner decider for hosted calls and allows all others.
type onlyHosted struct{ inner Decider }

func (d *onlyHosted) Decide(ctx context.Context, t Tool, call content.ToolCall) (hold.Verdict, error) {
	if _, ok := call.(*content.MCPCall); ok {
		return d.inner.Decide(ctx, t, call)
	}
	return outcomeOf(resolve.Allow), nil
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

// A held-back message that the service refuses must not block the thread permanently.
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

// A service sends two requests with the same id. They could not be distinguished in the list of
// pending requests, and AG-UI and A2A would refuse the list.
func TestServiceAsksTwiceUnderOneID(t *testing.T) {
	k := talk(t, said(mcpRequest("r"), mcpRequest("r")), said(text("ok")))
	a := chat(k, LoopConfig{}, nil)
	th := NewThread("t")
	_, err := a.Run(t.Context(), th, content.UserText("x"))
	if p := th.Pending(); err == nil && len(p) == 2 && p[0].Request.InputRequestID() == p[1].Request.InputRequestID() {
		t.Error("two open requests have the id r")
	}
}

// A request of a service must not have the same id as a request of the loop.
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

func TestConversationIDOnAHiddenUpdate(t *testing.T) {
	var c counted
	k := &hiddenID{contents: says(call("1", "pay", ""), call("2", "look", ""))}
	a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
	resp, err := Collect(a.Stream(t.Context(), NewThread("t"), content.UserText("go")))
	if err != nil || resp.ConversationID != "conv" {
		t.Errorf("%v, conversation %q", err, resp.ConversationID)
	}
}

// hiddenID sends the conversation id only with the update of its last call.
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
