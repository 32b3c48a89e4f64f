package approval

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Await returns as soon as the request's version differs from the given one, or when wait has
// passed. It returns an error if ctx ends. All waiting callers of a tenant share the queries to the
// store.
func (s *Service) Await(ctx context.Context, tenant, id string, version int64, wait time.Duration) error {
	if checkName("id", id) != nil {
		return ErrNotFound
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		woken, leave := s.hub.join(s, tenant, id, version)
		again, err := s.await(ctx, tenant, id, version, woken, over.C)
		leave()
		if !again || err != nil {
			return err
		}
	}
}

// await checks the version once, then waits. It reports whether the caller must check again.
func (s *Service) await(
	ctx context.Context, tenant, id string, version int64, woken <-chan struct{}, over <-chan time.Time,
) (again bool, err error) {
	heads, err := s.store.Heads(ctx, tenant, []string{id})
	if err != nil {
		return false, err
	}
	switch head, found := heads[id]; {
	case !found:
		return false, ErrNotFound
	case head.Version != version:
		return false, nil
	}

	select {
	case <-woken:
		return true, nil
	case <-over:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// hub wakes the callers that wait for requests in this process: at once for changes by this
// process, and for changes by other processes as soon as the store reports them.
type hub struct {
	mu      sync.Mutex
	tenants map[string]*waiters
}

// waiters are the requests of one tenant that callers wait for.
type waiters struct {
	stop context.CancelFunc
	all  map[string]*awaited // by id of the request
}

// awaited is a request that at least one caller waits for. It is removed when the last caller
// leaves.
type awaited struct {
	version int64 // the oldest version that one of the callers has seen
	moved   chan struct{}
	waiters int
}

// join returns a channel that is closed when the request may have changed, and a function to stop
// waiting. The first waiting caller of a tenant starts the goroutine that follows the store.
func (h *hub) join(s *Service, tenant, id string, version int64) (woken <-chan struct{}, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tenants == nil {
		h.tenants = map[string]*waiters{}
	}
	w := h.tenants[tenant]
	if w == nil {
		ctx, cancel := context.WithCancel(context.Background())
		w = &waiters{stop: cancel, all: map[string]*awaited{}}
		h.tenants[tenant] = w
		go s.follow(ctx, tenant)
	}

	a := w.all[id]
	if a == nil {
		a = &awaited{version: version, moved: make(chan struct{})}
		w.all[id] = a
	}
	a.version = min(a.version, version)
	a.waiters++
	return a.moved, func() { h.leave(tenant, w, id, a) }
}

func (h *hub) leave(tenant string, w *waiters, id string, a *awaited) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.waiters--; a.waiters == 0 && w.all[id] == a {
		delete(w.all, id)
	}
	if len(w.all) == 0 && h.tenants[tenant] == w {
		w.stop()
		delete(h.tenants, tenant)
	}
}

// wake wakes the callers that wait for a request, because it has changed or may have changed.
func (h *hub) wake(tenant, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.tenants[tenant]; w != nil {
		w.wake(id)
	}
}

// wake also removes the request, so callers that continue to wait must join again.
func (w *waiters) wake(id string) {
	if a := w.all[id]; a != nil {
		close(a.moved)
		delete(w.all, id)
	}
}

// wakeMoved wakes the callers that wait for one of these requests and have seen a version other
// than the current one.
func (h *hub) wakeMoved(tenant string, ids []string, heads map[string]Head) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.tenants[tenant]
	if w == nil {
		return
	}
	for _, id := range ids {
		if a := w.all[id]; a != nil && a.version != heads[id].Version {
			w.wake(id)
		}
	}
}

// awaited returns the ids of the requests that callers wait for.
func (h *hub) awaited(tenant string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.tenants[tenant]
	if w == nil {
		return nil
	}
	return slices.Collect(maps.Keys(w.all))
}

const (
	quiet     = 200 * time.Millisecond // pause between two checks while the tenant changes all the time
	lookAgain = time.Second            // pause after an error of the store
	headsOnce = 128                    // most requests per query
)

// follow checks, whenever data of the tenant changes, which of the awaited requests have a new
// version.
func (s *Service) follow(ctx context.Context, tenant string) {
	for ctx.Err() == nil {
		changed := s.store.Changed(tenant)
		if err := s.look(ctx, tenant); err != nil {
			pause(ctx, lookAgain)
			continue
		}
		select {
		case <-changed:
			pause(ctx, quiet)
		case <-ctx.Done():
		}
	}
}

func (s *Service) look(ctx context.Context, tenant string) error {
	for ids := range slices.Chunk(s.hub.awaited(tenant), headsOnce) {
		heads, err := s.store.Heads(ctx, tenant, ids)
		if err != nil {
			return err
		}
		s.hub.wakeMoved(tenant, ids, heads)
	}

	return nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
