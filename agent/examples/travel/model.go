package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
)

// script plays the model. It finds its place in the messages, so any process can continue.
type script struct{}

// Respond searches, books the first flight in the result, and reports the booking.
func (script) Respond(_ context.Context, messages []*content.Message, _ *agent.Options) (*agent.Response, error) {
	results := stage.ResultsIn(messages)
	found, searched := results["call-1"]
	booked, tried := results["call-2"]
	switch {
	case !searched:
		return calls("call-1", "search_flights", map[string]string{"to": destination(messages)})
	case !tried:
		var list []flight
		if json.Unmarshal(found, &list) != nil || len(list) == 0 {
			return stage.Says(&content.Text{Text: "I found no flight."}), nil
		}
		return calls("call-2", "book_flight", order{list[0].Flight, list[0].Price})
	}

	return stage.Says(&content.Text{Text: report(booked)}), nil
}

// Stream returns the response as one update.
func (s script) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return agent.StreamOf(s.Respond(ctx, messages, opt))
}

func report(result json.RawMessage) string {
	var b booking
	switch err := json.Unmarshal(result, &b); {
	case err != nil: // a sentence instead of a result: the tool didn't run
		return "I have booked nothing."
	case b.Problem != "":
		return "I have booked nothing: " + b.Problem + "."
	}

	return fmt.Sprintf("I have booked %s for %g EUR.", b.Booked, b.Price)
}

func calls(id, name string, arguments any) (*agent.Response, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return nil, fmt.Errorf("write the arguments: %w", err)
	}
	return stage.Says(&content.FunctionCall{CallID: id, Name: name, Arguments: text}), nil
}

// destination returns the last word of the traveller's message.
func destination(messages []*content.Message) string {
	to := ""
	for _, m := range messages {
		if words := strings.Fields(m.Text()); m.Role == content.User && len(words) > 0 {
			to = words[len(words)-1]
		}
	}
	return to
}
