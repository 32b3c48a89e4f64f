package term

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Stamp formats a time for people. It uses UTC, so that times are comparable.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// Span formats a duration in its two largest units: 1d 3h, 2h 5m, 40s.
func Span(d time.Duration) string {
	d = d.Round(time.Second)
	if d < time.Second {
		return "0s"
	}
	units := []struct {
		name string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	var out []string
	for _, u := range units {
		if n := d / u.size; n > 0 {
			out = append(out, strconv.FormatInt(int64(n), 10)+u.name)
			d -= n * u.size
		}
		if len(out) == 2 {
			break
		}
	}

	return strings.Join(out, " ")
}

func Until(t, now time.Time) string {
	if !t.After(now) {
		return "now"
	}
	return "in " + Span(t.Sub(now))
}

func Ago(t, now time.Time) string { return Span(max(now.Sub(t), 0)) + " ago" }

// ParseAge reads a duration that may be given in days: 90d, 36h, 1d12h.
func ParseAge(text string) (time.Duration, error) {
	wrong := fmt.Errorf("%q is no duration, expected one such as 90d or 36h", text)
	rest, days := text, time.Duration(0)
	if n, after, ok := strings.Cut(text, "d"); ok {
		count, err := strconv.ParseUint(n, 10, 16)
		if err != nil {
			return 0, wrong
		}
		if rest, days = after, time.Duration(count)*24*time.Hour; rest == "" {
			return days, nil
		}
	}

	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || d > 100_000*time.Hour {
		return 0, wrong
	}
	return days + d, nil
}
