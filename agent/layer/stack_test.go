package layer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
	"github.com/assent-dev/assent/agent/layer"
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

// held tells whether each call in a history has one result.
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

// TestStackAroundTheLoops has a model look and pay, and pay again, in both profiles: the person
// sees one request for the first payment and leaves a rule behind, the second goes by that rule.
func TestStackAroundTheLoops(t *testing.T) {
	for _, p := range []profile{safe, compatible} {
		for _, streaming := range []bool{false, true} {
			t.Run(fmt.Sprint(p, streaming), func(t *testing.T) {
				s := newShop()
				m := says(list(assistant(text("Let me see."), call("c1", "look", `{}`), call("c2", "pay", `{"n":1}`))),
					list(assistant(text("Once more."), call("c3", "pay", `{"n":1}`))), list(assistant(text("Paid twice."))), list(assistant(text("Bye."))))
				a := agent.NewChatAgent(p.stack(p.loop(m), layer.StandingConfig{}), agent.ChatAgentConfig{Tools: s.tools})
				thread := agent.NewThread("t")
				r := runAgent(t, a, thread, streaming, user(text("buy")))
				asked := r.UserInputRequests()
				if len(asked) != 1 || rounds.FunctionCall(asked[0]).Name != "pay" || strings.Join(s.runs, " ") != "" && p == compatible {
					t.Fatalf("asked is %s, ran %v", tell(r.Messages), s.runs)
				}
				r = runAgent(t, a, thread, streaming, user(asked[0].(*content.ToolApprovalRequest).CreateAlwaysApprove(content.AlwaysArguments, "")))
				if got := strings.Join(s.runs, " "); strings.Count(got, `pay{"n":1}`) != 2 || strings.Count(got, "look") != 1 {
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
				if told := tell(m.last()); p == safe && (strings.Count(told, "c3 pay") != 1 || strings.Count(told, "Once more.") != 1 || strings.Count(told, `"buy"`) != 1) {
					t.Errorf("the model was told %s", told)
				}
			})
		}
	}
}

func runAgent(t *testing.T, a agent.Agent, thread *agent.Thread, streaming bool, messages ...*content.Message) *agent.Response {
	t.Helper()
	var r *agent.Response
	var err error
	if streaming {
		r, err = agent.Collect(a.Stream(context.Background(), thread, messages...))
	} else {
		r, err = a.Run(context.Background(), thread, messages...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}
