package backoff

import (
	"net/http"
	"testing"
	"time"
)

// TestJitterStaysBelowABoundThatDoubles: the bound holds for all arguments.
func TestJitterStaysBelowABoundThatDoubles(t *testing.T) {
	const second, longest = time.Second, 10 * time.Second
	for attempt, bound := range map[int]time.Duration{
		1:       second,
		2:       2 * second,
		4:       8 * second,
		5:       longest,
		1 << 40: longest,
	} {
		var highest time.Duration
		for range 1000 {
			wait := Jitter(second, longest, attempt)
			if wait <= 0 || wait > bound {
				t.Fatalf("attempt %d: %v", attempt, wait)
			}
			highest = max(highest, wait)
		}

		if highest < bound/2 {
			t.Errorf("attempt %d: never above %v", attempt, highest)
		}
	}

	if wait := Jitter(time.Hour, second, 1); wait > second {
		t.Errorf("the first wait may be the longest: %v", wait)
	}
}

func TestRetryAfterIsReadInEachForm(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"":                              0,
		"soon":                          0,
		"-1":                            0,
		"NaN":                           0,
		"0":                             0,
		"2":                             2 * time.Second,
		"1.5":                           1500 * time.Millisecond,
		"1e300":                         time.Hour,
		"Inf":                           time.Hour,
		"Sun, 01 Mar 2026 12:00:09 GMT": 9 * time.Second,
		"Sun, 01 Mar 2026 11:00:00 GMT": 0,
		"Sun, 01 Mar 2099 12:00:00 GMT": time.Hour,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {text}}, now, time.Hour); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}

	unread := http.Header{"Retry-After-Ms": {"x"}, "Retry-After": {"7"}}
	if got := RetryAfter(unread, now, time.Hour); got != 7*time.Second {
		t.Errorf("milliseconds that are no number: %v", got)
	}
	precise := http.Header{"Retry-After-Ms": {"20"}, "Retry-After": {"1"}}
	if got := RetryAfter(precise, now, time.Hour); got != 20*time.Millisecond {
		t.Errorf("milliseconds: %v", got)
	}
}
