package growth

import (
	"strings"
	"testing"
	"time"
)

// told simulates a test and records whether it failed.
type told struct {
	testing.TB
	failed bool
}

func (t *told) Helper()               {}
func (t *told) Errorf(string, ...any) { t.failed = true }

func TestLinear(t *testing.T) {
	for name, c := range map[string]struct {
		work func(n int) func()
		fits bool
	}{
		"a copy of each byte": {func(n int) func() { return func() { _ = strings.Repeat("x", 3000*n) } }, true},
		"a longer copy for each byte": {func(n int) func() {
			return func() {
				text := ""
				for range n {
					text += "x"
				}
			}
		}, false},
		"a look at every byte for each byte": {func(n int) func() {
			text, found := strings.Repeat("x", 80*n), 0
			return func() {
				for range n {
					found += strings.Count(text, "xy")
				}
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			out := &told{TB: t}
			Linear(out, 1000*slower, c.work)
			if out.failed == c.fits {
				t.Errorf("failed: %v", out.failed)
			}
		})
	}
}

func TestWithin(t *testing.T) {
	for name, c := range map[string]struct {
		work func()
		fits bool
	}{
		"little":     {func() {}, true},
		"many bytes": {func() { _ = strings.Repeat("a", slower<<21) }, false},
		"much work":  {func() { _ = strings.Count(strings.Repeat("ab", slower<<18), "ba") }, false},
	} {
		out := &told{TB: t}
		cpu, bytes := time.Second, uint64(1<<20)
		if name == "much work" {
			cpu, bytes = time.Nanosecond, 1<<40
		}
		if Within(out, cpu, bytes, c.work); out.failed == c.fits {
			t.Errorf("%s: failed: %v", name, out.failed)
		}
	}
}
