package quorum

import (
	"time"

	"github.com/assent-dev/assent/policy"
)

// Deadline is when a request ends that nobody decides, and how.
type Deadline struct {
	At        time.Time
	Within    time.Duration // what people had from the start
	OnTimeout policy.Timeout
}

// End is what becomes of a request at its deadline.
type End int

// The ends.
const (
	Expires  End = iota // nobody decided
	Approves            // silence is consent, by the policy and by the runtime's owner
	GoesOn              // those who were called in have the same time once more, see At
)

// Pass lets the deadline pass on a request into which escalation has
// called these groups by then.
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
