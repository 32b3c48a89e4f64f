// Package hold is the seam between what acts for people and what asks
// people: a decided call goes in, and the approval of exactly that call
// comes out. Runtimes (packages agent and rap) hold on to a Holder, or
// to Requests where tools ask questions too.
//
// The people are behind a Side: an approval.Service in this process
// (Service), a server (package client), or functions of the program
// itself (Local). One implementation of Requests serves the first two,
// so both follow the same rules.
//
// A call that needs approval becomes a request, whose reference the
// runtime keeps. People answer it wherever they like; the runtime looks
// at it, claims the one run and goes on. The asking side decides again
// by its own plan, identical calls share one request and the one run in
// it, a freeze stops everything, an approval is used once and soon.
// Keys of Open are remembered for a day (approval.Config.Remember):
// repeating Open later asks anew, so keep the reference.
//
// Some calls need nobody: the rules let them run, or a standing
// approval covers them. Open answers Approved then, with a reference
// that names no request. Claiming it presents the same call once more,
// and what was frozen, revoked or forbidden since does not run. No
// permit is behind it: that the call runs once is the runtime's own
// promise.
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
	// ErrNoRequest says that the holder does not know a request, and
	// never will.
	ErrNoRequest = errors.New("the holder knows no such request")

	// ErrNotClaimed says that the run of a call can't be had: it was
	// not approved, it is another call than the approved one, or the
	// run was taken before.
	ErrNotClaimed = errors.New("the approval can't be used")

	// ErrNoCall says that a verdict names no call. Tools that are only
	// marked can't be held: the decider needs a plan (agent.ByPlan),
	// whose verdict says what the call is in the plan's words.
	ErrNoCall = errors.New("the verdict names no call: a holder needs a decider with a plan")

	// ErrNoKey says that a key is missing. Without one a repetition
	// would be another request, or another run.
	ErrNoKey = errors.New("a holder needs a key")
)

// Verdict is a decision with the call as the plan understood it.
type Verdict struct {
	resolve.Decision
	Call    *resolve.Call // what was decided; nil when there is no plan behind
	Context []info.Item   // what the agent says about the call, for the people who are asked
	// Ask is why people are asked where the plan allows the call, which
	// the outcome says then; "" where the plan asks.
	Ask string
}

// Within is how long the request may stay open; 0 when nothing limits it.
func (v Verdict) Within() time.Duration {
	if v.Require == nil {
		return 0
	}

	return time.Duration(v.Require.Within)
}

// Holder keeps requests where the people who may answer see them. With
// a holder nothing in the messages of an agent can approve: only the
// holder's answers count.
type Holder interface {
	// Open makes a request known. The same key always means the same
	// request, so Open can be repeated after a crash.
	Open(ctx context.Context, key string, v Verdict) (Held, error)

	// Look returns the state of a request. ErrNoRequest says that
	// nobody knows it and never will; after any other error, look
	// again.
	Look(ctx context.Context, ref string) (Held, error)

	// Claim takes the one run of exactly this call. A repetition with
	// the same key gets the same answer. A refusal is an ErrNotClaimed
	// (often a *ClaimError); every other error means that nobody could
	// say. Nothing may run after either, and after the latter the same
	// claim may be tried again.
	Claim(ctx context.Context, ref, key string, v Verdict) error

	// Cancel withdraws a request that nobody needs any more.
	Cancel(ctx context.Context, ref, reason string) error
}

// State is the state of what people are asked, in the words of the
// runtime: it hides how people got there.
type State string

// The states of approvals and questions.
const (
	Pending   State = "pending"
	Denied    State = "denied" // by a person or by the rules; a denied question was never put to people
	Expired   State = "expired"
	Cancelled State = "cancelled"

	// Of approvals alone.
	Approved  State = "approved"
	Responded State = "responded" // a person answered in place of the tool

	// Of questions alone.
	Chosen    State = "chosen"
	Submitted State = "submitted" // a text was written or a form filled in
	Dismissed State = "dismissed" // an explicit act of a person, which picks the default
)

// Held is a request as its holder has it.
type Held struct {
	Ref       string
	State     State
	Arguments []byte // what was approved when it differs from what was asked (an edit); nil otherwise
	Reason    string // of a denial; what the agent is told, for Responded
	By        string // who decided
	Grant     string // id of the standing approval that covers it; "" where people were asked, or nobody
	Where     string // page where it can be answered; "" for none
	Expires   time.Time
	// Used says that the one run of an approval was taken, by whichever
	// key: Claim knows whose it is.
	Used bool
}

// ClaimError says why a call may not run. Nothing ran, and nothing may
// run by this claim. It is an ErrNotClaimed.
type ClaimError struct {
	// State is the state of the request that stands in the way; ""
	// where the request would allow a run, but not this one: Err says
	// why.
	State  State
	Detail string // in words, for the agent and for people
	Err    error  // what the asking side said; nil when this side refused
}

// Error is the detail, which is told to the agent.
func (e *ClaimError) Error() string { return e.Detail }

// Is reports whether the target is ErrNotClaimed.
func (e *ClaimError) Is(target error) bool { return target == ErrNotClaimed }

// Unwrap returns what the asking side said.
func (e *ClaimError) Unwrap() error { return e.Err }

// refusal says in words why a run can't be had by what the asking side
// answered; nil when the answer names the end of the request, or no
// reason at all.
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
