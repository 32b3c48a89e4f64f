// Package model chooses the model for the examples with agents: a script, or the model of a
// vendor.
package model

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/anthropic"
	"github.com/assent-dev/assent/agent/openai"
)

// New returns the model for a name such as openai:NAME, or the scripted model for "". With
// OPENAI_BASE_URL or ANTHROPIC_BASE_URL, it uses another service with the same API.
func New(full string, env func(string) string, script agent.ChatClient) (agent.ChatClient, error) {
	if full == "" {
		return script, nil
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

	options := []anthropic.Option{
		anthropic.WithoutEnvironment(),
		anthropic.WithAPIKey(key),
		anthropic.WithModel(name),
	}
	if url := env("ANTHROPIC_BASE_URL"); url != "" {
		options = append(options, anthropic.WithBaseURL(url))
	}
	return anthropic.New(options...), nil
}
