// Package notify sends what happens to people and programs outside:
// webhooks (notify/webhook) and Slack (notify/slack).
//
// A Router says which targets hear of an event; its deliveries become
// durable in the transaction that they tell about. A Worker claims them
// by lease and sends each at least once: a target that fails gets it
// again, later and later, until it arrives or is buried as a dead
// letter. Nothing here decides anything. A notification carries no
// credential, and the link in it opens a page.
package notify

import (
	"context"
	"time"

	"github.com/assent-dev/assent/store"
)

// Sender brings one delivery to its target. It honours ctx, may be
// called again with the same job, and is safe for concurrent use.
//
// An error means that the delivery did not arrive, or may not have. A
// *Failure says whether trying again makes sense and when; other errors
// are tried again.
type Sender interface {
	Send(ctx context.Context, job store.Job) error
}

// Failure is an error of a Sender that says what to do about it. Its
// text is kept with the delivery and shown to operators: it holds no
// secret and nothing of the answer's body.
type Failure struct {
	Err       error
	Permanent bool          // trying again can't help
	After     time.Duration // not before this time has passed, as the target asked; 0: no wish
}

// Error is the text of the cause.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Permanent wraps an error that trying again can't help.
func Permanent(err error) error { return &Failure{Err: err, Permanent: true} }
