package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
)

// script plays the model. It makes the payment that the last message asks for, and reports the
// result.
type script struct{}

func (script) Respond(_ context.Context, messages []*content.Message, _ *agent.Options) (*agent.Response, error) {
	last := messages[len(messages)-1]
	if last.Role == content.ToolRole {
		return stage.Says(&content.Text{Text: report(last)}), nil
	}
	var in struct {
		Amount int    `json:"amount"`
		To     string `json:"to"`
	}
	if _, err := fmt.Sscanf(last.Text(), "Pay %d to %s", &in.Amount, &in.To); err != nil {
		return nil, fmt.Errorf("what to pay: %w", err)
	}
	args, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	call := &content.FunctionCall{
		CallID:    fmt.Sprintf("call_%d", len(messages)),
		Name:      "pay",
		Arguments: args,
	}
	return stage.Says(call), nil
}

func report(results *content.Message) string {
	for _, c := range results.Contents {
		if r, ok := c.(*content.FunctionResult); ok && string(r.Result) == `"paid"` {
			return "It is paid."
		}
	}
	return "I have not paid."
}

func (s script) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return agent.StreamOf(s.Respond(ctx, messages, opt))
}
