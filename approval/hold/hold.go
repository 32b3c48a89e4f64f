// Package hold is the seam between what acts for people and what asks people: a decided call goes in, and the approval of exactly that call comes
// out. Runtimes (packages agent and rap) hold on to a Holder; approval's service, or a client of a server, is behind it.
package hold

import (
	"context"
	"errors"
	"time"

	"github.com/assent-dev/assent/resolve"
)

// ErrNoRequest is what a Holder wraps when it does not know a request, and never will.
var ErrNoRequest = errors.New("the holder knows no such request")

// ErrNotClaimed is what a Holder wraps when the run of a call is not to be had: not approved, changed, or taken before.
var ErrNotClaimed = errors.New("the approval can't be used")

// Verdict is a decision with the call as the plan understood it.
type Verdict struct {
	resolve.Decision
	Call *resolve.Call // what was decided; nil when there is no plan behind
}

// Within is how long the request may stay open; 0 when nothing limits it.
func (v Verdict) Within() time.Duration {
	if v.Require == nil {
		return 0
	}
	return time.Duration(v.Require.Within)
}

// Holder keeps requests where the people who may answer them see them (package approval and its inbox; see agent/held). With a holder
// nothing in the messages can approve: only the holder's answers count.
type Holder interface {
	// Open makes a request known. The same key always means the same request, so it can be repeated after a crash.
	Open(ctx context.Context, key string, v Verdict) (Held, error)
	// Look tells how a request stands. ErrNoRequest says that nobody knows it and never will; after any other error it is asked again.
	Look(ctx context.Context, ref string) (Held, error)
	// Claim takes the one run of exactly this call. A repetition with the same key gets the same answer; whatever is not approved,
	// changed or was taken is an error.
	Claim(ctx context.Context, ref, key string, v Verdict) error
	// Cancel withdraws a request that nobody needs any more.
	Cancel(ctx context.Context, ref, reason string) error
}

// State is how a held request stands.
type State string

// The states of a held request.
const (
	Pending   State = "pending"
	Approved  State = "approved"
	Denied    State = "denied"
	Expired   State = "expired"
	Cancelled State = "cancelled"
	Responded State = "responded" // a person answered in place of the tool
)

// Held is a request as its holder has it.
type Held struct {
	Ref       string
	State     State
	Arguments []byte // what was approved when it differs from what was asked (an edit); nil otherwise
	Reason    string // of a denial; what the agent is told, for Responded
	By        string // who decided
	Where     string // page where it can be answered; "" for none
	Expires   time.Time
}
