package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/people"
	"github.com/assent-dev/assent/internal/cli"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/administration"
	"github.com/assent-dev/assent/server/auth"
	"github.com/assent-dev/assent/server/feed"
	"github.com/assent-dev/assent/server/inbox"
	"github.com/assent-dev/assent/server/quota"
	"github.com/assent-dev/assent/server/witness"
)

// house is a running service and what it is made of, from the store upwards.
type house struct {
	cfg      cli.ServeConfig
	log      *slog.Logger
	key      cli.Key
	store    *keyedStore
	tenants  tenants
	people   *people.Joined
	listener net.Listener
	figures  net.Listener // for /metrics; nil: beside the API
	base     *url.URL     // where people reach it
	service  *approval.Service
	// administration asks people about acts of administrators.
	administration *administration.Desk
	delivery       *delivery
	tools          *tools
	auth           *auth.Auth // nil: nobody can sign in
	witness        *witness.Runner
	shares         *quota.Shares
	feed           *feed.Feed
}

// serve runs the service until ctx ends, and then lets what is under way end.
func serve(ctx context.Context, cfg cli.ServeConfig, log io.Writer, ready func(cli.Ready)) (err error) {
	h := &house{cfg: cfg, log: logger(cfg.LogText, cfg.LogLevel, log), shares: sharesOf(cfg.Limits, roomy())}
	if cfg.Dev {
		if err := auth.CheckDev(cfg.Listen); err != nil {
			return fmt.Errorf("--dev: %w", err)
		}
	}
	if h.tenants, err = loadTenants(h.cfg, h.log); err != nil {
		return err
	}
	if h.store, err = openStore(ctx, cfg.StoreConfig(), h.log); err != nil {
		return err
	}
	h.key = h.store.key
	defer func() { err = errors.Join(err, h.store.Close()) }()
	if err := h.store.Verify(ctx); err != nil {
		return err
	}
	if err := h.warnOfRole(ctx); err != nil {
		return err
	}
	h.feed = feed.New(h.store, h.log)
	if err := h.build(ctx); err != nil {
		return err
	}
	if err := recordStart(ctx, h.store, h.key, slices.Sorted(maps.Keys(h.tenants))...); err != nil {
		return errors.Join(err, h.unlisten())
	}
	h.askWitnesses(ctx)
	return h.run(ctx, ready)
}

// logger writes what is at least of a level, as text for a person, else as JSON.
func logger(text bool, level string, w io.Writer) *slog.Logger {
	var least slog.Level
	_ = least.UnmarshalText([]byte(level)) // the configuration was checked; what is unknown logs from info on
	opt := &slog.HandlerOptions{Level: least}
	if text {
		return slog.New(slog.NewTextHandler(w, opt))
	}
	return slog.New(slog.NewJSONHandler(w, opt))
}

// build puts the parts on top of each other.
func (h *house) build(ctx context.Context) (err error) {
	h.people = people.With(h.tenants.directories(), h.store, time.Now)
	h.tenants.warnOfEmptyGroups(ctx, h.people, h.log)
	h.tenants.warnOfShortStages(ctx, h.people, h.log)
	if err := h.listen(); err != nil {
		return err
	}
	if h.base, err = publicURL(h.cfg.PublicURL, h.listener.Addr()); err == nil {
		err = h.buildWitness()
	}
	if err == nil {
		err = h.buildService()
	}
	if err == nil {
		err = h.buildTools(ctx)
	}
	if err == nil {
		err = h.tenants.record(ctx, h.service.Record)
	}
	if err != nil {
		return errors.Join(err, h.unlisten())
	}
	return nil
}

func (h *house) listen() (err error) {
	if h.listener, err = net.Listen("tcp", h.cfg.Listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if h.cfg.MetricsListen == "" {
		return nil
	}
	if h.figures, err = net.Listen("tcp", h.cfg.MetricsListen); err != nil {
		return errors.Join(fmt.Errorf("--metrics-listen: %w", err), h.listener.Close())
	}
	return nil
}

func (h *house) unlisten() error {
	err := h.listener.Close()
	if h.figures != nil {
		err = errors.Join(err, h.figures.Close())
	}
	return err
}

func publicURL(text string, addr net.Addr) (*url.URL, error) {
	if text == "" {
		text = "http://" + addr.String()
	}
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("--public-url %q: expected an http(s) address", text)
	}
	return u, nil
}

