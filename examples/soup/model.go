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

// script plays the model: what it says follows from the messages that it is given and from nothing else.
type script struct{}

// Respond calls both tools in one turn, and tells the guest what came of it.
func (script) Respond(_ context.Context, messages []*content.Message, _ *agent.Options) (*agent.Response, error) {
	results := resultsIn(messages)
	if len(results) == 0 {
		return says(
			&content.FunctionCall{CallID: "call-1", Name: "get_specials", Arguments: json.RawMessage(`{}`)},
			&content.FunctionCall{CallID: "call-2", Name: "get_item_price", Arguments: json.RawMessage(`{"item":"special soup"}`)},
		), nil
	}
	var today specials
	if json.Unmarshal(results["call-1"], &today) != nil {
		return says(&content.Text{Text: "I am not allowed to look at the specials. May I bring you the menu?"}), nil
	}
	var cost price
	if json.Unmarshal(results["call-2"], &cost) != nil {
		return says(&content.Text{Text: fmt.Sprintf("Today's soup is %s. I am not allowed to tell its price.", today.Soup)}), nil
	}
	return says(&content.Text{Text: fmt.Sprintf("Today's soup is %s, for %s.", today.Soup, cost.Price)}), nil
}

// Stream is for callers that stream; this one does not.
func (script) Stream(context.Context, []*content.Message, *agent.Options) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) { yield(nil, errors.ErrUnsupported) }
}

func says(contents ...content.Content) *agent.Response {
	return &agent.Response{Messages: []*content.Message{content.NewMessage(content.Assistant, contents...)}}
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
