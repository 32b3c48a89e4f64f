package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// runScript runs one script with the real main.
func runScript(t *testing.T, file string) {
	params := scripts("")
	params.Files = []string{filepath.Join("testdata", "stores", file)}
	testscript.Run(t, params)
}

func TestCommandsRefuseAnotherKeyAndRotateIt(t *testing.T) { runScript(t, "keys.txtar") }

func TestARestoreRunsNothingTwice(t *testing.T) { runScript(t, "restore.txtar") }

func TestARestoreNeedsTheWatermarkOfTheServers(t *testing.T) { runScript(t, "watermark.txtar") }

// sql runs statements on the database of a server, like an attacker who has the database but not
// the key.
func (h *testServer) sql(t *testing.T, queries ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.dir, "s.db")+"?_pragma=busy_timeout(30000)")
	must.Do(t, err)
	for _, query := range queries {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	must.Do(t, db.Close())
}

// readiness asks which checks fail.
func (h *testServer) readiness(t *testing.T) (status int, failing []string) {
	t.Helper()
	status, health := h.readyz(t, "/readyz", "")
	for _, c := range health.Checks {
		if !c.Ok {
			failing = append(failing, c.Name)
		}
	}
	return status, failing
}

// TestAForgedApprovalRunsNothingAndIsNotSigned: an attacker sets a request to approved and inserts
// matching entries into the ledger. The approval doesn't count, nothing is signed from there on,
// and everyone concerned is informed. Once the entries are removed, the service goes on.
func TestAForgedApprovalRunsNothingAndIsNotSigned(t *testing.T) {
	t.Parallel()
	h := start(t, "")
	call := `{"kind":"tool","tool":"trade","args":{"amount":1000000}}`
	r := h.ask(t, call)
	testwait.Until(t, "the request is sealed", func() bool {
		size, err := h.sealed(t)
		return err == nil && size == 6
	})
	h.sql(
		t,
		"CREATE TABLE kept_requests AS SELECT * FROM requests",
		`UPDATE requests SET state = 'approved', version = version + 1, body = replace(replace(body, '"state":"pending"', '"state":"approved","permit":{"expires":"2099-01-01T00:00:00Z"}'),
			'"version":1', '"version":2')`,
		`INSERT INTO entries (tenant, type, subject, at, leaf, version) SELECT tenant, 'vote_counted', subject, at, `+
			`leaf, 2 FROM entries WHERE type = 'request_opened'`,
		`INSERT INTO entries (tenant, type, subject, at, leaf, version) SELECT tenant, 'request_approved', subject, `+
			`at, leaf, 2 FROM entries WHERE type = 'request_opened' AND idx IS NOT NULL`,
	)
	bot := h.client(t, "runtime")
	if _, err := bot.Consume(t.Context(), r.ID, []byte(call), ""); client.Code(err) != openapi.CodeTampered {
		t.Errorf("consume: %v", err)
	}
	if _, err := h.client(t, "alice").Request(t.Context(), r.ID); client.Code(err) != openapi.CodeTampered {
		t.Errorf("show: %v", err)
	}
	testwait.Until(t, "sealing fails, and readiness says so", func() bool {
		status, failing := h.readiness(t)
		return status == http.StatusServiceUnavailable && strings.Join(failing, " ") == "sealing"
	})
	if size, err := h.sealed(t); err != nil || size != 6 {
		t.Errorf("%d entries are signed, %v", size, err)
	}
	testwait.Until(t, "nothing runs for the tenant", func() bool {
		_, err := bot.Open(
			t.Context(),
			"desk",
			[]byte(`{"kind":"tool","tool":"quote","args":{}}`),
			client.OpenOptions{},
		)
		return client.Code(err) == openapi.CodeTampered
	})
	if _, text := fetched(t, http.MethodGet, h.ready.API+"/metrics", "", ""); strings.Contains(
		text, "assent_tampered_total 0\n",
	) || !strings.Contains(text, "assent_stopped_tenants 1\n") {
		t.Error("no figure tells of it")
	}
	h.sql(
		t,
		"DELETE FROM entries WHERE idx IS NULL",
		"DELETE FROM requests",
		"INSERT INTO requests SELECT * FROM kept_requests",
	)
	testwait.Until(t, "it goes on", func() bool {
		status, _ := h.readiness(t)
		return status == http.StatusOK
	})
	if got := h.votes(t, "alice", r, nil); got != approval.VoteApproved {
		t.Error(got)
	}

	if _, err := bot.Consume(t.Context(), r.ID, []byte(call), ""); err != nil {
		t.Error(err)
	}
}

