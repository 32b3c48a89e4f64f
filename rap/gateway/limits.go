package gateway

import (
	"sync"
	"time"
)

// limits restricts the open calls and the rate of each caller. Each process counts for itself
// and regularly recounts from the store, so the counts of several processes converge.
type limits struct {
	open, thread, rate int

	first sync.Mutex // held while the calls of an earlier process are counted

	mu      sync.Mutex
	counted bool           // since this process started
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

// tooFast counts an invocation and reports whether the rate is exceeded.
func (l *limits) tooFast(caller string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := now.Unix(); l.second[caller] != second {
		l.second[caller], l.spent[caller] = second, 0
	}
	l.spent[caller]++
	return l.spent[caller] > l.rate
}

// enter counts an opened call, or returns false if there are too many.
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

// leave counts a closed call.
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

// isCounted reports whether open calls were counted from the store since this process started.
func (l *limits) isCounted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counted
}

// keyParts returns the prefix of a call's key that all calls of its caller share, and the one
// that all calls of its thread share.
func keyParts(key string) (caller, thread string) {
	const digest = 64 + 1
	return key[:digest], key[:2*digest]
}

// reopen counts a call that is open again, regardless of the limits.
func (l *limits) reopen(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	caller, thread := keyParts(key)
	l.add(caller, thread, 1)
}
