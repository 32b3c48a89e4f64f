package measure

import (
	"errors"
	"testing"
)

var sink []byte

// TestInterleave checks that a task with a hundred times the work takes longer, and that
// allocations are counted exactly.
func TestInterleave(t *testing.T) {
	work := func(n int) func() {
		return func() {
			for range n {
				sink = make([]byte, 64)
			}
		}
	}
	got := Interleave([]Task{{Name: "one", Ops: 1, Pass: work(1)}, {Name: "hundred", Ops: 1, Pass: work(100)}, {Name: "ten of ten", Ops: 10, Pass: work(10)}}, 20)
	if ratio := got[1].P10 / got[0].P10; ratio < 20 {
		t.Errorf("a hundredfold of work takes %.1f times as long", ratio)
	}
	for i, want := range []float64{1, 100, 1} {
		if got[i].Allocs != want {
			t.Errorf("task %d: %v allocations, want %v", i, got[i].Allocs, want)
		}
		if got[i].P10 > got[i].Median {
			t.Errorf("task %d: p10 %v above the median %v", i, got[i].P10, got[i].Median)
		}
	}
}

func TestQuantile(t *testing.T) {
	sorted := []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	if got := at(sorted, 0.1); got != 1 {
		t.Errorf("p10 = %v", got)
	}
	if got := at(sorted, 0.5); got != 5 {
		t.Errorf("median = %v", got)
	}
}

func TestBest(t *testing.T) {
	runs := 0
	d, err := Best(3, func() error {
		runs++
		return nil
	})
	if err != nil || runs != 3 || d < 0 {
		t.Errorf("%v %v after %d runs", d, err, runs)
	}
	if _, err := Best(1, func() error { return errors.New("no") }); err == nil {
		t.Error("the error is lost")
	}
}
