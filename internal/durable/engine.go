// Package durable is the engine of every transport: it keeps pending calls and takes each from
// arrival to ending.
//
// For each call, the rules decide, people are asked if required, the rules decide again, the
// call runs once, and its caller gets the result. The engine is independent of wire formats: a
// Transport implements deciding, running and sending, and keeps its own part of the record.
//
// A call is one sealed record (Call), changed only by compare-and-set. Every effect is written
// to it before it happens: that people are asked, that the call is about to run, that a message
// is about to be sent. Therefore any number of processes may share the records, a restart needs
// no recovery, and a pending call costs a row and no memory. A run that was interrupted by a
// crash is never repeated: the call ends with Unknown.
//
//	records  vault.go, call.go          the sealed record, its states and times
//	changes  change.go, wait.go         compare-and-set, and waiting for changes of a call
//	steps    step.go, ask.go, run.go,   the next action for a call
//	         send.go, withdraw.go
//	work     run_loop.go, work.go,      which calls are worked on, when, and how many at once
//	         task.go, watch.go
package durable

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/store"
)

// Config configures an Engine. Zero numbers and durations have the documented default.
type Config struct {
	Sealing
	People hold.People // the approval service; nil: calls that need approval end with Unreachable
	Log    *slog.Logger
	Now    func() time.Time
	Poll   time.Duration // how often to look for due calls; 1s

	// The calls of one caller are a group: see callerOf. Callers get equal shares of the work.
	Workers int // calls worked on at once; 256
	Share   int // of these, calls of one group; 64
	Runs    int // simultaneous runs of one group; 256. More wait in the store.

	FirstLook time.Duration // first check of a request without a notification; doubles each time; 2s
	LastLook  time.Duration // the longest interval between checks; 1m
	AskTries  int           // failures in a row to make a request before the call ends; 0: retry until the deadline
	// Pause returns how long to wait after a number of failures in a row (at least 1) of the
	// approval service or the rules. The default grows from half a second to a minute.
	Pause func(fails int) time.Duration

	// PeersReturn means that Run hands calls to peers, which report the endings. A call whose
	// process died while it ran is then Away; otherwise it ends with Unknown.
	PeersReturn bool
	// Finish is the time that runs and messages get to end by themselves when Run is to end,
	// before their contexts are cancelled. Zero means at once. Run waits a grace of ten seconds
	// more for them.
	Finish time.Duration
	// Always lets the engine work on calls that this process made due even while Run is not
	// running.
	Always bool

	// Abandon is the time after its deadline at which a call that has not ended is deleted, in
	// case no process runs its namespace any more. Zero means never.
	Abandon time.Duration

	// Watch lists further sources of notifications, in addition to People, for references
	// passed to Remember.
	Watch []func(ctx context.Context, changed func(ref string)) error
}

// Engine works on the calls of one namespace.
type Engine[P any] struct {
	*book[P]
	executor *executor[P]
}

// New returns an engine. It works on calls while Run is running, or always with Config.Always.
func New[P any](cfg Config, t Transport[P]) (*Engine[P], error) {
	if t.Decide == nil || t.Run == nil {
		return nil, errors.New("durable: the transport can't decide or run calls")
	}
	cfg.fill()
	b := &book[P]{
		workers: &workers{
			cfg:    cfg,
			tasks:  tasks{of: map[string][]*task{}},
			jobs:   map[string]*job{},
			groups: map[string]*group{},
			total:  make(chan struct{}, cfg.Workers),
		},
		transport: t.filled(cfg.Now),
		waiting:   waiters{all: map[string]*oneWait{}},
	}
	if cfg.Always {
		b.session = &session{ctx: context.Background()}
	}

	var err error
	if b.calls, err = NewVault[Call[P]](cfg.Sealing, "calls"); err != nil {
		return nil, fmt.Errorf("durable: %w", err)
	}
	if b.refs, err = NewVault[reference](cfg.Sealing, "refs"); err != nil {
		return nil, fmt.Errorf("durable: %w", err)
	}
	e := &Engine[P]{book: b, executor: &executor[P]{book: b}}
	b.work = e.advance
	return e, nil
}

