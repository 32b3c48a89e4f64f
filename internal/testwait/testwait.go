// Package testwait lets a test wait for what another goroutine or
// process does soon. Only tests import it.
package testwait

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

const (
	// patience is long because a slow machine is no failure: a test
	// that passes never waits that long.
	patience = 2 * time.Minute

	pause = 10 * time.Millisecond
)

// Until waits until a condition holds, and fails the test when it
// doesn't hold in time.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()

	if !poll(patience, holds) {
		t.Fatalf("waited in vain: %s", what)
	}
}

// Value waits until look finds a value, and returns it. It fails the
// test when there is none in time.
func Value[T any](t testing.TB, what string, look func() (T, bool)) T {
	t.Helper()

	var value T
	Until(t, what, func() bool {
		found, ok := look()
		value = found
		return ok
	})
	return value
}

// poll reports whether a condition holds within a time.
func poll(within time.Duration, holds func() bool) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(pause)
	defer tick.Stop()

	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return false
		}
	}

	return true
}

// Buffer is a text that can be read while it is written. The zero value
// is ready.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to the text.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.text.Write(p)
}

// String returns what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.text.String()
}
