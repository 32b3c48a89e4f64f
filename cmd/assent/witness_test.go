package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// witnessToken makes a token of a running service, and returns the file
// that holds it.
func (h *testServer) witnessToken(t *testing.T) string {
	t.Helper()
	s, err := openStore(t.Context(), h.where(), nil)
	must.Do(t, err)
	defer s.Close()
	h.makes(t, s, openapi.TokenBody{Name: "them", Scopes: []openapi.Scope{openapi.ScopeWitness}})

	return h.file(t, h.token["them"])
}

// kept asks a service what it keeps of the other's ledger.
func (h *testServer) kept(t *testing.T, tokenFile string) (out openapi.Witnessed, status int) {
	t.Helper()
	token, err := os.ReadFile(tokenFile)
	must.Do(t, err)
	at := h.ready.API + "/v1/witness?" + url.Values{"log": {"assent/default"}}.Encode()
	status, text := fetched(t, http.MethodGet, at, string(token), "")
	if status == http.StatusOK {
		err = json.Unmarshal([]byte(text), &out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}

	return out, status
}

// TestASecondServerIsAWitness: it keeps what it is shown, across a
// change of the key; an auditor asks it; and a log that was cut off and
// signed on is noticed through it alone.
func TestASecondServerIsAWitness(t *testing.T) {
	second := start(t, "")
	token := second.witnessToken(t)
	if _, status := second.kept(t, token); status != http.StatusNotFound {
		t.Fatalf("status %d before anything was shown", status)
	}
	w := config.Witness{
		Name:      "second",
		Assent:    second.ready.API,
		TokenFile: token,
		Loopback:  true,
		Every:     20 * time.Millisecond,
		Required:  true,
	}
	witnessed := func(key string) func(*config.Serve) {
		return func(c *config.Serve) {
			c.Witnesses = []config.Witness{w}
			c.KeyFile = key
			c.Watermark = config.NoWatermark
		}
	}
	dir := t.TempDir()
	writeFiles(t, dir, deskFiles())
	key, next := filepath.Join(dir, "k"), filepath.Join(dir, "next")
	h := startWith(t, &testServer{dir: dir, token: map[string]string{}}, witnessed(key))
	h.ask(t, `{"kind":"tool","tool":"trade","args":{}}`)
	testwait.Until(t, "the ledger is shown", func() bool {
		kept, _ := second.kept(t, token)
		return kept.Size == 6
	})
	export := filepath.Join(h.dir, "export.jsonl")
	verify := func(more ...string) (int, string) {
		screen := &terminal{}
		args := append(
			[]string{"audit", "verify", export, "--public-key", key + ".pub", "--witness", second.ready.API},
			more...)
		return h.run(t, screen, "", args...), screen.out.String()
	}
	// An export is an entry of its own, so the witness may be ahead of it.
	testwait.Until(t, "the export is as new as what the witness has", func() bool {
		_ = os.Remove(export)
		if code := h.run(t, &terminal{}, "alice", "audit", "export", "--out", export); code != term.ExitOK {
			t.Fatalf("exit %d", code)
		}
		code, says := verify("--witness-token-file", token)
		if code != term.ExitOK && !strings.Contains(says, "export once more") {
			t.Fatalf("exit %d\n%s", code, says)
		}
		return code == term.ExitOK && strings.Contains(says, " entries of the older checkpoint")
	})
	if code, says := verify(); code != term.ExitFailure || !strings.Contains(says, "it answers 401") {
		t.Fatalf("exit %d\n%s", code, says)
	}
	must.Do(t, h.stop())

	where := config.Store{Where: filepath.Join(h.dir, "s.db"), KeyFile: key, Watermark: config.NoWatermark}
	if _, _, err := rotateKey(t.Context(), where, next, config.NoWatermark); err != nil {
		t.Fatal(err)
	}
	h = startWith(t, &testServer{dir: dir, token: map[string]string{}}, witnessed(next))
	testwait.Until(t, "the witness follows the key", func() bool {
		kept, _ := second.kept(t, token)
		public, err := os.ReadFile(next + ".pub")
		return err == nil && kept.PublicKey == strings.TrimSpace(string(public)) && kept.Size > 7
	})
	h.sql(
		t,
		"CREATE TABLE saved AS SELECT * FROM trees; CREATE TABLE saved_entries AS SELECT * FROM entries; CREATE "+
			"TABLE saved_hashes AS SELECT * FROM hashes",
	)
	h.ask(t, `{"kind":"tool","tool":"trade","args":{"n":2}}`)
	testwait.Until(t, "more is shown", func() bool {
		now, _ := second.kept(t, token)
		return now.Size > saved(t, h.dir)
	})
	must.Do(t, h.stop())
	h.sql(
		t,
		"DELETE FROM requests WHERE version = 1; DELETE FROM entries; INSERT INTO entries SELECT * FROM "+
			"saved_entries; DELETE FROM hashes; INSERT INTO hashes SELECT * FROM saved_hashes; "+
			"DELETE FROM trees; INSERT INTO trees SELECT * FROM saved",
	)
	cfg := config.Serve{
		Listen:  "127.0.0.1:0",
		Store:   where.Where,
		Drain:   time.Second,
		Tenants: []config.Tenant{{Name: "default", Agents: []string{dir}, People: filepath.Join(dir, "people.yaml")}},
	}
	witnessed(next)(&cfg)
	h = &testServer{dir: dir, token: h.token}
	log := h.serves(t, cfg)
	_, err := h.client(t, "runtime").
		Open(t.Context(), "desk", []byte(`{"kind":"tool","tool":"quote","args":{}}`), client.OpenOptions{})
	if client.Code(err) != openapi.CodeTampered {
		t.Errorf("a call that needs no asking: %v", err)
	}
	testwait.Until(t, "figures tell of it", func() bool {
		_, text := fetched(t, http.MethodGet, h.ready.API+"/metrics", "", "")
		return strings.Contains(text, "assent_stopped_tenants 1") &&
			strings.Contains(text, `assent_witness_behind_seconds{witness="second"}`)
	})
	if err := h.stop(); !errors.Is(err, store.ErrTampered) ||
		!strings.Contains(log.String(), "THE DATABASE WAS TAMPERED WITH") {
		t.Errorf("got %v\n%s", err, log.String())
	}
}

// saved returns the size of the log in the state that is put back later.
func saved(t *testing.T, dir string) (size int64) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "s.db")+"?_pragma=busy_timeout(20000)")
	if err == nil {
		err = db.QueryRowContext(t.Context(), "SELECT max(size) FROM saved").Scan(&size)
	}
	must.Do(t, errors.Join(err, db.Close()))

	return size
}
