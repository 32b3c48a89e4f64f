// Package approval is the asking half of assent: a decision "ask"
// becomes a durable Request, people answer it, and what they approved
// runs exactly once.
//
// Two layers share the package. The state machine (machine.go,
// quorum.go, grant.go) is pure: a Request, an input and a time give the
// changed Request and the events to record. The Service wraps it over a
// Store, one transaction for each input, with the plans that decide and
// the directory that knows people. It knows neither SQL nor HTTP; time
// comes from a clock that is passed in.
//
//	pending → approved | denied | expired | cancelled,   approved → consumed | expired
//
// A question (Question) is a Request too, which never becomes an
// approval: a person chooses, writes a text, fills in a form, or
// dismisses it.
//
//	pending → answered | expired | cancelled
//
// Everything fails closed: a store, a plan or a directory that can't be
// read is an error, and an error lets nothing run.
package approval

import (
	"crypto/rand"
	"encoding/base32"
	"io"
	"time"
)

// State is where a request stands. `expired` is never reported as
// `denied`, nor `cancelled` as either.
type State string

// The states of a request.
const (
	Pending   State = "pending"
	Approved  State = "approved"  // a permit waits to be consumed
	Denied    State = "denied"    // a person said no, or answered instead of letting it run
	Expired   State = "expired"   // nobody decided in time, or nobody used the permit in time
	Cancelled State = "cancelled" // whoever asked took it back, or something newer stands in its place
	Consumed  State = "consumed"  // ran, once
	Answered  State = "answered"  // a question was answered, which lets no call run
)

// Open reports whether the request can still change.
func (s State) Open() bool { return s == Pending || s == Approved }

// Cause says why a request left its last state.
type Cause string

// The causes.
const (
	ByVotes    Cause = "votes"    // enough people approved, or one denied
	ByResponse Cause = "response" // a person answered instead of letting it run
	ByDeadline Cause = "deadline" // nobody decided in time
	// approved because nobody decided: only where policy and runtime
	// owner both say so
	ByTimeout    Cause = "timeout"
	ByRequester  Cause = "requester"    // taken back
	BySupersede  Cause = "superseded"   // a newer request stands in its place
	ByPermitAge  Cause = "permit_age"   // approved, and not consumed in time
	ByPlanChange Cause = "plan_changed" // approved under rules that no longer hold
	ByLateDeny   Cause = "late_deny"    // approved, then denied before it ran
	ByConsume    Cause = "consumed"     // ran
	ByChoice     Cause = "choice"       // a person picked one of a question's choices
	BySubmission Cause = "submission"   // a person wrote a text or filled in a form
	// a person closed a question without answering, which picks its
	// default, if it has one
	ByDismissal Cause = "dismissal"
)

// Verdict is the answer that a person gives.
type Verdict string

// The answers a person can give. An edit is no verdict of its own: it
// makes a new revision, which its author approves.
const (
	Approve Verdict = "approve"
	Deny    Verdict = "deny"
	Respond Verdict = "respond" // do not run; tell the agent this instead
	Choose  Verdict = "choose"  // pick one of a question's choices; no verdict on a call
	Submit  Verdict = "submit"  // write the text or fill in the form that a question asks for
	Dismiss Verdict = "dismiss" // close a question without answering, which picks its default, if it has one
)

// VoteOutcome says what became of an answer. Late, duplicate, partial
// and conflicting answers are ordinary.
type VoteOutcome string

// The outcomes of an answer.
const (
	VoteCounted     VoteOutcome = "counted"      // recorded; more people are needed
	VoteApproved    VoteOutcome = "approved"     // recorded, and it decided
	VoteDenied      VoteOutcome = "denied"       // recorded, and it decided
	VoteAnswered    VoteOutcome = "answered"     // recorded: the question is answered
	VoteDuplicate   VoteOutcome = "duplicate"    // this person said so before; nothing changed
	VoteLate        VoteOutcome = "late"         // the request had ended before; recorded, nothing changed
	VoteConflicting VoteOutcome = "conflicting"  // the request had ended the other way; recorded
	VoteRevoked     VoteOutcome = "revoked"      // a late deny that voided a permit before it was used
	VoteNotEligible VoteOutcome = "not_eligible" // not eligible to answer this request; recorded as a refusal
)

// newID makes a sortable id: the prefix, then 48 bits of time
// (milliseconds) and 80 of randomness.
func newID(prefix string, now time.Time, random io.Reader) (string, error) {
	var raw [16]byte
	ms := uint64(now.UnixMilli())
	for i := range 6 {
		raw[5-i] = byte(ms >> (8 * i))
	}
	if _, err := io.ReadFull(random, raw[6:]); err != nil {
		return "", err
	}
	return prefix + base32.NewEncoding(sorted).WithPadding(base32.NoPadding).EncodeToString(raw[:]), nil
}

// sorted is the extended hex alphabet in lower case: encoded ids sort
// like the bytes.
const sorted = "0123456789abcdefghijklmnopqrstuv"

// NewKey returns a random text for one use, for example as the key of a
// consumption.
func NewKey() string { return rand.Text() }
