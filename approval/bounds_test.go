package approval_test

import (
	"slices"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// TestGrantIgnoresWhatDoesNotAct: a standing approval does not compare arguments that the owner
// declared as not acting, if they are texts. They are shown, and the binding covers them.
func TestGrantIgnoresWhatDoesNotAct(t *testing.T) {
	h := newHarness(t)
	h.plans.set(t, policyFile, resolve.Standing{Target: "tool pay", Ignored: []string{"note"}})
	r, g := h.approved(tool("pay", `{"command":"x","note":"first"}`), &approval.GrantOffer{MaxUses: 20})
	if !slices.Equal(g.Ignored, []string{"note"}) || !slices.Equal(r.Current().Ignored, g.Ignored) {
		t.Fatalf("got %q of %+v", g.Ignored, r.Current())
	}
	for args, want := range map[string]bool{
		`{"command":"x","note":"another"}`:         true,
		`{"command":"x"}`:                          true,
		`{"note":null,"command":"x"}`:              true,
		`{"command":"x","note":{"command":"y"}}`:   false,
		`{"command":"x","note":["first"]}`:         false,
		`{"command":"x","note":1}`:                 false,
		`{"command":"x","note":true}`:              false,
		`{"command":"x","Note":"another"}`:         false,
		`{"command":"y","note":"first"}`:           false,
		`{"command":"x","note":"first","more":""}`: false,
		`{"command":{"note":"a"},"note":"first"}`:  false,
		`{"note":"first"}`:                         false,
	} {
		if got := h.covers(tool("pay", args)); got != want {
			t.Errorf("%s: covered %v", args, got)
		}
	}

	a, b := h.asked(tool("pay", `{"command":"z","note":"a"}`)), h.asked(tool("pay", `{"command":"z","note":"b"}`))
	if a.ID == b.ID || a.Binding() == b.Binding() {
		t.Error("a call with another note is taken for the one that people saw")
	}
	if h.plans.set(t, policyFile); h.covers(tool("pay", `{"command":"x","note":"first"}`)) {
		t.Error("the standing approval outlives the owner's declaration")
	}
	h.history()
}
