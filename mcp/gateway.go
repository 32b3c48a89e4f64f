// Package mcp is a gateway of the Model Context Protocol: it stands
// between clients and servers, has the rules decide on every call, asks
// people where they have to be asked, and passes on exactly what was
// approved, once.
//
// A call that the rules allow is passed on at once. One that asks
// becomes a record (package durable), in a place made of the caller and
// the call, so that the same call made again finds it. It runs when it
// is approved and somebody waits for its result.
package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store"
)

// Config says what a Gateway works with.
type Config struct {
	Records   store.Records // where calls are kept that ask
	Namespace string        // of its records, different for every gateway on one store
	Key       []byte        // 32 secret bytes that seal the records
	// Plan returns the agent's rules as of now. An error lets nothing
	// run.
	Plan func(ctx context.Context) (*resolve.Plan, error)
	// People is where people answer; nil: calls that ask don't run.
	People hold.People
	Ask    Ask
	// User takes the answers that users give in their clients; nil:
	// nobody answers there.
	User User
	// Page is the URL of the page of a request, without a secret, for
	// clients that can open one; nil: none is told.
	Page func(ref string) string
	// Own are further addresses of assent. No server's link leads there.
	Own []string
	// Record appends to the ledger; nil: nothing does. The actor is the
	// token that asked. Facts hold no arguments and no results.
	Record func(ctx context.Context, event, subject, actor string, facts map[string]any) error
	Log    *slog.Logger
	Now    func() time.Time
	Poll   time.Duration // how often to look for what is due; 1s

	Servers []Server
	Callers []Caller
	// CallerOf finds who may connect beside Callers, as of now, by the
	// name that server.HTTPConfig.Authenticate gives; ErrNoCaller says
	// that nobody is called so, or not any more. It is asked again before
	// anything that people approved runs. Nil: nobody may.
	CallerOf func(ctx context.Context, name string) (Caller, error)
	Naming   catalog.Naming // of tools
	Pins     Pins           // definitions of tools that were accepted
	// Resources is the alias of the only server whose resources and
	// prompts are offered, under their own names; "": those of all are.
	Resources string
	// WaitTool offers a tool that waits for people, and runs nothing.
	WaitTool bool
	// Announce tells clients that a list has changed, by the method of
	// the notification (server.Server.Announce); nil: nobody is told.
	Announce func(ctx context.Context, method string)
	// Keep is how long the result of a run is kept for a caller that
	// gave up waiting for it; 10m.
	Keep time.Duration
	// Heartbeat is the time between two reports of progress to a client
	// that waits; 10s.
	Heartbeat time.Duration
	// Within is how long people may take, where the rules don't say; 24h.
	Within time.Duration
	// Approved is how long an approved call waits for somebody to make
	// it again; 24h. The rules' own permit age holds beside it.
	Approved time.Duration
	// MaxPending is how many calls of one caller may wait for people at
	// once; 100.
	MaxPending int
	// RunWithin is how long a server may take for a request; 10m.
	RunWithin time.Duration
	// ListWithin is how long a server may take to list its tools; 1m.
	ListWithin time.Duration
	// ListPatience is how long clients wait for servers that have not
	// listed their tools yet; 2s. The tools of slower ones follow.
	ListPatience time.Duration
	// Recheck is how old the list of a server's tools may be when an
	// approved call of one of them runs, and after what time a server is asked again
	// that could not be listed; 60s.
	Recheck time.Duration
}

// Server is a server behind the gateway.
type Server struct {
	Alias    string // as the agent's file has it
	Upstream Upstream
	Identity catalog.Server   // what the pins know it by
	Judging  catalog.Settings // what becomes of tools that are new or have changed
	PassMeta []string         // keys of _meta that are passed on; "*" for all
	// Questions are what it may ask.
	Questions Questions
	Include   []string // names of the only tools that are offered; none: all
	Exclude   []string // names of tools that are not offered
}

// Upstream is the connection to a server.
type Upstream interface {
	// Do makes a request. upstream.ErrNotSent says that provably
	// nothing arrived, any other error that it may have run.
	Do(ctx context.Context, r upstream.Request) (upstream.Answer, error)

	// List returns the elements of a list, all pages of it.
	List(ctx context.Context, method string) ([]json.RawMessage, error)

	// Changed brings the methods of lists that have changed.
	Changed() <-chan string
}

// ErrNoCaller says that a name is nobody's who may connect.
var ErrNoCaller = errors.New("there is no such caller")

