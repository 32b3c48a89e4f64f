package layer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
	"github.com/assent-dev/assent/agent/layer"
	"github.com/assent-dev/assent/internal/must"
)

// shop has tools that count their runs.
type shop struct {
	runs  []string
	tools []agent.Tool
}

func newShop() *shop {
	s := &shop{}
	f := func(name string) agent.Function {
		return agent.NewFunction(name, "", nil, func(_ context.Context, args json.RawMessage) (any, error) {
			s.runs = append(s.runs, name+string(args))
			return name + " done", nil
		})
	}
	s.tools = []agent.Tool{f("look"), agent.RequireApproval(f("pay")), declared("ui")}
	return s
}

// held returns an error unless each call in a history has one result.
func held(messages []*content.Message) error {
	calls, results := 0, map[string]int{}
	rounds.Each(messages, func(_ rounds.At, c content.Content) {
		switch c := c.(type) {
		case *content.FunctionCall:
			calls++
		case *content.FunctionResult:
			results[c.CallID]++
		}
	})
	for id, n := range results {
		if n != 1 {
			return fmt.Errorf("%s has %d results", id, n)
		}
	}
	if calls != len(results) {
		return fmt.Errorf("%d calls, %d results", calls, len(results))
	}
	return nil
}

// TestStackAroundTheLoops uses a model that looks, pays, and pays again, in both profiles. The
// person sees one request, for the first payment, and creates a rule, which approves the second
// payment.
func TestStackAroundTheLoops(t *testing.T) {
	for _, p := range []profile{safe, compatible} {
		for _, streaming := range []bool{false, true} {
			t.Run(fmt.Sprint(p, streaming), func(t *testing.T) {
				s := newShop()
				m := says(
					list(assistant(text("Let me see."), call("c1", "look", `{}`), call("c2", "pay", `{"n":1}`))),
					list(assistant(text("Once more."), call("c3", "pay", `{"n":1}`))),
					list(assistant(text("Paid twice."))),
					list(assistant(text("Bye."))),
				)
				a := agent.NewChatAgent(p.stack(p.loop(m), layer.StandingConfig{}),
					agent.ChatAgentConfig{Tools: s.tools})
				thread := agent.NewThread("t")
				r := runAgent(t, a, thread, streaming, user(text("buy")))
				asked := r.UserInputRequests()
				if len(asked) != 1 || rounds.FunctionCall(asked[0]).Name != "pay" ||
					strings.Join(s.runs, " ") != "" && p == compatible {
					t.Fatalf("asked is %s, ran %v", tell(r.Messages), s.runs)
				}
				r = runAgent(t, a, thread, streaming,
					user(asked[0].(*content.ToolApprovalRequest).CreateAlwaysApprove(content.AlwaysArguments, "")))
				if got := strings.Join(s.runs, " "); strings.Count(got, `pay{"n":1}`) != 2 ||
					strings.Count(got, "look") != 1 {
					t.Errorf("ran %s", got)
				}
				if !strings.HasSuffix(tell(r.Messages), `"Paid twice."`) || len(r.Refused) != 0 {
					t.Errorf("the response is %s, refused %v", tell(r.Messages), r.Refused)
				}
				runAgent(t, a, thread, streaming, user(text("thanks")))
				for _, seen := range m.seen {
					if err := held(seen); err != nil {
						t.Errorf("%v: %s", err, tell(seen))
					}
				}
				if told := tell(m.last()); p == safe &&
					(strings.Count(told, "c3 pay") != 1 || strings.Count(told, "Once more.") != 1 ||
						strings.Count(told, `"buy"`) != 1) {
					t.Errorf("the model was told %s", told)
				}
			})
		}
	}
}

func runAgent(
	t *testing.T, a agent.Agent, thread *agent.Thread, streaming bool, messages ...*content.Message,
) *agent.Response {
	t.Helper()
	var r *agent.Response
	var err error
	if streaming {
		r, err = agent.Collect(a.Stream(context.Background(), thread, messages...))
	} else {
		r, err = a.Run(context.Background(), thread, messages...)
	}
	must.Do(t, err)
	return r
}

// noteAgent has a tool that a person approves (pay) and one that a predicate approves (note).
func noteAgent(m *model, s *shop) agent.Agent {
	note := agent.RequireApproval(
		agent.NewFunction("note", "", nil, func(context.Context, json.RawMessage) (any, error) {
			s.runs = append(s.runs, "note")
			return "noted", nil
		}),
	)
	loop := agent.NewFunctionInvoking(m, agent.LoopConfig{})
	c := layer.NewStanding(layer.NewBinding(loop, layer.BindingConfig{Log: quiet()}), layer.StandingConfig{
		Log: quiet(),
		Predicates: []layer.Predicate{{
			Name: "notes",
			Approve: func(_ context.Context, a layer.Asked) bool {
				return a.Call.Name == "note"
			},
		}},
	})
	return agent.NewChatAgent(c, agent.ChatAgentConfig{Tools: append(s.tools, note)})
}

// The second round of Standing fails. Results of calls that ran on an approval in the first
// round must stay in the thread, or the model would pay again.
func TestSecondRoundFails(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		s := newShop()
		m := says(list(assistant(call("c1", "pay", `{"n":1}`))), list(assistant(call("c2", "note", `{}`))))
		m.err = errors.New("429")
		a := noteAgent(m, s)
		thread := agent.NewThread("t")
		q := runAgent(t, a, thread, streaming, user(text("buy"))).UserInputRequests()[0].(*content.ToolApprovalRequest)
		run := func(ms ...*content.Message) error {
			if !streaming {
				_, err := a.Run(t.Context(), thread, ms...)
				return err
			}
			_, err := agent.Collect(a.Stream(t.Context(), thread, ms...))
			return err
		}
		if err := run(user(q.CreateApproval(""))); err == nil {
			t.Fatal("no error")
		}
		m.err = nil
		m.turns = append(m.turns, nil, &agent.Response{Messages: list(assistant(text("done")))})
		must.Do(t, run(user(text("go on"))))
		if told := tell(m.last()); strings.Count(strings.Join(s.runs, " "), "pay") != 1 ||
			!strings.Contains(told, "c1 pay") {
			t.Errorf("streaming %v: ran %v, and the model is told\n%s", streaming, s.runs, told)
		}
	}
}

// The reader of a stream stops in the second round.
func TestReaderLeavesInTheSecondRound(t *testing.T) {
	s := newShop()
	m := says(
		list(assistant(call("c1", "pay", `{"n":1}`))),
		list(assistant(call("c2", "note", `{}`))),
		list(assistant(text("done"))),
		list(assistant(text("on"))),
	)
	a := noteAgent(m, s)
	thread := agent.NewThread("t")
	q := runAgent(t, a, thread, true, user(text("buy"))).UserInputRequests()[0].(*content.ToolApprovalRequest)
	for u, err := range a.Stream(t.Context(), thread, user(q.CreateApproval(""))) {
		must.Do(t, err)
		if len(u.Contents) > 0 {
			if c, ok := u.Contents[0].(*content.Text); ok && c.Text == "done" {
				break
			}
		}
	}

	runAgent(t, a, thread, true, user(text("go on")))
	if told := tell(m.last()); !strings.Contains(told, "c1 pay") {
		t.Errorf("ran %v, and the model is told\n%s", s.runs, told)
	}
}
