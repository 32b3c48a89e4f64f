// Package mcp is a gateway of the Model Context Protocol. It sits between clients and servers,
// decides on every call by the rules, asks people if the rules require it, and passes on exactly
// what was approved, once.
//
// A call that the rules allow is passed on at once. A call that asks becomes a record (package
// durable), whose key is derived from the caller and the call, so that the same call made again
// finds it. The call runs when it is approved and a caller waits for its result.
//
// # The arguments of a call
//
// The bytes that the client sent are what the rules decide on, what the record keeps and what the
// server gets. A call that asks has its arguments in six forms: these bytes, their canonical text
// (which identifies the call and is bound to the decision), the sealed record, the document that
// people see, the digest in the ledger, and the params of the request to the server. Readers parse
// the bytes for themselves and keep no other form.
//
// The gateway decides three times on a call whose client waits: when it arrives, before people are
// asked (a process that crashed may have stored it earlier), and when they have approved it. The
// approval service decides once more, because it doesn't trust the gateway. If the client comes back
// for an approved call, it is decided again when it arrives and before it runs.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store"
)

// Config configures a Gateway.
type Config struct {
	Records   store.Records // where calls are kept that ask
	Namespace string        // of its records, different for every gateway on one store
	Key       []byte        // 32 secret bytes that seal the records
	// Plan returns the agent's current rules. If it returns an error, nothing runs.
	Plan func(ctx context.Context) (*resolve.Plan, error)
	// People asks people and returns their answers. If it is nil, calls that ask don't run.
	People hold.People
	Ask    Ask
	// User takes the answers that users give in their clients. If it is nil, users can't answer in
	// their clients.
	User User
	// Page returns the URL of the page of a request, without a secret, for clients that can open
	// one. If it is nil, clients get no links.
	Page func(ref string) string
	// Own are further addresses of assent. Links of servers must not lead there.
	Own []string
	// Record appends to the ledger; if it is nil, nothing is recorded. The actor is the token of
	// the asker. Facts hold no arguments and no results.
	Record func(ctx context.Context, event, subject, actor string, facts map[string]any) error
	Log    *slog.Logger
	Now    func() time.Time
	Poll   time.Duration // how often to look for what is due; 1s

	Servers []Server
	Callers []Caller
	// CallerOf finds callers that are not in Callers, by the name that
	// server.HTTPConfig.Authenticate returns. It returns ErrNoCaller if there is no caller of that
	// name, or not any more. It is called again before anything that people approved runs. If it is
	// nil, only Callers may connect.
	CallerOf func(ctx context.Context, name string) (Caller, error)
	Naming   catalog.Naming // of tools
	Pins     Pins           // definitions of tools that were accepted
	// Resources is the alias of the only server whose resources and prompts are offered, under
	// their own names. If it is empty, those of all servers are offered.
	Resources string
	// WaitTool offers a tool that waits for people, and runs nothing.
	WaitTool bool
	// Announce notifies clients that a list has changed, by the method of the notification
	// (server.Server.Announce). If it is nil, clients are not notified.
	Announce func(ctx context.Context, method string)
	// Keep is the time for which the result of a run is kept for a caller that gave up waiting.
	// Default: 10m.
	Keep time.Duration
	// Heartbeat is the time between two reports of progress to a client that waits. Default: 10s.
	Heartbeat time.Duration
	// Within is the time for people to answer if the rules don't set one. Default: 24h.
	Within time.Duration
	// Approved is the time for which an approved call waits to be made again. Default: 24h. The
	// permit age of the rules applies in addition.
	Approved time.Duration
	// MaxPending is the number of calls of one caller that may wait for people at the same time.
	// Default: 100.
	MaxPending int
	// RunWithin is the time that a server may take for a request. Default: 10m.
	RunWithin time.Duration
	// ListWithin is the time that a server may take to list its tools. Default: 1m.
	ListWithin time.Duration
	// ListPatience is the time that clients wait for servers that have not listed their tools yet.
	// Default: 2s. The tools of slower servers are added later.
	ListPatience time.Duration
	// Recheck is the maximum age of a server's list of tools when an approved call to that server
	// runs; an older list is read again first. It is also the time after which a server that could
	// not be listed is asked again. Default: 60s.
	Recheck time.Duration
}

