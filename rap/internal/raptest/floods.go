// Package raptest has test helpers for both sides of RAP.
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

// slowBody is a body that never arrives. It counts the bodies that are read.
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

// Floods sends many requests whose bodies never arrive. It returns the number of bodies being
// read, and a function that ends the requests.
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
