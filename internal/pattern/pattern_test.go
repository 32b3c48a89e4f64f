package pattern_test

import (
	"testing"

	"github.com/assent-dev/assent/internal/pattern"
)

func TestPatternIsCompiledOnce(t *testing.T) {
	number := pattern.Of(`^[0-9]+$`)

	if !number().MatchString("12") || number().MatchString("1a") {
		t.Error("expected a number, and nothing else")
	}
	if first, again := number(), number(); first != again {
		t.Error("compiled twice")
	}
}

func TestBrokenPatternPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a broken pattern was taken")
		}
	}()

	pattern.Of(`(`)()
}
