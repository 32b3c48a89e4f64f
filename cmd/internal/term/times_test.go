package term

import (
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	for _, tt := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0s"},
		{90 * time.Second, "1m 30s"},
		{26*time.Hour + time.Second, "1d 2h"},
		{400 * time.Millisecond, "0s"},
		{48 * time.Hour, "2d"},
	} {
		if got := Span(tt.d); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.d, got, tt.want)
		}
	}

	for text, want := range map[string]time.Duration{
		"90d":   2160 * time.Hour,
		"1d12h": 36 * time.Hour,
		"30m":   30 * time.Minute,
		"0d":    0,
	} {
		if got, err := ParseAge(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}

	for _, text := range []string{"", "d", "-1d", "1d-2h", "soon", "9999999d", "1e9h", "-5m", "90d90d"} {
		if got, err := ParseAge(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// FuzzParseAge: no text makes a negative time.
func FuzzParseAge(f *testing.F) {
	f.Add("90d12h")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := ParseAge(text); err == nil && d < 0 {
			t.Errorf("%q: %v", text, d)
		}
	})
}
