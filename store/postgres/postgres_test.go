package postgres_test

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/postgres"
	"github.com/assent-dev/assent/store/postgres/pgtest"
	"github.com/assent-dev/assent/store/sqlite"
	"github.com/assent-dev/assent/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func open(t *testing.T, url string) func() (store.Store, error) {
	return func() (store.Store, error) {
		return postgres.Open(t.Context(), url, postgres.Options{Poll: 20 * time.Millisecond, Conns: 6})
	}
}

func database(t *testing.T) func() (store.Store, error) { return open(t, pgtest.New(t)) }

func exec(t *testing.T, url, query string) {
	ctx := t.Context()
	t.Helper()
	conn, err := pgx.Connect(ctx, url)
	must.Do(t, err)
	_, err = conn.Exec(ctx, query)
	must.Do(t, errors.Join(err, conn.Close(ctx)))
}

// wanted closes an open store at the end of the test.
func wanted(t *testing.T, s store.Store, err error) store.Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func unavailable(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got error %v, want store.ErrUnavailable", err)
	}
}

func TestStore(t *testing.T) { storetest.Run(t, place) }

// TestStatementsThatDontStayPrepared checks that unprepared statements write and read the
// same. internal/peers/pgbouncer runs the whole suite through a real pooler.
func TestStatementsThatDontStayPrepared(t *testing.T) {
	url := pgtest.New(t)
	s, err := open(t, url+"&pool=transaction")()
	lent := wanted(t, s, err)
	storetest.Fill(t, lent)
	s, err = open(t, url)()
	direct := wanted(t, s, err)
	if storetest.Backup(t, lent) != storetest.Backup(t, direct) {
		t.Error("they read otherwise")
	}
	before := storetest.Whole(t, direct)
	const updates = 200
	for n := range updates {
		must.Do(t, storetest.Insert(t, lent, 1_000_000+n))
	}
	if got := storetest.Whole(t, direct) - before; got != updates {
		t.Errorf("%d updates are there, want %d", got, updates)
	}
}

func TestRowsAreHeldToTheirCodes(t *testing.T) { storetest.Tampering(t, place) }

func TestPutBackRowsAreNoticed(t *testing.T) { storetest.PutBack(t, place) }

func TestSealedFirst(t *testing.T) { storetest.SealFirst(t, place) }

func TestNothingForgedIsSigned(t *testing.T) { storetest.Sealing(t, place) }

func TestAStoreIsBoundToItsKey(t *testing.T) { storetest.Keys(t, place) }

func TestRestoreBeginsAnew(t *testing.T) { storetest.Restoring(t, place) }

// place returns an empty database in which tests can also run their own statements.
func place(t *testing.T) storetest.Place {
	url := pgtest.New(t)
	return storetest.Place{
		Engine: "postgres",
		Open: func(trust store.Trust) (store.Store, error) {
			return postgres.Open(t.Context(), url, postgres.Options{
				Poll:  20 * time.Millisecond,
				Conns: 6,
				Trust: trust,
			})
		},
		Exec: func(query string) { exec(t, url, query) },
	}
}

func TestListsFindRequestsByTheirKeys(t *testing.T) { storetest.Keyed(t, place) }

func TestMigrations(t *testing.T) { storetest.Migrations(t, place) }

// TestBackupMoves restores a backup of one engine in the other. A backup of the result must
// be the same.
func TestBackupMoves(t *testing.T) {
	ctx := t.Context()
	lite := func() store.Store {
		s, err := sqlite.Open(ctx, t.TempDir()+"/a.db", sqlite.Options{})
		return wanted(t, s, err)
	}
	from := lite()
	storetest.Fill(t, from)
	text := storetest.Backup(t, from)
	s, err := database(t)()
	pg := wanted(t, s, err)
	must.Do(t, pg.Restore(ctx, strings.NewReader(text)))
	if storetest.Uncoded(t, storetest.Backup(t, pg)) != storetest.Uncoded(t, text) {
		t.Fatal("the backup from PostgreSQL differs")
	}
	back := lite()
	must.Do(t, back.Restore(ctx, strings.NewReader(storetest.Backup(t, pg))))
	if storetest.Uncoded(t, storetest.Backup(t, back)) != storetest.Uncoded(t, text) {
		t.Fatal("the backup from SQLite differs")
	}
}

