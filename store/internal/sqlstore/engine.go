// Package sqlstore implements the store of assent on any SQL database. It has all
// statements and all mapping of rows. An Engine provides connections and transactions; a
// Dialect has the parts of statements that differ between databases.
//
// Updates are committed in groups: all updates that wait while a commit runs go into one
// transaction (commit.go). Everything an update writes is queued and sent together with the
// next read or with the commit, so one update costs one or two round trips. Changes of
// records join the same groups, with one statement each (records.go). Reading records takes
// no locks.
//
// Times are integers, microseconds since 1970.
package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/store"
)

// Engine is a database that the store runs on.
type Engine interface {
	Dialect() Dialect
	// Begin starts a transaction that may write. SQLite has only one at a time.
	Begin(ctx context.Context) (Tx, error)
	// Snapshot starts a read-only transaction that sees a single state of the database.
	Snapshot(ctx context.Context) (Tx, error)
	// Query reads outside of any transaction.
	Query(ctx context.Context, sql string, args ...any) (Rows, error)
	// Erases reports whether the connected database user may delete entries of the ledger
	// although the database can forbid that.
	Erases(ctx context.Context) (bool, error)
	// Class classifies a failure of this engine.
	Class(err error) Class
	Close() error
}

// Tx is a transaction of an engine.
type Tx interface {
	// Queue adds statements that are sent, in order, with the next Query, Flush or Commit.
	// If one of them fails, that call returns the error.
	Queue(s ...Stmt)
	Query(ctx context.Context, sql string, args ...any) (Rows, error)
	Flush(ctx context.Context) error
	Commit(ctx context.Context) error
	// Rollback undoes the transaction. After Commit it does nothing.
	Rollback()
}

// Rows are read once, and must be closed before the next statement.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close()
}

// Stmt is a statement that returns no rows. Placeholders are $1, $2…
type Stmt struct {
	SQL  string
	Args []any
	One  bool // it must change exactly one row, or else ErrMoved
	Held bool // it is a SELECT of one number, which must be 1, or else ErrMoved
	// Blind marks an INSERT INTO … VALUES ($1, …) with only placeholders, into a table that
	// this transaction does not read. An engine may send it later than other statements,
	// and many of them as one statement.
	Blind bool
}

func do(sql string, args ...any) Stmt { return Stmt{SQL: sql, Args: args} }

// one returns a statement that must change exactly one row.
func one(sql string, args ...any) Stmt { return Stmt{SQL: sql, Args: args, One: true} }

// blind returns an insert that an engine may send later: see Stmt.Blind.
func blind(sql string, args ...any) Stmt { return Stmt{SQL: sql, Args: args, Blind: true} }

// ErrMoved means that a row was changed after it had been read.
var ErrMoved = errors.New("the row changed meanwhile")

// Check returns ErrMoved if the statement changed another number of rows than it must.
func (s Stmt) Check(changed int64) error {
	if s.One && changed != 1 {
		return ErrMoved
	}
	return nil
}

// Class is the class of a failure.
type Class int

// The classes of failures.
const (
	Broken   Class = iota // the database is full, locked, read-only, damaged…: nothing was written
	Conflict              // another transaction got in between: nothing was written, running again may help
	Lost                  // the connection is gone; a running commit may or may not have happened
)

