// Package growth checks in tests that work takes processor time and
// memory in proportion to its input.
package growth

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

const (
	times    = 4         // how much larger the second input is
	most     = 2 * times // how much more it may take; work in proportion to the square takes times*times
	runs     = 5         // of which the fastest counts
	attempts = 5         // because a shared cache makes the same work slower
	least    = 200 * time.Microsecond
)

// Linear fails the test when work on an input that is four times as
// large takes more than eight times the processor time, or allocates more
// than eight times the bytes. The time in which other processes run does
// not count. The work must not leave its goroutine. prepare makes an input of a size, and returns
// the work on it. The size should be such that the work takes a
// millisecond or more.
func Linear(t testing.TB, size int, prepare func(size int) (work func())) {
	t.Helper()
	size = max(size/slower, 1)
	small, large := prepare(size), prepare(times*size)
	if a, b := allocated(small), allocated(large); b > most*a+1<<16 {
		t.Errorf("size %d allocates %d bytes, size %d %d: more than in proportion", size, a, times*size, b)
	}
	var a, b time.Duration
	for range attempts {
		a, b = fastest(small, large)
		if b <= most*max(a, least) {
			return
		}
	}

	t.Errorf("size %d takes %v, size %d %v: more than in proportion", size, a, times*size, b)
}

// allocated is how many bytes the work allocates, freed or not.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	work() // what is made once is not counted
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// fastest times both in turns.
func fastest(small, large func()) (a, b time.Duration) {
	for i := range runs {
		x, y := timed(small), timed(large)
		if i == 0 || x < a {
			a = x
		}
		if i == 0 || y < b {
			b = y
		}
	}

	return a, b
}

// timed measures without the collector, which may start at any time.
func timed(work func()) time.Duration {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := processorTime()
	work()
	return processorTime() - began
}
