package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/tokens"
)

// tools holds the RAP runtimes and RAP gateways of all tenants, and their MCP gateways.
type tools struct {
	runtimes map[string]*runtime.Runtime // by tenant and agent, see toolsKey
	mounts   map[string]http.Handler     // by path
	gateways []tenantGateway
	programs []server.Program // gateways for MCP
	workers  []func(context.Context) error
	drained  chan struct{} // closed when no request of a client is open any more
}

// runtime implements server.Config.Tools.
func (t *tools) runtime(tenant, agent string) *runtime.Runtime {
	return t.runtimes[toolsKey(tenant, agent)]
}

func toolsKey(tenant, agent string) string { return tenant + "\x00" + agent }

// buildTools creates the runtimes and gateways of the tenants' configurations.
func (a *app) buildTools(ctx context.Context) error {
	a.tools = &tools{
		runtimes: map[string]*runtime.Runtime{},
		mounts:   map[string]http.Handler{},
		drained:  make(chan struct{}),
	}
	for _, t := range a.cfg.Tenants {
		for _, c := range t.MCP {
			if err := a.addMCP(ctx, t.Name, c); err != nil {
				return fmt.Errorf("tenant %s: mcp: gateway %s: %w", t.Name, c.Name, err)
			}
		}
		if t.RAP == nil {
			continue
		}
		for _, c := range t.RAP.Runtimes {
			if err := a.addRuntime(ctx, t.Name, c); err != nil {
				return fmt.Errorf("tenant %s: rap: runtime of %s: %w", t.Name, c.Agent, err)
			}
		}
		for _, c := range t.RAP.Gateways {
			if err := a.addGateway(ctx, t.Name, c); err != nil {
				return fmt.Errorf("tenant %s: rap: gateway %s: %w", t.Name, c.Name, err)
			}
		}
	}

	return nil
}

// place returns the path of a runtime or gateway and its namespace in the store.
func (a *app) place(tenant, kind, name string) (path, room string, err error) {
	one, two := providerID(tenant), providerID(name)
	path = "/rap/" + one + "/" + kind + "/" + two
	if one == "" || two == "" {
		return "", "", errors.New("its name makes no address: expected a letter of a-z or a digit in it")
	}
	if a.tools.mounts[path] != nil {
		return "", "", fmt.Errorf("another one has the address %s: rename one of them", path)
	}
	return path, "rap/" + tenant + "/" + kind + "/" + name, nil
}

// common returns the configuration that runtimes and gateways of a tenant share.
func (a *app) common(tenant, agent, room string) rap.Common {
	return rap.Common{
		Records:   a.store,
		Namespace: room,
		Key:       a.key.RAP,
		Now:       time.Now,
		Log:       a.log.With("tenant", tenant, "room", room),
		People: hold.Service(a.service, a.store, hold.Place{
			Tenant: tenant,
			Agent:  agent,
			Inbox:  a.base.String(),
		}),
		Plan: func(ctx context.Context) (*resolve.Plan, error) { return a.planOf(ctx, tenant, agent) },
		Record: func(ctx context.Context, event, subject, actor string, facts map[string]any) error {
			return a.recordTools(ctx, tenant, agent, event, subject, actor, facts)
		},
	}
}

