package main

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/bench/internal/measure"
	"github.com/assent-dev/assent/bench/internal/model"
	"github.com/assent-dev/assent/bench/internal/subject"
)

// TestVerdict checks that a bar can fail, and that noise does not apply to allocations.
func TestVerdict(t *testing.T) {
	for _, tc := range []struct {
		bar  bar
		want string
	}{
		{bar{got: 2, limit: 2}, "PASS"},
		{bar{got: 2.1, limit: 2}, "PASS (within noise)"},
		{bar{got: 2.3, limit: 2}, "FAIL"},
		{bar{got: 6, limit: 6, least: true}, "PASS"},
		{bar{got: 5.6, limit: 6, least: true}, "PASS (within noise)"},
		{bar{got: 5.4, limit: 6, least: true}, "FAIL"},
		{bar{got: 0, limit: 0, exact: true}, "PASS"},
		{bar{got: 0.1, limit: 0, exact: true}, "FAIL"},
	} {
		if got := tc.bar.verdict(); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.bar.row(), got, tc.want)
		}
	}
}

// TestBars checks that the bars compare the right rows. The times are invented so that each one
// is different.
func TestBars(t *testing.T) {
	load := &model.Workload{Name: "d"}
	made := func(name, engine string, scope subject.Scope, in subject.Input, allow float64) *row {
		return &row{
			entry: entry{&model.Workload{Name: name}, &subject.Subject{Engine: engine, Scope: scope, Input: in}},
			allow: measure.Result{P10: allow},
			ask:   measure.Result{P10: 9_000},
		}
	}
	table := &table{
		load: load,
		rows: []*row{
			made("d", "slots", subject.Floor, subject.Raw, 100),
			made("d", "assent", subject.Own, subject.Raw, 150),
			made("d", "assent", subject.Own, subject.Decoded, 50),
			made("d", "cel", subject.Sliced, subject.Raw, 1_500),
			made("d", "cel", subject.Sliced, subject.Decoded, 300),
			made("d", "cedar", subject.Sliced, subject.Native, 200),
			made("d", "cel", subject.Own, subject.Raw, 9_000),
			made("d", "opa", subject.Own, subject.Raw, 4_500),
			made("d", "opa", subject.Sliced, subject.Raw, 3_000),
			made("d10k", "assent", subject.Own, subject.Raw, 165),
			made("d10k", "assent", subject.Own, subject.Decoded, 60),
		},
	}
	bars := append(
		append(append(table.rawBars(), table.decodedBars()...), table.everythingBars()...),
		table.growthBars()...)
	want := []float64{0, 1.5, 10, 4, 20, 30, 1.1, 1.2}
	for i, b := range bars {
		if diff := b.got - want[i]; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%s: %v, want %v", b.text, b.got, want[i])
		}
	}
	if len(bars) != len(want) {
		t.Errorf("%d bars", len(bars))
	}
}

// TestPrintBars checks that one failing bar fails the run.
func TestPrintBars(t *testing.T) {
	var out strings.Builder
	if !printBars(&out, []bar{{text: "good", got: 1, limit: 2}}) {
		t.Error("a bar that holds fails the run")
	}

	if printBars(&out, []bar{{text: "good", got: 1, limit: 2}, {text: "bad", got: 3, limit: 2}}) {
		t.Error("a bar that is missed does not fail the run")
	}

	if !strings.Contains(out.String(), "| bad | 3 | ≤ 2 | FAIL |") {
		t.Error(out.String())
	}
}

func TestNanoseconds(t *testing.T) {
	for v, want := range map[float64]string{12.34: "12.3 ns", 4_567: "4.57 µs", 8_900_000: "8.9 ms"} {
		if got := ns(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
