// Package stage has the shared parts of the examples with agents: scripted models, and a page
// that shows a conversation in a terminal.
package stage

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// Says returns a response of one message.
func Says(contents ...content.Content) *agent.Response {
	return &agent.Response{Messages: []*content.Message{content.NewMessage(content.Assistant, contents...)}}
}

// ResultsIn returns the results in a history by call id. A refused call has a result too: a
// sentence instead of the tool's result.
func ResultsIn(messages []*content.Message) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for r := range content.All[*content.FunctionResult](messages) {
		out[r.CallID] = r.Result
	}
	return out
}

// Script returns a model that says one message after the other. Each message except the last
// makes one call. The position in the script depends on the number of results, so one script
// serves many threads.
func Script(turns ...*content.Message) agent.ChatClient { return script(turns) }

type script []*content.Message

// Respond returns the message of this turn.
func (s script) Respond(
	_ context.Context,
	messages []*content.Message,
	_ *agent.Options,
) (*agent.Response, error) {
	turn := min(len(ResultsIn(messages)), len(s)-1)
	return &agent.Response{Messages: []*content.Message{s[turn]}}, nil
}

// Stream returns the response as one update.
func (s script) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return agent.StreamOf(s.Respond(ctx, messages, opt))
}
