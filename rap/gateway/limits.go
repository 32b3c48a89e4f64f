package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/assent-dev/assent/store"
)

// limits bounds what one caller may have open, and how fast it may
// come. The counts are this process's own and are counted anew from the
// store now and then, so several processes agree within that time.
type limits struct {
	open, thread, rate int

	first sync.Mutex // held while what an earlier process left open is counted

	mu      sync.Mutex
	counted bool           // since this process began
	callers map[string]int // open calls, by prefix of their keys
	threads map[string]int
	second  map[string]int64
	spent   map[string]int
}

func newLimits(cfg *Config) *limits {
	return &limits{
		open:    cfg.MaxOpen,
		thread:  cfg.MaxThread,
		rate:    cfg.Rate,
		callers: map[string]int{},
		threads: map[string]int{},
		second:  map[string]int64{},
		spent:   map[string]int{},
	}
}

// tooFast counts an invocation and reports whether it came too fast.
func (l *limits) tooFast(caller string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := now.Unix(); l.second[caller] != second {
		l.second[caller], l.spent[caller] = second, 0
	}
	l.spent[caller]++
	return l.spent[caller] > l.rate
}

// enter counts a call that opens, or tells that there are too many.
func (l *limits) enter(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	caller, thread := keyParts(key)
	if l.callers[caller] >= l.open || l.threads[thread] >= l.thread {
		return false
	}
	l.add(caller, thread, 1)
	return true
}

func (l *limits) add(caller, thread string, n int) {
	l.callers[caller] += n
	l.threads[thread] += n
}

// leave counts a call that is over.
func (l *limits) leave(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	caller, thread := keyParts(key)
	lower := func(counts map[string]int, at string) {
		if counts[at]--; counts[at] <= 0 {
			delete(counts, at)
		}
	}
	lower(l.callers, caller)
	lower(l.threads, thread)
}

func (l *limits) recount(callers, threads map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.callers, l.threads = callers, threads
	l.counted = true
}

// isCounted reports whether what is open was counted since this process
// began.
func (l *limits) isCounted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counted
}

// keyParts returns the parts of a call's key that all calls of its
// caller have, and all of its thread.
func keyParts(key string) (caller, thread string) {
	const digest = 64 + 1
	return key[:digest], key[:2*digest]
}

// countFirst counts what an earlier process left open, before the first
// call opens: a restart is no way around the limits.
func (g *Gateway) countFirst(ctx context.Context) error {
	g.limits.first.Lock()
	defer g.limits.first.Unlock()
	if g.limits.isCounted() {
		return nil
	}
	return g.count(ctx)
}

// count counts what is open: all that nobody may forget yet. Nothing is
// unsealed for that.
func (g *Gateway) count(ctx context.Context) error {
	callers, threads := map[string]int{}, map[string]int{}
	err := g.engine.Each(ctx, "", func(r store.Record) {
		if r.Expires.IsZero() {
			caller, thread := keyParts(r.Key)
			callers[caller]++
			threads[thread]++
		}
	})
	if err == nil {
		g.limits.recount(callers, threads)
	}
	return err
}

// back counts a call that is open once more, whatever the limits.
func (l *limits) back(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	caller, thread := keyParts(key)
	l.add(caller, thread, 1)
}
