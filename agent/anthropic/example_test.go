package anthropic_test

import (
	"context"
	"fmt"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/anthropic"
	"github.com/assent-dev/assent/agent/content"
)

// A loop around the client runs the model's calls. Only the key is configured from outside.
func ExampleNew() {
	model := anthropic.New(
		anthropic.WithoutEnvironment(),
		anthropic.WithAPIKey("sk-ant-…"),
		anthropic.WithModel("claude-sonnet-4-5"),
		anthropic.WithMaxTokens(8192),
		anthropic.WithParameters(map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 2048}}),
	)
	loop := agent.NewFunctionInvoking(model, agent.LoopConfig{})
	r, err := loop.Respond(context.Background(), []*content.Message{content.UserText("Hello")}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Text())
}
