package durable

import (
	"context"
	"time"

	"github.com/assent-dev/assent/approval/hold"
)

// Transport is what the engine has to know of whoever speaks a
// protocol. P is its own part of a call's record. Hooks that get a
// *Call may change its part; what they changed is stored with the next
// state. Those that are optional may be nil.
type Transport[P any] struct {
	// Decide says what has to happen before a call may run. It is
	// called when the call comes, whenever people have approved it or
	// somebody moved it back to Ready, and right before it runs. It
	// changes nothing in the world. An error decides nothing: it is
	// called again later.
	Decide func(ctx context.Context, c *Call[P]) (Ruling, error)

	// Begin takes what a run uses up beside its approval. It is called
	// right before it is stored that the call runs, and again when that
	// could not be stored. An ending says that the call does not run
	// after all. Optional.
	Begin func(ctx context.Context, c *Call[P]) (*Ending, error)

	// Run runs a call. It is called once: after a crash it is not
	// called again, unless its result was NotBegun and that was stored.
	// The context ends, with a cause, when the run should stop
	// (Stopped, ErrShutdown, ErrOvertaken).
	Run func(ctx context.Context, c *Call[P]) Result[P]

	// Send sends the message of a call (Call.Message), again and again
	// until its result is no Retry. After a crash it may do what was
	// done before. Optional where no call has a message.
	Send func(ctx context.Context, c *Call[P]) Sent[P]

	// End writes into the part how a call ended, and makes a message
	// (Call.Message) when somebody is to be told. It is called in the
	// write that ends the call, so at most one of its results is ever
	// stored. Optional.
	End func(c *Call[P], e Ending)

	// Question is what is asked by a ruling Question, or by an Ask that
	// the transport made. Optional.
	Question func(c *Call[P]) hold.Question

	// Answered goes by the answer to a question, which may be none
	// (hold.Expired …). Nil lets the call go on: one that was Asking is
	// decided on again. Optional where there are no questions.
	Answered func(c *Call[P], a hold.Answer) *Ending

	// Abandoned says in words why nothing more can be done for a call,
	// such as that whoever made it is not configured any more; "" for
	// nothing. Optional.
	Abandoned func(c *Call[P]) string

	// Lease is how long a try (Call.Run while it is Running, or else
	// Call.Message) may give no sign of life. Optional: 5s.
	Lease func(c *Call[P]) time.Duration

	// Keep is until when a closed call is remembered. Optional: a day
	// from now.
	Keep func(c *Call[P]) time.Time

	// Asked is told that people were asked, before that is stored.
	// Optional.
	Asked func(ctx context.Context, c *Call[P], held hold.Held)

	// Moved is told that a call has another state, after that was
	// stored. Optional.
	Moved func(ctx context.Context, was State, c *Call[P])

	// Dropped is told that what came of a run was dropped: the call had
	// ended meanwhile, since another process took it for lost.
	// Optional.
	Dropped func(ctx context.Context, c *Call[P])

	// WithdrawReason is what people are told when nobody needs their
	// answer any more. Optional.
	WithdrawReason func(c *Call[P]) string
}

// Do says what has to happen before a call may run.
type Do int

// What may have to happen. The zero value refuses.
const (
	Refuse   Do = iota // it does not run: Ruling.Ending says why
	Proceed            // nothing: it runs
	Approve            // people have to approve it
	Question           // people have to answer a question of the transport's (Transport.Question)
	// the transport waits for a word from outside: it has set Message
	// and Deadline, and moves it to Ready
	Wait
)

// Ruling is what has to happen before a call may run.
type Ruling struct {
	Do      Do
	Ending  Ending        // of Refuse
	Verdict hold.Verdict  // of Approve, and of Proceed with an approval: what the people's side is told
	Within  time.Duration // how long people may take; 0: as long as their side gives them
}

// Ending is how a call ended.
type Ending struct {
	Why    Why    `json:"why"`
	Reason string `json:"reason,omitempty"` // in the words of the rules, people or the transport
	By     string `json:"by,omitempty"`     // who denied it
}

// Why is the reason of an ending.
type Why string

// The reasons. Transports may have others of their own.
const (
	Returned     Why = "returned"    // the run, or the peer that it was handed to, brought an ending
	Refused      Why = "refused"     // by the rules, or they can't be applied
	Denied       Why = "denied"      // by people
	Responded    Why = "responded"   // a person answered in place of the tool: Reason
	Expired      Why = "expired"     // nobody approved or answered in time
	Withdrawn    Why = "withdrawn"   // the request was withdrawn at the people's side
	Forgotten    Why = "forgotten"   // the people's side knows the request no more
	Unreachable  Why = "unreachable" // the people's side could not be reached
	NotClaimed   Why = "not_claimed" // the approval can't be used
	Late         Why = "late"        // the deadline passed
	Unknown      Why = "unknown"     // it began, and its process died: nobody knows what came of it
	Interrupted  Why = "interrupted" // by whoever made the call
	AbandonedWhy Why = "abandoned"   // Transport.Abandoned
)

// After is what follows a run.
type After int

// What may follow. The zero value is an end: whatever began is never
// run again by mistake.
const (
	Over     After = iota // the call has its ending
	HandedOn              // a peer has it, and brings the ending later: the call is Away
	NotBegun              // provably nothing began: it may run again, after it was decided again
)

// Result is what came of a run.
type Result[P any] struct {
	After  After
	Ending Ending           // of Over; the zero value is Returned
	Pause  time.Duration    // of NotBegun: before the next run
	Keep   func(c *Call[P]) // changes the part of the record as it stands by then; nil: nothing
}

// Sent is what came of a message.
type Sent[P any] struct {
	Retry  bool
	Pause  time.Duration // of Retry
	Ending *Ending       // the call can't go on without the message, and ends so; nil: it goes on
	// changes the part of the record as it stands by then, and may make
	// the next message; nil: nothing
	Keep func(c *Call[P])
}
