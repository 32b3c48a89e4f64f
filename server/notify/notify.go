// Package notify sends events to people and programs outside: with webhooks (notify/webhook)
// and Slack (notify/slack).
//
// A Router selects the targets of an event. Its deliveries are stored in the same transaction
// as the event. A Worker claims them with a lease and sends each at least once: if a target
// fails, the delivery is repeated with increasing delays until it arrives or is marked as dead.
// This package makes no decisions. A notification contains no credential, and its link only
// opens a page.
package notify

import (
	"context"
	"time"

	"github.com/assent-dev/assent/store"
)

// Sender sends one delivery to its target. It must respect ctx, may be called again with the
// same job, and must be safe for concurrent use.
//
// An error means that the delivery did not arrive, or may not have arrived. A *Failure says
// whether and when to retry. Other errors are retried.
type Sender interface {
	Send(ctx context.Context, job store.Job) error
}

// Failure is an error of a Sender with instructions for retries. Its text is stored with the
// delivery and shown to operators, so it must not contain secrets or parts of the response
// body.
type Failure struct {
	Err       error
	Permanent bool          // retrying can't help
	After     time.Duration // minimum delay that the target requested; zero if it requested none
}

// Error returns the text of the cause.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Permanent wraps an error for which retrying can't help.
func Permanent(err error) error { return &Failure{Err: err, Permanent: true} }
