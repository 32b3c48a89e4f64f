// Package measure times functions against each other on a noisy
// machine.
//
// Absolute times are no gate: neighbours and the collector move them by
// half and more. So the functions take turns in short bursts within one
// process, in another order each round, and the 10th percentile of the
// bursts stands for a function: what it costs when nobody disturbs.
// Ratios of these repeat within about 10 %.
package measure

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Task is one function to time. Pass does a fixed number of operations.
type Task struct {
	Name string
	Ops  int // operations in one pass
	Pass func()
}

// Result is what one task costs.
type Result struct {
	P10, Median float64 // nanoseconds per operation
	Allocs      float64 // allocations per operation, exact over a pass
}

// minBurst is long against the clock and the switch between tasks,
// short against a neighbour's interruption.
const minBurst = 150 * time.Microsecond

// Interleave runs one burst of each task per round and returns the
// results in the tasks' order.
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

// calibrate finds how many passes fill a burst, after warming the task up.
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

// allocs counts over whole passes; what is amortised over several (a
// pool refilled after a collection) rounds to none.
func allocs(t Task) float64 {
	return testing.AllocsPerRun(10, t.Pass) / float64(t.Ops)
}

// at returns the value at the quantile q of a sorted list.
func at(sorted []float64, q float64) float64 {
	return sorted[int(q*float64(len(sorted)-1))]
}

// Best is the least time of n runs, for work that is done once.
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
