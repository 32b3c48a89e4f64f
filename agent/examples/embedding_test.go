package examples_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log"
	"os"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/filestore"
)

// scripted plays the model. It wants to trade, and reports the result.
type scripted struct{}

func (scripted) Respond(
	_ context.Context,
	messages []*content.Message,
	_ *agent.Options,
) (*agent.Response, error) {
	m := content.NewMessage(content.Assistant, &content.FunctionCall{
		CallID:    "call_1",
		Name:      "execute_trade",
		Arguments: json.RawMessage(`{"amount":20000,"currency":"USD"}`),
	})
	if messages[len(messages)-1].Role == content.ToolRole {
		m = content.AssistantText("Bought.")
	}
	return &agent.Response{Messages: []*content.Message{m}}, nil
}

func (s scripted) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return agent.StreamOf(s.Respond(ctx, messages, opt))
}

// Example_agent asks in the middle of a run, and continues in another run.
func Example_agent() {
	var model agent.ChatClient = scripted{} // or openai.NewChat(…), anthropic.New(…)
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "threads")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	trade := agent.RequireApproval(agent.NewFunction("execute_trade", "Buys shares.", nil,
		func(ctx context.Context, args json.RawMessage) (any, error) { return "filled", nil }))
	threads, err := filestore.New(dir)
	if err != nil {
		log.Fatal(err)
	}
	desk := agent.NewChatAgent(agent.NewFunctionInvoking(model, agent.LoopConfig{}),
		agent.ChatAgentConfig{
			Name:  "desk",
			Tools: []agent.Tool{trade},
			Store: threads,
		})

	thread, err := agent.LoadOrNew(ctx, threads, "t1")
	if err != nil {
		log.Fatal(err)
	}
	response, err := desk.Run(ctx, thread, content.UserText("Buy ACME."))
	if err != nil {
		log.Fatal(err)
	}
	for _, asked := range response.UserInputRequests() { // the run is over; the thread keeps the request
		call := asked.(*content.ToolApprovalRequest).Call
		fmt.Printf("%s %s?\n", call.ToolName(), call.Args())
	}

	// Later, in any process: the thread, and the answer.
	thread, err = threads.Load(ctx, "t1")
	if err != nil {
		log.Fatal(err)
	}
	yes := thread.Pending()[0].Request.(*content.ToolApprovalRequest).CreateApproval("")
	response, err = desk.Run(ctx, thread, content.NewMessage(content.User, yes))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.Text())
	// Output:
	// execute_trade {"amount":20000,"currency":"USD"}?
	// Bought.
}
