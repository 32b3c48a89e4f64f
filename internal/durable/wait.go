package durable

import (
	"context"
	"sync"

	"github.com/assent-dev/assent/internal/wait"
)

// waiters are the goroutines that wait for changes of a call, by key.
type waiters struct {
	mu  sync.Mutex
	all map[string]*oneWait
}

type oneWait struct {
	users int
	news  chan struct{}
}

// on returns a channel that is closed at the next change, and a function that ends the wait.
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

// anyCall is the key for changes of any call.
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

// Changes returns a channel that is closed as soon as this process changes any call, and a
// function that ends the wait.
func (b *book[P]) Changes() (news <-chan struct{}, leave func()) { return b.waiting.on(anyCall) }

// Watch calls enough with a call until it returns true: at once, after each change by this
// process, and every Config.Poll, because another process may change it. It returns the error
// of reading the call, or the cause of ctx.
func (b *book[P]) Watch(ctx context.Context, key string, enough func(*Call[P]) bool) (*Call[P], error) {
	for {
		news, leave := b.waiting.on(key)
		c, err := b.Get(ctx, key)
		if err != nil || enough(c) {
			leave()
			return c, err
		}
		_ = wait.For(ctx, news, b.cfg.Poll) // ctx is checked below
		leave()
		if ctx.Err() != nil {
			return c, context.Cause(ctx)
		}
	}
}
