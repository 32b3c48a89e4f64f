package agent

import (
	"context"
	"iter"

	"github.com/assent-dev/assent/agent/content"
)

// Agent runs on a thread: a chat model with its tools, or anything that
// takes messages and may ask the user in the middle.
type Agent interface {
	Name() string
	// Run goes on with the thread. The response may hold user-input
	// requests; then run again with the responses in a message. Without
	// messages it only looks whether somebody has answered elsewhere.
	// On an error the thread is as it was, but for answers that were
	// taken and calls that were run: run again, with the same messages.
	// When only saving failed there is a response too.
	Run(ctx context.Context, t *Thread, messages ...*content.Message) (*Response, error)
	// Stream is Run piece by piece. What is not read to its end is not
	// kept, and requests that it showed are withdrawn.
	Stream(ctx context.Context, t *Thread, messages ...*content.Message) iter.Seq2[*Update, error]
}
