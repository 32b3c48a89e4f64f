package auth_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/server/auth"
	"github.com/assent-dev/assent/server/directory"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

// onSQLite gives the harness a real store.
func (h *harness) onSQLite() store.Store {
	h.t.Helper()
	s, err := sqlite.Open(h.t.Context(), filepath.Join(h.t.TempDir(), "assent.db"), sqlite.Options{})
	must(h.t, err)
	h.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			h.t.Error(err)
		}
	})
	h.cfg.Values, h.cfg.Records = s, s
	h.cfg.People = directory.With(h.people, s, h.clock)
	h.restart()
	return s
}

func TestSignInOnSQLite(t *testing.T) {
	h := open(t, false)
	s := h.onSQLite()
	b, second := h.signedIn(), h.signedIn()
	if h.restart(); b.who() != aliceIs+"/who" || second.who() == "" {
		t.Error("a restart ends sessions")
	}
	kept, err := s.ListValues(t.Context(), "session", h.clock())
	if err != nil || len(kept) != 2 {
		t.Fatalf("%d sessions: %v", len(kept), err)
	}
	eve := h.browser()
	for hash := range kept {
		if eve.plant(hash); eve.who() != "" {
			t.Error("what is stored signs in")
		}
	}
	if b.do(http.MethodPost, "/auth/sign-out", url.Values{"everywhere": {"yes"}}); b.who() != "" || second.who() != "" {
		t.Error("signed out, and in")
	}
	b = h.signedIn()
	if h.pass(auth.Idle + time.Minute); b.who() != "" {
		t.Error("idle")
	}
	b = h.signedIn()
	h.people.set(func() {
		h.people.base = directory.Tenants{"acme": read(t, "schema_version: \"1.0.0\"\npeople: []\n")}
	})
	if res := b.get("/"); res.StatusCode != http.StatusForbidden {
		t.Errorf("taken out of the directory: %d", res.StatusCode)
	}
}

func TestDevLinkOnSQLite(t *testing.T) {
	h := open(t, true)
	h.onSQLite()
	to := h.link("bob")
	h.browser().get(to)
	var in atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		b := h.browser()
		all.Go(func() {
			if b.do(http.MethodPost, to, nil).StatusCode == http.StatusOK {
				in.Add(1)
			}
		})
	}

	if all.Wait(); in.Load() != 1 {
		t.Errorf("%d got in", in.Load())
	}
}
