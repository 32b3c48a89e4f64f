package agent

import (
	"context"
	"time"

	"github.com/assent-dev/assent/content"
	"github.com/assent-dev/assent/resolve"
)

// Decider says whether a call may run, must be asked about, or must not run. Its word is taken when the model makes the call, when an
// edit changes it and again right before it runs.
type Decider interface {
	// Decide answers one call of a tool; t is nil when no such tool is known.
	Decide(ctx context.Context, t Tool, call content.ToolCall) (Verdict, error)
}

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

// HeldState is how a held request stands.
type HeldState string

// The states of a held request.
const (
	HeldPending   HeldState = "pending"
	HeldApproved  HeldState = "approved"
	HeldDenied    HeldState = "denied"
	HeldExpired   HeldState = "expired"
	HeldCancelled HeldState = "cancelled"
	HeldResponded HeldState = "responded" // a person answered in place of the tool
)

// Held is a request as its holder has it.
type Held struct {
	Ref       string
	State     HeldState
	Arguments []byte // what was approved when it differs from what was asked (an edit); nil otherwise
	Reason    string // of a denial; what the agent is told, for HeldResponded
	By        string // who decided
	Where     string // page where it can be answered; "" for none
	Expires   time.Time
}

// Event is one thing that happened to a request, for the record.
type Event struct {
	At time.Time `json:"at"`
	// Type is "requested", "answered", "refused", "superseded", "expired", "cancelled", "withdrawn", "started" (of calls that somebody was
	// asked about), "finished", "denied", "skipped" or "lost".
	Type      string `json:"type"`
	Thread    string `json:"thread"`
	RequestID string `json:"request_id,omitempty"`
	CallID    string `json:"call_id,omitempty"`
	Tool      string `json:"tool,omitempty"`
	Arguments string `json:"arguments,omitempty"` // the exact text that was shown or run
	Approved  *bool  `json:"approved,omitempty"`
	By        string `json:"by,omitempty"`
	Detail    string `json:"detail,omitempty"`
}

// Audit takes the record of every request and answer, whoever keeps the history. An error ends the run before anything else happens.
type Audit func(ctx context.Context, e Event) error