// sealed returns the number of signed entries of the ledger.
func (h *testServer) sealed(t *testing.T) (int64, error) {
	t.Helper()
	c, err := h.client(t, "alice").Checkpoint(t.Context())
	if err != nil {
		return 0, err
	}
	return c.Size, nil
}

// TestAConsumedPermitIsNotPutBack in the running service, with and
// without the entries about it.
func TestAConsumedPermitIsNotPutBack(t *testing.T) {
	h := start(t, "")
	call := `{"kind":"tool","tool":"trade","args":{}}`
	r := h.ask(t, call)
	if got := h.votes(t, "alice", r, nil); got != approval.VoteApproved {
		t.Fatal(got)
	}

	h.sql(t, "CREATE TABLE kept_requests AS SELECT * FROM requests")
	bot := h.client(t, "runtime")
	if _, err := bot.Consume(t.Context(), r.ID, []byte(call), "one"); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"", "DELETE FROM entries WHERE type = 'permit_consumed'"} {
		h.sql(t, "DELETE FROM requests", "INSERT INTO requests SELECT * FROM kept_requests", more)
		for _, key := range []string{"one", "two"} {
			if _, err := bot.Consume(t.Context(), r.ID, []byte(call), key); client.Code(err) != openapi.CodeTampered {
				t.Errorf("%q, key %s: %v", more, key, err)
			}
		}
	}

	if err := h.stop(); err != nil {
		t.Logf("the service ends with what it could not sign: %v", err)
	}
	h.stop = func() error { return nil }
}

// TestStartsBackupsPruningAndRotationsAreInTheLedger with what an
// auditor wants to know of each.
func TestStartsBackupsPruningAndRotationsAreInTheLedger(t *testing.T) {
	h := start(t, "")
	must.Do(t, h.stop())
	where := h.where()
	work := func(do func(context.Context, *keyedStore) error) {
		t.Helper()
		s, err := openStore(t.Context(), where, nil)
		if err == nil {
			err = errors.Join(do(t.Context(), s), s.Close())
		}
		must.Do(t, err)
	}
	work(func(ctx context.Context, s *keyedStore) error { return backup(ctx, s, io.Discard) })
	next := filepath.Join(h.dir, "next")
	before, after, err := rotateKey(t.Context(), where, next, next+".watermark")
	must.Do(t, err)
	where.KeyFile = next
	facts := map[string]ledger.Leaf{}
	work(func(ctx context.Context, s *keyedStore) error {
		if err := sealWhole(ctx, s, s.key.Signer.Sign); err != nil {
			return err
		}
		all, err := s.Leaves(ctx, "default", 0, 100)
		for _, e := range all {
			leaf, bad := ledger.ParseLeaf(e.Leaf)
			facts[leaf.Type], err = leaf, errors.Join(err, bad)
		}
		return err
	})
	for event, want := range map[string]map[string]string{
		approval.EventStarted:    {"version": term.Version, "public_key": before},
		approval.EventBackedUp:   {"sha256": ""},
		approval.EventKeyRotated: {"old": before, "new": after},
	} {
		leaf, there := facts[event]
		if !there {
			t.Errorf("no entry %s", event)
			continue
		}
		for name, text := range want {
			if v, ok := leaf.Facts.Get(name); !ok || text != "" && v.Text != text {
				t.Errorf("%s: %s is %q, want %q", event, name, v.Text, text)
			}
		}
	}

	if !errors.Is(openWith(t, where, filepath.Join(h.dir, "k")), store.ErrKey) {
		t.Error("the old key still opens the store")
	}
}

