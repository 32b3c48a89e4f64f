package quorum

import (
	"testing"
	"time"

	"github.com/assent-dev/assent/policy"
)

// TestDeadlines: the deadline is extended only once and only if groups were called in, and a
// timeout approves only if the policy says so.
func TestDeadlines(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		on     policy.Timeout
		called []string
		want   []End
	}{
		{policy.TimeoutDeny, []string{"leads"}, []End{Expires}},
		{"", nil, []End{Expires}},
		{policy.TimeoutApprove, nil, []End{Approves}},
		{policy.TimeoutEscalate, nil, []End{Expires}},
		{policy.TimeoutEscalate, []string{"leads"}, []End{GoesOn, Expires}},
	} {
		d := Deadline{At: start, Within: time.Minute, OnTimeout: c.on}
		for i, want := range c.want {
			if got := d.Pass(c.called); got != want {
				t.Errorf("%s %v: end %d is %v, expected %v", c.on, c.called, i, got, want)
			}
		}
		if more := d.At.Sub(start); (more == time.Minute) != (len(c.want) == 2) || more > time.Minute {
			t.Errorf("%s %v: %s more", c.on, c.called, more)
		}
	}
}
