// Package wait pauses without outliving a context.
package wait

import (
	"context"
	"time"
)

// For returns nil when the signal is closed or when the time is over. If ctx ends first, it returns
// the context's error. A nil signal is never closed.
func For(ctx context.Context, signal <-chan struct{}, most time.Duration) error {
	over := time.NewTimer(most)
	defer over.Stop()

	select {
	case <-signal:
	case <-over.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Pause returns nil when the time is over. If ctx ends first, it returns the context's error.
func Pause(ctx context.Context, d time.Duration) error { return For(ctx, nil, d) }
