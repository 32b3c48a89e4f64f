package layer_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/layer"
)

// noteAgent has a tool that a person approves (pay) and one that a predicate approves (note).
func noteAgent(m *model, s *shop) agent.Agent {
	note := agent.RequireApproval(agent.NewFunction("note", "", nil, func(context.Context, json.RawMessage) (any, error) {
		s.runs = append(s.runs, "note")
		return "noted", nil
	}))
	loop := agent.NewFunctionInvoking(m, agent.LoopConfig{})
	c := layer.NewStanding(layer.NewBinding(loop, layer.BindingConfig{Log: quiet()}), layer.StandingConfig{Log: quiet(), Predicates: []layer.Predicate{{Name: "notes", Approve: func(_ context.Context, a layer.Asked) bool { return a.Call.Name == "note" }}}})
	return agent.NewChatAgent(c, agent.ChatAgentConfig{Tools: append(s.tools, note)})
}

// The second round of Standing fails. What the first one ran on an approval must stay in the
// thread: else the model pays again.
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
		if err := run(user(text("go on"))); err != nil {
			t.Fatal(err)
		}
		if told := tell(m.last()); strings.Count(strings.Join(s.runs, " "), "pay") != 1 || !strings.Contains(told, "c1 pay") {
			t.Errorf("streaming %v: ran %v, and the model is told\n%s", streaming, s.runs, told)
		}
	}
}

// The reader of a stream leaves in the second round.
func TestReaderLeavesInTheSecondRound(t *testing.T) {
	s := newShop()
	m := says(list(assistant(call("c1", "pay", `{"n":1}`))), list(assistant(call("c2", "note", `{}`))), list(assistant(text("done"))), list(assistant(text("on"))))
	a := noteAgent(m, s)
	thread := agent.NewThread("t")
	q := runAgent(t, a, thread, true, user(text("buy"))).UserInputRequests()[0].(*content.ToolApprovalRequest)
	for u, err := range a.Stream(t.Context(), thread, user(q.CreateApproval(""))) {
		if err != nil {
			t.Fatal(err)
		}
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