// planOf returns an agent's plan. It returns an error if the kill switch is on, because nothing may
// run then.
func (a *app) planOf(ctx context.Context, tenant, agent string) (*resolve.Plan, error) {
	freezes, err := a.store.Freezes(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(freezes, func(f approval.Freeze) bool { return f.Agent == "" || f.Agent == agent }) {
		return nil, approval.ErrFrozen
	}
	c, err := a.tenants.Plan(ctx, tenant, agent)
	if err != nil {
		return nil, err
	}
	return c.Plan, nil
}

func (a *app) addRuntime(ctx context.Context, tenant string, c config.RAPRuntime) error {
	path, room, err := a.place(tenant, "runtime", c.Agent)
	if err != nil {
		return err
	}
	if _, err := a.tenants.Plan(ctx, tenant, c.Agent); err != nil {
		return noAgent(err)
	}
	servers, err := rapServers(c.Servers)
	if err != nil {
		return err
	}
	common := a.common(tenant, c.Agent, room)
	if c.Server != "" {
		if common.People, err = peopleElsewhere(c); err != nil {
			return err
		}
	}
	runtime, err := runtime.New(runtime.Config{
		Common:       common,
		Servers:      servers,
		CallbackURL:  a.base.String() + path,
		CallWithin:   c.CallWithin,
		ChoiceWithin: c.QuestionWithin,
		Person:       a.personOf(tenant),
	})
	if err != nil {
		return err
	}
	a.tools.runtimes[toolsKey(tenant, c.Agent)] = runtime
	a.tools.mounts[path], a.tools.workers = runtime, append(a.tools.workers, runtime.Run)
	return nil
}

// peopleElsewhere asks the people of another server. It maps each token of this server to one of
// the other server. A token without a counterpart can't ask.
func peopleElsewhere(c config.RAPRuntime) (hold.People, error) {
	clients := map[string]*client.Client{}
	for _, asker := range c.Askers {
		secret, err := readSecret(asker.ServerTokenFile)
		if err != nil {
			return nil, fmt.Errorf("the token of %s at the server: %w", asker.Token, err)
		}
		if clients[asker.Token], err = client.New(
			c.Server,
			secret,
			client.Options{UserAgent: "assent/" + term.Version},
		); err != nil {
			return nil, fmt.Errorf("server: %w", err)
		}
	}

	return client.People(c.Agent, clients), nil
}

// noAgent adds to an error where an agent's id is looked up.
func noAgent(err error) error {
	return fmt.Errorf(
		"agent: %w: expected the id (metadata.id) of an agent whose file is in agents and can be used",
		err,
	)
}

func (a *app) addGateway(ctx context.Context, tenant string, c config.RAPGateway) error {
	path, room, err := a.place(tenant, "gateway", c.Name)
	if err != nil {
		return err
	}
	if _, err := a.tenants.Plan(ctx, tenant, c.Agent); err != nil {
		return noAgent(err)
	}
	if c.Callers, err = a.knownPeople(ctx, tenant, c.Callers); err != nil {
		return err
	}
	g, err := newGateway(ctx, a.common(tenant, c.Agent, room), c, a.base.String()+path)
	if err != nil {
		return err
	}
	a.tools.mounts[path], a.tools.workers = g.handler, append(a.tools.workers, g.run)
	a.tools.gateways = append(a.tools.gateways, tenantGateway{tenant, c.Agent, g.gateway})
	return nil
}

// knownPeople replaces the people of callers by their spelling in the directory. Only then are they
// excluded from approving their own calls.
func (a *app) knownPeople(
	ctx context.Context,
	tenant string,
	callers []config.RAPCaller,
) ([]config.RAPCaller, error) {
	callers = slices.Clone(callers)
	for i, c := range callers {
		if c.Person == "" {
			continue
		}
		p, known, err := a.people.Person(ctx, tenant, c.Person)
		if err != nil {
			return nil, fmt.Errorf("caller %s: ask the directory: %w", c.Name, err)
		}
		if !known {
			return nil, fmt.Errorf(
				"caller %s: person: expected somebody whom the directory knows, not %q",
				c.Name,
				c.Person,
			)
		}

		callers[i].Person = p.ID
	}

	return callers, nil
}

// mount registers the handlers. They authenticate their peers themselves.
func (t *tools) mount(mux *http.ServeMux) {
	for path, handler := range t.mounts {
		mux.Handle(path+"/", http.StripPrefix(path, handler))
	}
}

// run runs all workers until ctx ends. If one of them ends, the others go on.
func (t *tools) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, work := range t.workers {
		all.Go(func() { _ = work(ctx) }) // ends with ctx; what goes wrong meanwhile is in the log
	}
	all.Wait()
}

// mountedGateway is a gateway with its tool servers.
type mountedGateway struct {
	gateway *gateway.Gateway
	handler http.Handler
	workers []func(context.Context) error
}

func newGateway(
	ctx context.Context,
	common rap.Common,
	c config.RAPGateway,
	public string,
) (*mountedGateway, error) {
	cfg := gateway.Config{
		Common:             common,
		Name:               c.Name,
		Description:        c.Description,
		PublicURL:          public,
		Ask:                gateway.Whom(c.Ask),
		Within:             c.Within,
		RunWithin:          c.RunWithin,
		MCPServer:          c.MCPServer,
		SubscriptionWithin: c.SubscriptionWithin,
	}
	if s := c.Session; s != nil {
		cfg.Grants = gateway.SessionGrants{
			Offer:    true,
			For:      s.For,
			Uses:     s.Uses,
			Children: s.Children,
		}
	}

	var err error
	if cfg.Callers, err = rapCallers(c.Callers); err != nil {
		return nil, err
	}
	warnOfLocalCallers(common.Log, c, public)
	if cfg.Operations, err = rapOperations(c.Operations); err != nil {
		return nil, err
	}
	out, mux := &mountedGateway{}, http.NewServeMux()
	if err := out.upstream(ctx, mux, &cfg, c.Upstream); err != nil {
		return nil, err
	}
	g, err := gateway.New(cfg)
	if err != nil {
		return nil, err
	}
	warnOfAsking(common.Log.With("gateway", c.Name), g.Asks(), len(c.Upstream) > 0)
	mux.Handle("/", g)
	out.gateway = g
	out.handler, out.workers = mux, append(out.workers, g.Run)
	return out, nil
}

// warnOfLocalCallers warns if a gateway has a public address and a caller without a token. A proxy
// that adds no forwarding headers would let every request in as that caller.
func warnOfLocalCallers(log *slog.Logger, c config.RAPGateway, public string) {
	u, err := url.Parse(public)
	if err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()) {
		return
	}
	for _, caller := range c.Callers {
		if caller.TokenFile == "" {
			log.Warn(
				"a caller without a token, and a public URL: a silent proxy counts as a program on this machine",
				"caller",
				caller.Name,
				"public_url",
				public,
				"hint",
				"give the caller a token_file",
			)
		}
	}
}

