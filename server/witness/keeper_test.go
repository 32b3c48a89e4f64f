package witness

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
)

func (h *harness) keeper() *Keeper {
	return &Keeper{Records: h.store, Now: func() time.Time { return h.now }}
}

// takes shows a checkpoint and checks the answer.
func (h *harness) takes(s Shown, want Reason, size int64) {
	h.t.Helper()
	kept, reason, err := h.keeper().Show(h.t.Context(), "them", s)
	if err != nil || reason != want || kept.Size != size {
		h.t.Fatalf("got %q, %d entries, %v; want %q, %d", reason, kept.Size, err, want, size)
	}
}

// TestAWitnessKeepsOneHistory checks that a stored log only grows, and only with a proof.
func TestAWitnessKeepsOneHistory(t *testing.T) {
	w, h := newHarness(t, "witness.example"), newHarness(t, "server.example")
	if _, err := w.keeper().Newest(t.Context(), "them", ledger.Origin(tenant)); !errors.Is(err, approval.ErrNotFound) {
		t.Fatal(err)
	}

	h.grow(2)
	first := h.shown(0)
	w.takes(first, Taken, 2)
	w.takes(first, Taken, 2)
	h.grow(3)
	w.takes(h.shown(0), NeedsProof, 2)
	w.takes(h.shown(1), NeedsProof, 2)
	wrong := h.shown(2)
	wrong.Proof[0][0]++
	w.takes(wrong, Contradicts, 2)
	w.takes(h.shown(2), Taken, 5)
	w.takes(first, Older, 5)
	kept, err := w.keeper().Newest(t.Context(), "them", ledger.Origin(tenant))
	if err != nil || kept.PublicKey != h.signer.PublicKey() || !kept.At.Equal(w.now) {
		t.Fatalf("got %+v, %v", kept, err)
	}
	if _, err := w.keeper().Newest(t.Context(), "others", ledger.Origin(tenant)); !errors.Is(
		err,
		approval.ErrNotFound,
	) {
		t.Error("one tenant sees what another is shown")
	}

	for root, want := range map[ledger.Hash]Reason{{1}: Contradicts} {
		forked, err := h.signer.Sign(ledger.Checkpoint{Origin: ledger.Origin(tenant), Size: 5, Root: root})
		must(t, err)
		w.takes(Shown{Checkpoint: forked, PublicKey: h.signer.PublicKey()}, want, 5)
	}

	for _, s := range []Shown{
		{},
		{Checkpoint: []byte("no note"), PublicKey: h.signer.PublicKey()},
		{Checkpoint: first.Checkpoint, PublicKey: w.signer.PublicKey()},
	} {
		var wrong *InputError
		if _, _, err := w.keeper().Show(t.Context(), "them", s); !errors.As(err, &wrong) {
			t.Errorf("got %v", err)
		}
	}

	must(t, w.keeper().Forget(t.Context(), "them", ledger.Origin(tenant)))
	w.takes(first, Taken, 2)
	if err := w.keeper().Forget(t.Context(), "them", "assent/other"); !errors.Is(err, approval.ErrNotFound) {
		t.Error(err)
	}
}

// TestAWitnessFollowsAKey checks that another key is accepted only if the previous one
// handed over to it.
func TestAWitnessFollowsAKey(t *testing.T) {
	w := newHarness(t, "witness.example")
	h := newHarness(t, "server.example")
	eve := newHarness(t, "eve.example")
	h.grow(2)
	w.takes(h.shown(0), Taken, 2)
	eve.grow(9)
	w.takes(eve.shown(0), AnotherKey, 2)
	h.rotate("next.example")
	handover := h.shown(2)
	h.grow(1)
	w.takes(h.shown(2), AnotherKey, 2)
	w.takes(handover, Taken, 3)
	w.takes(h.shown(3), Taken, 4)
}

// TestAWitnessIsBounded checks that neither large checkpoints nor a growing number of logs
// can fill its store.
func TestAWitnessIsBounded(t *testing.T) {
	w := newHarness(t, "witness.example")
	keeper := w.keeper()
	keeper.Most = 3
	show := func(log string) error {
		note, err := w.signer.Sign(ledger.Checkpoint{Origin: ledger.Origin(log), Size: 1})
		if err != nil {
			return err
		}
		_, _, err = keeper.Show(t.Context(), "them", Shown{Checkpoint: note, PublicKey: w.signer.PublicKey()})
		return err
	}
	for _, log := range []string{"a", "b", "c"} {
		must(t, show(log))
	}
	var wrong *InputError
	if err := show("more"); !errors.As(err, &wrong) ||
		!strings.Contains(err.Error(), "keeps checkpoints of 3 logs already") {
		t.Errorf("got %v", err)
	}
	if err := show("b"); err != nil {
		t.Errorf("one that is kept: %v", err)
	}
	must(t, w.keeper().Forget(t.Context(), "them", ledger.Origin("b")))
	if err := show("more"); err != nil {
		t.Error(err)
	}
	large := Shown{Checkpoint: []byte(strings.Repeat("x", mostCheckpoint)), PublicKey: w.signer.PublicKey()}
	if _, _, err := w.keeper().Show(t.Context(), "them", large); !errors.As(err, &wrong) ||
		!strings.Contains(err.Error(), "at most") {
		t.Errorf("got %v", err)
	}
}
