package agent

import (
	"context"
	"iter"

	"github.com/assent-dev/assent/content"
)

// Agent runs on a thread: a chat model with its tools, or anything that takes messages and may ask the user in the middle.
type Agent interface {
	Name() string
	// Run goes on with the thread. The response may hold user-input requests; then run again with the responses in a message.
	Run(ctx context.Context, t *Thread, messages ...*content.Message) (*Response, error)
	// Stream is Run piece by piece.
	Stream(ctx context.Context, t *Thread, messages ...*content.Message) iter.Seq2[*Update, error]
}
