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

// LoopConfig are the choices for a FunctionInvoking. The zero value is
// the default.
type LoopConfig struct {
	// Decider decides each call beside the markers of the tools; nil
	// leaves it to the markers.
	Decider Decider
	// Holder keeps the requests where people answer them; nil means
	// that they are answered in the messages. It needs a Decider with a
	// plan: nobody can be asked there about a call that is only marked,
	// so such a call is refused.
	Holder hold.Holder
	// Questions has people answer what suspended functions ask in text
	// approvals and structured input; then answers to these in the
	// messages are refused. nil: the user answers in the messages,
	// whatever Holder is.
	Questions *HeldQuestions
	// Says returns what the agent says about a call to the people who
	// are asked about it, who see it below what is known of the call;
	// nil: nothing. After an error, and with what info.Check refuses, the
	// call is refused and nobody is asked.
	Says func(ctx context.Context, call *content.FunctionCall) ([]info.Item, error)
	// Tools are known to the loop and not sent to the model.
	Tools []Tool
	// MaxTurns bounds the turns of the model in one run; 0 means 40. On
	// the turn after the last one functions are not offered.
	MaxTurns int
	// MaxErrors bounds how many turns in a row may have a failing
	// function; 0 means 3, -1 none.
	MaxErrors int
	// DetailedErrors tells the model what a function's error says.
	DetailedErrors bool
	// Concurrent runs the calls of one turn at once.
	Concurrent bool
	// OnNewMessage says what becomes of open requests when the user
	// writes something else.
	OnNewMessage NewMessagePolicy
	// WrapSiblings asks about every call of a turn in which one needs
	// approval, as .NET does, instead of running the harmless ones at
	// once.
	WrapSiblings bool
	// DotNetOrder puts rejected calls and their results before the
	// others in rebuilt messages, as .NET does; else they keep the
	// model's order.
	DotNetOrder bool
	// Audit takes the record of requests and answers.
	Audit Audit
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Rand makes request ids hard to guess; nil means crypto/rand.
	Rand io.Reader
	// RequestID makes request ids of call ids; nil means ficc_, the
	// call id and a random tail. Without a tail an answer to another
	// thread's request of the same call may find one here.
	RequestID func(callID string) string
	// Log takes debug records of requests, rejections and failures; nil
	// means none. What the errors of functions say goes here and to
	// Audit, and to the model only with DetailedErrors.
	Log *slog.Logger
}

// NewMessagePolicy says what becomes of open requests when the user
// writes something else.
type NewMessagePolicy uint8

// The policies.
const (
	KeepOpen  NewMessagePolicy = iota // they stay open; the model answers without seeing the calls
	Supersede                         // they end; the model is told that the user went on instead
)
