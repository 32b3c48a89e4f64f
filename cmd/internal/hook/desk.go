package hook

import (
	"context"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/resolve"
)

// Desk is what asks people: a service elsewhere, or one in this
// process.
type Desk interface {
	hold.Side

	// Wait returns when a request has another version, or after a while.
	Wait(ctx context.Context, id string, version int64) error

	// Report tells the ledger what became of a call, which was opened by
	// a key, or by none that anybody knows ("").
	Report(ctx context.Context, call *resolve.Call, what approval.Report, opened, key string) error

	// Close ends what the desk holds open.
	Close() error
}

// served is the desk of a server.
type served struct {
	hold.Side

	c     *client.Client
	agent string
}

// longPoll is how long one exchange waits at a server.
const longPoll = time.Minute

func (s *served) Wait(ctx context.Context, id string, version int64) error {
	_, err := s.c.Wait(ctx, id, version, longPoll)

	return err
}

func (s *served) Report(
	ctx context.Context, call *resolve.Call, what approval.Report, opened, key string,
) error {
	text, err := call.JSON()
	if err != nil {
		return err
	}

	return s.c.Report(ctx, s.agent, text, what, client.ReportOptions{Opened: opened, Key: key})
}

func (s *served) Close() error { return nil }
