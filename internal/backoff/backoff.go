// Package backoff computes how long to wait before a failed operation is tried again.
package backoff

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Jitter returns the wait after an attempt, of which the first is 1: a
// random part of a bound that doubles each time. It spreads over the
// whole range, so that many that failed together don't come back
// together.
func Jitter(first, longest time.Duration, attempt int) time.Duration {
	bound := min(first, longest)
	for range attempt - 1 {
		if bound = min(2*bound, longest); bound == longest {
			break
		}
	}
	return rand.N(bound) + 1
}

// RetryAfter returns the wait that the header of a response asks for, up to longest: in
// milliseconds, in seconds or until a date. It returns 0 if there is none, if it can't be parsed,
// or if it has passed.
func RetryAfter(h http.Header, now time.Time, longest time.Duration) time.Duration {
	if n, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return times(n, time.Millisecond, longest)
	}
	text := h.Get("Retry-After")
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return times(n, time.Second, longest)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), longest)
	}
	return 0
}

// times multiplies without overflow. The result for NaN is 0.
func times(n float64, unit, longest time.Duration) time.Duration {
	switch {
	case n > float64(longest/unit):
		return longest
	case n > 0:
		return time.Duration(n * float64(unit))
	}

	return 0
}
