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
	"sync/atomic"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/permit"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/keyfile"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/administration"
	"github.com/assent-dev/assent/server/auth"
	"github.com/assent-dev/assent/server/directory"
	"github.com/assent-dev/assent/server/feed"
	"github.com/assent-dev/assent/server/inbox"
	"github.com/assent-dev/assent/server/permits"
	"github.com/assent-dev/assent/server/quota"
	"github.com/assent-dev/assent/server/witness"
)

// app is a running service with its parts, from the store upwards.
type app struct {
	cfg     config.Serve
	log     *slog.Logger
	key     keyfile.Key
	permits permits.Issuers
	store   *keyedStore
	tenants tenants
	// fileErrors are the errors that were found in the files of a hook and that leave them usable.
	fileErrors []diag.Finding
	people     *directory.Joined
	listener   net.Listener
	figures    net.Listener // for /metrics; nil: on the listener of the API
	base       *url.URL     // where people reach it
	service    *approval.Service
	// administration asks people about administrative acts.
	administration *administration.Desk
	delivery       *delivery
	tools          *tools
	auth           *auth.Auth // nil: people can't sign in
	witness        *witness.Runner
	shares         *quota.Shares
	feed           *feed.Feed
	serving        atomic.Pointer[server.Server] // nil before it serves
	// pause waits during the drain delay after a signal.
	pause func(ctx context.Context, d time.Duration) error
}

// serve runs the service until ctx ends. Then it reports that it is not ready, goes on serving for
// the drain delay, and lets requests that are under way finish.
func serve(ctx context.Context, cfg config.Serve, log io.Writer, ready func(operate.Ready)) error {
	return serveWith(ctx, cfg, log, ready, nil)
}

// serveWith runs the service with an additional part that registers itself with the workers. The
// part may be nil.
func serveWith(
	ctx context.Context,
	cfg config.Serve,
	log io.Writer,
	ready func(operate.Ready),
	further func(ctx context.Context, a *app) error,
) (err error) {
	a := &app{
		cfg:    cfg,
		log:    logger(cfg.LogText, cfg.LogLevel, log),
		shares: sharesOf(cfg.Limits, roomy()),
		pause:  wait.Pause,
	}
	signal := ctx
	ctx, end := context.WithCancel(context.WithoutCancel(signal))
	defer end()
	defer context.AfterFunc(signal, func() {
		a.leave(ctx)
		end()
	})()
	if cfg.Dev {
		if err := auth.CheckDev(cfg.Listen); err != nil {
			return fmt.Errorf("--dev: %w", err)
		}
	}
	if a.tenants, err = loadTenants(a.cfg, a.log); err != nil {
		return err
	}
	if err := startWithErrors(a.tenants.fileErrors(), cfg.Strict, a.log); err != nil {
		return err
	}
	if a.store, err = openStore(ctx, cfg.Location(), a.log); err != nil {
		return err
	}
	a.key = a.store.key
	defer func() { err = errors.Join(err, a.store.Close()) }()
	if err := a.store.checkClock(ctx); err != nil {
		return err
	}
	if err := a.store.Verify(ctx); err != nil {
		return err
	}
	if err := a.warnOfRole(ctx); err != nil {
		return err
	}
	a.feed = feed.New(a.store, a.log)
	if err := a.build(ctx); err != nil {
		return err
	}
	if further != nil {
		if err := further(ctx, a); err != nil {
			return errors.Join(err, a.unlisten())
		}
	}
	if err := recordStart(ctx, a.store, a.key, slices.Sorted(maps.Keys(a.tenants))...); err != nil {
		return errors.Join(err, a.unlisten())
	}
	a.askWitnesses(ctx)
	return a.run(ctx, ready)
}

// logger returns a logger for messages of at least the given level, as text for people or as JSON.
func logger(text bool, level string, w io.Writer) *slog.Logger {
	var least slog.Level
	_ = least.UnmarshalText([]byte(level)) // the configuration was checked; what is unknown logs from info on
	opt := &slog.HandlerOptions{Level: least}
	if text {
		return slog.New(slog.NewTextHandler(w, opt))
	}
	return slog.New(slog.NewJSONHandler(w, opt))
}