func (cfg *Config) fill() {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Pause == nil {
		cfg.Pause = func(fails int) time.Duration {
			return min(250*time.Millisecond<<min(fails, 10), time.Minute)
		}
	}

	orElse(&cfg.Poll, time.Second)
	orElse(&cfg.Workers, 256)
	orElse(&cfg.Share, 64)
	orElse(&cfg.Runs, 256)
	orElse(&cfg.FirstLook, 2*time.Second)
	orElse(&cfg.LastLook, time.Minute)
}

const (
	queued = 2048             // calls of one group in memory; more wait in the store
	grace  = 10 * time.Second // how long Run waits for runs whose contexts are cancelled
)

// callerOf returns the part of a call's key that all calls of one caller share.
func callerOf(key string) string {
	group, _, _ := strings.Cut(key, "/")
	return group
}

// orElse sets *value to other if it is zero.
func orElse[T comparable](value *T, other T) {
	var none T
	if *value == none {
		*value = other
	}
}

// filled returns t with a default for each optional function that is called unconditionally.
func (t Transport[P]) filled(now func() time.Time) Transport[P] {
	if t.Begin == nil {
		t.Begin = func(context.Context, *Call[P]) (*Ending, error) { return nil, nil }
	}
	if t.Send == nil {
		t.Send = func(context.Context, *Call[P]) Sent[P] { return Sent[P]{} }
	}
	if t.End == nil {
		t.End = func(*Call[P], Ending) {}
	}
	if t.Abandoned == nil {
		t.Abandoned = func(*Call[P]) string { return "" }
	}
	if t.Lease == nil {
		t.Lease = func(*Call[P]) time.Duration { return 5 * time.Second }
	}
	if t.Keep == nil {
		t.Keep = func(*Call[P]) time.Time { return now().Add(24 * time.Hour) }
	}
	if t.Asked == nil {
		t.Asked = func(context.Context, *Call[P], hold.Held) {}
	}
	if t.Moved == nil {
		t.Moved = func(context.Context, State, *Call[P]) {}
	}
	if t.WithdrawReason == nil {
		t.WithdrawReason = func(*Call[P]) string { return "nobody waits for the call any more" }
	}
	if t.Dropped == nil {
		t.Dropped = func(context.Context, *Call[P]) {}
	}
	return t
}

func (w *workers) now() time.Time { return w.cfg.Now() }

// Add stores a new call, which continues from its State, by default Ready. It returns ErrExists
// if a call has the key or the alias already; an expired call is replaced.
func (b *book[P]) Add(ctx context.Context, c *Call[P]) error {
	if c.State == "" {
		c.State = Ready
	}
	if c.Seed == "" {
		c.Seed = rand.Text()
	}
	c.version = 0
	old, err := b.Get(ctx, c.Key)
	if err == nil && b.expired(old.Expires) {
		c.version = old.version
	}

	err = b.put(ctx, c)
	if errors.Is(err, errConflict) {
		return fmt.Errorf("keep the call: %w", ErrExists)
	}
	if err != nil {
		return fmt.Errorf("keep the call: %w", err)
	}
	b.stored(c)
	b.wakeAt(c)
	return nil
}

// Decide decides on a call that has not been added yet, for a transport that must report the
// decision at once. Afterwards the call may be Asking or have its ending.
func (b *book[P]) Decide(ctx context.Context, c *Call[P]) error {
	c.Seed = rand.Text()
	r, err := b.transport.Decide(ctx, c)
	if err == nil {
		b.applyRuling(c, r)
	}
	return err
}

// expired reports whether an expiry has passed. The record may still be stored.
func (b *book[P]) expired(at time.Time) bool { return !at.IsZero() && !b.now().Before(at) }

// Each calls show with the sealed records of calls whose keys begin with prefix.
func (b *book[P]) Each(ctx context.Context, prefix string, show func(store.Record)) error {
	return b.calls.Each(ctx, prefix, show)
}
