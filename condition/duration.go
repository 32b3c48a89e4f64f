package condition

import (
	"fmt"
	"strings"
	"time"
)

// These are the limits of a duration in a policy. More than a year is no useful deadline.
const (
	minDuration = time.Second
	maxDuration = 8760 * time.Hour
)

// DurationOf reads Go's duration syntax without a sign, between a second and a year.
func DurationOf(s string) (time.Duration, error) {
	if strings.HasPrefix(s, "+") || strings.HasPrefix(s, ".") {
		return 0, fmt.Errorf("%q is no duration", s)
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no duration", s)
	case d < minDuration:
		return 0, fmt.Errorf("%s is shorter than a second", s)
	case d > maxDuration:
		return 0, fmt.Errorf("%s is longer than a year", s)
	}

	return d, nil
}

// FormatDuration writes a duration as policies do, without units that
// are zero: 30m, 1h30m, 8h.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
