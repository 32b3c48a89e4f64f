package openai_test

import (
	"context"
	"fmt"
	"log"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/replay"
	"github.com/assent-dev/assent/agent/openai"
)

// The service calls an MCP server by itself and asks for approval first. The next request
// contains the answer and continues the conversation that the service keeps.
func ExampleNewResponses() {
	recorded, err := replay.Load("testdata/mcp_stored.json")
	if err != nil {
		log.Fatal(err)
	}
	service, err := replay.Serve(recorded)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	model := openai.NewResponses(openai.NewClient(service.URL()+"/v1", "key"),
		openai.Config{Model: "gpt-5", Store: true})

	dice := &agent.HostedMCP{Name: "dice", URL: "https://dice.example/mcp"}
	asked, err := agent.Collect(
		model.Stream(ctx, []*content.Message{content.UserText("Roll")}, &agent.Options{Tools: []agent.Tool{dice}}),
	)
	if err != nil {
		log.Fatal(err)
	}
	request := asked.UserInputRequests()[0].(*content.ToolApprovalRequest)
	fmt.Printf("may %s run with %s?\n", request.Call.ToolName(), request.Call.Args())

	answer := content.NewMessage(content.User, request.CreateApproval(""))
	rolled, err := model.Respond(ctx, []*content.Message{answer}, &agent.Options{ConversationID: asked.ConversationID})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rolled.Text())
	fmt.Println(service.Close())
	// Output:
	// may roll run with {"n": 1.0}?
	// 4.
	// <nil>
}
