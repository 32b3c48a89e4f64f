package openai

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/compat"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

// payer is a marked function that counts its runs.
func payer(runs *[]string) agent.Function {
	return agent.RequireApproval(agent.NewFunction("pay", "Pays.", json.RawMessage(`{"type":"object"}`),
		func(_ context.Context, arguments json.RawMessage) (any, error) {
			*runs = append(*runs, string(arguments))
			return "paid", nil
		}))
}

// The whole way: the model calls a marked function, the run ends with a
// request, the answer comes, the function runs once on exactly what the
// model wrote, and the model gets a history that the service accepts.
func TestLoopCompatible(t *testing.T) {
	type runner func(*testing.T, agent.ChatClient, *agent.Options, ...*content.Message) *agent.Response
	for name, run := range map[string]runner{"whole": ask, "stream": stream} {
		t.Run(name, func(t *testing.T) {
			file := map[string]string{"whole": "loop.json", "stream": "loop_stream.json"}[name]
			var runs []string
			loop := compat.NewFunctionInvoking(responsesOn(t, file, Config{Model: "gpt-5"}), compat.Config{})
			opt := &agent.Options{Tools: []agent.Tool{payer(&runs)}}
			question := content.UserText("Pay 5 to Ann")
			first := run(t, loop, opt, question)
			asked := first.UserInputRequests()
			if len(asked) != 1 || len(runs) != 0 {
				t.Fatalf("%d runs, got %s", len(runs), show(first))
			}
			yes := asked[0].(*content.ToolApprovalRequest).CreateApproval("")
			history := append([]*content.Message{question}, first.Messages...)
			last := run(t, loop, opt, append(history, content.NewMessage(content.User, yes))...)
			if len(runs) != 1 || runs[0] != `{"to":"Ann", "amount": 5.00}` || last.Text() != "Done." {
				t.Errorf("runs %q, got %s", runs, show(last))
			}
		})
	}
}

// The default profile keeps what waits in the thread, and nothing of
// the history needs to come back. Another loop, as in another process,
// goes on with it.
func TestLoopDefault(t *testing.T) {
	var runs []string
	model := responsesOn(t, "loop.json", Config{Model: "gpt-5"})
	thread := agent.NewThread("t")
	run := func(m *content.Message) *agent.Response {
		loop := agent.NewFunctionInvoking(model, agent.LoopConfig{})
		r := must.Get(agent.NewChatAgent(loop, agent.ChatAgentConfig{Tools: []agent.Tool{payer(&runs)}}).
			Run(t.Context(), thread, m))(t)
		return r
	}
	asked := run(content.UserText("Pay 5 to Ann")).UserInputRequests()
	if len(asked) != 1 || len(runs) != 0 {
		t.Fatalf("%d runs, got %v", len(runs), asked)
	}
	last := run(content.NewMessage(content.User, asked[0].(*content.ToolApprovalRequest).CreateApproval("")))
	if len(runs) != 1 || last.Text() != "Done." || len(last.Refused) != 0 {
		t.Errorf("runs %q, refused %v, got %s", runs, last.Refused, show(last))
	}
}
