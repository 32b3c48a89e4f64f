package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/store"
)

const (
	postponedFor  = time.Minute // how long a request that failed is postponed
	postponedMost = 4096        // how many are remembered; others are tried each time
)

// place identifies a request.
type place struct{ tenant, id string }

// postponed holds requests that failed when they were due a moment ago. They stay due, but
// this process handles others first: otherwise the failed ones, which are the oldest, would
// fill every batch.
type postponed struct {
	mu    sync.Mutex
	until map[place]time.Time
}

// sweep removes requests that may be tried again, and returns how many remain postponed.
func (p *postponed) sweep(now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, until := range p.until {
		if !now.Before(until) || until.Sub(now) > postponedFor { // also when the clock was set back
			delete(p.until, k)
		}
	}
	return len(p.until)
}

func (p *postponed) has(k place) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.until[k]
	return ok
}

func (p *postponed) add(k place, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = map[place]time.Time{}
	}
	if len(p.until) < postponedMost {
		p.until[k] = until
	}
}

// Due runs fn for requests that are due, in groups. It skips a request that another
// transaction has locked. A request that failed is postponed for a minute.
func (s *Store) Due(
	ctx context.Context,
	now time.Time,
	limit int,
	fn func(tx approval.Tx, tenant string, r *approval.Request) error,
) (int, error) {
	places, err := s.dueAt(ctx, now, limit)
	if err != nil {
		return 0, err
	}
	ran := make([]bool, len(places))
	var errs []error
	jobs := make([]*job, len(places))
	for i, k := range places {
		jobs[i] = &job{
			tenant: k.tenant,
			run: func(t *tx) error {
				if err := s.stopped(k.tenant); err != nil {
					return err
				}
				r, err := t.due(k.id, now)
				if ran[i] = r != nil || err != nil && t.b.err == nil; err != nil || r == nil {
					return err
				}
				return fn(t, k.tenant, r)
			},
			done: func(err error) {
				if err == nil {
					return
				}
				errs = append(errs, fmt.Errorf("request %q: %w", k.id, err))
				if ran[i] && s.itsFault(err) {
					s.postponed.add(k, now.Add(postponedFor))
				}
			},
		}
	}

	for len(jobs) > 0 && ctx.Err() == nil {
		n := min(len(jobs), groupSize)
		for _, j := range s.commit(jobs[:n], func(fn func()) { fn() }) {
			s.alone(j)
		}
		jobs = jobs[n:]
	}

	return count(ran), errors.Join(append(errs, ctx.Err())...)
}

// dueAt lists up to limit requests that are due and not postponed.
func (s *Store) dueAt(ctx context.Context, now time.Time, limit int) ([]place, error) {
	back := s.postponed.sweep(now)
	scan := func(r Rows) (k place, err error) { return k, r.Scan(&k.tenant, &k.id) }
	all, err := list(
		ctx,
		s,
		"find due requests",
		scan,
		"SELECT tenant, id FROM requests WHERE due <= $1 ORDER BY due LIMIT $2",
		micros(now),
		int64(limit+back),
	)
	all = slices.DeleteFunc(all, s.postponed.has)
	return all[:min(len(all), limit)], err
}

// itsFault reports whether the request itself caused the error, and not a conflict with
// another transaction or a lost connection.
func (s *Store) itsFault(err error) bool {
	switch {
	case errors.Is(err, approval.ErrVersion):
		return false
	case !errors.Is(err, store.ErrUnavailable): // not an error of the engine, so it has no class
		return true
	}

	class := s.eng.Class(err)
	return class != Conflict && class != Lost
}

func count(all []bool) (n int) {
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}
