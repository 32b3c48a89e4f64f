// Package approval turns a decision "ask" into a durable Request. People answer the request, and an
// approved call runs exactly once.
//
// The package has two layers. The state machine (machine.go, quorum.go, grant.go) is pure: from a
// Request, an input and a time it computes the changed Request and the events to record. The
// Service runs the state machine on a Store, in one transaction per input, with the plans that
// decide calls and the directory of people. It does not depend on SQL or HTTP, and it reads the
// time from a clock that is passed in.
//
//	pending → approved | denied | expired | cancelled,   approved → consumed | expired
//
// A question (Question) is a Request too, but it never becomes an approval: a person chooses,
// writes a text, fills in a form, or dismisses it.
//
//	pending → answered | expired | cancelled
//
// Everything fails closed: if a store, a plan or a directory can't be read, the call returns an
// error, and nothing may run after an error.
package approval

import (
	"crypto/rand"
	"encoding/base32"
	"io"
	"time"
)

// State is the state of a request. `expired` is never reported as `denied`, and `cancelled` is
// never reported as either.
type State string

// The states of a request.
const (
	Pending   State = "pending"
	Approved  State = "approved"  // an unused permit can be consumed
	Denied    State = "denied"    // a person denied it, or answered instead of letting it run
	Expired   State = "expired"   // not decided before the deadline, or the permit was not used in time
	Cancelled State = "cancelled" // the asker withdrew it, or a newer request replaced it
	Consumed  State = "consumed"  // the call ran, once
	Answered  State = "answered"  // a question was answered; this lets no call run
)

// Open reports whether the request can still change.
func (s State) Open() bool { return s == Pending || s == Approved }

// Cause is the reason why a request entered its current state.
type Cause string

// The causes.
const (
	ByVotes    Cause = "votes"    // enough people approved, or one denied
	ByResponse Cause = "response" // a person answered instead of letting it run
	ByDeadline Cause = "deadline" // not decided before the deadline
	// approved because the deadline passed; only if both the policy and the owner of the runtime
	// allow that
	ByTimeout    Cause = "timeout"
	ByRequester  Cause = "requester"    // withdrawn by the asker
	BySupersede  Cause = "superseded"   // replaced by a newer request
	ByPermitAge  Cause = "permit_age"   // approved, and not consumed in time
	ByPlanChange Cause = "plan_changed" // approved under rules that have changed since
	ByLateDeny   Cause = "late_deny"    // approved, then denied before it ran
	ByConsume    Cause = "consumed"     // the call ran
	ByChoice     Cause = "choice"       // a person picked one of a question's choices
	BySubmission Cause = "submission"   // a person wrote a text or filled in a form
	// a person closed a question without answering, which picks the question's default, if it has
	// one
	ByDismissal Cause = "dismissal"
)

// Verdict is the answer that a person gives.
type Verdict string

// The answers that a person can give. An edit is not a verdict: it creates a new revision, which
// its author approves.
const (
	Approve Verdict = "approve"
	Deny    Verdict = "deny"
	Respond Verdict = "respond" // do not run the call; give the agent this answer instead
	Choose  Verdict = "choose"  // pick one of a question's choices; not a verdict on a call
	Submit  Verdict = "submit"  // write the text or fill in the form that a question asks for
	Dismiss Verdict = "dismiss" // close a question without answering, which picks its default, if it has one
)

// VoteOutcome is the result of an answer. Late, duplicate, partial and conflicting answers are
// normal results, not errors.
type VoteOutcome string

// The outcomes of an answer.
const (
	VoteCounted     VoteOutcome = "counted"      // recorded; more people are needed
	VoteApproved    VoteOutcome = "approved"     // recorded; the request is now approved
	VoteDenied      VoteOutcome = "denied"       // recorded; the request is now denied
	VoteAnswered    VoteOutcome = "answered"     // recorded; the question is now answered
	VoteDuplicate   VoteOutcome = "duplicate"    // this person gave the same answer before; nothing changed
	VoteLate        VoteOutcome = "late"         // the request had already ended; recorded, nothing changed
	VoteConflicting VoteOutcome = "conflicting"  // the request had already ended with the opposite result; recorded
	VoteRevoked     VoteOutcome = "revoked"      // a late deny that voided a permit before it was used
	VoteNotEligible VoteOutcome = "not_eligible" // the person may not answer this request; recorded as a refusal
)

// newID returns a sortable id: the prefix, followed by 48 bits of time (in milliseconds) and 80
// random bits, encoded in base32.
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

// sorted is the lower-case extended hex alphabet of base32. Ids encoded with it sort like their
// bytes.
const sorted = "0123456789abcdefghijklmnopqrstuv"

// NewKey returns a random string for one use, for example as the key of a consumption.
func NewKey() string { return rand.Text() }
