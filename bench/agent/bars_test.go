//go:build bars

package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/assent-dev/assent/bench/internal/measure"
)

// bar is the largest share of a turn that our loop may add to the time of the bare loop.
const bar = 0.05

// TestTurn compares a turn of each loop with a turn of the bare loop, with the same scripted
// model. The bar applies only to a model that takes time. If a model answers from memory, as no
// real model does, only the loop itself is measured.
func TestTurn(t *testing.T) {
	for _, calls := range []int{1, 4} {
		for _, takes := range []time.Duration{0, time.Millisecond} {
			all := subjects(t, calls, takes)
			costs := measure.Interleave(tasks(t, all), 120)
			for i, c := range costs[1:] {
				over := c.Median/costs[0].Median - 1
				what := fmt.Sprintf("%d calls, model of %v, %s", calls, takes, all[i+1].name)
				t.Logf(
					"RESULT %s: %.2f of bare, %+.0f ns and %+.0f allocations in a turn of %.0f ns",
					what,
					1+over,
					c.Median-costs[0].Median,
					c.Allocs-costs[0].Allocs,
					costs[0].Median,
				)
				if takes > 0 && over > bar {
					t.Errorf("%s adds %.1f %% to a turn (bar %.0f %%)", what, 100*over, 100*bar)
				}
			}
		}
	}
}

func tasks(t *testing.T, all []subject) []measure.Task {
	messages := before()
	var out []measure.Task
	for _, s := range all {
		out = append(out, measure.Task{
			Name: s.name,
			Ops:  turns + 1,
			Pass: func() {
				if _, err := s.run(t.Context(), messages); err != nil {
					t.Error(s.name, err)
				}
			},
		})
	}

	return out
}

// TestRead compares the reading of a stored thread with encoding/json on the same text. Each
// run reads a thread once.
func TestRead(t *testing.T) {
	size, all := readers(t)
	var work []measure.Task
	for _, r := range all {
		work = append(work, measure.Task{
			Name: r.name,
			Ops:  1,
			Pass: func() {
				if err := r.read(); err != nil {
					t.Error(r.name, err)
				}
			},
		})
	}

	costs := measure.Interleave(work, 60)
	plain := map[string]float64{"thread": costs[2].Median, "messages": costs[4].Median}
	for i, against := range []string{"thread", "thread", "", "messages"} {
		if against != "" {
			t.Logf(
				"RESULT %s: %.2f of plain %s, %.0f MB/s, %.0f allocations",
				all[i].name,
				costs[i].Median/plain[against],
				against,
				float64(size)/costs[i].Median*1000,
				costs[i].Allocs,
			)
		}
	}
}
