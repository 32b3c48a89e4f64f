package durable

import (
	"context"
	"errors"
	"sync"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/wait"
)

// news collects references for which a notification came and was not handled yet.
type news struct {
	mu   sync.Mutex
	refs map[string]struct{} // the empty string means any
	some chan struct{}
}

func newNews() *news { return &news{refs: map[string]struct{}{}, some: make(chan struct{}, 1)} }

// add never blocks, so that it can't block the notifying watch.
func (n *news) add(ref string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refs[ref] = struct{}{}
	select {
	case n.some <- struct{}{}:
	default:
	}
}

func (n *news) take() map[string]struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.refs
	n.refs = map[string]struct{}{}
	return out
}

type watch = func(ctx context.Context, changed func(ref string)) error

func (e *Engine[P]) watches() []watch {
	all := e.cfg.Watch
	if e.cfg.People != nil {
		all = append([]watch{e.cfg.People.Watch}, all...)
	}
	return all
}

// listen runs a watch until ctx ends, and restarts it after errors.
func (e *Engine[P]) listen(ctx context.Context, n *news, watch watch) {
	for fails := 1; ctx.Err() == nil; fails++ {
		err := watch(ctx, n.add)
		if ctx.Err() != nil {
			return
		}
		e.cfg.Log.WarnContext(ctx, "news is not heard; trying again", "error", err)
		_ = wait.Pause(ctx, e.cfg.Pause(min(fails, 4)))
		n.add("") // notifications may have been missed
	}
}

// hear works on the calls of notified references.
func (e *Engine[P]) hear(ctx context.Context, n *news) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.some:
		}
		refs := n.take()
		if _, any := refs[""]; any {
			e.hearAll(ctx)
			continue
		}
		for ref := range refs {
			e.hearOf(ctx, ref)
		}
	}
}

func (e *Engine[P]) hearOf(ctx context.Context, ref string) {
	d, err := e.refs.Get(ctx, Hash(ref))
	switch {
	case err == nil:
		for !e.take(d.Body.Key, true) && ctx.Err() == nil {
			_ = wait.Pause(ctx, e.cfg.Poll)
		}
	case !errors.Is(err, approval.ErrNotFound) && ctx.Err() == nil:
		e.cfg.Log.ErrorContext(ctx, "news can't be followed", "error", err)
	}
}

// hearAll schedules every call that has a reference. Calls for which there is no room are
// scheduled in another round.
func (e *Engine[P]) hearAll(ctx context.Context) {
	taken := map[string]bool{}
	for more := true; more && ctx.Err() == nil; {
		more = false
		err := e.refs.All(ctx, "", func(d *Doc[reference]) error {
			if key := d.Body.Key; !taken[key] {
				taken[key] = e.take(key, true)
				more = more || !taken[key]
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			e.cfg.Log.ErrorContext(ctx, "what there may be news of can't be listed", "error", err)
		}
		if more {
			_ = wait.Pause(ctx, e.cfg.Poll)
		}
	}
}
