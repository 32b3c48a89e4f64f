package layer_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/layer"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

// If the loop refuses an edit because its Decider denies the edited call, the request stays
// open. The layers must keep it open too.
func TestRefusedInsideStaysAnswerable(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		s := newShop()
		m := says(list(assistant(call("c1", "pay", `{"n":1}`))), list(assistant(text("paid"))))
		loop := agent.NewFunctionInvoking(m, agent.LoopConfig{Decider: denyNine{}})
		c := layer.NewStanding(
			layer.NewBinding(layer.NewBypass(loop, layer.BypassConfig{Log: quiet()}),
				layer.BindingConfig{Log: quiet()}),
			layer.StandingConfig{Log: quiet()},
		)
		a := agent.NewChatAgent(c, agent.ChatAgentConfig{Tools: s.tools})
		thread := agent.NewThread("t")
		q := runAgent(t, a, thread, streaming, user(text("buy"))).UserInputRequests()[0].(*content.ToolApprovalRequest)
		edit := must.Get(q.CreateEdit(json.RawMessage(`{"n":9}`), ""))(t)
		r := runAgent(t, a, thread, streaming, user(edit))
		if len(r.Refused) != 1 || len(r.UserInputRequests()) != 1 {
			t.Fatalf("refused %v asked %v", r.Refused, r.UserInputRequests())
		}
		r = runAgent(t, a, thread, streaming, user(q.CreateApproval("")))
		if len(r.Refused) != 0 || strings.Join(s.runs, " ") != `pay{"n":1}` {
			t.Errorf("refused %v ran %v", r.Refused, s.runs)
		}
	}
}

type denyNine struct{}

func (denyNine) Decide(_ context.Context, _ agent.Tool, c content.ToolCall) (hold.Verdict, error) {
	v := hold.Verdict{}
	v.Outcome = resolve.Ask
	if strings.Contains(string(c.Args()), "9") {
		v.Outcome = resolve.Deny
	}
	return v, nil
}

// refuses returns a response with requests that also refuses answers. A stream reports the
// refusals at its end.
func refuses(messages []*content.Message, ids ...string) *agent.Response {
	r := &agent.Response{Messages: messages}
	for _, id := range ids {
		r.Refused = append(r.Refused, agent.Refusal{RequestID: id, Reason: agent.ClosedRequest, Detail: "too late"})
	}

	return r
}

// TestWishesAreGrantedLast lets the inner client fail or refuse an answer that asks for a rule,
// if the rule would have approved the next request of the same response.
func TestWishesAreGrantedLast(t *testing.T) {
	five := call("c1", "pay", `{"n":5}`)
	for _, streaming := range []bool{false, true} {
		for name, row := range map[string]struct {
			then  *agent.Response
			rules int
			shown string
		}{
			"taken":              {refuses(pays("2", `{"n":5}`)), 1, ""},
			"refused":            {refuses(pays("2", `{"n":5}`), "q1"), 0, "q2"},
			"another is refused": {refuses(pays("2", `{"n":5}`), "q7"), 1, ""},
			"beside another":     {refuses(append(pays("2", `{"n":5}`), pays("3", `{"n":6}`)...), "q1"), 0, "q2 q3"},
			"failed":             {nil, 0, ""},
		} {
			d := newPayer(t, layer.StandingConfig{}, pays("1", `{"n":5}`))
			d.run(user(text("pay")))
			if row.then != nil {
				d.m.turns = append(d.m.turns, row.then, &agent.Response{Messages: done})
			}
			r, err := run(d.c, list(user(always(yes("q1", five), content.AlwaysArguments))), d.opt, streaming)
			if (err != nil) != (row.then == nil) {
				t.Fatal(err)
			}
			if got := len(d.rules()); got != row.rules {
				t.Errorf("%s, streaming %v: %d rules", name, streaming, got)
			}
			if row.then == nil {
				d.m.turns = append(d.m.turns, nil, &agent.Response{Messages: done})
				if d.run(user(text("on"))); len(d.rules()) != 0 {
					t.Errorf("%s, streaming %v: the next run made a rule", name, streaming)
				}
				continue
			}

			var shown []string
			for _, q := range r.UserInputRequests() {
				shown = append(shown, q.InputRequestID())
			}
			slices.Sort(shown)
			if got := strings.Join(shown, " "); got != row.shown {
				t.Errorf("%s, streaming %v: shown are %q", name, streaming, got)
			}
		}
	}
}

// TestReaderLeavesBeforeTheRule stops reading after the answer was sent and before it is known
// whether the inner client accepted it.
func TestReaderLeavesBeforeTheRule(t *testing.T) {
	d := newPayer(t, layer.StandingConfig{}, pays("1", ""), list(assistant(text("a"), text("b"))), done)
	d.run(user(text("pay")))
	for range d.c.Stream(t.Context(), list(user(always(yes("q1", call("c1", "pay", "")), content.AlwaysArguments))),
		d.opt) {
		break
	}

	if d.run(user(text("on"))); len(d.rules()) != 0 {
		t.Errorf("the rules are %+v", d.rules())
	}
}

