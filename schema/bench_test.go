package schema

import (
	"testing"

	"github.com/assent-dev/assent/internal/yamldoc"
)

// BenchmarkParse reads the largest good file (about 3 KB). The other benchmarks measure its parts.
func BenchmarkParse(b *testing.B) {
	src := readFile(b, "testdata/good/react.agf.yaml")
	doc, _ := yamldoc.Parse("", src, yamldoc.Limits{})
	b.Run("whole", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			Parse("react.agf.yaml", src)
		}
	})
	b.Run("yaml", func(b *testing.B) {
		for b.Loop() {
			yamldoc.Parse("", src, yamldoc.Limits{})
		}
	})
	b.Run("verdict", func(b *testing.B) {
		for b.Loop() {
			Violations(doc.Root, compiled())
		}
	})
	b.Run("fields", func(b *testing.B) {
		for b.Loop() {
			r := reader{}
			r.fields(doc.Root)
		}
	})
	b.Run("typed", func(b *testing.B) {
		for b.Loop() {
			r := reader{}
			r.check(r.agent("", doc))
		}
	})
}