func (h *house) buildService() (err error) {
	if h.delivery, err = newDelivery(h.cfg, h.base.String()); err != nil {
		return err
	}
	plans := &administration.Planner{Next: h.tenants, Admins: h.tenants.adminsOf}
	h.service = approval.New(h.store, plans, h.people, time.Now, rand.Reader, approval.Config{
		Route: h.delivery.route, AcceptUnknown: h.acceptsUnknown, KeepArgs: h.cfg.KeepArgs, Quota: quotaOf(h.cfg.Limits),
	})
	h.administration = &administration.Desk{Service: h.service, Directory: h.people, Admins: h.tenants.adminsOf}
	if err := h.delivery.connect(h); err != nil {
		return err
	}
	providers, err := h.tenants.providers()
	if err != nil || !h.cfg.Dev && len(providers) == 0 {
		return err
	}
	h.auth, err = auth.New(auth.Config{
		URL: h.base.String(), Providers: providers, Values: h.store, Records: h.store, Key: h.key.Forms,
		People: h.people, Record: h.service.Record, Dev: h.cfg.Dev, Log: h.log,
	})
	return err
}

// acceptsUnknown reports whether a tenant takes calls for principals whom its directory doesn't know as they are. Where there
// is no directory (on a laptop) nobody more could be asked.
func (h *house) acceptsUnknown(tenant string) bool {
	i := slices.IndexFunc(h.cfg.Tenants, func(t cli.TenantConfig) bool { return t.Name == tenant })

	return i >= 0 && (h.cfg.Tenants[i].AcceptUnknown || h.cfg.Tenants[i].People == "")
}

// pages is everything beside the API.
func (h *house) pages() http.Handler {
	mux := http.NewServeMux()
	h.delivery.mount(mux)
	h.tools.mount(mux)
	if h.auth == nil {
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Nobody can sign in here: start assent with --oidc-issuer, or with --dev on your own machine. The API is at /v1.", http.StatusNotFound)
		})
		return mux
	}
	site := inbox.New(inbox.Config{
		Service: h.service, Store: h.store, Directory: h.people, Logger: h.log, Administration: h.administration, Who: who,
		Key: h.key.Forms, PublicKey: h.key.Signer.PublicKey(), SignOut: "/auth/sign-out", Admins: h.tenants.adminsOf,
		Shares: h.shares, Feed: h.feed,
	})
	mux.Handle("/auth/", h.auth.Handler())
	files := auth.Secure(site, h.base) // the sign-in page needs them too
	mux.Handle("GET /assets/", files)
	mux.Handle("GET /favicon.ico", files)
	mux.Handle("/", auth.Secure(h.auth.Middleware(site), h.base))
	return mux
}

// signInURL is where people sign in; "" when nobody can.
func (h *house) signInURL() string {
	if h.auth == nil {
		return ""
	}

	return h.base.String()
}

func who(r *http.Request) (tenant string, p approval.Person, dev, ok bool) {
	id, ok := auth.FromContext(r.Context())
	return id.Tenant, id.Person, id.Method == auth.MethodDev, ok
}

// run answers until ctx ends. Then streams and waiting end at once, other requests within the time to drain.
func (h *house) run(ctx context.Context, ready func(cli.Ready)) error {
	s := server.New(server.Config{
		Service: h.service, Store: h.store, Directory: h.people, Signer: h.key.Signer, Logger: h.log, Inbox: h.pages(),
		Administration: h.administration, PublicURL: h.signInURL(), Channels: votingChannels(),
		Checks: h.checks(),
		Tools:  h.tools.runtime, Version: cli.Version, Loaded: h.tenants.loaded, UnusableAgents: h.tenants.unusableAgents,
		MetricsElsewhere: h.figures != nil, Witnesses: h.witness.States,
		Shares: h.shares, Feed: h.feed, Values: int64(callLimits(h.cfg.Limits).MaxValues),
	})
	answers := h.httpServer(s)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	var worked, answered, figured error
	all.Go(func() { worked = s.Run(ctx) })
	all.Go(func() { h.tenants.run(ctx, h.service.Record) })
	all.Go(func() { h.delivery.run(ctx) })
	all.Go(func() { h.tools.run(ctx) })
	all.Go(func() { h.witness.Run(ctx) })
	if h.auth != nil {
		all.Go(func() { h.auth.Run(ctx) })
	}
	all.Go(func() { answered = answer(answers, h.listener, cancel) })
	if h.figures != nil {
		figures := http.NewServeMux()
		figures.Handle("GET /metrics", s.MetricsHandler())
		metrics := h.httpServer(figures)
		all.Go(func() { figured = answer(metrics, h.figures, cancel) })
		defer metrics.Close() // whoever scrapes comes again
		context.AfterFunc(ctx, func() { _ = metrics.Close() })
	}
	told := h.tell(ctx, ready)
	if told != nil {
		cancel()
	}
	<-ctx.Done()
	drained := h.drain(ctx, answers)
	all.Wait()
	h.log.Info("stopped")
	return errors.Join(told, answered, figured, drained, worked)
}

