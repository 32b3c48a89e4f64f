package gateway

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
)

// Gateway is a RAP tool server: GET /.well-known/rap-toolset, POST /invoke, /answer/{token},
// /close_thread, /cancel_tool_call and /tool_call_status. A repeated invocation gets 200 and is
// not another call. If a limit is exceeded, the response is 503, after which the protocol
// requires a retry.
type Gateway struct {
	cfg     Config
	base    string // path of PublicURL
	url     string // PublicURL without trailing slashes
	ops     map[string]*operation
	toolset []byte
	callers []*caller
	engine  *durable.Engine[call]
	grants  *durable.Vault[sessionGrant]
	limits  *limits
	feeds   []rap.Feed // of the operations, without duplicates
}

// operation is an operation with its description in the manifest.
type operation struct {
	rap.Operation
	tool   wire.Tool
	digest string
}

// caller is a configured caller with its HTTP client.
type caller struct {
	Caller
	asker approval.Asker
	hash  []byte // of its token; nil if it has none
	peer  *peer.Peer
	lease time.Duration // limit for one exchange with it
	reads chan struct{} // one slot per invocation in memory
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
	g := &Gateway{cfg: cfg, limits: newLimits(&cfg)}
	for _, step := range []func() error{g.checkParts, g.readURL, g.readOperations, g.readCallers, g.openRecords} {
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

func (g *Gateway) checkParts() error {
	switch {
	case g.cfg.Records == nil || g.cfg.Namespace == "" || g.cfg.Plan == nil:
		return errors.New("expected records, a room and a plan")
	case g.cfg.Ask != AskUser && g.cfg.Ask != AskApprovers && g.cfg.Ask != AskBoth:
		return fmt.Errorf("ask: expected %q, %q or %q", AskUser, AskApprovers, AskBoth)
	case g.cfg.Ask != AskUser && g.cfg.People == nil:
		return fmt.Errorf("ask: %q needs a desk", g.cfg.Ask)
	case min(g.cfg.Within, g.cfg.RunWithin, g.cfg.SubscriptionWithin, g.cfg.Poll, g.cfg.Grants.For) < 0,
		g.cfg.MaxBody < 0, min(g.cfg.MaxOpen, g.cfg.MaxThread, g.cfg.Rate, g.cfg.Grants.Uses) < 0:
		return errors.New("expected bounds that are not negative")
	}

	return nil
}

func (g *Gateway) readURL() error {
	u, err := url.Parse(g.cfg.PublicURL)
	if err != nil || !isBase(u) || strings.ContainsAny(g.cfg.PublicURL, "?#") {
		return errors.New(
			"public_url: expected an absolute http or https address, without user, query and fragment",
		)
	}
	g.url = strings.TrimRight(g.cfg.PublicURL, "/")
	g.base = strings.TrimRight(u.Path, "/")
	return nil
}

func isBase(u *url.URL) bool {
	web := u.Scheme == "http" || u.Scheme == "https"
	return web && u.Hostname() != "" && u.User == nil
}

// readOperations builds the manifest and checks that a strict runtime would accept it.
func (g *Gateway) readOperations() error {
	set := wire.Toolset{
		Name:        g.cfg.Name,
		Description: g.cfg.Description,
		Endpoint:    g.url + "/invoke",
	}
	g.ops = map[string]*operation{}
	for i, op := range g.cfg.Operations {
		if op.Run == nil {
			return fmt.Errorf("operations[%d]: %s can't be run", i, op.Name)
		}
		tool := wire.Tool{
			Name:        op.Name,
			Description: op.Description,
			InputSchema: op.InputSchema,
		}
		tool.Annotations.ReadOnly = hintOf(op.ReadOnly)
		tool.Annotations.Destructive = hintOf(op.Destructive)
		set.Tools = append(set.Tools, tool)
		g.addFeed(op.Feed)
		g.ops[op.Name] = &operation{Operation: op, tool: tool, digest: tool.Digest()}
	}

	g.toolset = set.Append(nil)
	read, err := wire.ParseToolset(g.toolset)
	if err != nil {
		return fmt.Errorf("operations: no runtime would take them: %w", err)
	}
	for _, tool := range read.Tools { // the parsed tools have compiled schemas
		g.ops[tool.Name].tool = tool
	}
	return nil
}

// addFeed adds a feed to those that are watched. Operations of one server share a feed.
func (g *Gateway) addFeed(f rap.Feed) {
	known := func(other rap.Feed) bool { return reflect.ValueOf(f).Comparable() && other == f }
	if f != nil && !slices.ContainsFunc(g.feeds, known) {
		g.feeds = append(g.feeds, f)
	}
}

// hintOf returns a hint for the manifest, which contains only those that are true.
func hintOf(hint bool) *bool {
	if !hint {
		return nil
	}
	return &hint
}

func (g *Gateway) readCallers() error {
	seen := map[string]bool{}
	for i, c := range g.cfg.Callers {
		out := &caller{Caller: c, reads: make(chan struct{}, maxReads)}
		var err error
		if out.peer, err = peer.New(c.Callbacks); err != nil {
			return fmt.Errorf("callers[%d]: callbacks: %w", i, err)
		}
		if c.TokenHash != "" {
			if out.hash, err = hex.DecodeString(c.TokenHash); err != nil || len(out.hash) != 32 {
				return fmt.Errorf("callers[%d]: token_hash: expected a SHA-256 in hex", i)
			}
		}
		if c.Name == "" || seen["name "+c.Name] || seen["hash "+string(out.hash)] {
			return fmt.Errorf("callers[%d]: expected a name and a token of its own", i)
		}
		if len(c.Callbacks.AnyPort) > 0 && c.TokenHash != "" {
			return fmt.Errorf("callers[%d]: callbacks at any port of this machine: expected a port "+
				"for a caller with a token, which may be anywhere", i)
		}
		if c.AnswersSigned && c.TokenHash == "" {
			return fmt.Errorf("callers[%d]: answers_signed: it has no token to sign with", i)
		}
		seen["name "+c.Name] = true
		seen["hash "+string(out.hash)] = true
		out.asker = CallerAsker(g.cfg.Namespace, c)
		if err := out.asker.Check(); err != nil {
			return fmt.Errorf("callers[%d]: %w", i, err)
		}
		out.lease = cmp.Or(c.Callbacks.Timeout, 10*time.Second) + 2*time.Second
		g.callers = append(g.callers, out)
	}

	if len(g.callers) == 0 {
		return errors.New("expected a caller")
	}
	return nil
}

// openRecords opens the vaults and creates the engine.
func (g *Gateway) openRecords() (err error) {
	sealing := names.Sealing(g.cfg.Records, g.cfg.Namespace, g.cfg.Key)
	if g.grants, err = durable.NewVault[sessionGrant](sealing, "grants"); err != nil {
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
		Decide:    g.decide,
		Begin:     g.begin,
		Run:       g.run,
		Send:      g.send,
		End:       g.ended,
		Abandoned: g.abandoned,
		Lease:     g.lease,
		Keep:      func(*record) time.Time { return g.now().Add(rememberEnded) },
		Asked:     g.askedApprovers,
		Moved:     g.moved,
		Dropped:   g.dropped,
	})
	return err
}

// watches returns the watches of the operations' feeds.
func (g *Gateway) watches() []func(context.Context, func(string)) error {
	var out []func(context.Context, func(string)) error
	for _, feed := range g.feeds {
		out = append(out, func(ctx context.Context, changed func(string)) error {
			return feed.Watch(ctx, func(name string) { changed(subscriptionRef(name)) })
		})
	}
	return out
}

func (g *Gateway) abandoned(r *record) string {
	if g.caller(r.Part.Caller) != nil {
		return ""
	}
	return "the caller is known no more"
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
		g.countAgain(ctx)
	}()
	err := g.engine.Run(ctx)
	<-counted
	return err
}

