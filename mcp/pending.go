package mcp

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/store"
)

// errFull means that too many calls of a caller wait.
var errFull = errors.New("too many calls wait for people")

// pending counts the open calls of each caller. With several processes, each counts only the calls
// that arrived there after it began counting.
type pending struct {
	most int

	mu     sync.Mutex
	counts map[string]int // nil until what an earlier process left was counted
	at     time.Time      // when that was
}

// countAgain is the time after which the calls of a caller that has reached the limit are counted
// again, because another process may have ended some.
const countAgain = time.Second

// enter counts a new call. It returns errFull if the caller has too many.
func (p *pending) enter(
	ctx context.Context, caller string, count func(context.Context) (map[string]int, error),
) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts == nil || p.counts[caller] >= p.most && time.Since(p.at) >= countAgain {
		counts, err := count(ctx)
		if err != nil {
			return err
		}
		p.counts, p.at = counts, time.Now()
	}

	if p.counts[caller] >= p.most {
		return errFull
	}
	p.counts[caller]++
	return nil
}

// leave counts a call that has ended.
func (p *pending) leave(caller string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts[caller] > 0 {
		p.counts[caller]--
	}
}

// count counts the open calls in the store: the records without an expiry.
func (k *keeper) count(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	err := k.engine.Each(ctx, "", func(r store.Record) {
		escaped, _, _ := strings.Cut(r.Key, "/")
		name, err := url.PathUnescape(escaped)
		if err == nil && r.Expires.IsZero() {
			counts[name]++
		}
	})
	return counts, err
}

// moved updates the count when a call ends, and records a run whose outcome was lost.
func (k *keeper) moved(ctx context.Context, was durable.State, c *record) {
	k.noteLost(ctx, was, c)
	if c.Over() && was != durable.Ended {
		k.pending.leave(c.Part.Caller)
	}
}