// build creates the parts of the service in order.
func (a *app) build(ctx context.Context) (err error) {
	a.people = directory.With(a.tenants.directories(), a.store, time.Now)
	a.tenants.warnOfEmptyGroups(ctx, a.people, a.log)
	a.tenants.warnOfShortStages(ctx, a.people, a.log)
	if err := a.listen(); err != nil {
		return err
	}
	if a.base, err = publicURL(a.cfg.PublicURL, a.listener.Addr()); err == nil {
		err = a.buildWitness()
	}
	if err == nil {
		a.permits, err = permitIssuers(a.cfg.Tenants, a.base, a.key.Permits)
	}
	if err == nil {
		err = a.buildService()
	}
	if err == nil {
		err = a.buildTools(ctx)
	}
	if err == nil {
		err = a.tenants.record(ctx, a.service.Record)
	}
	if err != nil {
		return errors.Join(err, a.unlisten())
	}
	return nil
}

func (a *app) listen() (err error) {
	if a.listener, err = net.Listen("tcp", a.cfg.Listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if a.cfg.MetricsListen == "" {
		return nil
	}
	if a.figures, err = net.Listen("tcp", a.cfg.MetricsListen); err != nil {
		return errors.Join(fmt.Errorf("--metrics-listen: %w", err), a.listener.Close())
	}
	return nil
}

func (a *app) unlisten() error {
	err := a.listener.Close()
	if a.figures != nil {
		err = errors.Join(err, a.figures.Close())
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

func (a *app) buildService() (err error) {
	if a.delivery, err = newDelivery(a.cfg, a.base.String()); err != nil {
		return err
	}
	a.service = a.newService(a.delivery.route)
	a.administration = &administration.Desk{
		Service:   a.service,
		Directory: a.people,
		Admins:    a.tenants.adminsOf,
	}
	if err := a.delivery.connect(a); err != nil {
		return err
	}
	providers, err := a.tenants.providers()
	if err != nil || !a.cfg.Dev && len(providers) == 0 {
		return err
	}
	a.auth, err = auth.New(auth.Config{
		URL:       a.base.String(),
		Providers: providers,
		Values:    a.store,
		Records:   a.store,
		Key:       a.key.Forms,
		People:    a.people,
		Record:    a.service.Record,
		Dev:       a.cfg.Dev,
		Personal:  a.cfg.Personal,
		Log:       a.log,
	})
	return err
}

// newService returns the service over the store.
func (a *app) newService(route func(event string, r *approval.Request) []approval.Delivery) *approval.Service {
	plans := &administration.Planner{Next: a.tenants, Admins: a.tenants.adminsOf}

	return approval.New(a.store, plans, a.people, time.Now, rand.Reader, approval.Config{
		Route:         route,
		AcceptUnknown: a.acceptsUnknown,
		Admins:        a.tenants.adminsOf,
		PermitAges:    a.tenants.permitAge,
		KeepArgs:      a.cfg.KeepArgs,
		Quota:         quotaOf(a.cfg.Limits),
		Watcher:       a.tenants.watcher(),
		Permits:       a.permits,
	})
}

// acceptsUnknown reports whether a tenant accepts calls for principals that are not in its
// directory. It does if there is no directory (on a laptop), because no other person could be
// asked.
func (a *app) acceptsUnknown(tenant string) bool {
	i := slices.IndexFunc(a.cfg.Tenants, func(t config.Tenant) bool { return t.Name == tenant })

	return i >= 0 && (a.cfg.Tenants[i].UnknownPrincipals == config.AcceptUnknown || a.cfg.Tenants[i].People == "")
}

// pages returns the handler for everything except the API.
func (a *app) pages() http.Handler {
	mux := http.NewServeMux()
	a.delivery.mount(mux)
	a.tools.mount(mux)
	mux.Handle("GET /permits/{tenant}"+permit.KeysPath, a.permits)
	if a.auth == nil {
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(
				w,
				"Nobody can sign in here: start assent with --oidc-issuer, or with --dev on your own machine. The "+
					"API is at /v1.",
				http.StatusNotFound,
			)
		})
		return mux
	}

	site := inbox.New(inbox.Config{
		Service:        a.service,
		Store:          a.store,
		Directory:      a.people,
		Logger:         a.log,
		Administration: a.administration,
		Who:            a.who,
		Key:            a.key.Forms,
		PublicKey:      a.key.Signer.PublicKey(),
		SignOut:        "/auth/sign-out",
		Admins:         a.tenants.adminsOf,
		Shares:         a.shares,
		Feed:           a.feed,
		Sessions:       a.tools,
		Agents:         a.tenants.inForce,
		Loaded:         a.tenants.loaded,
		SignIns:        signIns{a},
		Calls:          a.tools.calls(),
	})
	mux.Handle("/auth/", a.auth.Handler())
	files := auth.Secure(site, a.base) // the sign-in page needs them too
	mux.Handle("GET /assets/", files)
	mux.Handle("GET /favicon.ico", files)
	mux.Handle("/", auth.Secure(a.auth.Middleware(site), a.base))
	return mux
}

// signInURL returns the URL for signing in, or an empty string if people can't sign in.
func (a *app) signInURL() string {
	if a.auth == nil {
		return ""
	}

	return a.base.String()
}

func (a *app) who(r *http.Request) (tenant string, p approval.Person, dev, ok bool) {
	id, ok := auth.FromContext(r.Context())
	return id.Tenant, id.Person, id.Method == auth.MethodDev && !a.cfg.Personal, ok
}

// leave reports that the server is not ready, and waits until load balancers have noticed. A server
// that does not serve yet doesn't wait.
func (a *app) leave(ctx context.Context) {
	s := a.serving.Load()
	delay := a.drainDelay()
	if s == nil || delay == 0 {
		return
	}
	s.Leave()
	a.log.Info("not ready any more, and still serving", "drain_delay", delay.String())
	_ = a.pause(ctx, delay) // an error says that ctx has ended
}

// drainDelay returns the configured delay, or the default, which is zero on loopback.
func (a *app) drainDelay() time.Duration {
	switch {
	case a.cfg.DrainDelay != nil:
		return *a.cfg.DrainDelay
	case a.loopback():
		return 0
	}
	return config.DefaultDrainDelay
}

// loopback reports whether only this machine can reach the listener.
func (a *app) loopback() bool {
	at, err := netip.ParseAddrPort(a.listener.Addr().String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// run answers requests until ctx ends. Then streams and waiting requests end immediately, and other
// requests may finish within the drain time.
func (a *app) run(ctx context.Context, ready func(operate.Ready)) error {
	s := server.New(server.Config{
		Service:          a.service,
		Store:            a.store,
		Directory:        a.people,
		Signer:           a.key.Signer,
		Key:              a.key.Forms,
		Logger:           a.log,
		Inbox:            a.pages(),
		Administration:   a.administration,
		PublicURL:        a.signInURL(),
		Channels:         votingChannels(),
		Checks:           a.checks(),
		Clock:            a.store.checkClock,
		Tools:            a.tools.runtime,
		Programs:         a.tools.programs,
		Sessions:         a.tools,
		SignIns:          signIns{a},
		Version:          term.Version,
		Loaded:           a.tenants.loaded,
		Agents:           a.tenants.inForce,
		Candidate:        a.tenants.candidateOf,
		CandidateCounts:  a.tenants.candidateCounts(),
		UnusableAgents:   a.tenants.unusableAgents,
		MetricsElsewhere: a.figures != nil,
		Witnesses:        a.witness.States,
		Shares:           a.shares,
		Feed:             a.feed,
		Values:           int64(callLimits(a.cfg.Limits).MaxValues),
	})
	answers := a.httpServer(s)
	a.serving.Store(s)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	var worked, answered, figured error
	all.Go(func() { worked = s.Run(ctx) })
	all.Go(func() { a.tenants.run(ctx, a.service.Record) })
	all.Go(func() { a.delivery.run(ctx) })
	all.Go(func() { a.tools.run(ctx) })
	all.Go(func() { a.witness.Run(ctx) })
	all.Go(func() { a.keepFor(ctx) })
	if a.auth != nil {
		all.Go(func() { a.auth.Run(ctx) })
	}
	all.Go(func() { answered = serveAt(answers, a.listener, cancel) })
	if a.figures != nil {
		figures := http.NewServeMux()
		figures.Handle("GET /metrics", s.MetricsHandler())
		metrics := a.httpServer(figures)
		all.Go(func() { figured = serveAt(metrics, a.figures, cancel) })
		defer metrics.Close() // scrapers retry
		context.AfterFunc(ctx, func() { _ = metrics.Close() })
	}

	told := a.tell(ctx, ready)
	if told != nil {
		cancel()
	}
	<-ctx.Done()
	drained := a.drain(ctx, answers)
	close(a.tools.drained)
	all.Wait()
	a.log.Info("stopped")
	return errors.Join(told, answered, figured, drained, worked)
}

// httpServer returns a server that accepts only the host names of this server.
func (a *app) httpServer(handler http.Handler) *http.Server {
	answers := server.HTTPServer(
		server.ForHosts(
			handler,
			append([]string{a.base.Hostname()}, a.cfg.Hosts...),
			append(posting(), "/rap/")...),
	)
	answers.ErrorLog = slog.NewLogLogger(a.log.Handler(), slog.LevelWarn)
	return answers
}

// serveAt serves at a listener. If that fails, it cancels everything.
func serveAt(s *http.Server, at net.Listener, cancel context.CancelFunc) error {
	if err := s.Serve(at); !errors.Is(err, http.ErrServerClosed) {
		cancel()
		return err
	}
	return nil
}

// checks returns the checks of /readyz in addition to those of the store and the background work.
func (a *app) checks() []server.Check {
	checks := fileChecks(a.tenants.err)
	if a.auth != nil {
		checks = append(checks, server.Check{
			Name:     "sign_in",
			Check:    a.auth.Check,
			Degrades: true,
		})
	}

	if a.tenants.watcher() != nil {
		checks = append(checks, server.Check{
			Name:     partCandidate,
			Check:    a.tenants.candidateErr,
			Degrades: true,
		})
	}

	if len(a.cfg.Witnesses) > 0 {
		checks = append(checks, server.Check{Name: "witness", Check: a.witness.Ready})
	}
	return checks
}

// tell reports the addresses at which the service answers.
func (a *app) tell(ctx context.Context, ready func(operate.Ready)) error {
	r := operate.Ready{
		URL:      a.base.String(),
		API:      "http://" + a.listener.Addr().String(),
		Register: a.register(),
	}
	if a.cfg.Dev {
		link, err := a.auth.DevLink(ctx, a.cfg.Tenants[0].Name, a.cfg.DevPerson)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil // stopped before it was ready
		case err != nil:
			return fmt.Errorf("--dev-person: %w", err)
		}
		r.Link = link
		if !a.cfg.Personal {
			a.log.Warn("DEV MODE: whoever reads this terminal can sign in", "person", a.cfg.DevPerson)
		}
	}

	if a.auth == nil {
		a.log.Info(
			"nobody can sign in to the inbox",
			"hint",
			"give --oidc-issuer; until then people answer with tokens: assent token create --scopes read,vote "+
				"--person ID",
		)
	}

	for _, address := range r.Register {
		a.log.Info(
			"register this address there",
			"tenant",
			address.Tenant,
			"for",
			address.For,
			"url",
			address.URL,
		)
	}

	if a.figures != nil {
		r.Metrics = "http://" + a.figures.Addr().String() + "/metrics"
	}
	a.warnOfPlainHTTP()
	a.log.Info(
		"serving",
		"address",
		r.API,
		"public_url",
		r.URL,
		"metrics",
		cmp.Or(r.Metrics, r.API+"/metrics"),
		"tenants",
		len(a.cfg.Tenants),
		"public_key",
		a.key.Signer.PublicKey(),
	)
	ready(r)
	return nil
}

// register lists the addresses that have to be configured in other services.
func (a *app) register() []operate.Address {
	var out []operate.Address
	if a.auth != nil {
		for _, at := range a.auth.Addresses() {
			out = append(out, operate.Address{
				Tenant: at.Tenant,
				For:    operate.RedirectURI,
				URL:    at.Redirect,
			},
				operate.Address{
					Tenant: at.Tenant,
					For:    operate.SignedOutURI,
					URL:    at.SignedOut,
				})
		}
	}

	return append(out, a.delivery.register(a.base.String())...)
}

// warnOfPlainHTTP warns that tokens are sent unencrypted if other machines can reach the listener.
func (a *app) warnOfPlainHTTP() {
	if a.loopback() {
		return
	}
	level, hint := slog.LevelWarn, "put a proxy with TLS before it, and say --public-url https://…; or listen on "+
		"127.0.0.1"
	if a.base.Scheme == "https" {
		level, hint = slog.LevelInfo, "let nobody but the proxy of the public URL reach this address"
	}
	a.log.Log(
		context.Background(),
		level,
		"plain http beyond this machine: tokens and sessions can be read on the way",
		"address",
		a.listener.Addr().String(),
		"hint",
		hint,
	)
}

// drain lets requests finish that are under way.
func (a *app) drain(ctx context.Context, answers *http.Server) error {
	a.log.Info("stopping", "drain", a.cfg.Drain.String())
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.Drain)
	defer cancel()
	err := answers.Shutdown(limit)
	if errors.Is(err, context.DeadlineExceeded) {
		a.log.Warn("requests were cut off at the end of the drain")
		return answers.Close()
	}
	return err
}