// Caller is whoever may connect to the gateway.
type Caller struct {
	Name      string
	Token     string        // under which it asks; "": its name below that of the gateway
	Person    string        // whose client it is, as the directory names them; "" when it is nobody's
	Principal string        // whom its agent acts for; "" when nobody is named
	Session   string        // of all its calls; "" for none. It goes into what is approved
	Hold      time.Duration // how long one call waits for people; 45s
	InPlace   bool          // its principal may answer in the client itself, where one alone may answer
}

// Gateway is an MCP server for clients (server.Handler) and a client of
// servers.
type Gateway struct {
	cfg       Config
	callers   map[string]*caller
	servers   map[string]*Server
	tools     toolbox
	items     itemLists
	engine    *durable.Engine[part]
	places    *durable.Vault[place]
	process   string // this process, among those that work on the same records
	waiters   waiters
	pending   pending
	parking   parking
	followers followers
	handling  crowd          // requests of clients that are being answered
	ledger    sync.WaitGroup // records that are being written
	notes     chan struct{}  // has a place for each of them
}

// caller is a Caller with who asks when it does.
type caller struct {
	Caller
	asker approval.Asker
}

// New checks the configuration.
func New(cfg Config) (*Gateway, error) {
	cfg.fill()
	g := &Gateway{
		cfg:       cfg,
		callers:   map[string]*caller{},
		servers:   map[string]*Server{},
		tools:     toolbox{asking: map[string]chan struct{}{}},
		followers: followers{of: map[resourceKey]*followed{}},
		waiters:   waiters{of: map[string][]*server.Exchange{}},
		process:   rand.Text(),
		pending:   pending{most: cfg.MaxPending},
		notes:     make(chan struct{}, maxNotes),
	}
	for _, step := range []func() error{g.checkParts, g.readCallers, g.readServers, g.openRecords} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("gateway: %w", err)
		}
	}

	return g, nil
}

// fill puts defaults in the place of what is zero.
func (cfg *Config) fill() {
	cfg.Poll = cmp.Or(cfg.Poll, time.Second)
	cfg.Keep = cmp.Or(cfg.Keep, 10*time.Minute)
	cfg.Heartbeat = cmp.Or(cfg.Heartbeat, 10*time.Second)
	cfg.Within = cmp.Or(cfg.Within, 24*time.Hour)
	cfg.Approved = cmp.Or(cfg.Approved, 24*time.Hour)
	cfg.MaxPending = cmp.Or(cfg.MaxPending, 100)
	cfg.RunWithin = cmp.Or(cfg.RunWithin, 10*time.Minute)
	cfg.ListWithin = cmp.Or(cfg.ListWithin, time.Minute)
	cfg.ListPatience = cmp.Or(cfg.ListPatience, 2*time.Second)
	cfg.Recheck = cmp.Or(cfg.Recheck, time.Minute)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Record == nil {
		cfg.Record = func(context.Context, string, string, string, map[string]any) error { return nil }
	}
}

func (g *Gateway) checkParts() error {
	switch cfg := &g.cfg; {
	case cfg.Records == nil || cfg.Namespace == "" || cfg.Plan == nil || cfg.Pins == nil:
		return errors.New("expected records, a namespace, a plan and pins")
	case len(cfg.Servers) == 0 || len(cfg.Callers) == 0 && cfg.CallerOf == nil:
		return errors.New("expected a server and a caller")
	case !slices.Contains([]Ask{AskApprovers, AskUser, AskBoth}, cfg.Ask):
		return fmt.Errorf("ask: expected user or both, not %q", cfg.Ask)
	case slices.Min(cfg.times()) < 0 || cfg.MaxPending < 0:
		return errors.New("expected bounds that are not negative")
	}

	return nil
}

// times are the bounds of time.
func (cfg *Config) times() []time.Duration {
	return []time.Duration{
		cfg.Poll,
		cfg.Keep,
		cfg.Heartbeat,
		cfg.Within,
		cfg.Approved,
		cfg.RunWithin,
		cfg.ListWithin,
		cfg.ListPatience,
		cfg.Recheck,
	}
}

// readCallers checks the callers, and says who asks when they do.
func (g *Gateway) readCallers() error {
	for i, c := range g.cfg.Callers {
		if c.Name == "" || g.callers[c.Name] != nil {
			return fmt.Errorf("callers[%d]: expected a name of its own", i)
		}
		one, err := g.newCaller(c)
		if err != nil {
			return fmt.Errorf("callers[%d]: %w", i, err)
		}
		g.callers[c.Name] = one
	}

	return nil
}

