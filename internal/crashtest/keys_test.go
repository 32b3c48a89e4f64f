package crashtest

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
	"github.com/assent-dev/assent/store/postgres/pgtest"
)

// makeKey makes a key by using it for a store of its own.
func makeKey(t *testing.T, bin string) string {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "assent.key")
	args := []string{
		"token",
		"create",
		"--store",
		filepath.Join(dir, "own.db"),
		"--key",
		key,
		"--name",
		"x",
		"--scopes",
		"read",
	}
	if out, err := exec.Command(bin, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return key
}

// attempt runs assent serve until it answers or exits. It returns the exit code, or -1 if it
// answers, and the output.
func (h *harness) attempt(ctx context.Context, key, address string) (code int, said string) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cmd := exec.CommandContext(
		ctx,
		h.bin,
		"serve",
		"--listen",
		address,
		"--store",
		h.store,
		"--key",
		key,
		"--agents",
		filepath.Join(h.dir, "agents"),
		"--policies",
		filepath.Join(h.dir, "policies"),
		"--people",
		filepath.Join(h.dir, "people.yaml"),
	)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	cmd.Stdout = &firstLine{then: stop}
	err := cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode(), errs.String()
	}
	return 0, errs.String()
}

// firstLine calls a function once a process has printed that it is ready.
type firstLine struct{ then func() }

func (f *firstLine) Write(p []byte) (int, error) {
	if bytes.IndexByte(p, '\n') >= 0 {
		f.then()
	}
	return len(p), nil
}

// TestAReplicaWithAnotherKeyTakesNoPart: it exits before it answers or signs anything, so exports
// of the other replicas still verify.
func TestAReplicaWithAnotherKeyTakesNoPart(t *testing.T) {
	h := newHarness(t, testbin.Path(t, "cmd/assent"), pgtest.New(t))
	addresses := []string{h.address(), h.address()}
	for _, address := range addresses {
		h.serve(address)
	}
	ctx := t.Context()
	bot := h.client(addresses[0], h.bot)
	alice := h.client(addresses[1], h.alice)
	bob := h.client(addresses[0], h.bob)

	other := makeKey(t, h.bin)
	for n := range 3 {
		must.Get(approve(ctx, bot, alice, bob, call("transfer", n)))(t)
		code, said := h.attempt(ctx, other, h.address())
		if code != 2 || !strings.Contains(said, "this store is signed by "+h.key) ||
			!strings.Contains(said, "mount that key, or run `assent key rotate`") {
			t.Errorf("with another key it ends with code %d\n%s", code, said)
		}
	}

	code, said := h.attempt(ctx, filepath.Join(t.TempDir(), "none.key"), h.address())
	if code != 2 || !strings.Contains(said, "none.key is not there: mount that key there") {
		t.Errorf("without a key it ends with code %d\n%s", code, said)
	}
	id := must.Get(approve(ctx, bot, alice, bob, call("transfer", 9)))(t)
	sealed(ctx, t, bot, id, "permit_consumed")
	checkpoint, _ := h.audit(ctx, bot, nil)
	if _, err := ledger.OpenCheckpoint(checkpoint, h.key); err != nil {
		t.Error(err)
	}
}

// TestOfTwoFirstStartsOneBindsTheStore: two servers start at the same time on an empty database,
// each with its own key.
func TestOfTwoFirstStartsOneBindsTheStore(t *testing.T) {
	bin := testbin.Path(t, "cmd/assent")
	files := newHarness(t, bin, "") // for its agents and people
	for range 3 {
		h := *files
		h.store = pgtest.New(t)
		keys := []string{makeKey(t, bin), makeKey(t, bin)}
		var codes [2]int
		var said [2]string
		var both sync.WaitGroup
		for i, key := range keys {
			address := h.address()
			both.Go(func() { codes[i], said[i] = h.attempt(t.Context(), key, address) })
		}
		both.Wait()

		winner := 0
		if codes[0] == 2 {
			winner = 1
		}
		if codes[winner] != -1 || codes[1-winner] != 2 || !strings.Contains(said[1-winner], "mount that key") {
			t.Fatalf("they end with codes %d, one of which should have answered\n%s\n%s", codes, said[0], said[1])
		}
		for i, want := range []bool{winner == 0, winner == 1} {
			err := exec.Command(bin, "token", "list", "--store", h.store, "--key", keys[i]).Run()
			if (err == nil) != want {
				t.Errorf("key %d works: %v, want %v", i, err, want)
			}
		}
	}
}
