package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assent-dev/assent/store/internal/sqlstore"
)

// keptStatements limits the prepared statements of a connection. Lists with many filters
// produce many different statements.
const keptStatements = 200

// engine holds the readers and the only writer. A transaction that writes takes the writer
// from free and puts it back.
type engine struct {
	writers *sql.DB
	readers *sql.DB
	free    chan *writer
	reads   statements
	path    string
	fullAt  atomic.Pointer[time.Time] // when a write failed last for lack of room
}

func (e *engine) Dialect() sqlstore.Dialect { return dialect() }

func (e *engine) Class(err error) sqlstore.Class {
	e.noteFull(err)
	return class(err)
}

// Erases returns false: a file has no roles that could be denied the right.
func (e *engine) Erases(context.Context) (bool, error) { return false, nil }

// Close waits for the writer.
func (e *engine) Close() error {
	w, ok := <-e.free
	if !ok {
		return nil
	}
	close(e.free)
	return errors.Join(
		w.statements.close(),
		w.conn.Close(),
		e.writers.Close(),
		e.reads.close(),
		e.readers.Close(),
	)
}

var errClosed = errors.New("the database is closed")

func (e *engine) Begin(ctx context.Context) (sqlstore.Tx, error) {
	select {
	case w, ok := <-e.free:
		if !ok {
			return nil, errClosed
		}
		t := &tx{e: e, w: w, prepared: &w.statements, on: w.conn}
		if err := t.exec("BEGIN IMMEDIATE"); err != nil {
			e.free <- w
			return nil, err
		}
		return t, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Erase rewrites the database without deleted data, including data that older versions did
// not overwrite, and empties the log. It fails while another process reads an older state.
func (e *engine) Erase(ctx context.Context) error {
	select {
	case w, ok := <-e.free:
		if !ok {
			return errClosed
		}
		defer func() { e.free <- w }()
		return erase(ctx, w.conn)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func erase(ctx context.Context, on *sql.Conn) error {
	// VACUUM makes a copy that may be larger than the memory.
	for _, statement := range []string{"PRAGMA temp_store = FILE", "VACUUM", "PRAGMA temp_store = MEMORY"} {
		if _, err := on.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("erase what was deleted: %s: %w", statement, err)
		}
	}
	var busy, pages, done int
	row := on.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := row.Scan(&busy, &pages, &done); err != nil {
		return fmt.Errorf("erase what was deleted: empty the log: %w", err)
	}
	if busy != 0 {
		return errors.New("erase what was deleted: the log can't be emptied while somebody reads the database: " +
			"prune again")
	}

	return nil
}

// Snapshot uses one of the readers until it ends. In WAL mode it does not block writers.
func (e *engine) Snapshot(ctx context.Context) (sqlstore.Tx, error) {
	conn, err := e.readers.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &tx{e: e, prepared: &statements{}, on: conn}
	if err := t.exec("BEGIN"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return t, nil
}

func (e *engine) Query(ctx context.Context, query string, args ...any) (sqlstore.Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return e.reads.query(e.readers, query, args)
}

// writer is the connection that writes.
type writer struct {
	conn       *sql.Conn
	statements statements
}

func newWriter(conn *sql.Conn) chan *writer {
	free := make(chan *writer, 1)
	free <- &writer{conn: conn}
	return free
}

// preparer is a connection or a pool of them.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// statements caches prepared statements. They run without the caller's context, because the
// driver would start a goroutine for each one, and none of them takes long.
type statements struct {
	mu  sync.Mutex
	all map[string]*sql.Stmt
}

func (s *statements) get(on preparer, query string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt, ok := s.all[query]; ok {
		return stmt, nil
	}
	stmt, err := on.PrepareContext(context.Background(), numbered(query))
	if err != nil {
		return nil, err
	}
	if s.all == nil {
		s.all = map[string]*sql.Stmt{}
	}
	for old, victim := range s.all { // any
		if len(s.all) < keptStatements {
			break
		}
		delete(s.all, old)
		_ = victim.Close() // it is closed when its last rows are
	}

	s.all[query] = stmt
	return stmt, nil
}

func (s *statements) query(on preparer, query string, args []any) (sqlstore.Rows, error) {
	stmt, err := s.get(on, query)
	if err != nil {
		return nil, err
	}
	r, err := stmt.QueryContext(context.Background(), args...)
	if err != nil {
		return nil, err
	}
	return rows{r}, nil
}

func (s *statements) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, stmt := range s.all {
		errs = append(errs, stmt.Close())
	}
	s.all = nil
	return errors.Join(errs...)
}

// rows wraps the driver's rows. Close needs no error, because Err reports it too.
type rows struct{ *sql.Rows }

func (r rows) Close() { _ = r.Rows.Close() }

// tx is a transaction on a connection. w is nil for a snapshot.
type tx struct {
	e        *engine
	w        *writer
	prepared *statements
	on       *sql.Conn
	queued   []sqlstore.Stmt
	over     bool
}

func (t *tx) Queue(s ...sqlstore.Stmt) { t.queued = append(t.queued, s...) }

func (t *tx) exec(query string, args ...any) error {
	_, err := t.on.ExecContext(context.Background(), query, args...)
	return err
}

func (t *tx) Flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, s := range t.queued {
		if err := t.send(s); err != nil {
			return err
		}
	}
	t.queued = t.queued[:0]
	return nil
}

func (t *tx) send(s sqlstore.Stmt) error {
	stmt, err := t.prepared.get(t.on, s.SQL)
	if err != nil {
		return err
	}
	if s.Held {
		return held(stmt, s.Args)
	}
	result, err := stmt.ExecContext(context.Background(), s.Args...)
	if err != nil {
		return err
	}
	changed, err := result.RowsAffected()
	if err != nil {
		return err
	}
	return s.Check(changed)
}

func held(stmt *sql.Stmt, args []any) error {
	var n int
	if err := stmt.QueryRowContext(context.Background(), args...).Scan(&n); err != nil {
		return err
	}
	if n != 1 {
		return sqlstore.ErrMoved
	}
	return nil
}

func (t *tx) Query(ctx context.Context, query string, args ...any) (sqlstore.Rows, error) {
	if err := t.Flush(ctx); err != nil {
		return nil, err
	}
	return t.prepared.query(t.on, query, args)
}

func (t *tx) Commit(ctx context.Context) error {
	if err := t.Flush(ctx); err != nil {
		return err
	}
	if err := t.exec("COMMIT"); err != nil {
		return err // Rollback follows
	}
	t.release()
	return nil
}

// Rollback also ends a transaction that SQLite has already ended by itself, as it does when
// the disk is full.
func (t *tx) Rollback() {
	if t.over {
		return
	}
	_ = t.exec("ROLLBACK")
	t.release()
}

func (t *tx) release() {
	t.over = true
	if t.w != nil {
		t.e.free <- t.w
		return
	}
	_ = t.prepared.close()
	_ = t.on.Close()
}
