package witness

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/store"
)

// TestAFileOfCheckpointsTellsOfACutTail checks that the lines in an external file show that
// the log was longer, even to a server without a watermark.
func TestAFileOfCheckpointsTellsOfACutTail(t *testing.T) {
	h := newHarness(t, "server.example")
	path := filepath.Join(t.TempDir(), "checkpoints")
	h.grow(2)
	h.exec(saveLog)
	r := h.runner(File(path, time.Now), false)
	round(t, r, "")
	round(t, r, "")
	h.grow(3)
	round(t, r, "")
	lines := strings.Split(strings.TrimSpace(read(t, path)), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines for 2 checkpoints", len(lines))
	}
	var last line
	if err := json.Unmarshal([]byte(lines[1]), &last); err != nil || last.Size != 5 ||
		last.Log != ledger.Origin(tenant) {
		t.Fatalf("got %+v, %v", last, err)
	}
	if _, err := ledger.OpenCheckpoint([]byte(last.Checkpoint), h.signer.PublicKey()); err != nil {
		t.Fatal(err)
	}
	h.exec(cutLog)
	h.open(store.Trust{}) // another process, without a watermark
	h.grow(9)
	round(t, h.runner(File(path, time.Now), false), "with 5 entries")
	if err := h.store.Integrity().Stopped[tenant]; !errors.Is(err, store.ErrTampered) {
		t.Errorf("the tenant goes on: %v", err)
	}
	if _, err := h.store.Seal(t.Context(), 10, h.signer.Sign); err != nil {
		t.Fatalf("nothing waits to be sealed: %v", err)
	}
	err := h.store.Update(t.Context(), tenant, func(tx approval.Tx) error { return nil })
	if !errors.Is(err, store.ErrTampered) {
		t.Errorf("an update goes on: %v", err)
	}
}

// TestAWitnessFromBeforeARestore checks that a checkpoint from before a restore is not
// reported as an attack, and that the error refers to the witness's operator.
func TestAWitnessFromBeforeARestore(t *testing.T) {
	h := newHarness(t, "server.example")
	path := filepath.Join(t.TempDir(), "checkpoints")
	h.grow(2)
	h.exec(saveLog)
	h.grow(3)
	round(t, h.runner(File(path, time.Now), false), "")
	h.exec(cutLog)
	h.open(store.Trust{Unfinished: true})
	must(t, errors.Join(h.store.RestoreInPlace(t.Context()), h.store.FinishRestore(t.Context())))
	h.grow(1)
	round(t, h.runner(File(path, time.Now), false), "have the witness forget the log")
	if len(h.store.Integrity().Stopped) != 0 {
		t.Error("the tenant is stopped")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

// round shows everything and checks the error's text. If says is empty, there must be no
// error.
func round(t *testing.T, r *Runner, says string) {
	t.Helper()
	err := r.Round(testwait.Context(t))
	if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
		t.Fatalf("got %v, want %q", err, says)
	}
}

// TestAnAddressIsSentTheNote checks that the note is sent unchanged with the token, that it
// is sent again if it is not accepted, and that errors don't contain the address.
func TestAnAddressIsSentTheNote(t *testing.T) {
	h := newHarness(t, "server.example")
	h.grow(2)
	var status atomic.Int64
	status.Store(http.StatusInternalServerError)
	got := make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- r.Method + " " + r.Header.Get("Authorization") + " " + string(body)
		w.WriteHeader(int(status.Load()))
	}))
	defer s.Close()
	w, err := URL(Remote{URL: s.URL + "/secret-path", Token: "sesame", Guard: guard.Guard{Loopback: true}})
	must(t, err)
	r := h.runner(w, true)
	round(t, r, "it answers 500")
	if h.now = h.now.Add(far); r.Ready(t.Context()) != nil {
		t.Error("red too soon")
	}
	if h.now = h.now.Add(time.Second); r.Ready(t.Context()) == nil || r.States()[0].Behind != far+time.Second {
		t.Errorf("a required witness is far behind, and nobody sees it: %+v", r.States())
	}
	status.Store(http.StatusNoContent)
	round(t, r, "")
	round(t, r, "") // nothing new
	if err := r.Ready(t.Context()); err != nil || r.States()[0].Behind != 0 {
		t.Error(err, r.States())
	}
	_, note, err := h.store.Checkpoint(t.Context(), tenant)
	must(t, err)
	for range 2 {
		if text := <-got; text != "POST Bearer sesame "+string(note) {
			t.Errorf("got %q", text)
		}
	}
	if len(got) != 0 {
		t.Error("it was sent what it had")
	}
	s.Close()
	h.grow(1)
	err = r.Round(testwait.Context(t))
	if err == nil || strings.Contains(err.Error()+h.log.String(), "secret-path") {
		t.Errorf("the address is in %v\n%s", err, h.log.String())
	}
	for _, log := range []string{"a witness is not shown the ledger", "a witness is shown the ledger again"} {
		if !strings.Contains(h.log.String(), log) {
			t.Errorf("%q is not in\n%s", log, h.log.String())
		}
	}
	for _, url := range []string{"http://witness.example/", "https://10.0.0.1/", "ftp://x"} {
		_, one := URL(Remote{URL: url})
		_, two := Assent(Remote{URL: url})
		if one == nil || two == nil {
			t.Errorf("%s is taken", url)
		}
	}
}
