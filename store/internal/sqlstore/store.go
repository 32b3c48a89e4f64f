package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assent-dev/assent/store"
)

// Store is a store.Store over an engine.
type Store struct {
	eng     Engine
	d       Dialect
	now     func() time.Time
	trust   store.Trust
	auth    *authenticator // nil if rows carry no codes
	period  period
	sealing sync.Mutex
	trees   trees
	// distrusted holds the tenants that Distrust has stopped; guarded by sealing.
	distrusted map[string]error
	marks      map[string]store.Mark // of the watermark, when the store was opened
	before     map[string]store.Mark // of the watermark, for the period before the one that this process began
	queue      queue
	turn       sync.Mutex     // of the group that seals its own entries
	answering  sync.WaitGroup // groups that are committed and not answered yet
	changes    changes

	postponed postponed
	versions  *versions
	own       own
	learning  sync.Mutex // held while noting that a log has grown; see grownBy
	alarms    atomic.Int64
	// entries that updates have sealed themselves
	sealedFirst atomic.Int64
	halted      atomic.Pointer[map[string]error] // by tenant
	// The steps of the schema, before and after this process migrated it.
	schemaBefore, schema int
}

var _ store.Store = (*Store)(nil)

// New brings the database up to date and returns its store. The store owns the engine from
// then on; New closes it if it fails.
func New(ctx context.Context, eng Engine, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Poll == 0 {
		o.Poll = 250 * time.Millisecond
	}
	if o.Trust.Recent == 0 {
		o.Trust.Recent = 30 * time.Minute
	}
	s := &Store{
		eng:        eng,
		d:          eng.Dialect(),
		now:        o.Now,
		trust:      o.Trust,
		trees:      trees{all: map[string]grown{}},
		distrusted: map[string]error{},
		versions:   newVersions(o.Trust.Recent),
	}
	s.changes.init(s, o.Poll)
	err := s.migrate(ctx, embedded())
	if err == nil {
		err = s.bind(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, eng.Close())
	}
	return s, nil
}

// Close waits for running commits, refuses updates that still wait, and closes the engine.
func (s *Store) Close() error {
	s.queue.close()
	s.answering.Wait()
	s.changes.close()
	return s.eng.Close()
}

// attempts is how often a transaction is tried if another transaction conflicts with it.
const attempts = 12

// write runs fn in a transaction of this process's period, again if another transaction
// conflicted or the connection was stale.
func (s *Store) write(ctx context.Context, what string, fn func(Tx) error) error {
	return s.repeat(ctx, what, func(x Tx) error {
		x.Queue(s.held()...)
		return fn(x)
	})
}

// exec runs statements in a transaction of their own.
func (s *Store) exec(ctx context.Context, what string, all ...Stmt) error {
	return s.write(ctx, what, func(x Tx) error {
		x.Queue(all...)
		return nil
	})
}

func (s *Store) repeat(ctx context.Context, what string, fn func(Tx) error) error {
	for n := 1; ; n++ {
		err, committing := s.writeOnce(ctx, fn)
		if _, final := errors.AsType[verdict](err); err == nil ||
			final { // engines know no class of a verdict
			return unavailable(what, err)
		}
		again := s.eng.Class(err) == Conflict || s.eng.Class(err) == Lost && !committing && n < 3
		if !again || n >= attempts || ctx.Err() != nil {
			if errors.Is(err, ErrMoved) {
				err = cmp.Or(s.stillBound(ctx), err)
			}
			return unavailable(what, err)
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

// roomy is an engine that can check whether its disk has space left.
type roomy interface {
	Room() error
}

// Ping writes, so that a full or read-only database is noticed. The write is small, so Ping
// also asks the engine whether there is enough space.
func (s *Store) Ping(ctx context.Context) error {
	if e, ok := s.eng.(roomy); ok {
		if err := e.Room(); err != nil {
			return unavailable("ping", err)
		}
	}
	const beat = "INSERT INTO pulse (id, payload) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET payload = excluded.payload"
	return s.exec(ctx, "ping", do(beat, int64(1), make([]byte, 8192)), do("DELETE FROM pulse"))
}

// ClockAhead returns how far the clock of this process is ahead of the database server's;
// it is negative if the clock is behind. If the server's time lies between the start and
// the end of the query, it returns 0.
func (s *Store) ClockAhead(ctx context.Context) (time.Duration, error) {
	if s.d.Clock == "" {
		return 0, nil
	}
	before := s.now()
	us, _, err := find(ctx, s, "read the clock of the database", scanInt, "SELECT "+s.d.Clock)
	after := s.now()
	if err != nil {
		return 0, err
	}
	switch there := moment(us); {
	case there.Before(before):
		return before.Sub(there), nil
	case there.After(after):
		return after.Sub(there), nil
	}
	return 0, nil
}

const tenantsOf = "SELECT tenant FROM trees UNION SELECT tenant FROM entries WHERE idx IS NULL ORDER BY 1"

// Tenants lists the tenants that have any ledger entry.
func (s *Store) Tenants(ctx context.Context) ([]string, error) {
	return list(ctx, s, "list tenants", scanText, tenantsOf)
}
