package hook

import (
	"context"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/client"
)

// Desk is what asks people: a service elsewhere, or one in this
// process.
type Desk interface {
	hold.Side

	// Wait returns when a request has another version, or after a while.
	Wait(ctx context.Context, id string, version int64) error

	// Close ends what the desk holds open.
	Close() error
}

// served is the desk of a server.
type served struct {
	hold.Side

	c *client.Client
}

// longPoll is how long one exchange waits at a server.
const longPoll = time.Minute

func (s *served) Wait(ctx context.Context, id string, version int64) error {
	_, err := s.c.Wait(ctx, id, version, longPoll)

	return err
}

func (s *served) Close() error { return nil }
