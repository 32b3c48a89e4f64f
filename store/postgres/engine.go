package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/internal/sqlstore"
)

// engine is a pool of connections. Each one caches its prepared statements, unless the
// connections go through a pooler.
type engine struct{ pool *pgxpool.Pool }

func (e *engine) Dialect() sqlstore.Dialect { return dialect() }

func (e *engine) Class(err error) sqlstore.Class { return class(err) }

// Erases checks the DELETE privilege, which owners and superusers have.
func (e *engine) Erases(ctx context.Context) (may bool, err error) {
	err = e.pool.QueryRow(ctx, "SELECT has_table_privilege('entries', 'DELETE')").Scan(&may)
	return may, err
}

func (e *engine) Close() error {
	e.pool.Close()
	return nil
}

func (e *engine) Query(ctx context.Context, sql string, args ...any) (sqlstore.Rows, error) {
	return e.pool.Query(ctx, sql, args...)
}

// Every transaction sets what it depends on, whatever the defaults of the server, the
// database, the role or a pooler are.
const (
	// In READ COMMITTED every statement sees what was committed before
	// it, so a lock shows the latest row.
	beginWrite    = "BEGIN ISOLATION LEVEL READ COMMITTED"
	beginSnapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	// A commit that is answered is on disk, no transaction waits for a lock without limit,
	// and a replica that hangs doesn't keep its locks.
	promises = "SELECT set_config('synchronous_commit', 'on', true), set_config('lock_timeout', '20s', true), " +
		"set_config('idle_in_transaction_session_timeout', '60s', true)"
)

func (e *engine) Begin(ctx context.Context) (sqlstore.Tx, error) { return e.begin(ctx, beginWrite) }

func (e *engine) Snapshot(ctx context.Context) (sqlstore.Tx, error) {
	return e.begin(ctx, beginSnapshot)
}

// begin starts a transaction. BEGIN and the settings are sent with the first statements.
func (e *engine) begin(ctx context.Context, how string) (*tx, error) {
	conn, err := e.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &tx{conn: conn, queued: []sqlstore.Stmt{{SQL: how}, {SQL: promises}}}, nil
}

// opening is the number of statements at the beginning of every transaction.
const opening = 2

// hold returns an error if a transaction does not get the settings that it depends on.
func (e *engine) hold(ctx context.Context) error {
	t, err := e.begin(ctx, beginWrite)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	defer t.Rollback()
	for _, want := range [][2]string{
		{"transaction_isolation", "read committed"}, {"synchronous_commit", "on"}, {"lock_timeout", "20s"},
		{"idle_in_transaction_session_timeout", "1min"}, {"transaction_read_only", "off"},
	} {
		got, err := t.show(ctx, want[0])
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
		if got != want[1] && want[0] == "transaction_read_only" {
			return fmt.Errorf("%w: the database is read-only", store.ErrUnavailable)
		}
		if got != want[1] {
			return fmt.Errorf(
				"%w: %s is %q in a transaction that asked for %q: something on the way changes statements",
				store.ErrUnavailable,
				want[0],
				got,
				want[1],
			)
		}
	}

	return nil
}

// show reads the value of a setting within the transaction.
func (t *tx) show(ctx context.Context, name string) (value string, err error) {
	rows, err := t.Query(ctx, "SHOW "+name)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&value); err != nil {
			return "", err
		}
	}
	return value, rows.Err()
}

// tx collects statements and sends them together with the next statement that needs an
// answer.
type tx struct {
	conn   *pgxpool.Conn
	queued []sqlstore.Stmt
	blind  []*inserts // sent with COMMIT
	begun  bool       // something was sent
	over   bool
}

func (t *tx) Queue(all ...sqlstore.Stmt) {
	for _, s := range all {
		if s.Blind {
			t.gather(s)
		} else {
			t.queued = append(t.queued, s)
		}
	}
}

