package lint_test

import (
	"os"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
)

// BenchmarkAgent measures the authoring rules in addition to reading and validating an ordinary
// agent.
func BenchmarkAgent(b *testing.B) {
	src, err := os.ReadFile("testdata/ordinary.agf.yaml")
	must.Do(b, err)
	for _, c := range []struct {
		name  string
		rules []lint.Rule
	}{{"valid", nil}, {"all", rules.All()}} {
		b.Run(c.name, func(b *testing.B) {
			w := lint.New(c.rules, lint.Options{}).Worker()
			b.ReportAllocs()
			b.SetBytes(int64(len(src)))
			for range b.N {
				w.Agent("agent.agf.yaml", src, nil)
			}
		})
	}

	for _, r := range rules.All() {
		b.Run("only/"+r.ID, func(b *testing.B) {
			w := lint.New([]lint.Rule{r}, lint.Options{}).Worker()
			for range b.N {
				w.Agent("agent.agf.yaml", src, nil)
			}
		})
	}
}