func openWith(t *testing.T, where config.Store, key string) error {
	t.Helper()
	where.KeyFile, where.Watermark = key, config.NoWatermark
	s, err := openStore(t.Context(), where, nil)
	if err == nil {
		err = s.Close()
	}
	return err
}

// off is a store with a database whose clock differs.
type off struct {
	store.Store
	by time.Duration
}

func (o off) ClockAhead(context.Context) (time.Duration, error) { return o.by, nil }

// TestServeRefusesAClockThatDiffersFromTheDatabases, which all replicas
// share.
func TestServeRefusesAClockThatDiffersFromTheDatabases(t *testing.T) {
	for by, want := range map[time.Duration]string{
		0: "", 30 * time.Second: "", -30 * time.Second: "", 31 * time.Second: "31s ahead of the clock",
		-48 * time.Hour: "48h0m0s behind the clock",
	} {
		err := (&keyedStore{Store: off{by: by}}).checkClock(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("off by %s: %v, want %q", by, err, want)
		}
	}
}

// TestServersAnswerTryAgainOnceTheKeyIsRotated, and don't call it
// tampering, until they are started with the new key.
func TestServersAnswerTryAgainOnceTheKeyIsRotated(t *testing.T) {
	t.Parallel()
	h := withFiles(t, deskFiles())
	cfg := config.Serve{
		Listen:  "127.0.0.1:0",
		Store:   filepath.Join(h.dir, "s.db"),
		KeyFile: filepath.Join(h.dir, "k"),
		Tenants: []config.Tenant{{
			Name: "default", Agents: []string{h.dir}, People: filepath.Join(h.dir, "people.yaml"),
		}},
	}
	h.tokens(t, cfg.Location())
	log := h.serves(t, cfg)
	defer h.stop() // it can't seal with the old key any more
	r := h.ask(t, `{"kind":"tool","tool":"trade","args":{}}`)
	next := filepath.Join(h.dir, "next")
	_, _, err := rotateKey(t.Context(), h.where(), next, next+".watermark")
	must.Do(t, err)

	for role, path := range map[string]string{"runtime": "/v1/requests/" + r.ID, "alice": "/v1/requests"} {
		status, text := fetched(t, http.MethodGet, h.ready.API+path, h.token[role], "")
		if status != http.StatusServiceUnavailable || !strings.Contains(text, `"code":"unavailable"`) ||
			!strings.Contains(text, `"next_action":"retry"`) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	testwait.Until(t, "not ready", func() bool {
		status, _ := h.readyz(t, "/readyz", "")
		return status == http.StatusServiceUnavailable
	})
	if strings.Contains(log.String(), "TAMPERED") || !strings.Contains(log.String(), "mount that key") {
		t.Errorf("the log:\n%s", log.String())
	}
}

// TestAWatermarkThatIsGoneIsLogged: at a start that makes a key, too, the
// log says nothing; when the file is lost afterwards, it does.
func TestAWatermarkThatIsGoneIsLogged(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	c := config.Store{Where: at("s.db"), KeyFile: at("k"), Watermark: at("k.watermark"), Create: true}
	for _, lost := range []bool{false, false, true, false} {
		if lost {
			must.Do(t, os.Remove(c.Watermark))
		}
		var log bytes.Buffer
		s, err := openStore(t.Context(), c, slog.New(slog.NewTextHandler(&log, nil)))
		must.Do(t, err)
		must.Do(t, s.Close())
		if told := strings.Contains(log.String(), "level=WARN msg=\"the watermark is missing"); told != lost {
			t.Errorf("lost %v, logged:\n%s", lost, log.String())
		}
	}
}
