package agent

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/approval/info"
)

// LoopConfig configures a FunctionInvoking loop. The zero value is the default.
type LoopConfig struct {
	// Decider decides each call in addition to the markers of the tools. If nil, only the
	// markers count.
	Decider Decider
	// Holder keeps the requests, for example in an approval service, and people answer them
	// there. If nil, they are answered in the messages. A Holder needs a Decider with a plan:
	// for a call that is only marked, no policy names the people to ask, so such a call is
	// refused.
	Holder hold.Holder
	// Questions lets people answer the text approvals and structured input requests of
	// suspended functions. Answers to these in the messages are then refused. If nil, the user
	// answers them in the messages, with or without a Holder.
	Questions *HeldQuestions
	// Says returns context from the agent about a call, which people who are asked see below
	// the details of the call. It may be nil. If Says fails, or info.Check rejects its items,
	// the call is refused without asking.
	Says func(ctx context.Context, call *content.FunctionCall) ([]info.Item, error)
	// Tools are known to the loop but not sent to the model.
	Tools []Tool
	// MaxTurns limits the turns of the model in one run. The default is 40. On the turn after
	// the last one functions are not offered.
	MaxTurns int
	// MaxErrors limits how many consecutive turns may have a failing function. Zero means 3 and
	// a negative number allows none.
	MaxErrors int
	// DetailedErrors includes the error messages of functions in the results for the model.
	DetailedErrors bool
	// Concurrent runs the calls of one turn concurrently.
	Concurrent bool
	// OnNewMessage decides whether open requests end when the user writes something else.
	OnNewMessage NewMessagePolicy
	// WrapSiblings requests approval for every call of a turn in which one call needs approval,
	// as .NET does. Otherwise the harmless calls run immediately.
	WrapSiblings bool
	// DotNetOrder puts rejected calls and their results before the others in rebuilt messages,
	// as .NET does. Otherwise they keep the model's order.
	DotNetOrder bool
	// Audit receives the record of requests and answers.
	Audit Audit
	// Now is the clock. The default is time.Now.
	Now func() time.Time
	// Rand is the source of randomness for request ids. The default is crypto/rand.
	Rand io.Reader
	// RequestID makes a request id from a call id. The default id is ficc_, the call id and a
	// random tail. Without such a tail, an answer to a request of another thread for the same
	// call id could match a request here.
	RequestID func(callID string) string
	// Log receives debug records of requests, rejections and failures. It may be nil. Error
	// messages of functions are written to Log and Audit. The model gets them only with
	// DetailedErrors.
	Log *slog.Logger
}

// NewMessagePolicy decides whether open requests end when the user writes something else.
type NewMessagePolicy uint8

// The policies.
const (
	KeepOpen  NewMessagePolicy = iota // they stay open; the model answers without seeing the calls
	Supersede                         // they end; the model's result says that the user continued without answering
)