// newCaller checks a caller, and says who asks when it does.
func (g *Gateway) newCaller(c Caller) (*caller, error) {
	c.Hold = cmp.Or(c.Hold, defaultHold)
	one := &caller{Caller: c, asker: CallerAsker(g.cfg.Namespace, c)}
	if (g.cfg.Ask != AskApprovers || c.InPlace) && c.Principal == "" {
		return nil, errors.New("expected a principal, who is asked")
	}
	if err := one.asker.Check(); err != nil {
		return nil, err
	}
	return one, nil
}

// callerOf is a caller as of now; ErrNoCaller.
func (g *Gateway) callerOf(ctx context.Context, name string) (*caller, error) {
	if one := g.callers[name]; one != nil {
		return one, nil
	}
	if g.cfg.CallerOf == nil {
		return nil, ErrNoCaller
	}
	c, err := g.cfg.CallerOf(ctx, name)
	if err != nil {
		return nil, err
	}
	c.Name = name
	return g.newCaller(c)
}

// askedBy is the caller of a request, or how the request is refused.
func (g *Gateway) askedBy(ctx context.Context, r *server.Request) (*caller, *wire.Error) {
	by, err := g.callerOf(ctx, r.Caller)
	switch {
	case errors.Is(err, ErrNoCaller):
		return nil, wire.Fail(wire.CodeInvalidRequest, "the caller is not configured")
	case err != nil:
		g.cfg.Log.ErrorContext(ctx, "a caller can't be found", "error", err)
		return nil, wire.Fail(wire.CodeInternal, "nobody can say now who calls")
	}

	return by, nil
}

// readServers finds servers by their aliases.
func (g *Gateway) readServers() error {
	for i := range g.cfg.Servers {
		s := &g.cfg.Servers[i]
		if s.Alias == "" || g.servers[s.Alias] != nil || s.Upstream == nil {
			return fmt.Errorf("servers[%d]: expected an alias of its own, and a connection", i)
		}
		g.servers[s.Alias] = s
		g.tools.asking[s.Alias] = make(chan struct{}, 1)
	}

	return nil
}

// openRecords opens the records, and makes the engine that works on
// calls.
func (g *Gateway) openRecords() (err error) {
	sealing := durable.Sealing{
		Records:   g.cfg.Records,
		Namespace: g.cfg.Namespace,
		Key:       g.cfg.Key,
		Purpose:   purpose,
	}
	if g.places, err = durable.NewVault[place](sealing, "places"); err != nil {
		return err
	}
	g.engine, err = durable.New(durable.Config{
		Sealing:   sealing,
		People:    g.cfg.People,
		Log:       g.cfg.Log,
		Now:       g.cfg.Now,
		Poll:      g.cfg.Poll,
		Finish:    finishRuns,
		FirstLook: firstLook,
	}, durable.Transport[part]{
		Decide:    g.decide,
		Question:  g.question,
		Answered:  g.userAnswered,
		Run:       g.run,
		Abandoned: g.abandoned,
		Keep:      g.keep,
		Asked:     g.asked,
		Moved:     g.moved,

		WithdrawReason: withdrawn,
	})
	return err
}

const (
	defaultHold = 45 * time.Second // below the limit of every client that is known
	finishRuns  = 5 * time.Second  // how long runs may go on when the gateway ends
	firstLook   = time.Second
	maxNotes    = 256 // records of the ledger that are being written at once
)

// CallerAsker is who asks when a caller of the gateway of a namespace
// does: the token that it names, or its name under that of the gateway,
// which no token of an API can have.
func CallerAsker(namespace string, c Caller) approval.Asker {
	return approval.Asker{
		Token:     cmp.Or(c.Token, namespace+"/"+c.Name),
		Person:    c.Person,
		Principal: c.Principal,
	}
}

// Run works until ctx ends on what a request alone can't do: answers of
// people, deadlines, and what an earlier process left. Any number of
// processes may run on one store and namespace.
func (g *Gateway) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	watching.Go(func() { g.watch(ctx) })
	err := g.engine.Run(ctx)
	watching.Wait()
	g.handling.wait(finishRuns) // they record what they did
	g.ledger.Wait()
	return err
}

// Idle reports whether this process works on no call that asked.
func (g *Gateway) Idle() bool { return g.engine.Idle() }

func (g *Gateway) now() time.Time { return g.cfg.Now() }
