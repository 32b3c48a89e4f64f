package sqlite_test

import (
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
	"github.com/assent-dev/assent/store/storetest"
)

func open(t *testing.T, path string) func() (store.Store, error) {
	return func() (store.Store, error) {
		return sqlite.Open(
			t.Context(),
			path,
			sqlite.Options{Poll: 20 * time.Millisecond, LockWait: 30 * time.Second},
		)
	}
}

// raw opens a connection that bypasses the store.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db := must.Get(sql.Open("sqlite", path))(t)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	must.Get(db.ExecContext(t.Context(), query))(t)
}

func TestStore(t *testing.T) { storetest.Run(t, place) }

func TestRowsAreHeldToTheirCodes(t *testing.T) { storetest.Tampering(t, place) }

func TestPutBackRowsAreNoticed(t *testing.T) { storetest.PutBack(t, place) }

func TestSealedFirst(t *testing.T) { storetest.SealFirst(t, place) }

func TestNothingForgedIsSigned(t *testing.T) { storetest.Sealing(t, place) }

func TestAStoreIsBoundToItsKey(t *testing.T) { storetest.Keys(t, place) }

func TestRestoreBeginsAnew(t *testing.T) { storetest.Restoring(t, place) }

// place returns an empty database in which tests can also run their own statements.
func place(t *testing.T) storetest.Place {
	path := filepath.Join(t.TempDir(), "a ?#%.db")
	return storetest.Place{
		Engine: "sqlite",
		Open: func(trust store.Trust) (store.Store, error) {
			return sqlite.Open(t.Context(), path, sqlite.Options{
				Poll:     20 * time.Millisecond,
				LockWait: 30 * time.Second,
				Trust:    trust,
			})
		},
		Exec: func(query string) {
			f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would make it readable for others
			if err == nil {
				err = f.Close()
			}
			must.Do(t, err)
			db := raw(t, "file:"+url.PathEscape(path)+"?_pragma=busy_timeout(30000)")
			exec(t, db, query)
			must.Do(t, db.Close())
		},
	}
}

func TestListsFindRequestsByTheirKeys(t *testing.T) { storetest.Keyed(t, place) }

func TestMigrations(t *testing.T) { storetest.Migrations(t, place) }

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

func unavailable(t *testing.T, err error, says string) {
	t.Helper()
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), says) {
		t.Fatalf("got error %v, want store.ErrUnavailable that says %q", err, says)
	}
}

// TestSettings checks that every connection has the settings that prevent losses in a
// crash, and that other users can't read the file.
func TestSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s, err := open(t, path)()
	wanted(t, s, err)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	var mode string
	if err := raw(t, path).QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil ||
		mode != "wal" {
		t.Fatalf("journal mode %q, %v", mode, err)
	}
	var loose int
	if err := raw(t, path).QueryRowContext(
		t.Context(),
		"SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND strict = 0 AND name NOT LIKE 'sqlite_%'",
	).Scan(&loose); err != nil ||
		loose != 0 {
		t.Fatalf("%d tables are not strict, %v", loose, err)
	}
}

func TestFull(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "a.db")
	small, err := sqlite.Open(ctx, path, sqlite.Options{MaxPages: 150})
	wanted(t, small, err)
	var all sync.WaitGroup
	done := make([]error, 64)
	for i := range done { // the disk gets full in the middle of groups of updates
		all.Go(func() { done[i] = storetest.Insert(t, small, i) })
	}
	all.Wait()
	fits := 0
	for _, err := range done {
		if err == nil {
			fits++
		} else {
			unavailable(t, err, "full")
		}
	}

	if fits == 0 || fits == len(done) {
		t.Fatalf("%d of %d fit", fits, len(done))
	}
	for n := len(done); err == nil; n++ { // until not a single page is left
		if err = storetest.Insert(t, small, n); err == nil {
			fits++
		}
	}
	for n, err := 0, error(nil); err == nil; n++ {
		r := store.Record{Namespace: "calls", Key: strconv.Itoa(n), Value: make([]byte, 1000)}
		if _, err = small.PutRecord(ctx, r); err != nil {
			unavailable(t, err, "full")
		}
	}

	unavailable(t, small.Ping(ctx), "full")
	unavailable(t, small.SetValue(ctx, "b", "k", make([]byte, 1<<20), time.Now()), "full")
	large, err := open(t, path)()
	wanted(t, large, err)
	if got := storetest.Whole(t, large); got != fits {
		t.Fatalf("%d updates were answered well, %d are there", fits, got)
	}
	must.Do(t, storetest.Insert(t, large, 10_000))
}

// TestReadinessNoticesAFullDisk checks that after a write failed for lack of space, a
// smaller write that still fits doesn't make the store ready.
func TestReadinessNoticesAFullDisk(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), sqlite.Options{MaxPages: 300})
	wanted(t, s, err)
	must.Do(t, s.Ping(t.Context()))
	unavailable(t, s.SetValue(t.Context(), "b", "k", make([]byte, 4<<20), time.Now()), "full")
	must.Do(t, storetest.Insert(t, s, 1))
	unavailable(t, s.Ping(t.Context()), "full")
}

