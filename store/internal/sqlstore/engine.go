// Package sqlstore is the store of assent over any SQL database: all
// statements and all mapping of rows, once. An Engine lends it
// connections and transactions; a Dialect holds the few words in which
// databases differ.
//
// Updates are committed in groups: whatever waits while a commit runs
// goes into one transaction (commit.go). Everything an update writes is
// queued and sent together with the next read or with the commit, so
// one update costs a round trip or two. Changes of records go into the
// same groups, a statement each (records.go); reading them waits for
// nobody.
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
	// Begin starts a transaction that may write. SQLite has one at a time.
	Begin(ctx context.Context) (Tx, error)
	// Snapshot starts a transaction that only reads, and sees one state
	// of the database all along.
	Snapshot(ctx context.Context) (Tx, error)
	// Query reads outside of any transaction.
	Query(ctx context.Context, sql string, args ...any) (Rows, error)
	// Erases reports whether whoever is connected may delete entries of
	// the ledger, where the database could forbid it.
	Erases(ctx context.Context) (bool, error)
	// Class says what a failure of this engine means.
	Class(err error) Class
	Close() error
}

// Tx is a transaction of an engine.
type Tx interface {
	// Queue adds statements that are sent, in order, with the next
	// Query, Flush or Commit, which also fails for them.
	Queue(s ...Stmt)
	Query(ctx context.Context, sql string, args ...any) (Rows, error)
	Flush(ctx context.Context) error
	Commit(ctx context.Context) error
	// Rollback ends the transaction without a trace. After Commit it
	// does nothing.
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
	// Blind: an INSERT INTO … VALUES ($1, …) of nothing but
	// placeholders, into a table that this transaction does not read.
	// An engine may send it later than others, and many of them as one
	// statement.
	Blind bool
}

func do(sql string, args ...any) Stmt { return Stmt{SQL: sql, Args: args} }

// one is a statement that must change exactly one row.
func one(sql string, args ...any) Stmt { return Stmt{SQL: sql, Args: args, One: true} }

// blind is an insert that an engine may send later: see Stmt.Blind.
func blind(sql string, args ...any) Stmt { return Stmt{SQL: sql, Args: args, Blind: true} }

// ErrMoved says that a row was not as it had been read.
var ErrMoved = errors.New("the row changed meanwhile")

// Check holds a statement to the number of rows that it changed.
func (s Stmt) Check(changed int64) error {
	if s.One && changed != 1 {
		return ErrMoved
	}
	return nil
}

// Class is what a failure means.
type Class int

// The classes of failures.
const (
	Broken   Class = iota // the database is full, locked, read-only, damaged…: nothing was written
	Conflict              // another transaction got in between: nothing was written, running again may help
	Lost                  // the connection is gone; whether a commit under way happened is not known
)

// Dialect holds the words in which databases differ.
type Dialect struct {
	Types      map[string]string // what {{name}} in migrations stands for
	Lock       string            // suffix of a SELECT that locks its rows, waiting for them
	SkipLocked string            // suffix of a SELECT that locks those of its rows that nobody else has locked
	Find       string            // function (text, part) → position from 1, 0 when it is not there
	// statement that takes a lock named by $1 until the end of the
	// transaction; "" when there is only one writer
	WaitFor string
	TryLock string // expression that reports whether it took that lock, named by $1, without waiting
	// statement that waits for the lock of transactions that wait for
	// locks; "" when there is only one writer
	Patience string
	// statement that gives the entries numbered in array $1 the indexes
	// in $2 and the codes in $3; "" to do it one by one
	Number   string
	SealLock string // expression that reports whether this transaction may seal
	// statement that waits until this transaction may seal; "" when there
	// is only one writer
	SealWait string
	HasTable string // expression that reports whether there is a table named $1
	Migrate  string // statement that waits for the lock of migrations; "" when there is only one writer
	// statement that shares the lock of the key with other writers; ""
	// when there is only one
	KeyShare string
	KeyAlone string // statement that waits to hold that lock alone; "" when there is only one writer
	// statement that moves the counter of {{column}} of {{table}}
	// behind restored rows; "" when there is no need
	Sequence string
	Clock    string // expression for the time of the database's server, in microseconds since 1970; "" for none
	Writers  int    // how many transactions may run at once
}

// Options are what a store needs beside its engine.
type Options struct {
	Now  func() time.Time // the clock; time.Now
	Poll time.Duration    // how often changes by other replicas are looked for while somebody waits; 250ms
	store.Trust
}

// verdict is an error of ours that a transaction ends with: no failure
// of the engine.
type verdict struct{ error }

func (v verdict) Unwrap() error { return v.error }

// unavailable wraps a failure of the engine for callers, who fail
// closed. Their own cancellation stays what it is, and so do verdicts.
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

// querier is what reads: an engine or a transaction.
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

// each turns rows into what callers get, up to the first that fails.
func each[R, T any](rows []R, from func(R) (T, error)) (_ []T, err error) {
	out := make([]T, len(rows))
	for i, r := range rows {
		if out[i], err = from(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// marks are n placeholders, the first of them with a number.
func marks(from, n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = "$" + strconv.Itoa(from+i)
	}
	return strings.Join(out, ", ")
}

func scanText(r Rows) (s string, err error) { return s, r.Scan(&s) }

func scanInt(r Rows) (n int64, err error) { return n, r.Scan(&n) }

// micros is the form of times in columns.
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

// blob is bytes, or NULL when there are none. Its type tells engines
// that the NULL is one of bytes.
func blob(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