func (t *tx) gather(s sqlstore.Stmt) {
	for _, i := range t.blind {
		if i.sql == s.SQL {
			i.add(s.Args)
			return
		}
	}

	i := &inserts{sql: s.SQL, columns: make([]any, len(s.Args))}
	i.add(s.Args)
	t.blind = append(t.blind, i)
}

// checked makes the server fail the statement with a division by zero unless it changes
// exactly one row. A check on this side would be too late if COMMIT is sent along.
func checked(s sqlstore.Stmt) string {
	if s.Held {
		return "SELECT 1 / (" + s.SQL + ")"
	}
	if !s.One {
		return s.SQL
	}
	return "WITH changed AS (" + s.SQL + " RETURNING 1) SELECT 1 / count(*) FROM changed"
}

// moved translates that division by zero to ErrMoved.
func moved(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "22012" {
		return fmt.Errorf("%w: %w", sqlstore.ErrMoved, err)
	}
	return err
}

// send sends the queued statements and one more, and reads the answers to the queued ones.
func (t *tx) send(ctx context.Context, sql string, args []any) (pgx.BatchResults, error) {
	batch := &pgx.Batch{}
	for _, s := range t.queued {
		batch.Queue(checked(s), s.Args...)
	}
	if sql != "" {
		batch.Queue(sql, args...)
	}
	n := len(t.queued)
	t.queued, t.begun = t.queued[:0], true
	results := t.conn.SendBatch(ctx, batch)
	for range n {
		if _, err := results.Exec(); err != nil {
			_ = results.Close() // it repeats the error
			return nil, moved(err)
		}
	}

	return results, nil
}

func (t *tx) Flush(ctx context.Context) error {
	if len(t.queued) == 0 {
		return nil
	}
	results, err := t.send(ctx, "", nil)
	if err != nil {
		return err
	}
	return results.Close()
}

func (t *tx) Query(ctx context.Context, sql string, args ...any) (sqlstore.Rows, error) {
	if len(t.queued) == 0 {
		return t.conn.Query(ctx, sql, args...)
	}
	results, err := t.send(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	r, err := results.Query()
	if err != nil {
		return nil, errors.Join(err, results.Close())
	}
	return &rows{Rows: r, results: results}, nil
}

// rows are the answer to the last statement of a batch. Closing them ends the batch.
type rows struct {
	pgx.Rows
	results pgx.BatchResults
	err     error
}

func (r *rows) Close() {
	r.Rows.Close()
	if r.results != nil {
		r.err = r.results.Close()
		r.results = nil
	}
}

func (r *rows) Err() error { return errors.Join(r.Rows.Err(), r.err) }

var errRolledBack = errors.New("the database rolled the transaction back")

// Commit sends COMMIT with the queued statements. The server skips it if one of them fails.
func (t *tx) Commit(ctx context.Context) error {
	for _, i := range t.blind {
		t.queued = append(t.queued, i.stmt())
	}
	if !t.begun && len(t.queued) == opening { // nothing of the transaction's own
		return nil
	}
	results, err := t.send(ctx, "COMMIT", nil)
	if err != nil {
		return err
	}
	tag, err := results.Exec()
	if err := errors.Join(err, results.Close()); err != nil {
		return err
	}
	if tag.String() != "COMMIT" {
		return errRolledBack
	}
	t.release()
	return nil
}

// rollbackWait limits the time for a rollback on a broken connection. After that, closing
// the connection rolls back.
const rollbackWait = 5 * time.Second

func (t *tx) Rollback() {
	if t.over {
		return
	}
	if t.begun && !t.conn.Conn().IsClosed() {
		ctx, cancel := context.WithTimeout(context.Background(), rollbackWait)
		_, _ = t.conn.Exec(ctx, "ROLLBACK") // otherwise the pool closes connections that are still in a transaction
		cancel()
	}
	t.release()
}

func (t *tx) release() {
	t.over = true
	t.conn.Release()
}
