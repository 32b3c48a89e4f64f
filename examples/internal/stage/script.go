// Package stage is what the examples with agents share: scripted models, and a page on which a
// terminal shows who said what.
package stage

import (
	"encoding/json"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// Says is a response of one message.
func Says(contents ...content.Content) *agent.Response {
	return &agent.Response{Messages: []*content.Message{content.NewMessage(content.Assistant, contents...)}}
}

// ResultsIn returns the results in a history by the ids of their calls. A call that was refused has
// a result too: a sentence in place of what the tool gives.
func ResultsIn(messages []*content.Message) map[string]json.RawMessage {
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
