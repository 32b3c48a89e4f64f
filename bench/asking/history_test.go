//go:build bars

package asking

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store"
)

// countedFile is policyFile with a budget of each principal in a month, which no call of the benchmark exceeds.
var countedFile = strings.Replace(policyFile, `"1.0.0"`, `"1.1.0"`, 1) + `
  - id: budget
    match: {targets: [transfer]}
    when: {history: [{within: 720h, by: [agent, principal], sum: {of: amount, gt: 1000000000000000}}]}
    deny: Too much.
`

// TestCounting compares rounds (open, vote, consume) with and without a rule that counts past calls, in turn on
// one machine, and prints medians. The window of the rule has some calls, and the store many others.
func TestCounting(t *testing.T) {
	const rounds = 300
	for _, e := range engines() {
		for _, size := range []struct{ own, others int }{{0, 0}, {100, 20_000}, {1000, 20_000}} {
			plain, counted := storeOf(t, e), storeOf(t, e)
			fillPasts(t, counted, size.own, size.others)
			worlds := []world{newWorld(t, plain), newWorldOf(t, counted, countedFile)}
			times := make([][]time.Duration, 2)
			for range rounds {
				for i, w := range worlds {
					start := time.Now()
					if err := w.round(t.Context()); err != nil {
						t.Fatal(err)
					}
					times[i] = append(times[i], time.Since(start))
				}
			}
			for _, all := range times {
				slices.Sort(all)
			}
			t.Logf("%s, %d calls in the window and %d others: median round %v without and %v with the rule; p99 %v and %v",
				e.name, size.own, size.others, times[0][rounds/2], times[1][rounds/2],
				times[0][rounds*99/100], times[1][rounds*99/100])
		}
	}
}

func storeOf(t *testing.T, e engine) store.Store {
	s, _ := e.open(t)
	return s
}

// fillPasts records calls that ran, of bob and of many others.
func fillPasts(t *testing.T, s store.Store, own, others int) {
	now := time.Now()
	for from := 0; from < own+others; from += 500 {
		err := s.Update(context.Background(), "default", func(tx approval.Tx) error {
			for n := from; n < min(from+500, own+others); n++ {
				principal := "bob"
				if n >= own {
					principal = fmt.Sprint("other", n%100)
				}
				tx.SavePast(approval.Past{
					ID: fmt.Sprint("run_", n), State: "ran", At: now.Add(-time.Hour), Until: now.Add(time.Hour),
					Call: resolve.PastCall{
						AgentID: "clerk", Principal: principal, Kind: resolve.Tool, Tool: "transfer",
						Args: resolve.Raw(`{"amount":12.34}`),
					},
				})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
