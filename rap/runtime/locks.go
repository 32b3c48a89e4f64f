package runtime

import (
	"context"
	"sync"
)

// locks has one lock for each key in use.
type locks struct {
	mu   sync.Mutex
	held map[string]*oneLock
}

type oneLock struct {
	users int
	free  chan struct{} // holds one value while the lock is free
}

func (l *locks) lock(ctx context.Context, key string) (unlock func(), err error) {
	one := l.enter(key)
	select {
	case <-one.free:
		return func() {
			one.free <- struct{}{}
			l.leave(key, one)
		}, nil
	case <-ctx.Done():
		l.leave(key, one)
		return nil, ctx.Err()
	}
}

func (l *locks) enter(key string) *oneLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.held[key]
	if one == nil {
		one = &oneLock{free: make(chan struct{}, 1)}
		one.free <- struct{}{}
		l.held[key] = one
	}
	one.users++

	return one
}

func (l *locks) leave(key string, one *oneLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(l.held, key)
	}
}
