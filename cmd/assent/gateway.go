package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/keyfile"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/plans"
	"github.com/assent-dev/assent/store"
)

// ownTenant is the tenant for the ledger of a gateway without a service.
const ownTenant = "default"

// serveGateway runs one RAP gateway without a service until ctx ends. It uses a store, a ledger and
// a key in the same way as a service.
func serveGateway(ctx context.Context, cfg config.Gateway, log io.Writer, ready func(operate.Ready)) (err error) {
	logs := logger(cfg.LogText, "", log)
	rest := &files{tenant: ownTenant, log: logs}
	if err := rest.load(&plans.Config{
		Agents:     cfg.Agents,
		Policies:   cfg.Policies,
		DenyBroken: cfg.OnBrokenFiles == config.DenyBroken,
		Logger:     logs,
	}, cfg.Chosen); err != nil {
		return err
	}
	if err := startWithErrors(errorsOfPlans(rest.plans), cfg.Strict, logs); err != nil {
		return err
	}

	agents := rest.plans
	if _, err := agents.Plan(ctx, ownTenant, cfg.Agent); err != nil {
		return noAgent(err)
	}
	s, err := openStore(ctx, cfg.Location(), logs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Verify(ctx); err != nil {
		return err
	}
	if err := recordStart(ctx, s, s.key, ownTenant); err != nil {
		return err
	}
	common, err := standalone(cfg, s, agents, s.key, logs)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return runGateway(ctx, cfg, common, s, rest, s.key, listener, ready)
}

// standalone returns the configuration of a gateway without a service in this process.
func standalone(
	cfg config.Gateway, s store.Store, agents *plans.Plans, key keyfile.Key, logs *slog.Logger,
) (rap.Common, error) {
	common := rap.Common{
		Records:   s,
		Namespace: "rap/gateway/" + cfg.Name,
		Key:       key.RAP,
		Now:       time.Now,
		Log:       logs,
		Plan: func(ctx context.Context) (*resolve.Plan, error) {
			c, err := agents.Plan(ctx, ownTenant, cfg.Agent)
			if err != nil {
				return nil, err
			}
			return c.Plan, nil
		},
		Record: func(ctx context.Context, event, subject, actor string, facts map[string]any) error {
			return records(s).Record(ctx, ownTenant, event, subject, actor, facts)
		},
	}
	if cfg.Server == "" {
		return common, nil
	}
	clients := map[string]*client.Client{}
	for _, caller := range cfg.Callers {
		token, err := readSecret(cmp.Or(caller.ServerTokenFile, cfg.TokenFile))
		if err != nil {
			return common, fmt.Errorf("server_token_file: %w", err)
		}
		as := gateway.CallerAsker(common.Namespace, gateway.Caller{Name: caller.Name})
		if clients[as.Token], err = client.New(
			cfg.Server,
			token,
			client.Options{UserAgent: "assent/" + term.Version},
		); err != nil {
			return common, err
		}
	}

	common.People = client.People(cfg.Agent, clients)
	return common, nil
}

// runGateway answers until ctx ends. The server for the probes also does the background work of a
// service: it seals the ledger and deletes expired records.
func runGateway(
	ctx context.Context,
	cfg config.Gateway,
	common rap.Common,
	s store.Store,
	rest *files,
	key keyfile.Key,
	listener net.Listener,
	ready func(operate.Ready),
) error {
	base, err := publicURL(cfg.PublicURL, listener.Addr())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	g, err := newGateway(ctx, common, cfg.RAPGateway, strings.TrimSuffix(base.String(), "/"))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	record := records(s).Record
	if err := rest.record(ctx, record); err != nil {
		return errors.Join(err, listener.Close())
	}
	probes := server.New(server.Config{
		Service: records(s),
		Store:   s,
		Signer:  key.Signer,
		Logger:  common.Log,
		Checks:  fileChecks(rest.err),
		Shares:  sharesOf(config.Limits{}, roomy()),
	})
	mux := http.NewServeMux()
	mux.Handle("/healthz", probes)
	mux.Handle("/readyz", probes)
	mux.Handle("/", probes.Metered(g.handler))
	answers := server.HTTPServer(mux)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	var answered, worked error
	all.Go(func() { worked = probes.Run(ctx) })
	all.Go(func() { rest.follow(ctx, record) })
	all.Go(func() { _ = g.run(ctx) }) // ends with ctx
	all.Go(func() {
		if err := answers.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			answered = err
			cancel()
		}
	})
	ready(operate.Ready{URL: base.String(), API: "http://" + listener.Addr().String()})
	<-ctx.Done()
	limit, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer stop()
	drained := answers.Shutdown(limit)
	all.Wait()
	return errors.Join(answered, drained, worked)
}
