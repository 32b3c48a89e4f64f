package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/anthropic"
	"github.com/assent-dev/assent/agent/openai"
	"github.com/assent-dev/assent/content"
)

// modelOf returns the model of a name such as openai:NAME. A model of the same API elsewhere is found by OPENAI_BASE_URL or
// ANTHROPIC_BASE_URL.
func modelOf(full string, env func(string) string) (agent.ChatClient, error) {
	if full == "" {
		return script{}, nil
	}
	vendor, name, _ := strings.Cut(full, ":")
	key := env(strings.ToUpper(vendor) + "_API_KEY")
	switch {
	case vendor != "openai" && vendor != "anthropic" || name == "":
		return nil, fmt.Errorf("model %q: expected openai:NAME or anthropic:NAME", full)
	case key == "":
		return nil, fmt.Errorf("model %q: %s_API_KEY is not set", full, strings.ToUpper(vendor))
	case vendor == "openai":
		return openai.NewChat(openai.NewClient(env("OPENAI_BASE_URL"), key), openai.Config{Model: name}), nil
	}
	options := []anthropic.Option{anthropic.WithoutEnvironment(), anthropic.WithAPIKey(key), anthropic.WithModel(name)}
	if url := env("ANTHROPIC_BASE_URL"); url != "" {
		options = append(options, anthropic.WithBaseURL(url))
	}
	return anthropic.New(options...), nil
}

// script plays the model. It finds its place in the messages that it is given, so it does not matter which process asks.
type script struct{}

// Respond searches, books the first flight that was found, and says what came of it.
func (script) Respond(_ context.Context, messages []*content.Message, _ *agent.Options) (*agent.Response, error) {
	results := resultsIn(messages)
	found, searched := results["call-1"]
	booked, tried := results["call-2"]
	switch {
	case !searched:
		return calls("call-1", "search_flights", map[string]string{"to": destination(messages)})
	case !tried:
		var list []flight
		if json.Unmarshal(found, &list) != nil || len(list) == 0 {
			return says(&content.Text{Text: "I found no flight."}), nil
		}
		return calls("call-2", "book_flight", order{list[0].Flight, list[0].Price})
	}
	return says(&content.Text{Text: report(booked)}), nil
}

// Stream is for callers that stream; this one does not.
func (script) Stream(context.Context, []*content.Message, *agent.Options) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) { yield(nil, errors.ErrUnsupported) }
}

func report(result json.RawMessage) string {
	var b booking
	switch err := json.Unmarshal(result, &b); {
	case err != nil: // a sentence in place of a result: it did not run
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
	return says(&content.FunctionCall{CallID: id, Name: name, Arguments: text}), nil
}

func says(contents ...content.Content) *agent.Response {
	return &agent.Response{Messages: []*content.Message{content.NewMessage(content.Assistant, contents...)}}
}

// destination is the last word that the traveller wrote.
func destination(messages []*content.Message) string {
	to := ""
	for _, m := range messages {
		if words := strings.Fields(m.Text()); m.Role == content.User && len(words) > 0 {
			to = words[len(words)-1]
		}
	}
	return to
}

// resultsIn returns the results in a history by the ids of their calls. A call that was refused has a result too: a sentence in place of
// what the tool gives.
func resultsIn(messages []*content.Message) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, m := range messages {
		for _, c := range m.Contents {
			if r, ok := c.(*content.FunctionResult); ok {
				out[r.CallID] = r.Result
			}
		}
	}
	return out
}
