package witness

import (
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

const tenant = "acme"

// harness is a server's store with its key.
type harness struct {
	t      *testing.T
	path   string
	signer ledger.Signer
	secret [32]byte
	store  store.Store
	log    testwait.Buffer
	now    time.Time
}

func newHarness(t *testing.T, name string) *harness {
	t.Helper()
	signer, secret, err := ledger.GenerateKey(name, rand.Reader)
	must(t, err)
	h := &harness{
		t:      t,
		path:   filepath.Join(t.TempDir(), "a.db"),
		signer: signer,
		secret: sha256.Sum256([]byte(secret)),
		now:    time.Now().UTC().Truncate(time.Second),
	}
	h.open(store.Trust{})
	return h
}

func (h *harness) open(trust store.Trust) {
	h.t.Helper()
	trust.Key = store.Key{Public: h.signer.PublicKey(), Secret: h.secret[:]}
	var err error
	if h.store, err = sqlite.Open(h.t.Context(), h.path, sqlite.Options{Trust: trust}); err != nil {
		h.t.Fatal(err)
	}
	s := h.store
	h.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			h.t.Error(err)
		}
	})
}

// grow appends entries and seals them.
func (h *harness) grow(n int) {
	h.t.Helper()
	for range n {
		r, err := ledger.Entry{Time: time.Now(), Tenant: tenant, Type: "noted"}.Seal(rand.Reader)
		if err == nil {
			err = h.store.Update(h.t.Context(), tenant, func(tx approval.Tx) error {
				tx.Append(r)
				return nil
			})
		}

		must(h.t, err)
	}

	h.seal()
}

func (h *harness) seal() {
	h.t.Helper()
	if _, err := h.store.Seal(h.t.Context(), 1000, h.signer.Sign); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) exec(query string) {
	h.t.Helper()
	db, err := sql.Open("sqlite", h.path)
	if err == nil {
		_, err = db.ExecContext(h.t.Context(), query)
	}
	must(h.t, err)
	must(h.t, db.Close())
}

func (h *harness) runner(w Witness, required bool) *Runner {
	return New(Config{
		Store:     h.store,
		PublicKey: h.signer.PublicKey(),
		Log:       slog.New(slog.NewTextHandler(&h.log, nil)),
		Now: func() time.Time {
			return h.now
		},
		Targets: []Target{{Name: "w", Witness: w, Required: required}},
	})
}

// shown returns the current log, with the proof from an older size.
func (h *harness) shown(since int64) Shown {
	h.t.Helper()
	size, note, err := h.store.Checkpoint(h.t.Context(), tenant)
	must(h.t, err)
	s := Shown{Checkpoint: note, PublicKey: h.signer.PublicKey(), Since: since}
	if since > 0 {
		if s.Proof, err = ledger.ProveConsistency(size, since, h.store.Hashes(h.t.Context(), tenant)); err != nil {
			h.t.Fatal(err)
		}
	}
	return s
}

// rotate changes the key.
func (h *harness) rotate(name string) {
	h.t.Helper()
	next, secret, err := ledger.GenerateKey(name, rand.Reader)
	must(h.t, err)
	sum := sha256.Sum256([]byte(secret))
	r := store.Rotation{
		Key:  store.Key{Public: next.PublicKey(), Secret: sum[:]},
		Sign: ledger.Both(h.signer, next).Sign,
	}
	must(h.t, h.store.Rotate(h.t.Context(), r))
	h.signer, h.secret = next, sum
}

const (
	saveLog = "CREATE TABLE saved AS SELECT * FROM trees"
	cutLog  = "DELETE FROM entries WHERE idx >= 2; DELETE FROM hashes WHERE pos >= 3; DELETE FROM trees; INSERT " +
		"INTO trees SELECT * FROM saved"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
