package rap

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/assent-dev/assent/approval"
)

// Operation is one wrapped operation.
type Operation struct {
	Name        string
	Description string
	InputSchema json.RawMessage
	Destructive bool
	ReadOnly    bool // passed on to runtimes; has no effect on decisions
	// Label describes a call in a few words for people: "write 12 bytes to /etc/motd". If it is
	// nil or returns an empty string, people see only the arguments. The label is shown in
	// addition to the arguments, never instead of them.
	Label func(args json.RawMessage) string
	// Run runs the operation with the stored arguments. The runtime gets the text of an error
	// only if it is a *PublicError.
	Run func(ctx context.Context, job Job) (Outcome, error)
	// Feed is the source of events that follow outcomes with a Subscription. If it is nil,
	// outcomes must not have one.
	Feed Feed
}

// Job describes one call that may run.
type Job struct {
	Asker     approval.Asker // the caller as an asker, with its name in the ledger and the person who owns the runtime
	Caller    string         // its configured name
	Thread    string
	ID        string
	Run       string // a unique name of the run
	User      string
	Ancestors []string
	Operation string
	Arguments json.RawMessage // exactly as decided
	// Ask relays a question (the user_choice of an upstream RAP server) to the runtime's user.
	// It returns ErrAskedAlready if the user was asked about this call before, because a call
	// has one question.
	Ask func(ctx context.Context, prompt string, choices []string, standard int) (int, error)
}

// PublicError is an error of an operation whose text the runtime may see.
type PublicError struct{ Text string }

func (e *PublicError) Error() string { return e.Text }

// ErrAskedAlready is returned if the user was asked about the call before.
var ErrAskedAlready = errors.New("this call has asked its user before")

// Feed is the source of events of an operation's subscriptions. Its state must outlive the
// process. A call gets the name of its subscription before it runs, so that a subscription can
// be ended after a crash.
type Feed interface {
	// Name returns the name of the subscription that a call would have.
	Name(job Job) (string, error)
	// Events returns the next events of a subscription from an index on, in order, and whether
	// more may come. It need not return all.
	Events(ctx context.Context, subscription string, from int) (events []Event, live bool, err error)
	// End ends a subscription at its source. It may be called several times, and for a
	// subscription that does not exist.
	End(ctx context.Context, subscription string) error
	// Watch calls changed for each subscription that has new events, until ctx ends.
	Watch(ctx context.Context, changed func(subscription string)) error
}

// Event is an event of a subscription.
type Event struct {
	Index       int    `json:"index"`
	ID          string `json:"id"` // of the call
	Text        string `json:"text"`
	Associative bool   `json:"associative,omitempty"`
	Final       bool   `json:"final,omitempty"`
}
