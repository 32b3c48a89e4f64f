package casedodged

import (
	"os"
	"testing"

	"github.com/assent-dev/assent/lint/linttest"
)

func TestInPattern(t *testing.T) {
	for pattern, want := range map[string]string{
		`DROP`:         "DROP",
		`^\s*DELETE\b`: "DELETE",
		`(?i)DROP`:     "",
		`DROP|drop`:    "",
		`[Dd]ROP`:      "",
		`DROPS`:        "",
		`\DROP`:        "",
	} {
		if got := inPattern(pattern); got != want {
			t.Errorf("%s: got %q", pattern, got)
		}
	}
}

func TestRule(t *testing.T) { linttest.Run(t, os.DirFS("."), Rule()) }
