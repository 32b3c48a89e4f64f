package posture

import (
	"os"
	"runtime"
	"testing"

	"github.com/assent-dev/assent/resolve"
)

// TestComparisonsEndSoon compares small files whose conditions split calls into very many sets. The
// comparison limits steps and pieces, not time, so that the answer is the same on every machine.
// The test measures the work by allocations; without the limits there are 70 times as many.
func TestComparisonsEndSoon(t *testing.T) {
	for name, want := range map[string]Verdict{"words": VerdictTightens, "pieces": VerdictUndecided} {
		t.Run(name, func(t *testing.T) {
			side := func(which string) *Side {
				text, err := os.ReadFile("testdata/slow/" + name + "." + which + ".agf.yaml")
				if err != nil {
					t.Fatal(err)
				}
				return sideText(t, resolve.Options{}, string(text))
			}
			old, new := side("old"), side("new")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			report := NewReport(Compare(old, new))
			runtime.ReadMemStats(&after)
			if report.Verdict != want {
				t.Errorf("%s, expected %s", report.Verdict, want)
			}
			for _, c := range report.Changes {
				if c.Effect == Undecided && c.Why == "" {
					t.Errorf("an undecided change does not say why: %+v", c)
				}
			}
			spent := after.Mallocs - before.Mallocs
			if t.Logf("%d allocations", spent); spent > 2_000_000 {
				t.Errorf("%d allocations, expected at most 2 million", spent)
			}
		})
	}
}
