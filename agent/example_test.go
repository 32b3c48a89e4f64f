package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// teller is a model that wants to pay and then reports the result of the call.
type teller struct{}

func (teller) Respond(_ context.Context, messages []*content.Message, _ *agent.Options) (*agent.Response, error) {
	last := messages[len(messages)-1]
	if last.Role != content.ToolRole {
		call := &content.FunctionCall{CallID: "call_1", Name: "pay",
			Arguments: json.RawMessage(`{"to":"Bob","amount":70}`)}
		return &agent.Response{Messages: []*content.Message{content.NewMessage(content.Assistant, call)}}, nil
	}

	result := last.Contents[0].(*content.FunctionResult).Result
	return &agent.Response{
		Messages: []*content.Message{content.AssistantText("The bank says " + string(result) + ".")},
	}, nil
}

func (m teller) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return agent.StreamOf(m.Respond(ctx, messages, opt))
}

func newTeller() agent.Agent {
	pay := agent.NewFunction("pay", "Pays somebody.",
		json.RawMessage(`{"type":"object","required":["to","amount"]}`),
		func(_ context.Context, args json.RawMessage) (any, error) { return "paid", nil })
	return agent.NewChatAgent(agent.NewFunctionInvoking(teller{}, agent.LoopConfig{}),
		agent.ChatAgentConfig{Name: "teller", Tools: []agent.Tool{agent.RequireApproval(pay)}})
}

// The user sits in front of the same process, and the program answers each request as it comes.
func ExampleRunToEnd() {
	thread := agent.NewThread("t1")
	response, err := agent.RunToEnd(context.Background(), newTeller(), thread,
		[]*content.Message{content.UserText("Pay Bob.")},
		func(_ context.Context, asked content.InputRequest) (content.InputResponse, error) {
			request := asked.(*content.ToolApprovalRequest)
			fmt.Printf("%s %s?\n", request.Call.ToolName(), request.Call.Args())
			return request.CreateRejection("too much"), nil
		})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.Text())
	// Output:
	// pay {"to":"Bob","amount":70}?
	// The bank says "Tool call invocation rejected. too much".
}

// One agent is a tool of another. Its requests are shown to the user of the outer agent, and
// the answers go back to the inner one.
func ExampleAsTool() {
	tool := agent.AsTool(newTeller(), agent.NestedConfig{Description: "Pays people. Tell it whom and how much."})
	_, err := tool.Invoke(context.Background(), &content.FunctionCall{CallID: "1", Name: "teller",
		Arguments: json.RawMessage(`{"input":"Pay Bob."}`)})
	var asks *agent.Suspend
	if errors.As(err, &asks) { // in a real program the loop does this part
		request := asks.Requests[0].(*content.ToolApprovalRequest)
		fmt.Println(request.Note.Agent, "asks:", request.Call.ToolName(), string(request.Call.Args()))
	}
	// Output:
	// teller asks: pay {"to":"Bob","amount":70}
}

// A flow is an agent without a chat model. Steps are done once, a question ends the run, and
// the next run continues after it.
func ExampleNewFlow() {
	booking := agent.NewFlow("booking", agent.FlowConfig{}, func(ctx context.Context, f *agent.Flow) error {
		var seat string
		find := func(context.Context) (any, error) {
			fmt.Println("(looks for a seat)")
			return "12A", nil
		}
		if err := f.Step(ctx, "find", find, &seat); err != nil {
			return err
		}
		if err := f.Approve(ctx, "take", "Take seat "+seat+"?"); err != nil {
			return err
		}
		f.Say("Seat " + seat + " is yours.")
		return nil
	})
	ctx, thread := context.Background(), agent.NewThread("t1")
	response, err := booking.Run(ctx, thread, content.UserText("A seat, please."))
	if err != nil {
		log.Fatal(err)
	}
	question := response.UserInputRequests()[0].(*content.TextApprovalRequest)
	fmt.Println(question.Text)
	response, err = booking.Run(ctx, thread, content.NewMessage(content.User, question.CreateApproval("")))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.Text())
	// Output:
	// (looks for a seat)
	// Take seat 12A?
	// Seat 12A is yours.
}
