package lint_test

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/value"
)

func TestWitness(t *testing.T) {
	for src, want := range map[string]string{
		`{"amount": 1e2}`: `, for example {"amount":1e2}`,
		`{"text":"` + strings.Repeat("a", 200) + `"}`: "",
	} {
		v, err := value.Parse([]byte(src), value.DefaultLimits())
		must.Do(t, err)
		if got := lint.Witness(v); got != want {
			t.Errorf("got %q", got)
		}
	}
}
