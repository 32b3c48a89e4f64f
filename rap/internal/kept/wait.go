package kept

import (
	"context"
	"sync"
	"time"
)

// news are what the desk said and nobody has looked at yet.
type News struct {
	mu   sync.Mutex
	Refs map[string]struct{} // "" stands for any
	Some chan struct{}
}

// add never waits, so that the desk doesn't either.
func (n *News) Add(ref string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Refs[ref] = struct{}{}
	select {
	case n.Some <- struct{}{}:
	default:
	}
}

func (n *News) Take() map[string]struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.Refs
	n.Refs = map[string]struct{}{}
	return out
}

// rootOf is the thread that is the session.
func RootOf(thread string, ancestors []string) string {
	if len(ancestors) > 0 {
		return ancestors[0]
	}
	return thread
}

func Sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
