package durable

import (
	"context"
	"time"

	"github.com/assent-dev/assent/approval/hold"
)

// Transport connects the engine to a protocol. P is its own part of a call's record. Hooks that
// get a *Call may change its part; the change is stored with the next state. Optional hooks may
// be nil.
type Transport[P any] struct {
	// Decide returns what has to happen before a call may run. It is called when the call
	// arrives, after people approved it, after it was moved back to Ready, and right before it
	// runs. It must have no side effects. After an error it is called again later.
	Decide func(ctx context.Context, c *Call[P]) (Ruling, error)

	// Begin claims what a run uses up in addition to its approval. It is called right before
	// the state Running is stored, and again if that failed. If it returns an ending, the call
	// does not run. Optional.
	Begin func(ctx context.Context, c *Call[P]) (*Ending, error)

	// Run runs a call. It is called once: not again after a crash, unless the result NotBegun
	// was stored. The cause of a cancelled context says why the run should stop (Stopped,
	// ErrShutdown, ErrOvertaken).
	Run func(ctx context.Context, c *Call[P]) Result[P]

	// Send sends the message of a call (Call.Message). It is called until its result is not a
	// Retry. After a crash it may send the same message again. Optional if no call has a
	// message.
	Send func(ctx context.Context, c *Call[P]) Sent[P]

	// End writes into the part how a call ended, and sets Call.Message if the caller has to be
	// informed. It is called in the write that ends the call, so at most one of its results is ever
	// stored. Optional.
	End func(c *Call[P], e Ending)

	// Question returns the question for a ruling Question, or for Call.AskQuestion. Optional.
	Question func(c *Call[P]) hold.Question

	// Answered handles the final state of a question, which may have no answer (hold.Expired
	// …). If it returns nil, the call continues; one that was Asking is decided on again.
	// Optional if there are no questions.
	Answered func(c *Call[P], a hold.Answer) *Ending

	// Abandoned returns why a call can't continue, for example because its caller is no longer
	// configured, or an empty string if it can. Optional.
	Abandoned func(c *Call[P]) string

	// Lease returns how long a try (Call.Run while it is Running, otherwise Call.Message) may
	// go without renewal. Optional: 5s.
	Lease func(c *Call[P]) time.Duration

	// Keep returns when a closed call may be deleted. Optional: a day from now.
	Keep func(c *Call[P]) time.Time

	// Asked is called after a request was made, before that is stored. Optional.
	Asked func(ctx context.Context, c *Call[P], held hold.Held)

	// Moved is called after a change of state was stored. Optional.
	Moved func(ctx context.Context, was State, c *Call[P])

	// Dropped is called after the result of a run was dropped because the call has ended
	// meanwhile, for example because another process considered the run lost. Optional.
	Dropped func(ctx context.Context, c *Call[P])

	// WithdrawReason returns the reason for people if a request is withdrawn. Optional.
	WithdrawReason func(c *Call[P]) string
}

// Do lists the kinds of rulings.
type Do int

// The values of Do. The zero value refuses.
const (
	Refuse   Do = iota // it does not run: Ruling.Ending says why
	Proceed            // nothing: it runs
	Approve            // people have to approve it
	Question           // people have to answer a question of the transport's (Transport.Question)
	// Wait means that the transport waits for an external event: it has set Message and
	// Deadline, and moves the call to Ready.
	Wait
)

// Ruling is the result of Transport.Decide.
type Ruling struct {
	Do      Do
	Ending  Ending        // for Refuse
	Verdict hold.Verdict  // for Approve, and for Proceed with an approval: sent to the approval service
	Within  time.Duration // how long people may take; 0: as long as the approval service allows
}

// Ending describes the end of a call.
type Ending struct {
	Why    Why    `json:"why"`
	Reason string `json:"reason,omitempty"` // as worded by the rules, people or the transport
	By     string `json:"by,omitempty"`     // the person who denied it
}

// Why is the reason of an ending.
type Why string

// The reasons. Transports may define others.
const (
	Returned     Why = "returned"    // the run, or the peer that has the call, returned a result
	Refused      Why = "refused"     // by the rules, or because they can't be applied
	Denied       Why = "denied"      // by people
	Responded    Why = "responded"   // a person answered in place of the tool: Reason
	Expired      Why = "expired"     // not approved or answered in time
	Withdrawn    Why = "withdrawn"   // the request was withdrawn at the approval service
	Forgotten    Why = "forgotten"   // the approval service no longer has the request
	Unreachable  Why = "unreachable" // the approval service could not be reached
	NotClaimed   Why = "not_claimed" // the approval can't be used
	Late         Why = "late"        // the deadline passed
	Unknown      Why = "unknown"     // the run began and its process died: its outcome is unknown
	Interrupted  Why = "interrupted" // by the caller
	AbandonedWhy Why = "abandoned"   // Transport.Abandoned
)

// After says how a call continues after a run.
type After int

// The values of After. The zero value ends the call, so that a run is never repeated by
// mistake.
const (
	Over     After = iota // the call has its ending
	HandedOn              // a peer has it, and reports the ending later: the call is Away
	NotBegun              // provably nothing began: it may run again after another decision
)

// Result is the result of a run.
type Result[P any] struct {
	After  After
	Ending Ending           // for Over; the zero value is Returned
	Pause  time.Duration    // for NotBegun: before the next run
	Keep   func(c *Call[P]) // changes the record's part, as currently stored; may be nil
}

// Sent is the result of sending a message.
type Sent[P any] struct {
	Retry  bool
	Pause  time.Duration // for Retry
	Ending *Ending       // ends the call, which can't continue without the message; nil: it continues
	// Keep changes the record's part, as currently stored, and may set the next message. It may
	// be nil.
	Keep func(c *Call[P])
}
