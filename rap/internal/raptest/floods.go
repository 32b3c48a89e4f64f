// Package raptest holds what the tests of both sides of RAP share.
package raptest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// slowBody is a body of which nothing comes. It counts those that
// somebody reads.
type slowBody struct {
	reads *atomic.Int32
	gone  chan struct{}
	once  sync.Once
}

func (b *slowBody) Read([]byte) (int, error) {
	b.once.Do(func() { b.reads.Add(1) })
	<-b.gone
	return 0, io.ErrUnexpectedEOF
}

// floods sends many requests whose bodies don't come, and returns how
// many of them are read and how to end them.
func Floods(t *testing.T, to http.Handler, path, token string) (reads *atomic.Int32, end func()) {
	reads, gone := &atomic.Int32{}, make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			req := httptest.NewRequestWithContext(ctx, http.MethodPost, path, &slowBody{reads: reads, gone: gone})
			req.Header.Set("Content-Type", "application/json")
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			to.ServeHTTP(httptest.NewRecorder(), req)
		})
	}

	return reads, func() {
		cancel()
		close(gone)
		all.Wait()
	}
}
