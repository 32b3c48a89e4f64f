package replay

import (
	"io"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

// FuzzRead reads arbitrary records in every form. They must be read to the end without a crash,
// with the same result for one worker and three, and every call must be in the matrix.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"ledger.jsonl", "claude.jsonl", "otel.json"} {
		f.Add(file(f, name), uint8(0))
	}
	for i := range Forms() {
		f.Add(strings.Join(callLines(), "\n"), uint8(i))
	}
	now, agent := loosened(f)
	before, _ := compiled(f)
	f.Fuzz(func(t *testing.T, text string, form uint8) {
		opt := Options{Agent: agent, New: now, Old: before, From: Form(Forms()[int(form)%len(Forms())])}
		one := replayed(t, "json", opt, text)
		opt.Workers = 3
		three := replayed(t, "json", opt, text)
		if one.text != three.text || (one.err == nil) != (three.err == nil) {
			t.Fatalf("one worker: %s %v\nthree: %s %v", one.text, one.err, three.text, three.err)
		}
		if one.err != nil {
			return
		}
		m, sum := one.report.Matrix, 0
		for _, row := range []Outcomes{m.Allow, m.Ask, m.Deny, m.Unknown} {
			sum += row.Allow + row.Ask + row.Deny
		}
		if sum != one.report.Calls || one.report.Bad != len(one.bad) {
			t.Fatalf("%d in the matrix, %d bad told: %s", sum, len(one.bad), one.text)
		}
		for _, format := range []string{"text", "markdown"} {
			out, _ := NewPrinter(format, io.Discard)
			r := New(opt, out)
			must.Do(t, r.Read("a", strings.NewReader(text)))
			if _, err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
