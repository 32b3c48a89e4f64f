package agent

import (
	"context"
	"iter"

	"github.com/assent-dev/assent/agent/content"
)

// Agent works on a thread: a chat model with its tools, or any other program that takes
// messages and may ask the user a question before it finishes.
type Agent interface {
	Name() string
	// Run continues the thread with new messages. If the response contains user-input requests,
	// call Run again with the answers in a message. Without messages, Run only checks whether
	// requests have been answered elsewhere, such as in an approval service.
	//
	// On an error the thread is unchanged, except for answers that were accepted and calls that
	// ran: call Run again with the same messages. If only saving the thread failed, Run returns
	// a response together with the error.
	Run(ctx context.Context, t *Thread, messages ...*content.Message) (*Response, error)
	// Stream does the same as Run and yields the response in pieces. The thread keeps nothing
	// of a stream that is not read to its end, and requests that such a stream showed are
	// withdrawn.
	Stream(ctx context.Context, t *Thread, messages ...*content.Message) iter.Seq2[*Update, error]
}
