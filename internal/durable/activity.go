package durable

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// activity is a run or an errand that is under way in this process.
type activity struct {
	key  string
	name string // of the attempt
	ctx  context.Context
	stop context.CancelCauseFunc
	down chan struct{} // closed when it has ended
	news atomic.Bool   // there was news of the call meanwhile
}

type activities struct {
	mu sync.Mutex
	of map[string][]*activity // by key of the call
}

// add notes a activity that is about to begin, so that it can be stopped
// from now on.
func (f *activities) add(key, name string) *activity {
	ctx, stop := context.WithCancelCause(context.Background())
	one := &activity{
		key:  key,
		name: name,
		ctx:  ctx,
		stop: stop,
		down: make(chan struct{}),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[key] = append(f.of[key], one)
	return one
}

func (f *activities) land(one *activity) {
	one.stop(nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	rest := slices.DeleteFunc(f.of[one.key], func(other *activity) bool { return other == one })
	if f.of[one.key] = rest; len(rest) == 0 {
		delete(f.of, one.key)
	}
	close(one.down)
}

// has reports whether an attempt is under way here.
func (f *activities) has(key, name string) bool {
	return slices.ContainsFunc(f.all(key), func(one *activity) bool { return one.name == name })
}

func (f *activities) all(key string) []*activity {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.of[key])
}

// idle reports whether nothing is under way.
func (f *activities) idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.of) == 0
}

// everything is under way in this process.
func (f *activities) everything() []*activity {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*activity
	for _, some := range f.of {
		out = append(out, some...)
	}
	return out
}

// check stops the activities of a call for which why has an error.
func (f *activities) check(key string, why func(*activity) error) {
	for _, one := range f.all(key) {
		if err := why(one); err != nil {
			one.stop(err)
		}
	}
}

// Ground stops the runs and errands of a call that are under way in
// this process, and waits until they have ended: what was not sent by
// then never is.
func (e *Engine[P]) Ground(ctx context.Context, key string) {
	all := e.activities.all(key)
	for _, f := range all {
		f.stop(ErrOvertaken)
	}
	for _, f := range all {
		select {
		case <-f.down:
		case <-ctx.Done():
			return
		}
	}
}
