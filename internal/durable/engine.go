// Package durable is the engine behind every transport: it holds calls
// that wait, and takes each from its arrival to its ending.
//
// A call comes, the rules decide on it, people are asked where they
// have to be, it is decided on again and runs once, and whoever made it
// is told what came of it. The engine knows no wire format: a Transport
// says what deciding, running and telling mean, and keeps its own part
// of the record.
//
// A call is one sealed record (Call), changed by compare-and-set only.
// What is done in the world because of it is written down before: that
// people are asked, that it is about to run, that a message is about to
// be sent. So any number of processes may work on the same records, a
// restart needs no recovery of its own, and a call that waits costs a
// row and no memory. A run that a crash interrupted is never repeated:
// the call ends with Unknown.
//
//	records  vault.go, call.go          the sealed record, its states and times
//	changes  change.go, wait.go         compare-and-set, and those who wait for news of a call
//	steps    step.go, ask.go, run.go,   what is to be done for a call next
//	         send.go, withdraw.go
//	work     run_loop.go, work.go,      who does it, when, and how much of it at once
//	         task.go, watch.go
package durable

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/store"
)

// Config says what an Engine works with. Numbers and times that are
// zero have the default that is named.
type Config struct {
	Sealing
	People hold.People // where people are asked; nil: nobody can be
	Log    *slog.Logger
	Now    func() time.Time
	Poll   time.Duration // how often to look for what is due; 1s

	// Group is the part of a call's key that all calls of one caller
	// have. Callers share the work fairly. By default what stands
	// before the first slash.
	Group   func(key string) string
	Workers int // calls that are worked on at once; 256
	Share   int // of them, calls of one group; 64
	Queue   int // calls of one group that wait in memory for their turn; 2048. More wait in the store.
	Runs    int // runs of one group at once; 256. More wait in the store.

	FirstLook time.Duration // how soon to look at what people are asked without news of it, longer each time; 2s
	LastLook  time.Duration // the longest of these times; a minute
	AskTries  int           // how often in a row people's side may fail to take a request; 0: until the deadline
	// Pause is how long to wait after so many failures in a row (at
	// least 1) of people's side or the rules; from half a second to a
	// minute.
	Pause func(fails int) time.Duration

	// PeersReturn says that the runs hand calls to peers, which bring
	// the endings: a call whose process died while it ran is Away then.
	// Otherwise it ends with Unknown.
	PeersReturn bool
	// Finish is how long runs and messages may go on when Run is to end;
	// then their contexts end. 0: at once.
	Finish time.Duration
	// Grace is how long Run waits for them after that; 10s.
	Grace time.Duration
	// Always has the engine work on what this process itself made due
	// while Run isn't running, too.
	Always bool

	// Abandon is how long after its deadline a call is forgotten that has
	// not ended, since nobody runs its namespace any more. 0: never.
	Abandon time.Duration

	// Watch are more watches than that of People, for news of what
	// Remember was told of.
	Watch []func(ctx context.Context, changed func(ref string)) error
}

// Engine works on the calls of one namespace.
type Engine[P any] struct {
	cfg       Config
	transport Transport[P]
	calls     *Vault[Call[P]]
	refs      *Vault[reference]
	waiting   waiters
	tasks     tasks

	mu      sync.Mutex
	session *session // of the work; nil: none may begin
	running bool
	jobs    map[string]*job
	groups  map[string]*group
	total   chan struct{}
}

// New returns an engine. It works while its Run does.
func New[P any](cfg Config, t Transport[P]) (*Engine[P], error) {
	if t.Decide == nil || t.Run == nil {
		return nil, errors.New("durable: the transport can't decide or run calls")
	}
	cfg.fill()
	e := &Engine[P]{
		cfg:       cfg,
		transport: t.filled(cfg.Now),
		waiting:   waiters{all: map[string]*oneWait{}},
		tasks:     tasks{of: map[string][]*task{}},
		jobs:      map[string]*job{},
		groups:    map[string]*group{},
		total:     make(chan struct{}, cfg.Workers),
	}
	if cfg.Always {
		e.session = &session{ctx: context.Background()}
	}

	var err error
	if e.calls, err = NewVault[Call[P]](cfg.Sealing, "calls"); err != nil {
		return nil, fmt.Errorf("durable: %w", err)
	}
	if e.refs, err = NewVault[reference](cfg.Sealing, "refs"); err != nil {
		return nil, fmt.Errorf("durable: %w", err)
	}
	return e, nil
}

func (cfg *Config) fill() {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Group == nil {
		cfg.Group = func(key string) string {
			group, _, _ := strings.Cut(key, "/")
			return group
		}
	}

	if cfg.Pause == nil {
		cfg.Pause = func(fails int) time.Duration {
			return min(250*time.Millisecond<<min(fails, 10), time.Minute)
		}
	}

	orElse(&cfg.Poll, time.Second)
	orElse(&cfg.Workers, 256)
	orElse(&cfg.Share, 64)
	orElse(&cfg.Queue, 2048)
	orElse(&cfg.Runs, 256)
	orElse(&cfg.FirstLook, 2*time.Second)
	orElse(&cfg.LastLook, time.Minute)
	orElse(&cfg.Grace, 10*time.Second)
}

// orElse sets what was not given.
func orElse[T comparable](value *T, other T) {
	var none T
	if *value == none {
		*value = other
	}
}

// filled has a function in the place of each optional one that is
// simply called.
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

func (e *Engine[P]) now() time.Time { return e.cfg.Now() }

// Add keeps a new call, which goes on from the state that it has, or
// from Ready. ErrExists says that a call has the key (or the alias)
// already; the place of one that has expired is free.
func (e *Engine[P]) Add(ctx context.Context, c *Call[P]) error {
	if c.State == "" {
		c.State = Ready
	}
	if c.Seed == "" {
		c.Seed = rand.Text()
	}
	c.version = 0
	old, err := e.Get(ctx, c.Key)
	if err == nil && e.expired(old.Expires) {
		c.version = old.version
	}

	err = e.put(ctx, c)
	if errors.Is(err, errConflict) {
		return fmt.Errorf("keep the call: %w", ErrExists)
	}
	if err != nil {
		return fmt.Errorf("keep the call: %w", err)
	}
	e.stored(c)
	e.wakeAt(c)
	return nil
}

// Decide decides on a new call that was not added yet, for a transport
// that says at once what is to happen: the call may be Asking or have
// its ending by it.
func (e *Engine[P]) Decide(ctx context.Context, c *Call[P]) error {
	c.Seed = rand.Text()
	r, err := e.transport.Decide(ctx, c)
	if err == nil {
		e.goBy(c, r)
	}
	return err
}

// expired reports whether something may be forgotten that may still be
// stored.
func (e *Engine[P]) expired(at time.Time) bool { return !at.IsZero() && !e.now().Before(at) }

// Each shows the records of calls below a prefix of their keys, as they
// are stored, sealed.
func (e *Engine[P]) Each(ctx context.Context, prefix string, show func(store.Record)) error {
	return e.calls.Each(ctx, prefix, show)
}