// Server is a server behind the gateway.
type Server struct {
	Alias    string // as the agent's file has it
	Upstream Upstream
	Identity catalog.Server   // what the pins know it by
	Judging  catalog.Settings // what becomes of tools that are new or have changed
	PassMeta []string         // keys of _meta that are passed on; "*" for all
	// Questions configures which questions the server may ask.
	Questions Questions
	Include   []string // names of the only tools that are offered; none: all
	Exclude   []string // names of tools that are not offered
	// SignIn is the command by which a person signs in to the server. If it is empty, nobody can.
	SignIn string
}

// Upstream is the connection to a server.
type Upstream interface {
	// Do makes a request. The error upstream.ErrNotSent means that the server certainly did not get
	// it; after any other error the request may have run.
	Do(ctx context.Context, r upstream.Request) (upstream.Answer, error)

	// List returns the elements of a list from all its pages.
	List(ctx context.Context, method string) ([]json.RawMessage, error)

	// Changed delivers the methods of lists that have changed.
	Changed() <-chan string
}

// ErrNoCaller means that no caller of that name may connect.
var ErrNoCaller = errors.New("there is no such caller")

// Caller is a client that may connect to the gateway.
type Caller struct {
	Name      string
	Token     string        // under which it asks; "": its name below that of the gateway
	Person    string        // owner of the client, as the directory names them; may be empty
	Principal string        // for whom its agent acts; may be empty
	Session   string        // of all its calls; "" for none. It goes into what is approved
	Hold      time.Duration // how long one call waits for people; 45s
	InPlace   bool          // its principal may answer in the client itself, where one alone may answer
}

// Gateway is an MCP server for clients (server.Handler) and a client of servers. It reads the
// requests of clients and decides on calls; its parts do the rest. A part uses only those that are
// listed before it.
type Gateway struct {
	*base
	lister    *lister
	offers    *offers
	forwarder *forwarder
	keeper    *keeper
	waiting   *waiting
	tasks     *tasks
	notifier  *notifier
	handling  crowd // requests of clients that are being answered
}

// New checks the configuration and returns a Gateway.
func New(cfg Config) (*Gateway, error) {
	cfg.fill()
	b, err := newBase(cfg)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g := &Gateway{base: b, lister: newLister(b)}
	g.offers = &offers{base: b, lister: g.lister}
	g.forwarder = &forwarder{base: b, lister: g.lister}
	g.keeper, err = newKeeper(b, g.lister, g.forwarder)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g.lister.outdate = g.keeper.outdate
	g.waiting = &waiting{base: b, keeper: g.keeper}
	g.tasks = &tasks{base: b, keeper: g.keeper, waiting: g.waiting}
	g.notifier = &notifier{
		base:      b,
		lister:    g.lister,
		offers:    g.offers,
		keeper:    g.keeper,
		tasks:     g.tasks,
		followers: followers{of: map[resourceKey]*followed{}},
	}
	return g, nil
}

// fill sets the defaults of fields that are zero.
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

// times returns all durations of the configuration.
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

const (
	defaultHold = 45 * time.Second // below the limit of every client that is known
	finishRuns  = 5 * time.Second  // how long runs may go on when the gateway ends
	firstLook   = time.Second
	maxNotes    = 256 // records of the ledger that are being written at once
)

// CallerAsker returns the asker for a caller of the gateway with a namespace. Its token is the one
// that the caller names, or the namespace and the caller's name, which no API token can have.
func CallerAsker(namespace string, c Caller) approval.Asker {
	return approval.Asker{
		Token:     cmp.Or(c.Token, namespace+"/"+c.Name),
		Person:    c.Person,
		Principal: c.Principal,
	}
}

// Run does the work that isn't part of a client's request until ctx ends: it handles answers of
// people, deadlines, and calls that an earlier process left. Any number of processes may run on one
// store and namespace.
func (g *Gateway) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	watching.Go(func() { g.notifier.watch(ctx) })
	err := g.keeper.engine.Run(ctx)
	watching.Wait()
	g.handling.wait(finishRuns) // they record what they did
	g.ledger.Wait()
	return err
}

// Refresh lists the tools of a server again, or of all servers if alias is empty. It also asks all
// servers if there is no list yet.
func (g *Gateway) Refresh(ctx context.Context, alias string) error {
	return g.lister.refresh(ctx, alias)
}

// Idle reports whether this process works on no calls that asked.
func (g *Gateway) Idle() bool { return g.keeper.engine.Idle() }