// TestRefusedWishInAQueue asks for a rule with the first of three requests. The rule would
// approve the third one.
func TestRefusedWishInAQueue(t *testing.T) {
	for _, refused := range []bool{false, true} {
		one, two := call("c1", "pay", `{"n":1}`), call("c2", "look", "")
		d := newPayer(t, layer.StandingConfig{OneAtATime: true},
			list(assistant(ask("q1", one), ask("q2", two), ask("q3", call("c3", "pay", `{"n":1}`)))))
		then := refuses(list(assistant(text("hm"), ask("q3", call("c3", "pay", `{"n":1}`)))))
		if refused {
			then = refuses(then.Messages, "q1")
		}
		d.m.turns = append(d.m.turns, then, &agent.Response{Messages: done})
		d.run(user(text("go")))
		wantTold(t, "second", d.run(user(always(yes("q1", one), content.AlwaysArguments))).Messages,
			"assistant: ask[q2 c2 look()]")
		if len(d.rules()) != 0 {
			t.Error("a rule was made before its answer went in")
		}
		r := d.run(user(yes("q2", two)))
		wantTold(t, "inner", d.m.seen[1], `user: yes[q1 c1 pay({"n":1})], yes[q2 c2 look()]`)
		if refused {
			wantTold(t, "third", r.Messages, `assistant: "hm", ask[q3 c3 pay({"n":1})]`)
			continue
		}
		if wantTold(t, "third", r.Messages, `assistant: "hm"; assistant: "done"`); d.rules()[0].Left != 99 {
			t.Errorf("the rule is %+v", d.rules()[0])
		}
	}
}

// TestRefusedAutomaticApproval checks that a person sees the request in this run and in later
// runs, even if the inner client doesn't repeat it.
func TestRefusedAutomaticApproval(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		tried := 0
		all := layer.Predicate{
			Name: "all",
			Approve: func(context.Context, layer.Asked) bool {
				tried++
				return true
			},
		}
		d := newPayer(t, layer.StandingConfig{Predicates: []layer.Predicate{all}}, pays("1", ""))
		d.m.turns = append(d.m.turns, refuses(pays("1", ""), "q1"), &agent.Response{Messages: pays("1", "")},
			&agent.Response{Messages: done})
		for _, what := range []string{"first", "later"} {
			r := must.Get(run(d.c, list(user(text("pay"))), d.opt, streaming))(t)
			wantTold(t, what, r.Messages, "assistant: ask[q1 c1 pay()]")
		}

		if len(d.m.seen) != 3 || tried > 3 {
			t.Errorf("streaming %v: %d rounds, %d tries", streaming, len(d.m.seen), tried)
		}
		d.run(user(no("q1", call("c1", "pay", ""))))
		wantTold(t, "inner", d.m.last(), "user: no[q1 c1 pay()]")
	}
}

// TestRefusedAutomaticApprovalBesideAnother gets the refusal after the request was parked again
// and another one was shown.
func TestRefusedAutomaticApprovalBesideAnother(t *testing.T) {
	pay := layer.Predicate{
		Name: "pay",
		Approve: func(_ context.Context, a layer.Asked) bool {
			return a.Call.Name == "pay"
		},
	}
	d := newPayer(t, layer.StandingConfig{Predicates: []layer.Predicate{pay}}, pays("1", ""))
	d.m.turns = append(d.m.turns,
		refuses(list(assistant(ask("q1", call("c1", "pay", "")), ask("q2", call("c2", "look", "")))), "q1"))
	r := must.Get(run(d.c, list(user(text("go"))), d.opt, true))(t)
	wantTold(t, "shown", r.Messages, "assistant: ask[q2 c2 look()], ask[q1 c1 pay()]")
}

// TestReaderLeavesAtARefusal checks that the next run still has the refusal.
func TestReaderLeavesAtARefusal(t *testing.T) {
	d := newPayer(t, layer.StandingConfig{Predicates: []layer.Predicate{all}}, pays("1", ""))
	d.m.turns = append(d.m.turns, refuses(pays("1", ""), "q1"), &agent.Response{Messages: pays("1", "")})
	for u, err := range d.c.Stream(t.Context(), list(user(text("pay"))), d.opt) {
		if err != nil || len(u.Refused) > 0 {
			break
		}
	}
	wantTold(t, "shown", d.run(user(text("on"))).Messages, "assistant: ask[q1 c1 pay()]")
	wantTold(t, "inner", d.m.last(), `user: "on"`)
}

// TestPersonBeforeRule answers a request by hand after a rule has approved it.
func TestPersonBeforeRule(t *testing.T) {
	pay, look := call("c1", "pay", ""), call("c2", "look", "")
	yesNow := false
	moody := layer.Predicate{
		Name: "moody",
		Approve: func(_ context.Context, a layer.Asked) bool {
			return yesNow && a.Call.Name == "pay"
		},
	}
	both := list(assistant(ask("q1", pay), ask("q2", look)))
	d := newPayer(t, layer.StandingConfig{Predicates: []layer.Predicate{moody}}, both, both, done)
	d.run(user(text("go")))
	yesNow = true
	wantTold(t, "shown", d.run(user(text("well?"))).Messages, "assistant: ask[q2 c2 look()]")
	d.run(user(no("q1", pay), yes("q2", look)))
	wantTold(t, "inner", d.m.last(), "user: no[q1 c1 pay()], yes[q2 c2 look()]")
}
