// Package growth checks that time and memory grow in proportion to the input.
package growth

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// clock is a CPU clock.
type clock uintptr

const (
	times    = 4                     // how much larger the second input is
	most     = 2 * times             // how much more it may take; work in proportion to the square takes times*times
	attempts = 5                     // on a machine whose caches others use, too
	repeats  = 1 << 12               // at most, in one measurement
	enough   = 10 * time.Millisecond // to measure
)

// Linear fails the test if work on an input that is four times as large takes more than eight times
// the CPU time, or allocates more than eight times the bytes. prepare creates an input of a size
// and returns the work on it. The work must stay on its goroutine and may run more than once.
func Linear(t testing.TB, size int, prepare func(size int) (work func())) {
	t.Helper()
	size = max(size/slower, 1)
	small, large := prepare(size), prepare(times*size)
	if a, b := allocated(small), allocated(large); b > most*a+1<<16 {
		t.Errorf("size %d allocates %d bytes, size %d %d: more than in proportion", size, a, times*size, b)
	}
	var a, b time.Duration
	for range attempts {
		a, b = timed(small), timed(large)
		if b <= most*a {
			return
		}
	}

	t.Errorf("size %d takes %v of a CPU, size %d %v: more than in proportion", size, a, times*size, b)
}

// allocated returns how many bytes the work allocates, freed or not.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	work() // what is made once is not counted
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// timed returns the CPU time of one run of the work. The garbage collector is switched off, because
// its runs are not predictable.
func timed(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for n := 1; ; n *= 2 {
		runtime.GC()
		began, known := cpuTime(threadClock)
		for range n {
			work()
		}
		ended, _ := cpuTime(threadClock)
		if took := ended - began; took >= enough || n >= repeats || !known {
			return took / time.Duration(n)
		}
	}
}

// Within fails the test if work takes more CPU time of its goroutine, or more memory at one time, than
// allowed. Memory is that of the whole process.
func Within(t testing.TB, cpu time.Duration, bytes uint64, work func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	within(t, threadClock, cpu, bytes, work)
}

// WithinLive fails the test if work takes more CPU time of the process, with all its goroutines, than
// allowed, or more memory at one time. No other test may run at the same time.
func WithinLive(t testing.TB, cpu time.Duration, bytes uint64, work func()) {
	t.Helper()
	within(t, processClock, cpu, math.MaxUint64/slower, work)
	var grown uint64
	for range attempts {
		if grown = peak(bytes, work); grown <= bytes*slower {
			return
		}
	}
	t.Errorf("%d bytes are in use at a time, want at most %d", grown, bytes)
}

// peak returns how much the heap grows by. The garbage collector works much less at 100 percent than
// at 10, and what fits then also fits at 10.
func peak(bytes uint64, work func()) uint64 {
	if grown := footprint(100, bytes, work); grown <= bytes*slower {
		return grown
	}
	return footprint(10, bytes, work)
}

func within(t testing.TB, of clock, cpu time.Duration, bytes uint64, work func()) {
	t.Helper()
	var took time.Duration
	var made uint64
	for range attempts {
		before := allocations()
		began, _ := cpuTime(of)
		work()
		ended, _ := cpuTime(of)
		took, made = ended-began, allocations()-before
		if made > bytes*slower { // freed or not
			made = peak(bytes, work)
		}
		if took <= cpu*slower && made <= bytes*slower {
			return
		}
	}

	t.Errorf("%v of a CPU and %d bytes, want at most %v and %d", took, made, cpu, bytes)
}

// Footprint returns how much the resident memory grows by at most if the heap is collected often. Where
// the system does not measure that, it is what the heap has grown by at the end, with what was freed.
func Footprint(work func()) uint64 { return footprint(10, math.MaxInt64>>1, work) }

// footprint is Footprint with a percentage for the garbage collector and a soft memory limit, so that
// the collector keeps up on a busy machine, too.
func footprint(percent int, limit uint64, work func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(percent))
	debug.FreeOSMemory()
	debug.FreeOSMemory() // a sync.Pool keeps what is in it for one more collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(m.Sys - m.HeapReleased + limit)))
	before, ran := held(), false
	grown, known := residentPeak(func() { ran = true; work() })
	if known {
		return grown
	}
	if !ran {
		work()
	}
	return max(held(), before) - before
}

// held returns the bytes of the heap that the process has from the system.
func held() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapSys - m.HeapReleased
}

// allocations returns how many bytes the process has allocated.
func allocations() uint64 {
	all := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(all)
	return all[0].Value.Uint64()
}