// warnOfAsking logs the consequences of the setting ask.
func warnOfAsking(log *slog.Logger, ask gateway.Whom, upstream bool) {
	if ask == gateway.AskUser {
		log.Warn(
			"ask is user: a calling runtime answers the questions about its own calls, and nobody can tell whether "+
				"its user saw them",
			"hint",
			"ask: approvers has people of the directory answer",
		)
	}

	if ask != gateway.AskApprovers && upstream {
		log.Warn(
			"ask is "+string(
				ask,
			)+": a call asks its user once, so an operation of a tool server behind that asks too ends with an "+
				"error after the user agreed",
			"hint",
			"ask: approvers, or a policy that lets these operations pass to the server's own question",
		)
	}
}

// upstream adds the operations of RAP tool servers behind the gateway.
func (g *mountedGateway) upstream(
	ctx context.Context, mux *http.ServeMux, cfg *gateway.Config, servers []config.RAPServer,
) error {
	all, err := rapServers(servers)
	if err != nil {
		return err
	}
	var behind []*runtime.UpstreamServer
	for i, s := range all {
		path := fmt.Sprintf("/upstream/%d", i)
		common := cfg.Common
		common.Namespace += "/upstream/" + s.Name
		u, err := runtime.Upstream(ctx, runtime.UpstreamConfig{
			Common:      common,
			Server:      s,
			CallbackURL: cfg.PublicURL + path,
		})
		if err != nil {
			return fmt.Errorf(
				"upstream %s: %w: its operations are read at the start, so it must be there before",
				s.Name,
				err,
			)
		}

		cfg.Operations = append(cfg.Operations, u.Operations()...)
		mux.Handle(path+"/", http.StripPrefix(path, u))
		g.workers, behind = append(g.workers, u.Run), append(behind, u)
	}

	cfg.Closed = func(ctx context.Context, who approval.Asker, thread string) error {
		var errs []error
		for _, u := range behind {
			errs = append(errs, u.CloseThread(ctx, who, thread))
		}
		return errors.Join(errs...)
	}
	return nil
}

// run works until ctx ends.
func (g *mountedGateway) run(ctx context.Context) error {
	(&tools{workers: g.workers}).run(ctx)
	return ctx.Err()
}

func rapServers(in []config.RAPServer) ([]runtime.Server, error) {
	var out []runtime.Server
	for _, s := range in {
		to, err := rapPeer(s.URL, s.Allow, s.Networks, s.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("tool server %s: %w", s.Name, err)
		}
		out = append(out, runtime.Server{
			Name:             s.Name,
			Peer:             to,
			Groups:           s.AnsweredBy,
			MCPServer:        s.MCPServer,
			TrustDestructive: s.TrustDestructive,
		})
	}

	return out, nil
}

func rapPeer(url string, allow, networks []string, tokenFile string) (peer.Config, error) {
	cfg := peer.Config{URL: url, Allow: allow}
	for _, text := range networks {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return cfg, fmt.Errorf("networks: %w", err)
		}
		cfg.Networks = append(cfg.Networks, network)
	}

	if tokenFile == "" {
		return cfg, nil
	}
	var err error
	if cfg.Token, err = readSecret(tokenFile); err != nil {
		err = fmt.Errorf("file of its token: %w", err)
	}
	return cfg, err
}

func rapCallers(in []config.RAPCaller) ([]gateway.Caller, error) {
	var out []gateway.Caller
	for _, c := range in {
		callbacks, err := rapPeer("", c.Callbacks, c.Networks, c.CallbackTokenFile)
		if err != nil {
			return nil, fmt.Errorf("caller %s: %w", c.Name, err)
		}
		callbacks.AnyPort = c.AnyPort
		caller := gateway.Caller{
			Name:          c.Name,
			Person:        c.Person,
			Callbacks:     callbacks,
			AnswersSigned: c.Signed,
		}
		if c.TokenFile != "" {
			secret, err := readSecret(c.TokenFile)
			if err != nil {
				return nil, fmt.Errorf("caller %s: token_file: %w", c.Name, err)
			}
			caller.TokenHash = tokens.Hash(secret)
		}

		out = append(out, caller)
	}

	return out, nil
}

func rapOperations(in []config.RAPOperation) ([]rap.Operation, error) {
	var out []rap.Operation
	for _, o := range in {
		schema, err := os.ReadFile(o.SchemaFile)
		if err != nil {
			return nil, fmt.Errorf("operation %s: schema: %w", o.Name, err)
		}
		if !json.Valid(schema) {
			return nil, fmt.Errorf(
				"operation %s: schema: %s is no JSON: expected a JSON Schema of the arguments",
				o.Name,
				o.SchemaFile,
			)
		}

		to, err := rapPeer(o.URL, nil, o.Networks, o.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("operation %s: %w", o.Name, err)
		}
		op, err := gateway.Endpoint(rap.Operation{
			Name:        o.Name,
			Description: o.Description,
			InputSchema: schema,
			Destructive: o.Destructive,
			ReadOnly:    o.ReadOnly,
		}, to)
		if err != nil {
			return nil, fmt.Errorf("operation %s: %w", o.Name, err)
		}
		out = append(out, op)
	}

	return out, nil
}
