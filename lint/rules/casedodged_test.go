package rules

import (
	"testing"
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
