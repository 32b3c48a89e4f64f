package sqlstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/assent-dev/assent/store"
)

// Store is a store.Store over an engine.
type Store struct {
	eng     Engine
	d       Dialect
	now     func() time.Time
	sealing sync.Mutex
	edges   map[string]grown // by tenant; guarded by sealing
	queue   queue
	changes changes
	recent  recent
	thawed  thawed

	postponed postponed
}

var _ store.Store = (*Store)(nil)

// New brings the database up to date and returns its store. It owns the engine from then on, also when it fails.
func New(ctx context.Context, eng Engine, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Poll == 0 {
		o.Poll = 250 * time.Millisecond
	}
	s := &Store{eng: eng, d: eng.Dialect(), now: o.Now, edges: map[string]grown{}}
	s.changes.init(s, o.Poll)
	if err := s.migrate(ctx, embedded()); err != nil {
		return nil, errors.Join(err, eng.Close())
	}
	return s, nil
}

// Close waits for what is being committed, refuses what still waits, and closes the engine.
func (s *Store) Close() error {
	s.queue.close()
	s.changes.close()
	return s.eng.Close()
}

// attempts is how often a transaction runs again when another one got in between.
const attempts = 12

// write runs fn in a transaction, again when another one got in between or the connection was stale.
func (s *Store) write(ctx context.Context, what string, fn func(Tx) error) error {
	for n := 1; ; n++ {
		err, committing := s.writeOnce(ctx, fn)
		if _, final := errors.AsType[verdict](err); err == nil || final { // of a verdict no engine knows the class
			return s.failed(what, err)
		}
		again := s.eng.Class(err) == Conflict || s.eng.Class(err) == Lost && !committing && n < 3
		if !again || n >= attempts || ctx.Err() != nil {
			return s.failed(what, err)
		}
	}
}

func (s *Store) writeOnce(ctx context.Context, fn func(Tx) error) (err error, committing bool) {
	t, err := s.eng.Begin(ctx)
	if err != nil {
		return err, false
	}
	defer t.Rollback()
	if err := fn(t); err != nil {
		return err, false
	}
	return t.Commit(ctx), true
}

// verdict is an error of ours that a transaction ends with: no failure of the engine.
type verdict struct{ error }

func (v verdict) Unwrap() error { return v.error }

// failed wraps whatever a transaction ended with.
func (s *Store) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	if v, ok := errors.AsType[verdict](err); ok {
		return v.error
	}
	return unavailable(what, err)
}

// Ping writes, so that a full or read-only database is noticed.
func (s *Store) Ping(ctx context.Context) error {
	return s.write(ctx, "ping", func(t Tx) error {
		t.Queue(Stmt{SQL: "INSERT INTO pulse (id, payload) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET payload = excluded.payload",
			Args: []any{int64(1), make([]byte, 8192)}})
		t.Queue(Stmt{SQL: "DELETE FROM pulse"})
		return nil
	})
}

// Tenants lists the tenants that have any ledger entry.
func (s *Store) Tenants(ctx context.Context) ([]string, error) {
	out, err := collect(ctx, s.eng, scanText, "SELECT tenant FROM trees UNION SELECT tenant FROM entries WHERE idx IS NULL ORDER BY 1")
	if err != nil {
		return nil, unavailable("list tenants", err)
	}
	return out, nil
}
