// Package wait pauses without outliving a context.
package wait

import (
	"context"
	"time"
)

// For returns when the signal is closed, when the time is over, or when
// ctx ends, whose error it returns. A nil signal never comes.
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

// Pause returns when the time is over, or when ctx ends, whose error it
// returns.
func Pause(ctx context.Context, d time.Duration) error { return For(ctx, nil, d) }
