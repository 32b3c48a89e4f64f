package quorum

import (
	"time"

	"github.com/assent-dev/assent/policy"
)

// Deadline is the time at which an undecided request ends, and how it ends.
type Deadline struct {
	At        time.Time
	Within    time.Duration // time that people had originally
	OnTimeout policy.Timeout
}

// End describes what happens to a request at its deadline.
type End int

// The values of End.
const (
	Expires  End = iota // it expires undecided
	Approves            // it is approved, if the policy and the runtime's owner allow that
	GoesOn              // the groups that were called in get the same time once more, see At
)

// Pass returns what happens when the deadline passes. called are the groups that escalations have
// added by then. For GoesOn, it sets the new deadline.
func (d *Deadline) Pass(called []string) End {
	switch {
	case d.OnTimeout == policy.TimeoutApprove:
		return Approves
	case d.OnTimeout == policy.TimeoutEscalate && len(called) > 0:
		d.OnTimeout = policy.TimeoutDeny
		d.At = d.At.Add(d.Within)
		return GoesOn
	}

	return Expires
}
