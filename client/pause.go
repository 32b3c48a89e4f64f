package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// backoff is how long to wait after a failed attempt: what the server asked for, or a random part of a growing pause, so that
// clients that failed together don't come back together.
func (c *Client) backoff(attempt int, err error) time.Duration {
	var p *Problem
	if errors.As(err, &p) && p.RetryAfter > 0 {
		return min(time.Duration(p.RetryAfter)*time.Second, c.opt.MaxPause)
	}
	longest := c.opt.Pause
	for range attempt - 1 {
		longest = min(2*longest, c.opt.MaxPause)
	}
	return rand.N(longest) + 1
}

// pause waits, or returns the context's error when that ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
