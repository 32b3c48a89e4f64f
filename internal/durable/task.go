package durable

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// task is a run or a message in progress in this process.
type task struct {
	key  string
	name string // of the attempt
	ctx  context.Context
	stop context.CancelCauseFunc
	down chan struct{} // closed when it has ended
	news atomic.Bool   // the call was notified meanwhile
}

type tasks struct {
	mu sync.Mutex
	of map[string][]*task // by key of the call
}

// add registers a task that is about to begin, so that it can be stopped from now on.
func (f *tasks) add(key, name string) *task {
	ctx, stop := context.WithCancelCause(context.Background())
	one := &task{
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

func (f *tasks) done(one *task) {
	one.stop(nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	rest := slices.DeleteFunc(f.of[one.key], func(other *task) bool { return other == one })
	if f.of[one.key] = rest; len(rest) == 0 {
		delete(f.of, one.key)
	}
	close(one.down)
}

// has reports whether an attempt is in progress in this process.
func (f *tasks) has(key, name string) bool {
	return slices.ContainsFunc(f.all(key), func(one *task) bool { return one.name == name })
}

func (f *tasks) all(key string) []*task {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.of[key])
}

// idle reports whether no task is in progress.
func (f *tasks) idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.of) == 0
}

// everything returns all tasks in progress in this process.
func (f *tasks) everything() []*task {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*task
	for _, some := range f.of {
		out = append(out, some...)
	}
	return out
}

// check stops the tasks of a call for which why returns an error.
func (f *tasks) check(key string, why func(*task) error) {
	for _, one := range f.all(key) {
		if err := why(one); err != nil {
			one.stop(err)
		}
	}
}

// Halt stops the runs and messages of a call that are in progress in this process, and waits
// until they have ended or ctx ends. A message that was not sent by then is never sent by this
// process.
func (e *Engine[P]) Halt(ctx context.Context, key string) {
	all := e.tasks.all(key)
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