// Dialect holds the parts of statements that differ between databases.
type Dialect struct {
	Types      map[string]string // values of {{name}} in migrations
	Lock       string            // suffix of a SELECT that locks its rows, waiting for them
	SkipLocked string            // suffix of a SELECT that locks only rows without locks
	Find       string            // function (text, part) → position from 1, or 0 if not found
	// statement that takes a lock named by $1 until the end of the transaction; empty if
	// the database allows only one writer
	WaitFor string
	TryLock string // expression that reports whether it took that lock, named by $1, without waiting
	// statement that waits for the lock of transactions that wait for locks; empty if the
	// database allows only one writer
	Patience string
	// statement that gives the entries numbered in array $1 the indexes in $2 and the codes
	// in $3; if it is empty, one statement is sent for each entry
	Number   string
	SealLock string // expression that reports whether this transaction may seal
	// statement that waits until this transaction may seal; empty if the database allows
	// only one writer
	SealWait string
	HasTable string // expression that reports whether there is a table named $1
	Migrate  string // statement that waits for the lock of migrations; may be empty with only one writer
	// statement that shares the lock of the key with other writers; empty if the database
	// allows only one writer
	KeyShare string
	KeyAlone string // statement that waits to hold that lock alone; may be empty with only one writer
	// statement that moves the counter of {{column}} of {{table}} past the restored rows;
	// empty if the database does that itself
	Sequence string
	Clock    string // expression for the time of the database's server, in microseconds since 1970; may be empty
	Writers  int    // how many transactions may run at once
}

// Options configure a store.
type Options struct {
	Now  func() time.Time // the clock; default time.Now
	Poll time.Duration    // how often to poll for changes by other replicas while there are waiters; default 250ms
	store.Trust
}

// verdict is an error of this package that ends a transaction, as opposed to a failure of
// the engine.
type verdict struct{ error }

func (v verdict) Unwrap() error { return v.error }

// unavailable wraps a failure of the engine for callers, who fail closed. It returns the
// caller's own cancellation and verdicts unchanged.
func unavailable(what string, err error) error {
	if err == nil {
		return nil
	}
	if v, ok := errors.AsType[verdict](err); ok {
		return v.error
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, store.ErrUnavailable) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: %w: %w", what, store.ErrUnavailable, err)
}

// querier runs queries: it is an engine or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (Rows, error)
}

// collect reads all rows.
func collect[T any](
	ctx context.Context,
	q querier,
	scan func(Rows) (T, error),
	sql string,
	args ...any,
) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}

	return out, rows.Err()
}

// first reads one row, if there is one.
func first[T any](
	ctx context.Context, q querier, scan func(Rows) (T, error), sql string, args ...any,
) (v T, ok bool, err error) {
	all, err := collect(ctx, q, scan, sql, args...)
	if err != nil || len(all) == 0 {
		return v, false, err
	}
	return all[0], true, nil
}

// list reads all rows outside of transactions.
func list[T any](
	ctx context.Context, s *Store, what string, scan func(Rows) (T, error), sql string, args ...any,
) ([]T, error) {
	out, err := collect(ctx, s.eng, scan, sql, args...)
	return out, unavailable(what, err)
}

// find is first outside of transactions.
func find[T any](
	ctx context.Context, s *Store, what string, scan func(Rows) (T, error), sql string, args ...any,
) (v T, ok bool, err error) {
	v, ok, err = first(ctx, s.eng, scan, sql, args...)
	return v, ok, unavailable(what, err)
}

// each converts rows to the type that callers get. It stops at the first error.
func each[R, T any](rows []R, from func(R) (T, error)) (_ []T, err error) {
	out := make([]T, len(rows))
	for i, r := range rows {
		if out[i], err = from(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// marks returns n placeholders; from is the number of the first one.
func marks(from, n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = "$" + strconv.Itoa(from+i)
	}
	return strings.Join(out, ", ")
}

func scanText(r Rows) (s string, err error) { return s, r.Scan(&s) }

func scanInt(r Rows) (n int64, err error) { return n, r.Scan(&n) }

// micros converts a time to the form used in columns.
func micros(t time.Time) int64 { return t.UnixMicro() }

// optional is micros, or NULL.
func optional(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.UnixMicro()
}

func moment(us int64) time.Time { return time.UnixMicro(us).UTC() }

func optionalMoment(us *int64) *time.Time {
	if us == nil {
		return nil
	}
	t := moment(*us)
	return &t
}

// blob returns the bytes, or a nil []byte if there are none. Its type lets engines send a
// NULL of the bytes type.
func blob(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
