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

// script plays the model. Its answer depends only on the messages that it gets.
type script struct{}

// Respond calls both tools in one turn, and then gives the results to the guest.
func (script) Respond(_ context.Context, messages []*content.Message, _ *agent.Options) (*agent.Response, error) {
	results := stage.ResultsIn(messages)
	if len(results) == 0 {
		return stage.Says(
			&content.FunctionCall{
				CallID:    "call-1",
				Name:      "get_specials",
				Arguments: json.RawMessage(`{}`),
			},
			&content.FunctionCall{
				CallID:    "call-2",
				Name:      "get_item_price",
				Arguments: json.RawMessage(`{"item":"special soup"}`),
			},
		), nil
	}

	var today specials
	if json.Unmarshal(results["call-1"], &today) != nil {
		return stage.Says(
			&content.Text{Text: "I am not allowed to look at the specials. May I bring you the menu?"},
		), nil
	}
	var cost price
	if json.Unmarshal(results["call-2"], &cost) != nil {
		return stage.Says(
			&content.Text{
				Text: fmt.Sprintf("Today's soup is %s. I am not allowed to tell its price.", today.Soup),
			},
		), nil
	}

	return stage.Says(
		&content.Text{Text: fmt.Sprintf("Today's soup is %s, for %s.", today.Soup, cost.Price)},
	), nil
}

// Stream returns the response as one update.
func (s script) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return agent.StreamOf(s.Respond(ctx, messages, opt))
}
