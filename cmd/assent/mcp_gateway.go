package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/mcp"
	mcpconfig "github.com/assent-dev/assent/mcp/config"
	mcpserver "github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/plans"
)

// serveMCP runs an MCP gateway, either with a service in this process or one that asks the people
// of a server.
func serveMCP(ctx context.Context, cfg config.MCP, streams term.Streams) error {
	if cfg.Server != "" {
		return serveMCPElsewhere(ctx, cfg, streams)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var ended error
	further := func(ctx context.Context, a *app) error {
		agent, err := onlyAgent(a.tenants[ownTenant].plans, cfg.Agent)
		if err != nil {
			return err
		}
		common := a.mcpCommon(ownTenant, agent, "mcp/"+cfg.Name)
		common.Page = pagesBelow(cfg.Works, a.base.String())
		common.Own = ownAddresses(cfg, a.base.String())
		m, err := newMCPAlone(cfg, common)
		if err != nil {
			return err
		}
		a.tools.workers = append(a.tools.workers, func(ctx context.Context) error {
			defer stop()
			ended = m.run(ctx, streams)
			return ended
		})
		return nil
	}
	err := serveWith(ctx, cfg.Asking(""), streams.Err, func(operate.Ready) {
		fmt.Fprintln(streams.Err, "assent: to answer what this gateway asks, run in a terminal: assent mcp inbox, with the "+
			"same --config, or --agent and --store")
	}, further)
	return errors.Join(err, ended)
}

// mcpCommon returns the configuration of a gateway inside a service.
func (a *app) mcpCommon(tenant, agent, room string) mcp.Config {
	return mcp.Config{
		Records:   a.store,
		Namespace: room,
		Key:       a.key.RAP,
		Log:       a.log.With("room", room),
		Plan:      func(ctx context.Context) (*resolve.Plan, error) { return a.planOf(ctx, tenant, agent) },
		People: hold.Service(a.service, a.store, hold.Place{
			Tenant: tenant,
			Agent:  agent,
			Inbox:  a.base.String(),
		}),
		User: mcp.ServiceUser(a.service, tenant),
		Record: func(ctx context.Context, event, subject, actor string, facts map[string]any) error {
			return a.recordTools(ctx, tenant, agent, event, subject, actor, facts)
		},
	}
}

// pagesBelow returns a function that returns the URL of a request's page, or nil if clients are not
// sent to pages.
func pagesBelow(w mcpconfig.Works, inbox string) func(ref string) string {
	if w.Link != "url" {
		return nil
	}
	return func(ref string) string { return strings.TrimSuffix(inbox, "/") + "/requests/" + url.PathEscape(ref) }
}

// ownAddresses returns the addresses of assent itself, to which servers can't send users.
func ownAddresses(cfg config.MCP, inbox string) (all []string) {
	for _, at := range []string{inbox, cfg.Server, cfg.PublicURL} {
		if at != "" {
			all = append(all, at)
		}
	}
	return all
}

// onlyAgent returns the agent of a file.
func onlyAgent(p *plans.Plans, file string) (string, error) {
	all := p.Agents()
	if len(all) == 1 {
		if _, err := p.Plan(context.Background(), ownTenant, all[0]); err != nil {
			return "", fmt.Errorf("agent: %w", err)
		}
		return all[0], nil
	}

	for _, problem := range p.Problems() {
		return "", fmt.Errorf("agent: %s", problem)
	}
	return "", fmt.Errorf("agent: expected one agent in %s, not %d", file, len(all))
}

// mcpAlone is a gateway in a process of its own, with its configuration.
type mcpAlone struct {
	*mcpGateway
	cfg    config.MCP
	tokens callerTokens
}

// newMCPAlone creates such a gateway.
func newMCPAlone(cfg config.MCP, common mcp.Config) (*mcpAlone, error) {
	tokens, err := readCallerTokens(cfg.Callers)
	if err != nil {
		return nil, err
	}
	common.Callers = mcpCallers(cfg)
	common.Approved = cfg.PermitAge
	own := mcpOwn{pins: cfg.Pins(), grace: cfg.Grace, signIn: cfg.SignIn, file: cfg.File}
	m, err := newMCP(cfg.Works, own, common)
	return &mcpAlone{mcpGateway: m, cfg: cfg, tokens: tokens}, err
}

// mcpGateway is a gateway with the connections to its servers.
type mcpGateway struct {
	gateway *mcp.Gateway
	server  *mcpserver.Server
	servers []*upstream.Server
	grace   time.Duration // for calls and servers to end after a request to stop
	log     *slog.Logger
}

// mcpOwn holds the settings of one gateway.
type mcpOwn struct {
	pins  string        // the file of its pins
	grace time.Duration // how long running calls may take to end after a request to stop
	// signIn returns the file of the tokens of a sign-in to a server. It is nil if nobody can sign
	// in.
	signIn func(alias string) string
	file   string // of the configuration
}

// newMCP makes a gateway from what it works with.
func newMCP(cfg mcpconfig.Works, own mcpOwn, common mcp.Config) (*mcpGateway, error) {
	m := &mcpGateway{log: common.Log, grace: own.grace}
	for _, u := range cfg.Upstream {
		s, connection, err := mcpUpstream(u, own, common.Log)
		if err != nil {
			return nil, fmt.Errorf("server %s: %w", u.Alias, err)
		}
		common.Servers = append(common.Servers, s)
		m.servers = append(m.servers, connection)
	}

	common.Now = time.Now
	common.Ask = mcpAsk(cfg)
	common.WaitTool = cfg.WaitTool
	common.Naming = mcpNaming(cfg)
	common.Pins = &mcp.FilePins{File: own.pins, Record: common.Record}
	common.Resources = cfg.Resources
	common.Keep = cfg.KeepResults
	common.MaxPending = cfg.MaxPending
	common.Within = cfg.Within
	common.RunWithin = cfg.RunWithin
	common.Recheck = cfg.Recheck
	common.Announce = func(ctx context.Context, method string) { m.server.Announce(ctx, method) }
	var err error
	if m.gateway, err = mcp.New(common); err != nil {
		return nil, err
	}
	m.server = mcpserver.New(mcpserver.Config{
		Handler: m.gateway,
		Version: term.Version,
		Grace:   forCalls(own.grace),
		Log:     common.Log,
	})
	return m, nil
}

// forCalls returns the part of the grace for calls. The rest is for stopping servers.
func forCalls(grace time.Duration) time.Duration { return grace - grace/5 }

// run serves clients until ctx ends, or until the client on the standard streams has disconnected.
func (m *mcpAlone) run(ctx context.Context, streams term.Streams) error {
	return m.while(ctx, func(ctx context.Context) error { return m.serve(ctx, streams) })
}

// while runs the gateway as long as clients are served. Calls that are running then may finish
// first, and the servers are stopped last.
func (m *mcpGateway) while(ctx context.Context, serve func(context.Context) error) error {
	beyond := context.WithoutCancel(ctx)
	connected, disconnect := context.WithCancel(beyond)
	working, stop := context.WithCancel(beyond)
	var servers, work sync.WaitGroup
	for _, s := range m.servers {
		servers.Go(func() { _ = s.Run(connected) }) // ends with connected
	}
	work.Go(func() { _ = m.gateway.Run(working) }) // ends with working
	told := context.AfterFunc(ctx, func() {
		for _, s := range m.servers {
			s.EndBy(time.Now().Add(forCalls(m.grace)))
		}
	})
	defer told()
	err := serve(ctx)
	stop()
	work.Wait()
	disconnect()
	servers.Wait()
	return err
}

func (m *mcpAlone) serve(ctx context.Context, streams term.Streams) error {
	if m.cfg.Listen != "" {
		return m.listen(ctx)
	}
	m.log.Info("the MCP gateway speaks on its standard streams", "store", config.ShownStore(m.cfg.Store))
	if err := m.server.Pipe(ctx, mcpCallers(m.cfg)[0].Name, streams.In, streams.Out); err != nil {
		return fmt.Errorf("the client's pipe: %w", err)
	}
	return nil
}

// listen serves clients by HTTP.
func (m *mcpAlone) listen(ctx context.Context) error {
	at, err := net.Listen("tcp", m.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if m.tokens.issued, err = mcpResource(m.cfg, at.Addr(), m.log); err != nil {
		return errors.Join(err, at.Close())
	}
	endpoint := m.server.HTTP(mcpserver.HTTPConfig{
		Authenticate: m.tokens.authenticate,
		Hosts:        hostsOf(m.cfg, at.Addr()),
		Origins:      m.cfg.Origins,
	})
	answers := server.HTTPServer(withMetadata(endpoint, m.tokens.issued))
	ended := make(chan error, 1)
	go func() { ended <- answers.Serve(at) }()
	m.log.Info("the MCP gateway serves by HTTP", "url", "http://"+at.Addr().String()+mcpPath)
	select {
	case err = <-ended:
	case <-ctx.Done():
	}

	endpoint.Close()
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), forCalls(m.cfg.Grace))
	defer cancel()
	if late := answers.Shutdown(limit); errors.Is(late, context.DeadlineExceeded) {
		_ = answers.Close() // what still runs has had its time
	}
	return err
}

// mcpPath is the path of a gateway that listens.
const mcpPath = "/mcp"

// serveMCPInbox serves the inbox of a gateway to a person of this
// machine.
func serveMCPInbox(
	ctx context.Context, cfg config.MCP, person string, log io.Writer, ready func(r operate.Ready, file string),
) error {
	asking := cfg.Asking(person)
	file, older := cfg.TokenFile()
	if older != "" && filepath.Dir(cfg.KeyFile) != cfg.Private {
		fmt.Fprintf(log, "note: the key of the ledger is in %s, where the agent may read it; stop this inbox, and move it, "+
			"%[2]s.pub and %[2]s.watermark to %[3]s\n", filepath.Dir(cfg.KeyFile), filepath.Base(cfg.KeyFile), cfg.Private)
	}
	further := func(ctx context.Context, a *app) error {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return fmt.Errorf("the token of the inbox: %w", err)
		}
		if older != "" && os.Remove(older) == nil {
			fmt.Fprintf(log, "note: %s is removed; the token of this inbox is in %s\n", older, file)
		}
		return writePersonToken(ctx, a.store, asking.DevPerson, file)
	}
	return serveWith(ctx, asking, log, func(r operate.Ready) { ready(r, file) }, further)
}
