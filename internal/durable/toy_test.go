package durable_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/durable/durabletest"
	"github.com/assent-dev/assent/resolve"
)

// toy is a complete transport without a wire format: its peers are functions. It shows what a
// transport has to implement.
type toy struct {
	world  durabletest.World
	engine *durable.Engine[toyPart]
}

// toyPart is the toy's part of a call's record.
type toyPart struct {
	ID      string `json:"id"`
	Word    *bool  `json:"word,omitempty"` // answer of the peer that made the call, if it was asked
	Outcome string `json:"outcome,omitempty"`
	Told    string `json:"told,omitempty"` // how it ended, as sent to the peer
}

func newToy(w durabletest.World) (durabletest.Door, error) {
	toy := &toy{world: w}
	var err error
	toy.engine, err = durable.New(durable.Config{
		Sealing:   w.Sealing,
		People:    w.People,
		Now:       w.Now,
		Poll:      w.Poll,
		FirstLook: 20 * w.Poll,
		Pause:     func(int) time.Duration { return w.Poll },
	}, durable.Transport[toyPart]{
		Decide: toy.decide,
		Run:    toy.run,
		Send:   toy.send,
		End:    toy.end,
		Lease:  func(*durable.Call[toyPart]) time.Duration { return w.Lease },
	})
	return toy, err
}

// decide implements the toy's rules: the prefix of the id determines the ruling.
func (toy *toy) decide(_ context.Context, c *durable.Call[toyPart]) (durable.Ruling, error) {
	v := hold.Verdict{Decision: resolve.Decision{Outcome: resolve.Allow, Binding: "binding of " + c.Part.ID}}
	kind, _, _ := strings.Cut(c.Part.ID, "-")
	switch {
	case kind == durabletest.Allowed,
		kind == durabletest.Asked && c.Approval != nil,
		c.Part.Word != nil && *c.Part.Word:
		return durable.Ruling{Do: durable.Proceed, Verdict: v}, nil
	case kind == durabletest.Asked:
		return durable.Ruling{Do: durable.Approve, Verdict: v, Within: 24 * time.Hour}, nil
	case kind == durabletest.Peered && c.Part.Word == nil:
		c.Message = &durable.Attempt{}
		return durable.Ruling{Do: durable.Wait}, nil
	}

	return durable.Ruling{Ending: durable.Ending{Reason: "refused"}}, nil
}

func (toy *toy) run(ctx context.Context, c *durable.Call[toyPart]) durable.Result[toyPart] {
	outcome := toy.world.Run(ctx, c.Part.ID)
	return durable.Result[toyPart]{Keep: func(c *durable.Call[toyPart]) { c.Part.Outcome = outcome }}
}

// end stores how a call ended, and schedules a message to the peer.
func (toy *toy) end(c *durable.Call[toyPart], e durable.Ending) {
	c.Message = &durable.Attempt{}
	switch e.Why {
	case durable.Returned:
		c.Part.Told = durabletest.Ran + c.Part.Outcome
	case durable.Unknown:
		c.Part.Told = durabletest.Unknown
	default:
		c.Part.Told = "not run: " + string(e.Why)
	}
}

// send asks the peer a question, or reports how the call ended.
func (toy *toy) send(_ context.Context, c *durable.Call[toyPart]) durable.Sent[toyPart] {
	tell := func() error { return toy.world.AskPeer(c.Part.ID) }
	if c.Over() {
		tell = func() error { return toy.world.Tell(c.Part.ID, c.Part.Told) }
	}
	return durable.Sent[toyPart]{Retry: tell() != nil, Pause: toy.world.Poll}
}

// Call adds a call.
func (toy *toy) Call(ctx context.Context, id string) error {
	err := toy.engine.Add(ctx, &durable.Call[toyPart]{
		Key:   "peer/" + id,
		Asker: approval.Asker{Token: "toy"},
		Part:  toyPart{ID: id},
	})
	if errors.Is(err, durable.ErrExists) {
		return nil // it is the same call
	}
	return err
}

// Answer stores the peer's answer. Only the first one that is in time counts.
func (toy *toy) Answer(ctx context.Context, id string, allow bool) error {
	_, err := toy.engine.Change(ctx, "peer/"+id, func(c *durable.Call[toyPart]) error {
		if c.State != durable.Waiting {
			return durable.ErrUnchanged
		}
		c.State = durable.Ready
		c.Message = nil
		c.Part.Word = &allow
		return nil
	})
	if errors.Is(err, durable.ErrUnchanged) {
		return nil
	}
	return err
}

// Run works on calls until ctx ends.
func (toy *toy) Run(ctx context.Context) error { return toy.engine.Run(ctx) }

func TestMain(m *testing.M) { os.Exit(durabletest.Main(m, newToy)) }

// TestToy runs the suite with a minimal transport.
func TestToy(t *testing.T) { durabletest.Run(t, newToy) }
