// Package measure compares the run times of functions on a noisy machine.
//
// Absolute times vary too much for a test: other processes and the garbage collector change
// them by half and more. Therefore the functions alternate in short bursts within one process,
// in a different order each round. The result for a function is the 10th percentile of its
// bursts, its cost without disturbance. Ratios of these results repeat within about 10 %.
package measure

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Task is one function to measure. Pass does a fixed number of operations.
type Task struct {
	Name string
	Ops  int // operations in one pass
	Pass func()
}

// Result has the cost of one task.
type Result struct {
	P10, Median float64 // nanoseconds per operation
	Allocs      float64 // allocations per operation, exact over a pass
}

// minBurst is long in comparison with the clock and the switch between tasks, and short in
// comparison with an interruption by other processes.
const minBurst = 150 * time.Microsecond

// Interleave runs one burst of each task per round and returns the results in the order of the
// tasks.
func Interleave(tasks []Task, rounds int) []Result {
	passes, samples := make([]int, len(tasks)), make([][]float64, len(tasks))
	for i := range tasks {
		passes[i] = calibrate(tasks[i])
	}
	order := rand.New(rand.NewPCG(7, 7))
	for range rounds {
		for _, i := range order.Perm(len(tasks)) {
			elapsed := burst(tasks[i], passes[i])
			samples[i] = append(samples[i], float64(elapsed)/float64(passes[i]*tasks[i].Ops))
		}
	}

	out := make([]Result, len(tasks))
	for i := range out {
		slices.Sort(samples[i])
		out[i] = Result{
			P10:    at(samples[i], 0.10),
			Median: at(samples[i], 0.50),
			Allocs: allocs(tasks[i]),
		}
	}

	return out
}

// calibrate warms the task up and returns the number of passes that fill a burst.
func calibrate(t Task) int {
	t.Pass()
	for n := 1; ; n *= 2 {
		if burst(t, n) >= minBurst {
			return n
		}
	}
}

func burst(t Task, passes int) time.Duration {
	start := time.Now()
	for range passes {
		t.Pass()
	}
	return time.Since(start)
}

// allocs counts over whole passes. It rounds down to zero the allocations that occur once in
// several passes, as for a pool that refills after a collection.
func allocs(t Task) float64 {
	return testing.AllocsPerRun(10, t.Pass) / float64(t.Ops)
}

// at returns the value at the quantile q of a sorted list.
func at(sorted []float64, q float64) float64 {
	return sorted[int(q*float64(len(sorted)-1))]
}

// Best returns the least time of n runs, for work that a program does only once.
func Best(n int, f func() error) (time.Duration, error) {
	best := time.Duration(1<<63 - 1)
	for range n {
		start := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		best = min(best, time.Since(start))
	}

	return best, nil
}
