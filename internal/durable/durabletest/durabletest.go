// Package durabletest is the test suite of transports based on package durable. It uses real
// processes that are killed at each write, two processes on the same records, clocks that are
// set back, records of a newer version, full stores, and peers that answer twice. A call must
// never run twice, no answer may be lost, and every reported ending must be true.
package durabletest

import (
	"context"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/store"
)

// Transport makes a transport in a world.
type Transport func(w World) (Door, error)

// World is the environment of a transport. Its functions perform the external effects; they may
// be called at any time.
type World struct {
	durable.Sealing
	People hold.People
	Now    func() time.Time
	Poll   time.Duration
	Lease  time.Duration // of runs and messages

	// Run is the operation that calls run. It returns the outcome.
	Run func(ctx context.Context, id string) string
	// AskPeer asks the peer that made a call a question; the peer answers by Door.Answer. After
	// an error it has to be called again.
	AskPeer func(id string) error
	// Tell reports to the peer how its call ended: "ran: " and the outcome, "unknown", or the
	// reason why nothing ran. After an error it has to be called again.
	Tell func(id, ending string) error
}

// Door is a transport, as its peers see it.
type Door interface {
	// Call accepts a call. The prefix of the id determines the ruling. If Call returns nil, the
	// call eventually gets an ending. A repeated id means the same call.
	Call(ctx context.Context, id string) error
	// Answer takes the answer to the question that AskPeer asked. A late answer changes
	// nothing.
	Answer(ctx context.Context, id string, allow bool) error
	// Run works until ctx ends.
	Run(ctx context.Context) error
}

// Prefixes of ids, which determine the ruling.
const (
	Allowed = "allowed" // it runs
	Asked   = "asked"   // people are asked, and approve it
	Peered  = "peered"  // the peer that made the call is asked
	Refused = "refused" // by the rules
)

// Endings of calls. Ran is followed by the outcome.
const (
	Unknown = "unknown"
	Ran     = "ran: "
)

var _ store.Records = (*shaky)(nil)
