// Package stage is what the examples with agents share: scripted
// models, and a page on which a terminal shows who said what.
package stage

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// Says is a response of one message.
func Says(contents ...content.Content) *agent.Response {
	return &agent.Response{Messages: []*content.Message{content.NewMessage(content.Assistant, contents...)}}
}

// ResultsIn returns the results in a history by the ids of their calls.
// A call that was refused has a result too: a sentence in place of what
// the tool gives.
func ResultsIn(messages []*content.Message) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for r := range content.All[*content.FunctionResult](messages) {
		out[r.CallID] = r.Result
	}
	return out
}

// Script is a model that says one message after the other, each of
// which but the last makes one call. Its place follows from the results
// that it is given, so one script serves many threads.
func Script(turns ...*content.Message) agent.ChatClient { return script(turns) }

type script []*content.Message

// Respond says the message of this turn.
func (s script) Respond(
	_ context.Context,
	messages []*content.Message,
	_ *agent.Options,
) (*agent.Response, error) {
	turn := min(len(ResultsIn(messages)), len(s)-1)
	return &agent.Response{Messages: []*content.Message{s[turn]}}, nil
}

// Stream is Respond in one piece.
func (s script) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return agent.StreamOf(s.Respond(ctx, messages, opt))
}
