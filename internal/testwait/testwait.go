// Package testwait waits in a test for another goroutine or process.
// A wait lasts until the deadline of the test itself (go test -timeout),
// because a busy machine is not a failure. Only tests import it.
package testwait

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"
)

const (
	// The pause between two looks grows by a tenth each time, because a look may take a request or
	// a script in a browser.
	pause        = 10 * time.Millisecond
	longestPause = 100 * time.Millisecond

	// stuck is the time after which a wait with an unchanged state is reported, so that the log of
	// a hanging run shows what it waits for.
	stuck = 30 * time.Second

	// reserve is the time kept before the deadline of the test, in which
	// it can fail with a message and clean up. Past the deadline, go test
	// ends the process with a panic and leaves children behind.
	reserve = 20 * time.Second

	// longest applies to tests without a deadline (-timeout 0, benchmarks).
	longest = 10 * time.Minute
)

// Until waits until holds returns true. It fails the test when the time
// of the test is over. what completes the sentence "waited for …".
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Value(t, what, func() (bool, bool) {
		ok := holds()
		return ok, ok
	})
}

// Value waits until look returns a value and true, and returns the value.
// If the time of the test is over, it fails the test and prints what look
// returned last. look should therefore return what it saw, even if it is
// not yet what the test needs.
func Value[T any](t testing.TB, what string, look func() (T, bool)) T {
	t.Helper()
	w := waiter[T]{what: what, look: look, patience: patience(t), stuck: stuck, log: os.Stderr, name: t.Name()}
	value, ok := w.wait()
	if !ok {
		t.Fatalf("waited %v for %s; last state: %s", w.patience.Round(time.Second), what, state(value))
	}
	return value
}

// patience returns how long a wait of t may last from now on.
func patience(t testing.TB) time.Duration {
	timed, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return longest
	}
	deadline, ok := timed.Deadline()
	if !ok {
		return longest
	}
	left := time.Until(deadline)
	return left - min(reserve, left/10)
}

type waiter[T any] struct {
	name, what      string
	look            func() (T, bool)
	patience, stuck time.Duration
	log             io.Writer
}

// wait polls until look succeeds or the patience is used up. It writes a
// line to the log whenever the state has not changed for w.stuck.
func (w *waiter[T]) wait() (T, bool) {
	deadline := time.NewTimer(w.patience)
	defer deadline.Stop()
	tick := time.NewTimer(pause)
	defer tick.Stop()

	changed, seen := time.Now(), ""
	for next := pause; ; next = min(next+next/10, longestPause) {
		value, ok := w.look()
		if ok {
			return value, true
		}

		select {
		case <-deadline.C:
			return value, false
		case <-tick.C:
			tick.Reset(next)
		}

		if now := state(value); now != seen {
			changed, seen = time.Now(), now
		} else if time.Since(changed) >= w.stuck {
			fmt.Fprintf(w.log, "%s: no progress for %v: waiting for %s; state: %s\n", w.name, w.stuck, w.what, now)
			changed = time.Now()
		}
	}
}

// state prints a value for a message, without pages of it.
func state(value any) string {
	const most = 2000
	text := fmt.Sprintf("%+v", value)
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
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
