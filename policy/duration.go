package policy

import (
	"time"

	"github.com/assent-dev/assent/condition"
)

// ParseDuration reads Go's duration syntax without a sign, within the bounds.
func ParseDuration(s string) (time.Duration, error) { return condition.DurationOf(s) }

// FormatDuration writes a duration as policies do, without units that
// are zero: 30m, 1h30m, 8h.
func FormatDuration(d time.Duration) string { return condition.FormatDuration(d) }
