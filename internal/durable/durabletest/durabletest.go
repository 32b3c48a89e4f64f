// Package durabletest is the suite that every transport on package
// durable passes: real processes that die at each write, two of them on
// the same records, clocks that go back, records of a newer version,
// stores that are full, peers that answer twice. A call never runs
// twice, no answer is lost, and each ending is true.
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

// World is what a transport lives in. It says what happens outside by
// the functions, which may be called at any time.
type World struct {
	durable.Sealing
	People hold.People
	Now    func() time.Time
	Poll   time.Duration
	Lease  time.Duration // of runs and messages

	// Run is the operation that calls run. It returns its outcome.
	Run func(ctx context.Context, id string) string
	// AskPeer puts a question about a call to the peer that made it,
	// which may come back by Door.Answer. An error is to be tried
	// again.
	AskPeer func(id string) error
	// Tell tells the peer how its call ended: "ran: " and the outcome,
	// "unknown", or else the reason why nothing ran. An error is to be
	// tried again.
	Tell func(id, ending string) error
}

// Door is a transport, as its peers see it.
type Door interface {
	// Call takes a call, under an id that begins with what the rules
	// say of it. Once it returns nil the call has an ending some day.
	// The same id again is the same call.
	Call(ctx context.Context, id string) error
	// Answer takes the answer to what the peer was asked. One that
	// comes too late changes nothing.
	Answer(ctx context.Context, id string, allow bool) error
	// Run works until ctx ends.
	Run(ctx context.Context) error
}

// What the rules say of calls, as the beginning of their ids.
const (
	Allowed = "allowed" // they run
	Asked   = "asked"   // people are asked; they approve
	Peered  = "peered"  // the peer that made the call is asked
	Refused = "refused" // by the rules
)

// How calls end, beside the outcomes of runs (Ran).
const (
	Unknown = "unknown"
	Ran     = "ran: "
)

var _ store.Records = (*shaky)(nil)
