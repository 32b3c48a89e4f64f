package hook

import (
	"context"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/resolve"
)

// Desk asks people about calls: through a server, or with a service in this process.
type Desk interface {
	hold.Side

	// Wait returns when the request has a version other than the given one, or after a while.
	Wait(ctx context.Context, id string, version int64) error

	// Report records in the ledger how a call ended. opened is the key with which the call was
	// opened, or an empty string if that key is unknown.
	Report(ctx context.Context, call *resolve.Call, what approval.Report, opened, key string) error

	// Close releases the resources of the desk.
	Close() error
}

// served is a Desk that uses a server.
type served struct {
	hold.Side

	c     *client.Client
	agent string
}

// longPoll is the duration of one long-poll request to the server.
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