// countAgain regularly recounts open calls. The longer a count takes, the longer it waits
// before the next.
func (g *Gateway) countAgain(ctx context.Context) {
	for ctx.Err() == nil {
		start := time.Now()
		if err := g.count(ctx); err != nil && ctx.Err() == nil {
			g.cfg.Log.ErrorContext(ctx, "open calls can't be counted", "error", err)
		}
		_ = wait.Pause(ctx, max(countEvery, 20*time.Since(start)))
	}
}

// maxChanges limits the attempts to change a record that changes concurrently.
const maxChanges = 16

// change changes a call by compare-and-set. edit returns false to leave the call unchanged.
// change returns the call in both cases, and whether it was changed.
func (g *Gateway) change(ctx context.Context, key string, edit func(*record) bool) (*record, bool, error) {
	r, err := g.engine.Change(ctx, key, func(r *record) error {
		if !edit(r) {
			return durable.ErrUnchanged
		}
		return nil
	})
	if errors.Is(err, durable.ErrUnchanged) {
		return r, false, nil
	}
	return r, err == nil, err
}

// CallerAsker returns the asker for a caller of the gateway with a namespace. The name contains
// a slash, so that no API token can have it.
func CallerAsker(room string, c Caller) approval.Asker {
	return approval.Asker{Token: room + "/" + url.PathEscape(c.Name), Person: c.Person}
}

// Asks returns who answers if the rules ask.
func (g *Gateway) Asks() Whom { return g.cfg.Ask }

// caller returns the caller with a name, or nil if it is no longer configured.
func (g *Gateway) caller(name string) *caller {
	for _, c := range g.callers {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (g *Gateway) now() time.Time { return g.cfg.Now() }

// refuse logs why something was refused. Ids come from the peer, so their hashes are logged.
func (g *Gateway) refuse(ctx context.Context, what string, reason any, r *record) {
	attrs := []any{"reason", reason}
	if r != nil {
		attrs = append(attrs, "caller", r.Part.Caller, "call", subjectOf(r))
	}
	g.cfg.Log.WarnContext(ctx, what, attrs...)
}

// subjectOf returns the name of a call in logs and the ledger.
func subjectOf(r *record) string {
	c := &r.Part
	return "rap_" + durable.Hash(callKey(c.Caller, c.Thread, c.ID))[:20]
}

// record adds an event to the ledger with the caller, the person and the principal that the
// runtime named. The texts of facts are our own.
func (g *Gateway) record(ctx context.Context, event string, r *record, facts map[string]any) error {
	c := &r.Part
	all := map[string]any{
		"caller":    c.Caller,
		"thread":    durable.Hash(c.Thread),
		"person":    r.Asker.Person,
		"principal": c.User,
	}
	if g.ops[c.Operation] != nil {
		all["operation"] = c.Operation
	}
	for name, fact := range facts {
		all[name] = fact
	}
	if err := g.cfg.Record(ctx, event, subjectOf(r), cmp.Or(r.Asker.Token, g.cfg.Namespace), all); err != nil {
		g.cfg.Log.ErrorContext(ctx, "the ledger takes no record", "event", event, "error", err)
		return err
	}
	return nil
}
