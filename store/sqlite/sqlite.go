// Package sqlite keeps everything in one file. It is the default store, for one machine.
// Processes on that machine may share the file.
//
// The file is in WAL mode and every commit is synced. The log is checkpointed into the file
// at 32 MB. There is one connection that writes, and a few that read; each of them caches
// its prepared statements.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/internal/sqlstore"
)

// Options configure the store. Zero fields have the defaults named here.
type Options struct {
	Now      func() time.Time // the clock; default time.Now
	Poll     time.Duration    // how often to poll for changes by other processes while there are waiters; default 250ms
	LockWait time.Duration    // how long a write waits for another process; default 10s
	Readers  int              // connections that read; default 4
	MaxPages int              // maximal size of the file in pages of 4 KiB; 0 means no limit
	Trust    store.Trust      // the key that authenticates rows, and the watermark
}

// Open opens the database in a file and brings it up to date. If the file does not exist,
// it is created with mode 0600. Its folder must exist.
func Open(ctx context.Context, path string, o Options) (store.Store, error) {
	if o.LockWait == 0 {
		o.LockWait = 10 * time.Second
	}
	if o.Readers == 0 {
		o.Readers = 4
	}
	if err := create(path); err != nil {
		return nil, fmt.Errorf("open %s: %w: %w", path, store.ErrUnavailable, err)
	}
	e, err := patiently(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w: %w", path, store.ErrUnavailable, err)
	}
	s, err := sqlstore.New(ctx, e, sqlstore.Options{Now: o.Now, Poll: o.Poll, Trust: o.Trust})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return s, nil
}

// patiently retries to connect until no other process interferes. SQLite waits for locks,
// but not while several processes open a new database and all of them switch its journal
// mode.
func patiently(ctx context.Context, path string, o Options) (*engine, error) {
	within, cancel := context.WithTimeout(ctx, o.LockWait)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		e, err := connect(ctx, path, o)
		failed, known := errors.AsType[*driver.Error](err)
		if !known || failed.Code()&0xff != codes.SQLITE_BUSY {
			return e, err
		}
		select {
		case <-again.C:
		case <-within.Done():
			return nil, err
		}
	}
}

// create creates the file before SQLite would, so that other users can't read it. It
// returns an error if other users may read or write the file or SQLite's files next to it,
// which SQLite creates with the same mode.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	for _, name := range []string{path, path + logEnding, path + "-shm"} {
		if err := private(name); err != nil {
			return err
		}
	}
	return nil
}

// logEnding is the suffix of the name of a database's log.
const logEnding = "-wal"

// LogSize returns the size of the log of a database in bytes: of what was committed and is
// not in the file yet. It returns 0 if there is no log.
func LogSize(path string) int64 {
	info, err := os.Stat(path + logEnding)
	if err != nil {
		return 0
	}
	return info.Size()
}

// private returns an error if other users may read or write a file. On Windows, modes don't
// show that.
func private(name string) error {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	mode := info.Mode().Perm()
	if runtime.GOOS == "windows" || !info.Mode().IsRegular() || mode&0o077 == 0 {
		return nil
	}
	may := "read"
	if mode&0o022 != 0 {
		may = "written"
	}
	return fmt.Errorf("%s can be %s by others (mode %04o), expected 0600: run chmod 600 on it", name, may, mode)
}

// dsn sets what every connection needs when it is opened. A PRAGMA that is sent later would
// reach only one of them.
func dsn(path string, o Options, more ...string) string {
	q := url.Values{}
	q.Set("_txlock", "immediate")
	q.Set("_defensive", "1")
	q.Set("_busy_timeout", strconv.FormatInt(o.LockWait.Milliseconds(), 10))
	for _, p := range append(
		[]string{
			"journal_mode(WAL)",
			"synchronous(FULL)",
			"foreign_keys(1)",
			"secure_delete(1)",
			"cache_size(-16000)",
			"temp_store(MEMORY)",
			"wal_autocheckpoint(8000)",
		},
		more...,
	) {
		q.Add("_pragma", p)
	}

	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return (&url.URL{
		Scheme:   "file",
		OmitHost: true,
		Path:     filepath.ToSlash(path),
		RawQuery: q.Encode(),
	}).String()
}

func connect(ctx context.Context, path string, o Options) (*engine, error) {
	var limit []string
	if o.MaxPages > 0 {
		limit = []string{fmt.Sprintf("max_page_count(%d)", o.MaxPages)}
	}
	writers, err := sql.Open("sqlite", dsn(path, o, limit...))
	if err != nil {
		return nil, err
	}
	readers, err := sql.Open("sqlite", dsn(path, o, "query_only(1)"))
	if err != nil {
		return nil, errors.Join(err, writers.Close())
	}
	writers.SetMaxOpenConns(1)
	readers.SetMaxOpenConns(o.Readers)
	readers.SetMaxIdleConns(o.Readers)
	conn, err := writers.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, writers.Close(), readers.Close())
	}
	return &engine{writers: writers, readers: readers, free: newWriter(conn), path: path}, nil
}

func dialect() sqlstore.Dialect {
	return sqlstore.Dialect{
		Types: map[string]string{
			"text":      "TEXT",
			"int":       "INTEGER",
			"blob":      "BLOB",
			"strict":    "STRICT",
			"documents": "STRICT",
			"compact":   "STRICT, WITHOUT ROWID",

			"serial":      "INTEGER PRIMARY KEY",
			"serial_once": "INTEGER PRIMARY KEY AUTOINCREMENT",
		},
		Find:     "instr",
		HasTable: "EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = $1)",
		SealLock: "1 = 1", // a transaction that writes is the only one anyway
		Writers:  1,
	}
}

// class returns the class of a failure. Only failures that another writer may have caused
// are worth another attempt.
func class(err error) sqlstore.Class {
	if errors.Is(err, sqlstore.ErrMoved) {
		return sqlstore.Conflict
	}
	if e, ok := errors.AsType[*driver.Error](err); ok {
		switch e.Code() {
		case codes.SQLITE_CONSTRAINT_UNIQUE, codes.SQLITE_CONSTRAINT_PRIMARYKEY, codes.SQLITE_BUSY_SNAPSHOT:
			return sqlstore.Conflict
		}
	}

	return sqlstore.Broken
}

// numbered replaces $1 by SQLite's ?1. The statements contain no other dollar signs.
func numbered(query string) string { return strings.ReplaceAll(query, "$", "?") }
