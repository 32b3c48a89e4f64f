package durable

import (
	"context"
	"sync"

	"github.com/assent-dev/assent/internal/wait"
)

// waiters are those who wait for news of a call.
type waiters struct {
	mu  sync.Mutex
	all map[string]*oneWait
}

type oneWait struct {
	users int
	news  chan struct{}
}

// on returns a channel that is closed with the next news.
func (w *waiters) on(key string) (news <-chan struct{}, leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.all[key]
	if one == nil {
		one = &oneWait{news: make(chan struct{})}
		w.all[key] = one
	}
	one.users++
	return one.news, func() { w.leave(key, one) }
}

func (w *waiters) leave(key string, one *oneWait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one.users--; one.users == 0 && w.all[key] == one {
		delete(w.all, key)
	}
}

// anyCall is the key of those who wait for news of whichever call.
const anyCall = ""

func (w *waiters) wake(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range []string{key, anyCall} {
		if one := w.all[key]; one != nil {
			close(one.news)
			delete(w.all, key)
		}
	}
}

// Changes returns a channel that is closed as soon as this process
// changes any call, and a function that has nobody wait for it.
func (e *Engine[P]) Changes() (news <-chan struct{}, leave func()) { return e.waiting.on(anyCall) }

// Watch shows a call again and again, as soon as this process changes
// it and now and then besides, since another one may, until enough says
// so. The error is that of reading the call, or of the context.
func (e *Engine[P]) Watch(ctx context.Context, key string, enough func(*Call[P]) bool) (*Call[P], error) {
	for {
		news, leave := e.waiting.on(key)
		c, err := e.Get(ctx, key)
		if err != nil || enough(c) {
			leave()
			return c, err
		}
		_ = wait.For(ctx, news, e.cfg.Poll) // the context is looked at below
		leave()
		if ctx.Err() != nil {
			return c, context.Cause(ctx)
		}
	}
}
