package subject

import (
	"slices"
	"testing"

	"github.com/assent-dev/assent/bench/internal/model"
)

// TestAgree checks that every subject returns exactly the reasons of the reference on every
// call of every workload. Otherwise the results would compare different work.
func TestAgree(t *testing.T) {
	for _, w := range []*model.Workload{model.A(), model.B(), model.C(), model.D(1_000)} {
		t.Run(w.Name, func(t *testing.T) {
			for _, s := range all(t, w) {
				t.Run(s.Name(), func(t *testing.T) { agree(t, w, s) })
			}
		})
	}
}

// TestAgreeAtTenThousand also checks the subjects that are measured with 10,000 policies.
func TestAgreeAtTenThousand(t *testing.T) {
	w := model.D(10_000)
	assent, err := Assent(w)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(Floors(w), assent...) {
		t.Run(s.Name(), func(t *testing.T) { agree(t, w, s) })
	}
}

// TestAgreeOnMissingArguments checks that the translations test whether an argument is missing,
// so that no engine is faster because it omits that test. assent requires approval there.
// TestSliceEqualsEverything checks which rules it evaluates to true.
func TestAgreeOnMissingArguments(t *testing.T) {
	for _, w := range []*model.Workload{model.A().Ragged(), model.B().Ragged(), model.C().Ragged()} {
		peers, err := Peers(w)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range append(Floors(w), peers...) {
			t.Run(w.Name+"/"+s.Name(), func(t *testing.T) { agree(t, w, s) })
		}
	}
}

func all(t *testing.T, w *model.Workload) []*Subject {
	t.Helper()
	peers, err := Peers(w)
	if err != nil {
		t.Fatal(err)
	}
	assent, err := Assent(w)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(Floors(w), peers, assent)
}

func agree(t *testing.T, w *model.Workload, s *Subject) {
	t.Helper()
	if err := Agree(w, s); err != nil {
		t.Error(err)
	}
}