// httpServer answers for the names of this server only.
func (h *house) httpServer(handler http.Handler) *http.Server {
	answers := server.HTTPServer(server.ForHosts(handler, append([]string{h.base.Hostname()}, h.cfg.Hosts...), append(posting(), "/rap/")...))
	answers.ErrorLog = slog.NewLogLogger(h.log.Handler(), slog.LevelWarn)
	return answers
}

// answer serves at a listener; when that fails, everything ends.
func answer(s *http.Server, at net.Listener, cancel context.CancelFunc) error {
	if err := s.Serve(at); !errors.Is(err, http.ErrServerClosed) {
		cancel()
		return err
	}
	return nil
}

// checks are what /readyz asks beside the store and the work in the background.
func (h *house) checks() []server.Check {
	checks := fileChecks(h.tenants.err)
	if h.auth != nil {
		checks = append(checks, server.Check{Name: "sign_in", Check: h.auth.Check, Degrades: true})
	}
	if len(h.cfg.Witnesses) > 0 {
		checks = append(checks, server.Check{Name: "witness", Check: h.witness.Ready})
	}
	return checks
}

// tell says where it answers.
func (h *house) tell(ctx context.Context, ready func(cli.Ready)) error {
	r := cli.Ready{URL: h.base.String(), API: "http://" + h.listener.Addr().String(), Register: h.register()}
	if h.cfg.Dev {
		link, err := h.auth.DevLink(ctx, h.cfg.Tenants[0].Name, h.cfg.DevPerson)
		if err != nil {
			return fmt.Errorf("--dev-person: %w", err)
		}
		r.Link = link
		h.log.Warn("DEV MODE: whoever reads this terminal can sign in", "person", h.cfg.DevPerson)
	}
	if h.auth == nil {
		h.log.Info("nobody can sign in to the inbox", "hint", "give --oidc-issuer; until then people answer with tokens: assent token create --scopes read,vote --person ID")
	}
	for _, address := range r.Register {
		h.log.Info("register this address there", "tenant", address.Tenant, "for", address.For, "url", address.URL)
	}
	if h.figures != nil {
		r.Metrics = "http://" + h.figures.Addr().String() + "/metrics"
	}
	h.warnOfPlainHTTP()
	h.log.Info("serving", "address", r.API, "public_url", r.URL, "metrics", cmp.Or(r.Metrics, r.API+"/metrics"), "tenants",
		len(h.cfg.Tenants),
		"public_key", h.key.Signer.PublicKey())
	ready(r)
	return nil
}

// register lists the addresses that other services must be told.
func (h *house) register() []cli.Address {
	var out []cli.Address
	if h.auth != nil {
		for _, a := range h.auth.Addresses() {
			out = append(out, cli.Address{Tenant: a.Tenant, For: cli.RedirectURI, URL: a.Redirect},
				cli.Address{Tenant: a.Tenant, For: cli.SignedOutURI, URL: a.SignedOut})
		}
	}

	return append(out, h.delivery.register(h.base.String())...)
}

// warnOfPlainHTTP says that tokens cross the network in the clear when others than this machine can reach the listener.
func (h *house) warnOfPlainHTTP() {
	at, err := netip.ParseAddrPort(h.listener.Addr().String())
	if err == nil && at.Addr().Unmap().IsLoopback() {
		return
	}
	level, hint := slog.LevelWarn, "put a proxy with TLS before it, and say --public-url https://…; or listen on 127.0.0.1"
	if h.base.Scheme == "https" {
		level, hint = slog.LevelInfo, "let nobody but the proxy of the public URL reach this address"
	}
	h.log.Log(context.Background(), level, "plain http beyond this machine: tokens and sessions can be read on the way",
		"address", h.listener.Addr().String(), "hint", hint)
}

// drain lets requests end that are under way.
func (h *house) drain(ctx context.Context, answers *http.Server) error {
	h.log.Info("stopping", "drain", h.cfg.Drain.String())
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.cfg.Drain)
	defer cancel()
	err := answers.Shutdown(limit)
	if errors.Is(err, context.DeadlineExceeded) {
		h.log.Warn("requests were cut off at the end of the drain")
		return answers.Close()
	}
	return err
}
