package testwait

import (
	"context"
	"testing"
	"time"
)

// Context returns a context that is cancelled when the test cleans up, or
// shortly before its deadline, so that a test which hangs in a call with
// this context fails by itself. Functions of t.Cleanup may use it, too.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience(t))
	t.Cleanup(cancel)
	return ctx
}

// Receive waits until a channel yields a value or is closed, and returns
// the value. what completes the sentence "waited for …".
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	timer := time.NewTimer(patience(t))
	defer timer.Stop()
	select {
	case value := <-from:
		return value
	case <-timer.C:
		t.Fatalf("the time of the test is over: waited for %s", what)
		panic("not reached")
	}
}
