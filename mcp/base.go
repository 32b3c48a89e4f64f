package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/resolve"
)

// base holds what all parts of a gateway share: its configuration, the callers and servers that it
// knows, the key of what it seals, and the records of the ledger that are being written.
type base struct {
	cfg     Config
	callers map[string]*caller
	servers map[string]*Server
	sealing durable.Sealing
	places  *durable.Vault[place]
	ledger  sync.WaitGroup // records that are being written
	notes   chan struct{}  // has a place for each of them
}

// caller is a Caller with the asker of its requests.
type caller struct {
	Caller
	asker approval.Asker
}

// newBase checks the configuration.
func newBase(cfg Config) (*base, error) {
	b := &base{
		cfg:     cfg,
		callers: map[string]*caller{},
		servers: map[string]*Server{},
		notes:   make(chan struct{}, maxNotes),
		sealing: durable.Sealing{
			Records:   cfg.Records,
			Namespace: cfg.Namespace,
			Key:       cfg.Key,
			Purpose:   purpose,
		},
	}
	for _, step := range []func() error{b.checkParts, b.readCallers, b.readServers} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	places, err := durable.NewVault[place](b.sealing, "places")
	b.places = places
	return b, err
}

// noRules logs why the rules can't be read, and returns the message for the client.
func (b *base) noRules(ctx context.Context, err error) string {
	b.cfg.Log.ErrorContext(ctx, "nothing runs", "error", err)
	return withoutRules(err)
}

// relayed returns the part of a call's _meta that is passed on: the trace context, and the keys
// that the server's configuration names. The rest is dropped because the people who approve a call
// don't see it.
func (b *base) relayed(alias string, meta *wire.Meta) (json.RawMessage, error) {
	out := wire.Meta{Trace: meta.Trace}
	for _, m := range meta.Foreign {
		if b.servers[alias].passes(m.Name) {
			out.Foreign = append(out.Foreign, m)
		}
	}
	if out.IsEmpty() {
		return nil, nil
	}
	return out.Append(nil)
}

// say returns a tool result with a text for the model.
func (b *base) say(r *server.Request, s *wire.Said) (json.RawMessage, *wire.Error) {
	text, err := s.Append(nil, r.Modern)
	if err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the answer can't be written")
	}
	return text, nil
}

func (s *Server) passes(key string) bool {
	for _, name := range s.PassMeta {
		if name == key || name == "*" {
			return true
		}
	}

	return false
}

// rules returns the agent's current rules. Its error wraps errRules.
func (b *base) rules(ctx context.Context) (*resolve.Plan, error) {
	plan, err := b.cfg.Plan(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRules, err)
	}
	return plan, nil
}

// newCaller checks a caller and sets its asker.
func (b *base) newCaller(c Caller) (*caller, error) {
	c.Hold = cmp.Or(c.Hold, defaultHold)
	one := &caller{Caller: c, asker: CallerAsker(b.cfg.Namespace, c)}
	if (b.cfg.Ask != AskApprovers || c.InPlace) && c.Principal == "" {
		return nil, errors.New("expected a principal, who is asked")
	}
	if err := one.asker.Check(); err != nil {
		return nil, err
	}
	return one, nil
}

// callerOf returns the currently configured caller of a name, or ErrNoCaller.
func (b *base) callerOf(ctx context.Context, name string) (*caller, error) {
	if one := b.callers[name]; one != nil {
		return one, nil
	}
	if b.cfg.CallerOf == nil {
		return nil, ErrNoCaller
	}
	c, err := b.cfg.CallerOf(ctx, name)
	if err != nil {
		return nil, err
	}
	c.Name = name
	return b.newCaller(c)
}

// askedBy returns the caller of a request, or the error for the client.
func (b *base) askedBy(ctx context.Context, r *server.Request) (*caller, *wire.Error) {
	by, err := b.callerOf(ctx, r.Caller)
	switch {
	case errors.Is(err, ErrNoCaller):
		return nil, wire.Fail(wire.CodeInvalidRequest, "the caller is not configured")
	case err != nil:
		b.cfg.Log.ErrorContext(ctx, "a caller can't be found", "error", err)
		return nil, wire.Fail(wire.CodeInternal, "the caller can't be looked up now")
	}

	return by, nil
}

func (b *base) now() time.Time { return b.cfg.Now() }

func (b *base) checkParts() error {
	switch cfg := &b.cfg; {
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

// readCallers checks the configured callers.
func (b *base) readCallers() error {
	for i, c := range b.cfg.Callers {
		if c.Name == "" || b.callers[c.Name] != nil {
			return fmt.Errorf("callers[%d]: expected a name of its own", i)
		}
		one, err := b.newCaller(c)
		if err != nil {
			return fmt.Errorf("callers[%d]: %w", i, err)
		}
		b.callers[c.Name] = one
	}

	return nil
}

// readServers checks the servers and indexes them by alias.
func (b *base) readServers() error {
	for i := range b.cfg.Servers {
		s := &b.cfg.Servers[i]
		if s.Alias == "" || b.servers[s.Alias] != nil || s.Upstream == nil {
			return fmt.Errorf("servers[%d]: expected an alias of its own, and a connection", i)
		}
		b.servers[s.Alias] = s
	}

	return nil
}

// note records a call in the background, so that no write to a store delays the answer to an
// allowed call. It blocks only if the ledger can't keep up.
func (b *base) note(ctx context.Context, event string, q *request, facts map[string]any) {
	ctx = context.WithoutCancel(ctx)
	b.notes <- struct{}{}
	b.ledger.Go(func() {
		defer func() { <-b.notes }()
		facts := with(facts, map[string]any{
			"server":     q.call.Server,
			"tool":       q.call.Tool,
			"definition": q.call.ToolDefinition,
			"binding":    q.bound(),
		})
		subject := subjectOf(q.call.Server, q.call.Tool)
		err := b.cfg.Record(ctx, event, subject, q.caller.asker.Token, facts)
		if err != nil {
			b.cfg.Log.ErrorContext(ctx, "the ledger takes no record", "event", event, "error", err)
		}
	})
}

// noteRecord records what happens to a call that asked.
func (b *base) noteRecord(ctx context.Context, event string, c *record, facts map[string]any) error {
	p := &c.Part
	facts = with(facts, map[string]any{
		"server":     p.Server,
		"tool":       p.Tool,
		"definition": p.Definition,
		"binding":    p.ran(),
	})
	if p.Grant != "" {
		facts["grant"] = p.Grant
	} else {
		facts["request"] = p.Ref
	}
	subject := subjectOf(p.Server, p.Tool)
	return b.cfg.Record(context.WithoutCancel(ctx), event, subject, c.Asker.Token, facts)
}

// owner returns the only server whose resources and prompts are offered: the configured one, or the
// only server. It returns nil if several servers offer theirs.
func (b *base) owner() *Server {
	if b.cfg.Resources != "" {
		return b.servers[b.cfg.Resources]
	}
	if len(b.cfg.Servers) == 1 {
		return &b.cfg.Servers[0]
	}
	return nil
}

// announce notifies clients of a changed list, if the configuration has a function for that.
func (b *base) announce(ctx context.Context, method string) {
	if b.cfg.Announce != nil {
		b.cfg.Announce(ctx, method)
	}
}
