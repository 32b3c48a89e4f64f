// Package hold connects runtimes with the people who approve: a decided call goes in, and the
// approval of exactly that call comes out. Runtimes (packages agent and rap) use a Holder, or a
// Requests if tools also ask questions.
//
// A Side reaches the people: through an approval.Service in this process (Service) or a server
// (package client). Local asks functions of the program itself. Service and client share one
// implementation of Requests, so both follow the same rules.
//
// A call that needs approval becomes a request, and the runtime keeps its reference. People answer
// it in any channel. The runtime looks at the request, claims the one run and continues. The side
// decides the call again with its own plan, identical calls share one request and its one run, a
// freeze stops everything, and an approval is used once and expires soon. Keys of Open are
// remembered for a day (approval.Config.Remember). After that, repeating Open makes a new request,
// so keep the reference.
//
// Some calls need no approval, because the rules allow them or a standing approval covers them.
// Then Open returns Approved with a reference that belongs to no request. Claim presents the same
// call again, and it does not run if it has been frozen, revoked or forbidden since. Such a call
// has no permit, so the runtime itself must ensure that it runs only once.
package hold

import (
	"context"
	"errors"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/resolve"
)

// Errors of a Holder.
var (
	// ErrNoRequest means that the holder does not have the request, and never will.
	ErrNoRequest = errors.New("the holder knows no such request")

	// ErrNotClaimed means that the call may not run: it was not approved, it differs from the
	// approved call, or the run has already been claimed.
	ErrNotClaimed = errors.New("the approval can't be used")

	// ErrNoCall means that a verdict contains no call. Approvals need a decider with a plan
	// (agent.ByPlan), whose verdict contains the call as the plan understood it. Calls of tools
	// that are only marked as needing approval can't be held.
	ErrNoCall = errors.New("the verdict names no call: a holder needs a decider with a plan")

	// ErrNoKey means that the key is missing. Without a key, a repetition would be another request
	// or another run.
	ErrNoKey = errors.New("a holder needs a key")
)

// Verdict is a decision and the call as the plan understood it.
type Verdict struct {
	resolve.Decision
	Call    *resolve.Call // the decided call; nil if the decider has no plan
	Context []info.Item   // what the agent adds to the call, for the people who are asked
	// Ask is the reason for asking people about a call that the plan allows; Outcome is Allow then.
	// It is empty if the plan itself decides.
	Ask string
}

// Within returns how long the request may stay open, or 0 if there is no limit.
func (v Verdict) Within() time.Duration {
	if v.Require == nil {
		return 0
	}

	return time.Duration(v.Require.Within)
}

// Holder keeps requests where the people who may answer see them. With a holder, nothing in an
// agent's messages can approve a call: only the holder's answers count.
type Holder interface {
	// Open creates a request for a call. The same key always means the same request, so Open can be
	// repeated after a crash.
	Open(ctx context.Context, key string, v Verdict) (Held, error)

	// Look returns the state of a request. ErrNoRequest means that the request does not exist and
	// never will. After any other error, the caller may look again.
	Look(ctx context.Context, ref string) (Held, error)

	// Claim takes the one run of exactly this call. A repetition with the same key gets the same
	// answer. A refusal is an ErrNotClaimed (often a *ClaimError). Any other error means that the
	// answer is unknown, and the same claim may be repeated. Nothing may run after any error.
	Claim(ctx context.Context, ref, key string, v Verdict) error

	// Cancel withdraws a request that is no longer needed.
	Cancel(ctx context.Context, ref, reason string) error
}

// State is the state of a request or question as the runtime sees it. It does not show how people
// reached it.
type State string

// The states of approvals and questions.
const (
	Pending   State = "pending"
	Denied    State = "denied" // by a person or by the rules; a denied question was never shown to people
	Expired   State = "expired"
	Cancelled State = "cancelled"

	// States of approvals only.
	Approved  State = "approved"
	Responded State = "responded" // a person answered the agent instead of approving

	// States of questions only.
	Chosen    State = "chosen"
	Submitted State = "submitted" // a text was written or a form filled in
	Dismissed State = "dismissed" // a person closed it, which picks the default
)

// Held is a request as its holder sees it.
type Held struct {
	Ref       string
	State     State
	Arguments []byte // the approved arguments if people edited them; else nil
	Reason    string // of a denial; for Responded, the answer for the agent
	By        string // who decided
	Grant     string // id of the standing approval that covers the call; else empty
	Where     string // page where it can be answered; may be empty
	Expires   time.Time
	// Used is set if the one run of an approval has been claimed with any key. Claim decides
	// whether a given key claimed it.
	Used bool
}

// ClaimError is returned by Claim if a call may not run. Nothing ran, and nothing may run by this
// claim. It is an ErrNotClaimed.
type ClaimError struct {
	// State is the state of the request that prevents the run. It is empty if the request allows a
	// run, but not this one; Err contains the reason then.
	State  State
	Detail string // in words, for the agent and for people
	Err    error  // error of the asking side; nil if this package refused
}

// Error returns Detail, which the agent gets.
func (e *ClaimError) Error() string { return e.Detail }

// Is reports whether the target is ErrNotClaimed.
func (e *ClaimError) Is(target error) bool { return target == ErrNotClaimed }

// Unwrap returns the error of the asking side.
func (e *ClaimError) Unwrap() error { return e.Err }

// refusal returns the ClaimError for an error of the asking side. It returns nil if the reason
// depends on how the request ended, or if the error is not a refusal.
func refusal(err error) *ClaimError {
	for _, r := range []ClaimError{
		{
			Err:    approval.ErrPending,
			State:  Pending,
			Detail: "nobody has decided yet",
		},
		{Err: approval.ErrConsumed, Detail: "the one run of this approval was taken before"},
		{Err: approval.ErrBinding, Detail: "this is not the call that was approved"},
		{Err: approval.ErrFrozen, Detail: "the agent is frozen by its operators"},
		{Err: approval.ErrNotFound, Detail: "there is no such request of this program and agent"},
	} {
		if errors.Is(err, r.Err) {
			r.Err = err
			return &r
		}
	}

	return nil
}