func TestLocked(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "a.db")
	s, err := sqlite.Open(ctx, path, sqlite.Options{LockWait: 20 * time.Millisecond})
	wanted(t, s, err)
	other := raw(t, path)
	exec(t, other, "BEGIN IMMEDIATE")
	unavailable(t, storetest.Insert(t, s, 1), "locked")
	unavailable(t, s.Ping(ctx), "locked")
	_, err = s.PutRecord(ctx, store.Record{Namespace: "calls", Key: "a"})
	unavailable(t, err, "locked")
	if _, err := s.Record(ctx, "calls", "a"); !errors.Is(err, approval.ErrNotFound) {
		t.Fatalf("readers of records go on: %v", err)
	}
	if _, err := s.Requests(ctx, "acme", approval.Filter{}); err != nil {
		t.Fatalf("readers go on: %v", err)
	}
	_, err = sqlite.Open(ctx, path, sqlite.Options{LockWait: 20 * time.Millisecond})
	unavailable(t, err, "locked")
	exec(t, other, "ROLLBACK")
	must.Do(t, storetest.Insert(t, s, 2))
	if got := storetest.Whole(t, s); got != 1 {
		t.Fatalf("%d updates are there", got)
	}
}

func TestUnusable(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.html")
	must.Do(t, os.WriteFile(page, []byte(strings.Repeat("<html>", 1000)), 0o600))
	for path, says := range map[string]string{
		filepath.Join(dir, "missing", "a.db"): "no such file or directory",
		dir:                                   "is a directory",
		page:                                  "not a database",
	} {
		_, err := open(t, path)()
		unavailable(t, err, says)
		if !strings.Contains(err.Error(), path) {
			t.Errorf("%v does not name the file", err)
		}
	}
}

// TestFilesThatOthersMayReadOrWriteAreRefused includes SQLite's other files, which hold the
// same rows. New files must be accessible only for their owner.
func TestFilesThatOthersMayReadOrWriteAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	for _, ending := range []string{"", "-wal", "-shm"} {
		s := must.Get(open(t, path)())(t)
		info, err := os.Stat(path + ending)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%q has mode %v, %v", ending, info.Mode(), err)
		}

		for mode, says := range map[os.FileMode]string{
			0o640: "can be read by others (mode 0640)",
			0o666: "can be written by others (mode 0666)",
			0o620: "written",
		} {
			must.Do(t, os.Chmod(path+ending, mode))
			_, err := open(t, path)()
			unavailable(t, err, says)
			if !strings.Contains(err.Error(), path+ending) || !strings.Contains(err.Error(), "chmod 600") {
				t.Errorf("%v does not say what to do with which file", err)
			}
		}

		must.Do(t, errors.Join(os.Chmod(path+ending, 0o600), s.Close()))
	}
}

// TestManyOpenANewDatabaseAtOnce checks that each of them waits for the others, even while
// the journal mode is switched, where SQLite itself doesn't wait.
func TestManyOpenANewDatabaseAtOnce(t *testing.T) {
	for range 10 {
		path := filepath.Join(t.TempDir(), "new.db")
		start := make(chan struct{})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				<-start
				s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}

		close(start)
		all.Wait()
	}
}

// TestPrunedTextsAreNotOnDisk searches for pruned texts in the files while the store is
// open: in the database, and in its log.
func TestPrunedTextsAreNotOnDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := open(t, path)()
	must.Do(t, err)
	defer s.Close()
	const secret = "the-words-of-a-pruned-call"
	closed := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	args := []byte(`"` + strings.Repeat(secret, 1000) + `"`)
	for i := range 30 {
		id := "apr_" + strconv.Itoa(i)
		must.Do(t, s.Update(t.Context(), "acme", func(tx approval.Tx) error {
			tx.Insert(&approval.Request{
				ID: id, Tenant: "acme", State: approval.Denied, Closed: &closed, Created: closed,
				Revisions: []approval.Revision{{
					Binding: id,
					Call:    resolve.Call{Kind: resolve.Tool, Tool: "pay", Args: args},
				}},
			})
			return nil
		}))
	}
	onDisk := func() (n int) {
		files, err := filepath.Glob(path + "*")
		must.Do(t, err)
		for _, name := range files {
			text, err := os.ReadFile(name)
			must.Do(t, err)
			n += strings.Count(string(text), secret)
		}
		return n
	}
	if onDisk() == 0 {
		t.Fatal("the texts are not looked for where they are")
	}
	n, _, err := s.Prune(t.Context(), "acme", closed.Add(time.Hour))
	if left := onDisk(); err != nil || n != 30 || left > 0 {
		t.Errorf("pruned %d, %v; %d copies of the words are left", n, err, left)
	}
}

func TestReplicasCountTogether(t *testing.T) { storetest.Counting(t, place, 8, 12) }
