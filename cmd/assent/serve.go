package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/cli"
	"github.com/assent-dev/assent/people"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/auth"
	"github.com/assent-dev/assent/server/inbox"
	"github.com/assent-dev/assent/store"
)

// house is a running service and what it is made of, from the store upwards.
type house struct {
	cfg      cli.ServeConfig
	log      *slog.Logger
	key      cli.Key
	store    store.Store
	tenants  tenants
	people   *people.Joined
	listener net.Listener
	base     *url.URL // where people reach it
	service  *approval.Service
	outside  *outside
	tools    *tools
	auth     *auth.Auth // nil: nobody can sign in
}

// serve runs the service until ctx ends, and then lets what is under way end.
func serve(ctx context.Context, cfg cli.ServeConfig, log io.Writer, ready func(cli.Ready)) (err error) {
	h := &house{cfg: cfg, log: logger(cfg, log)}
	roomy()
	if cfg.Dev {
		if err := auth.CheckDev(cfg.Listen); err != nil {
			return fmt.Errorf("--dev: %w", err)
		}
	}
	if h.tenants, err = loadTenants(h.cfg, h.log); err != nil {
		return err
	}
	host, _ := os.Hostname() // only a name for people to tell keys apart
	if h.key, err = cli.LoadKey(cfg.KeyFile, host); err != nil {
		return err
	}
	if h.store, err = openStore(ctx, cfg.Store, true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.store.Close()) }()
	if err := h.build(ctx); err != nil {
		return err
	}
	return h.run(ctx, ready)
}

func logger(cfg cli.ServeConfig, w io.Writer) *slog.Logger {
	if cfg.LogText {
		return slog.New(slog.NewTextHandler(w, nil))
	}
	return slog.New(slog.NewJSONHandler(w, nil))
}

// build puts the parts on top of each other.
func (h *house) build(ctx context.Context) (err error) {
	h.people = people.With(h.tenants.directories(), h.store, time.Now)
	h.tenants.warnOfEmptyGroups(ctx, h.people, h.log)
	h.tenants.warnOfShortStages(ctx, h.people, h.log)
	if h.listener, err = net.Listen("tcp", h.cfg.Listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if h.base, err = publicURL(h.cfg.PublicURL, h.listener.Addr()); err != nil {
		return errors.Join(err, h.listener.Close())
	}
	if err = h.buildService(); err == nil {
		err = h.buildTools(ctx)
	}
	if err != nil {
		return errors.Join(err, h.listener.Close())
	}
	return nil
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
	if h.outside, err = newOutside(h.cfg, h.base.String()); err != nil {
		return err
	}
	h.service = approval.New(h.store, h.tenants, h.people, time.Now, rand.Reader, approval.Config{
		Route: h.outside.route, AcceptUnknown: h.acceptsUnknown,
	})
	if err := h.outside.connect(h); err != nil {
		return err
	}
	providers, err := h.tenants.providers()
	if err != nil || !h.cfg.Dev && len(providers) == 0 {
		return err
	}
	h.auth, err = auth.New(auth.Config{
		URL: h.base.String(), Providers: providers, Values: h.store, People: h.people, Record: h.service.Record, Dev: h.cfg.Dev, Log: h.log,
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
	h.outside.mount(mux)
	h.tools.mount(mux)
	if h.auth == nil {
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Nobody can sign in here: start assent with --oidc-issuer, or with --dev on your own machine. The API is at /v1.", http.StatusNotFound)
		})
		return mux
	}
	site := inbox.New(inbox.Config{
		Service: h.service, Store: h.store, Directory: h.people, Logger: h.log, Key: h.key.Forms, PublicKey: h.key.Signer.PublicKey(), SignOut: "/auth/sign-out", Who: who,
	})
	mux.Handle("/auth/", h.auth.Handler())
	files := auth.Secure(site, h.base) // the sign-in page needs them too
	mux.Handle("GET /assets/", files)
	mux.Handle("GET /favicon.ico", files)
	mux.Handle("/", auth.Secure(h.auth.Middleware(site), h.base))
	return mux
}

func who(r *http.Request) (tenant string, p approval.Person, dev, ok bool) {
	id, ok := auth.FromContext(r.Context())
	return id.Tenant, id.Person, id.Method == auth.MethodDev, ok
}

// run answers until ctx ends. Then streams and waiting end at once, other requests within the time to drain.
func (h *house) run(ctx context.Context, ready func(cli.Ready)) error {
	s := server.New(server.Config{
		Service: h.service, Store: h.store, Directory: h.people, Signer: h.key.Signer, Logger: h.log, Inbox: h.pages(), Checks: h.tenants.checks(),
		Tools: h.tools.runtime,
	})
	answers := server.HTTPServer(s)
	answers.ErrorLog = slog.NewLogLogger(h.log.Handler(), slog.LevelWarn)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	var worked, answered error
	all.Go(func() { worked = s.Run(ctx) })
	all.Go(func() { h.tenants.run(ctx) })
	all.Go(func() { h.outside.run(ctx) })
	all.Go(func() { h.tools.run(ctx) })
	all.Go(func() {
		if err := answers.Serve(h.listener); !errors.Is(err, http.ErrServerClosed) {
			answered = err
			cancel()
		}
	})
	told := h.tell(ctx, ready)
	if told != nil {
		cancel()
	}
	<-ctx.Done()
	drained := h.drain(ctx, answers)
	all.Wait()
	h.log.Info("stopped")
	return errors.Join(told, answered, drained, worked)
}

// tell says where it answers.
func (h *house) tell(ctx context.Context, ready func(cli.Ready)) error {
	r := cli.Ready{URL: h.base.String(), API: "http://" + h.listener.Addr().String()}
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
	h.log.Info("serving", "address", r.API, "public_url", r.URL, "tenants", len(h.cfg.Tenants), "public_key", h.key.Signer.PublicKey())
	ready(r)
	return nil
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

// roomy lets the heap grow further between collections while it is small, which is a tenth of what a busy service does; from 1 GiB on the
// collector works as hard as ever. GOGC and GOMEMLIMIT go before it.
func roomy() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(1 << 30)
	}
}
