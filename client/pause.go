package client

import (
	"errors"
	"time"

	"github.com/assent-dev/assent/internal/backoff"
)

// backoff returns how long to wait after a failed attempt: what the server asked for, or a
// random part of a growing pause, so that clients that failed together don't retry together.
func (c *Client) backoff(attempt int, err error) time.Duration {
	var p *Problem
	if errors.As(err, &p) && p.RetryAfter > 0 {
		return min(time.Duration(p.RetryAfter)*time.Second, c.opt.MaxPause)
	}
	return backoff.Jitter(c.opt.Pause, c.opt.MaxPause, attempt)
}
