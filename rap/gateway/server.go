package gateway

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/internal/names"
)

// Gateway is a RAP tool server: GET /.well-known/rap-toolset, POST /invoke, /answer/{token},
// /close_thread, /cancel_tool_call and /tool_call_status. A repeated invocation gets 200 and is
// not another call. If a limit is exceeded, the response is 503, after which the protocol
// requires a retry.
type Gateway struct {
	*base
	grants  *grantBook
	decider *decider
	sender  *sender
	runner  *runner
	intake  *intake
}

const (
	maxReads   = 64               // simultaneous invocations of one caller in memory
	maxWork    = 64               // calls of one caller worked on at once
	askTries   = 8                // failures to reach the approval service before a call ends
	countEvery = 30 * time.Second // how often open calls are recounted
)

// New returns a gateway, or an error if the configuration is invalid.
func New(cfg Config) (*Gateway, error) {
	cfg.fill()
	b := &base{cfg: cfg, limits: newLimits(&cfg)}
	g := &Gateway{base: b, grants: &grantBook{base: b}, intake: &intake{base: b}}
	g.decider = &decider{base: b, grants: g.grants}
	g.sender = &sender{base: b, grants: g.grants}
	g.runner = &runner{base: b, grants: g.grants, decider: g.decider, sender: g.sender}
	for _, step := range []func() error{b.checkParts, b.readURL, b.readOperations, b.readCallers, g.openRecords} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("gateway: %w", err)
		}
	}
	return g, nil
}

func (cfg *Config) fill() {
	if cfg.Ask == "" {
		cfg.Ask = AskUser
		if cfg.People != nil {
			cfg.Ask = AskApprovers
		}
	}

	cfg.Within = cmp.Or(cfg.Within, 10*time.Minute)
	cfg.RunWithin = cmp.Or(cfg.RunWithin, 10*time.Minute)
	cfg.Poll = cmp.Or(cfg.Poll, time.Second)
	cfg.SubscriptionWithin = cmp.Or(cfg.SubscriptionWithin, 24*time.Hour)
	cfg.MaxBody = cmp.Or(cfg.MaxBody, 1<<20)
	cfg.MaxOpen = cmp.Or(cfg.MaxOpen, 20_000)
	cfg.MaxThread = cmp.Or(cfg.MaxThread, 1000)
	cfg.Rate = cmp.Or(cfg.Rate, 1000)
	cfg.Grants.For = cmp.Or(cfg.Grants.For, time.Hour)
	cfg.Grants.Uses = cmp.Or(cfg.Grants.Uses, 100)

	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Record == nil {
		cfg.Record = func(context.Context, string, string, string, map[string]any) error { return nil }
	}
}

func isBase(u *url.URL) bool {
	web := u.Scheme == "http" || u.Scheme == "https"
	return web && u.Hostname() != "" && u.User == nil
}

// hintOf returns a hint for the manifest, which contains only those that are true.
func hintOf(hint bool) *bool {
	if !hint {
		return nil
	}
	return &hint
}

// openRecords opens the vaults and creates the engine.
func (g *Gateway) openRecords() (err error) {
	sealing := names.Sealing(g.cfg.Records, g.cfg.Namespace, g.cfg.Key)
	if g.grants.vault, err = durable.NewVault[sessionGrant](sealing, "grants"); err != nil {
		return err
	}
	g.engine, err = durable.New(durable.Config{
		Sealing:  sealing,
		People:   g.cfg.People,
		Log:      g.cfg.Log,
		Now:      g.cfg.Now,
		Poll:     g.cfg.Poll,
		Workers:  maxWork * len(g.callers),
		Share:    maxWork,
		AskTries: askTries,
		Watch:    g.watches(),
	}, durable.Transport[call]{
		Decide:    g.decider.decide,
		Begin:     g.runner.begin,
		Run:       g.runner.run,
		Send:      g.sender.send,
		End:       g.ended,
		Abandoned: g.abandoned,
		Lease:     g.lease,
		Keep:      func(*record) time.Time { return g.now().Add(rememberEnded) },
		Asked:     g.askedApprovers,
		Moved:     g.sender.moved,
		Dropped:   g.runner.dropped,
	})
	return err
}

func (g *Gateway) abandoned(r *record) string {
	if g.caller(r.Part.Caller) != nil {
		return ""
	}
	return "the caller is not configured any more"
}

// lease returns how long a run may go without renewal, or how long an exchange with the runtime
// may take.
func (g *Gateway) lease(r *record) time.Duration {
	c := g.caller(r.Part.Caller)
	if r.State == durable.Running || c == nil {
		return runLease
	}
	return c.lease
}

func (g *Gateway) askedApprovers(ctx context.Context, r *record, held hold.Held) {
	_ = g.record(ctx, "rap_approvers_asked", r, map[string]any{"state": string(held.State)})
}

// Run processes calls until ctx ends: decisions and runs of acknowledged calls, deadlines,
// answers of our approvers, retries, and calls that an earlier process left. Any number of
// processes may share a store and namespace.
func (g *Gateway) Run(ctx context.Context) error {
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		g.intake.countAgain(ctx)
	}()
	err := g.engine.Run(ctx)
	<-counted
	return err
}

// maxChanges limits the attempts to change a record that changes concurrently.
const maxChanges = 16

// CallerAsker returns the asker for a caller of the gateway with a namespace. The name contains
// a slash, so that no API token can have it.
func CallerAsker(room string, c Caller) approval.Asker {
	return approval.Asker{Token: room + "/" + url.PathEscape(c.Name), Person: c.Person}
}

// Asks returns who answers if the rules ask.
func (g *Gateway) Asks() Whom { return g.cfg.Ask }

// subjectOf returns the name of a call in logs and the ledger.
func subjectOf(r *record) string {
	c := &r.Part
	return "rap_" + durable.Hash(callKey(c.Caller, c.Thread, c.ID))[:20]
}
