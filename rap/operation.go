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
	ReadOnly    bool // told to runtimes; loosens nothing here
	// Label says in a few words what a call does, for people: "write 12
	// bytes to /etc/motd". Empty, or a nil func, shows the arguments.
	// It is shown beside the arguments, never instead of them.
	Label func(args json.RawMessage) string
	// Run does it, with the stored arguments. An error's text is told
	// to the runtime only when it is a *PublicError.
	Run func(ctx context.Context, job Job) (Outcome, error)
	// Feed brings the events that follow outcomes with a Subscription;
	// nil: none has one.
	Feed Feed
}

// Job is one call that may run.
type Job struct {
	Asker     approval.Asker // who made the call: the caller, under its name in the ledger, and whose runtime it is
	Caller    string         // its configured name
	Thread    string
	ID        string
	Run       string // a name that no other run of the gateway has
	User      string
	Ancestors []string
	Operation string
	Arguments json.RawMessage // exactly what was decided on
	// Ask relays a question of whatever runs the operation to the
	// runtime's user (an upstream RAP server's own user_choice). It is
	// ErrAskedAlready when this call has asked before: a call asks
	// once.
	Ask func(ctx context.Context, prompt string, choices []string, standard int) (int, error)
}

// PublicError is an error of an operation whose text the runtime may see.
type PublicError struct{ Text string }

func (e *PublicError) Error() string { return e.Text }

// ErrAskedAlready says that a call has asked its user before.
var ErrAskedAlready = errors.New("this call has asked its user before")

// Feed is where the events of an operation's subscriptions come from.
// What it knows outlives the process. A call names its subscription
// before it runs, so that what goes on after a crash can be ended.
type Feed interface {
	// Name returns the name of the subscription that a call would have.
	Name(job Job) (string, error)
	// Events returns some of the events of a subscription from an index
	// on, in order, and whether more may come.
	Events(ctx context.Context, subscription string, from int) (events []Event, live bool, err error)
	// End tells whoever runs the operation that nobody listens any
	// more. It may be repeated, and there may be nothing to end.
	End(ctx context.Context, subscription string) error
	// Watch calls changed with each subscription that has something
	// new, until ctx ends.
	Watch(ctx context.Context, changed func(subscription string)) error
}

// Event is news of a subscription.
type Event struct {
	Index       int    `json:"index"`
	ID          string `json:"id"` // of the call
	Text        string `json:"text"`
	Associative bool   `json:"associative,omitempty"`
	Final       bool   `json:"final,omitempty"`
}