// TestGone stops the server while transactions run, and starts it again. Everything that
// was answered without an error must be there, complete, and nothing in part.
func TestGone(t *testing.T) {
	ctx := t.Context()
	server := must.Get(pgtest.Start())(t)
	defer server.Stop()
	s, err := open(t, server.URL)()
	wanted(t, s, err)
	must.Get(s.PutRecord(ctx, store.Record{Namespace: "calls", Key: "kept"}))(t)
	const workers = 8
	var all sync.WaitGroup
	good, failed := make([]int, workers), make([]error, workers)
	var begun sync.WaitGroup
	begun.Add(workers)
	for w := range workers {
		all.Go(func() {
			for n := w; failed[w] == nil; n += workers {
				if failed[w] = storetest.Insert(t, s, n); failed[w] == nil {
					good[w]++
				}
				if n == w {
					begun.Done()
				}
			}
		})
	}

	begun.Wait()
	server.Halt()
	all.Wait()
	sum := 0
	for w, err := range failed {
		unavailable(t, err)
		sum += good[w]
	}
	unavailable(t, s.Ping(ctx))
	_, err = s.Seal(ctx, 10, nil)
	unavailable(t, err)
	_, err = s.PutRecord(ctx, store.Record{Namespace: "calls", Key: "a"})
	unavailable(t, err)
	_, err = s.Record(ctx, "calls", "kept")
	unavailable(t, err)
	_, err = open(t, server.URL)()
	unavailable(t, err)
	must.Do(t, server.Restart())
	must.Do(t, s.Ping(ctx))
	if r, err := s.Record(ctx, "calls", "kept"); err != nil || r.Version != 1 {
		t.Fatalf("a record that was stored: %+v, %v", r, err)
	}
	// One update of each worker may have been committed without an answer.
	if got := storetest.Whole(t, s); got < sum || got > sum+workers {
		t.Fatalf("%d updates were answered well, %d are there", sum, got)
	}
	must.Do(t, storetest.Insert(t, s, 1_000_000))
}

// TestReadOnly checks that a database that refuses writes is noticed.
func TestReadOnly(t *testing.T) {
	url := pgtest.New(t)
	s, err := open(t, url)()
	must.Do(t, err)
	must.Do(t, s.Close())
	_, err = open(t, url+"&default_transaction_read_only=on")()
	unavailable(t, err)
	if !strings.Contains(err.Error(), "read-only") {
		t.Fatal(err)
	}
}

// TestOpenErrorsSayOnceWhatFailed also checks that they don't contain the password.
func TestOpenErrorsSayOnceWhatFailed(t *testing.T) {
	_, err := open(t, "postgres://ada:secret@/x?host=/nowhere&connect_timeout=1")()
	unavailable(t, err)
	if strings.Contains(err.Error(), "secret") || strings.Count(err.Error(), "open the database") != 1 {
		t.Fatalf("%v shows the password, or what failed twice", err)
	}
	_, err = open(t, "postgres://ada:secret@host:port/x")()
	if err == nil || strings.Contains(err.Error(), "secret") ||
		!strings.Contains(err.Error(), "expected postgres://") {
		t.Fatalf("got %v", err)
	}
}

// TestTheClockIsComparedWithTheServers covers both directions.
func TestTheClockIsComparedWithTheServers(t *testing.T) {
	url := pgtest.New(t)
	year := 365 * 24 * time.Hour
	for _, off := range []time.Duration{-10 * year, 0, 10 * year} {
		now := func() time.Time { return time.Now().Add(off) }
		s := must.Get(postgres.Open(t.Context(), url, postgres.Options{Now: now}))(t)
		ahead, err := s.ClockAhead(t.Context())
		if err != nil || (ahead-off).Abs() > year {
			t.Errorf("a clock that is off by %s is ahead by %s, %v", off, ahead, err)
		}
		must.Do(t, s.Close())
	}
}

func TestReplicasCountTogether(t *testing.T) { storetest.Counting(t, place, 8, 12) }
