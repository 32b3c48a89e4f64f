package approval

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Await returns as soon as a request's version is another than the given
// one, or when wait is over. The end of ctx is an error. However many
// wait, the store is asked once about all of a tenant.
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

// await looks at the version once, and says whether to look again.
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

// hub wakes those who wait for requests in this process: at once for
// what this process changed, and for what others changed as soon as the
// store tells of it.
type hub struct {
	mu      sync.Mutex
	tenants map[string]*waiters
}

// waiters are those of one tenant.
type waiters struct {
	stop context.CancelFunc
	all  map[string]*awaited // by id of the request
}

// awaited is a request that somebody waits for. It is forgotten with
// the last of them.
type awaited struct {
	version int64 // the oldest that one of them knows
	moved   chan struct{}
	waiters int
}

// join returns what tells that a request changed, and what leaves. The
// first who waits for anything of a tenant starts what follows the
// store.
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

// wake tells those who wait for a request that it changed, or may have.
func (h *hub) wake(tenant, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.tenants[tenant]; w != nil {
		w.wake(id)
	}
}

// wake forgets the request: whoever goes on waiting for it joins again.
func (w *waiters) wake(id string) {
	if a := w.all[id]; a != nil {
		close(a.moved)
		delete(w.all, id)
	}
}

// wakeMoved wakes those who wait for one of these and know another
// version than it has now.
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

// awaited are the requests that somebody waits for.
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
	quiet     = 200 * time.Millisecond // between two looks, while the tenant changes all the time
	lookAgain = time.Second            // after the store could not be asked
	headsOnce = 128                    // requests that one look asks about at a time
)

// follow looks, whenever something of the tenant changed, which of the
// requests that are waited for moved on.
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
