package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/plans"
)

// serveMCPElsewhere runs an MCP gateway that asks the people of another server. It has a store, a
// ledger and a key of its own.
func serveMCPElsewhere(ctx context.Context, cfg config.MCP, streams term.Streams) (err error) {
	logs := logger(cfg.LogText, "", streams.Err)
	asking := cfg.Asking("")
	t := asking.Tenants[0]
	rest := &files{tenant: ownTenant, log: logs}
	load := planConfig(t, callLimits(asking.Limits))
	load.DenyBroken = cfg.OnBrokenFiles == config.DenyBroken
	load.Logger = logs
	if err := rest.load(&load, cfg.Chosen); err != nil {
		return err
	}
	if err := startWithErrors(errorsOfPlans(rest.plans), cfg.Strict, logs); err != nil {
		return err
	}
	s, err := openStore(ctx, asking.Location(), logs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Verify(ctx); err != nil {
		return err
	}
	common, err := mcpElsewhere(cfg, s, rest.plans, logs)
	if err != nil {
		return err
	}
	m, err := newMCPAlone(cfg, common)
	if err != nil {
		return err
	}
	if err := recordStart(ctx, s, s.key, ownTenant); err != nil {
		return err
	}
	return runMCPElsewhere(ctx, m, s, rest, streams)
}

// mcpElsewhere returns the configuration of such a gateway.
func mcpElsewhere(cfg config.MCP, s *keyedStore, agents *plans.Plans, logs *slog.Logger) (mcp.Config, error) {
	room := "mcp/" + cfg.Name
	out := mcp.Config{
		Records:   s,
		Namespace: room,
		Key:       s.key.RAP,
		Log:       logs.With("room", room),
		Record: func(ctx context.Context, event, subject, actor string, facts map[string]any) error {
			return records(s).Record(ctx, ownTenant, event, subject, actor, facts)
		},
	}
	agent, err := onlyAgent(agents, cfg.Agent)
	if err != nil {
		return out, err
	}
	clients := map[string]*client.Client{}
	var any *client.Client
	for _, c := range mcpCallers(cfg) {
		if any, err = clientAt(cfg, c.Name); err != nil {
			return out, err
		}
		clients[mcp.CallerAsker(room, c).Token] = any
	}

	out.People = client.People(agent, clients)
	out.Page = pagesBelow(cfg.Works, cfg.Server)
	out.Own = ownAddresses(cfg, "")
	there := &reachable{ready: any.Ready, allow: cfg.Offline == "allow"}
	out.Plan = func(ctx context.Context) (*resolve.Plan, error) {
		if err := there.check(ctx); err != nil {
			return nil, err
		}
		c, err := agents.Plan(ctx, ownTenant, agent)
		if err != nil {
			return nil, err
		}
		return c.Plan, nil
	}
	return out, nil
}

// runMCPElsewhere runs until ctx ends or the client has disconnected.
func runMCPElsewhere(ctx context.Context, m *mcpAlone, s *keyedStore, rest *files, streams term.Streams) error {
	record := records(s).Record
	if err := rest.record(ctx, record); err != nil {
		return err
	}
	upkeep := server.New(server.Config{
		Service: records(s),
		Store:   s,
		Signer:  s.key.Signer,
		Logger:  m.log,
		Shares:  sharesOf(config.Limits{}, roomy()),
	})
	beyond, stop := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	var worked error
	all.Go(func() { worked = upkeep.Run(beyond) })
	all.Go(func() { rest.follow(beyond, record) })
	err := m.run(ctx, streams)
	stop()
	all.Wait()
	return errors.Join(err, worked)
}

// clientAt returns a caller's client of the other server.
func clientAt(cfg config.MCP, caller string) (*client.Client, error) {
	file := cfg.ServerTokenFile
	for _, c := range cfg.Callers {
		if c.Name == caller {
			file = cmp.Or(c.ServerTokenFile, file)
		}
	}
	secret, err := readSecret(file)
	if err != nil {
		return nil, fmt.Errorf("server_token_file: %w", err)
	}
	return client.New(cfg.Server, secret, client.Options{UserAgent: "assent/" + term.Version})
}

// reachable remembers if the server was reachable a moment ago. While it isn't, nothing runs unless
// the configuration allows it.
type reachable struct {
	ready func(ctx context.Context) (*openapi.Health, error)
	allow bool

	mu   sync.Mutex
	seen time.Time
	err  error
}

const (
	looksAgain = 5 * time.Second // after which the server is asked again
	looksSoon  = time.Second     // the same while it can't be reached
	mayTake    = 2 * time.Second // how long it may take
)

func (r *reachable) check(ctx context.Context) error {
	if r.allow {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rest := looksAgain
	if r.err != nil {
		rest = looksSoon
	}
	if time.Since(r.seen) < rest {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mayTake)
	defer cancel()
	if _, r.err = r.ready(ctx); r.err != nil {
		r.err = fmt.Errorf("the server can't be reached, and offline is deny: %w", r.err)
	}
	r.seen = time.Now()
	return r.err
}
