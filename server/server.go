// Package server is the HTTP API of assent
// (server/openapi/openapi.yaml, docs/contracts/http.md) with its
// health, its figures and the work that goes on in the background: time
// that acts on requests, and sealing.
//
// It holds no rules of its own. Who may do what is in the token; what a
// call or an answer means is the approval package's. Tokens are the
// only credential: cookies, query parameters and bodies are never
// looked at for one, so no page that a browser visits can act here.
// Whatever goes wrong, the answer is no.
package server

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
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/administration"
	"github.com/assent-dev/assent/server/apidocs"
	"github.com/assent-dev/assent/server/candidate"
	"github.com/assent-dev/assent/server/feed"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/quota"
	"github.com/assent-dev/assent/server/witness"
	"github.com/assent-dev/assent/store"
)

// Leave makes /readyz say that the server is going down, so that nothing
// new is sent to it. It goes on answering.
func (s *Server) Leave() { s.leave() }

// Config is what a server is made of. Service, Store, Directory and
// Signer are required.
type Config struct {
	Service   *approval.Service
	Store     store.Store
	Directory approval.Directory
	Signer    ledger.Signer // of checkpoints
	// Key seals the codes of command lines that sign in: at least 32
	// random bytes, the same on every replica; nil: one of this process.
	Key    []byte
	Now    func() time.Time // nil: time.Now
	Random io.Reader        // nil: crypto/rand.Reader
	Logger *slog.Logger     // nil: nothing is logged
	Inbox  http.Handler     // everything beside the API and health; nil: not found
	Checks []Check          // more of what /readyz asks
	// Clock fails if the clock of this process is wrong. Then the server
	// is not ready, and time acts on nothing. Nil: the clock is right.
	Clock   func(context.Context) error
	Version string // of the program, for figures
	// Loaded tells which files of a tenant are in force and what is
	// wrong with them; for "", of all tenants together, without what is
	// wrong. Nil: nobody is told.
	Loaded func(tenant string) []openapi.Loaded
	// Agents tells which agents of a tenant can be used, in the order
	// of their ids, and what decides about them; nil: none.
	Agents func(tenant string) openapi.Agents
	// Candidate is what a tenant's calls are compared with, nil where
	// there is nothing; nil: no tenant has one.
	Candidate func(tenant string) *candidate.Candidate
	// CandidateCounts counts the calls that were compared, and those
	// that could not be; nil: no figure says so.
	CandidateCounts func() ([]candidate.Count, uint64)
	// UnusableAgents counts the agents whose file can't be used as it
	// stands; nil: no figure says so.
	UnusableAgents func() int
	// Witnesses says how the witnesses outside fare that checkpoints
	// are shown to; nil: there are none.
	Witnesses func() []witness.State
	// Tools returns the RAP runtime of an agent, nil where it has none;
	// nil: no agent has one.
	Tools func(tenant, agent string) *runtime.Runtime
	// Sessions are the session grants of RAP gateways; nil: there are
	// none.
	Sessions rap.Sessions
	// SignIns is what RAP tools ask people to sign in to; nil: nothing.
	SignIns signin.Book
	// Programs stand beside the API and act by its tokens.
	Programs []Program
	// Administration asks people about acts that widen what may happen;
	// nil: nobody acts by the API.
	Administration *administration.Desk
	// Channels are the names under which answers from channels of this
	// server are recorded: no client may give one as its own.
	Channels []string
	// PublicURL is where people reach the inbox: command lines that
	// sign in are sent there.
	PublicURL string
	// MetricsToken asks for a token of scope read at /metrics.
	MetricsToken bool
	// MetricsElsewhere leaves /metrics out: a listener of its own has
	// MetricsHandler.
	MetricsElsewhere bool
	// Shares is what callers share of this process, with everything
	// else that it does; nil: quota.Default of 1 GiB.
	Shares *quota.Shares
	// Feed tells watchers what happens; nil: one of the server's own.
	Feed *feed.Feed
	// Values is how many JSON values a call may have, as the plans were
	// told; 0: resolve.DefaultValues.
	Values int64
	// Timing is for tests; its zero value is what production wants.
	Timing Timing
}

// Timing is how often things happen.
type Timing struct {
	Tick      time.Duration // how often time acts on requests; 250ms
	Seal      time.Duration // interval at which unsealed entries are looked for if no write wakes the sealer; 250ms
	Sweep     time.Duration // how often expired values are deleted; 1m
	Heartbeat time.Duration // how long an event stream is silent at most; 15s
	Body      time.Duration // how long a client may take to send a body; 30s
	Slow      time.Duration // how long a reader may take to take what it is sent; 10s
	Gauges    time.Duration // how often figures are read from the store; 15s
}

// Check is one thing that must work before traffic is sent here.
type Check struct {
	Name  string
	Check func(context.Context) error
	// Degrades: its failure leaves the server fit for traffic.
	// Something of it can't be used as it stands, and the rest can.
	// Whoever looks after that logs it.
	Degrades bool
}

// Server answers HTTP. Run does the work in the background.
type Server struct {
	cfg      Config
	mux      *http.ServeMux
	routes   []route
	events   *feed.Feed
	metrics  *metrics
	health   *health
	kick     chan struct{} // wakes the sealer
	draining chan struct{} // closed when Run ends
	leaving  chan struct{} // closed by Leave
	leave    func()
	apidocs  func() (*apidocs.Docs, error)
}

// New returns a server. Nothing happens in the background before Run.
func New(cfg Config) *Server {
	cfg = cfg.orDefault()
	s := &Server{
		cfg:      cfg,
		mux:      http.NewServeMux(),
		kick:     make(chan struct{}, 1),
		draining: make(chan struct{}),
		leaving:  make(chan struct{}),
		apidocs:  sync.OnceValues(apidocs.New),
	}
	s.leave = sync.OnceFunc(func() { close(s.leaving) })
	s.health = newHealth(cfg, s.draining)
	s.metrics = newMetrics(cfg)
	s.events = cfg.Feed
	s.routes = s.table()
	for _, r := range s.routes {
		s.mux.Handle(r.pattern, s.serve(r))
	}
	s.addPrograms()
	return s
}

func (c Config) orDefault() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Key == nil {
		c.Key = make([]byte, 32)
		_, _ = rand.Read(c.Key) // never fails: it ends the program instead
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Shares == nil {
		c.Shares = quota.New(quota.Default(1<<30, goruntime.GOMAXPROCS(0)))
	}
	if c.Feed == nil {
		c.Feed = feed.New(c.Store, c.Logger)
	}
	if c.Values == 0 {
		c.Values = resolve.DefaultValues
	}
	for _, d := range []struct {
		field    *time.Duration
		standard time.Duration
	}{
		{&c.Timing.Tick, 250 * time.Millisecond},
		{&c.Timing.Seal, 250 * time.Millisecond},
		{&c.Timing.Sweep, time.Minute},
		{&c.Timing.Heartbeat, 15 * time.Second},
		{&c.Timing.Body, 30 * time.Second},
		{&c.Timing.Slow, 10 * time.Second},
		{&c.Timing.Gauges, 15 * time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.standard
		}
	}

	return c
}

// HTTPServer returns an http.Server with the limits that a server
// wants: slow headers are cut off, and what takes its time (event
// streams, long polls, bodies) is bounded by deadlines of its own.
func HTTPServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    mostHeader,
	}
}

// mostHeader is how many bytes the first line and the header of a
// request may have: thread and id of a RAP call, each at its longest
// and with every byte written as three, and as much again for
// everything else. Beyond it net/http answers 431, in plain text.
const mostHeader = 2 * 2 * 3 * 8192

// answerTime is how long a client may take to take an answer that is ready.
const answerTime = 30 * time.Second

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &recorder{ResponseWriter: w}
	began := s.cfg.Now()
	id := rand.Text()
	h := out.Header()
	h.Set("Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // recorders of tests have none
	limitBody(w, r, s.cfg.Timing.Body)
	pattern := ""
	defer func() {
		if broken := recover(); broken != nil {
			s.broken(out, r, id, broken)
		}
		s.metrics.answered(pattern, out.status, s.cfg.Now().Sub(began))
	}()
	var handler http.Handler
	handler, pattern = s.mux.Handler(r)
	switch {
	case pattern != "":
		s.mux.ServeHTTP(out, r)
	case s.cfg.Inbox != nil && !inAPI(r.URL.Path):
		pattern = "inbox"
		s.Metered(s.cfg.Inbox).ServeHTTP(out, r)
	default:
		s.nowhere(out, r, handler)
	}
}

// inAPI reports whether a path belongs to the API, so that what is
// wrong about it is told in the API's way.
func inAPI(path string) bool {
	return path == "/v1" || strings.HasPrefix(path, "/v1/") || path == "/healthz" || path == "/readyz" ||
		path == "/metrics" || path == "/openapi.json" || path == "/docs"
}

// nowhere answers for paths and methods that are not there. The mux
// knows which methods a path has.
func (s *Server) nowhere(w http.ResponseWriter, r *http.Request, theirs http.Handler) {
	probe := &discard{header: http.Header{}}
	theirs.ServeHTTP(probe, r)
	if probe.status == http.StatusMethodNotAllowed {
		allow := probe.header.Get("Allow")
		w.Header().Set("Allow", allow)
		s.refuse(w, r, fail(openapi.CodeMethodNotAllowed, "expected "+allow), false)
		return
	}

	s.refuse(w, r, fail(openapi.CodeNotFound, "there is nothing at this path"), false)
}

// broken answers for a panic: the caller learns that it happened, the
// log learns what it was.
func (s *Server) broken(w *recorder, r *http.Request, id string, what any) {
	if what == http.ErrAbortHandler {
		panic(what) // net/http cuts the connection without a word, which is what was meant
	}
	s.cfg.Logger.Error(
		"a handler broke",
		"request_id",
		id,
		"method",
		r.Method,
		"path",
		r.URL.Path,
		"panic",
		fmt.Sprint(what),
		"stack",
		string(debug.Stack()),
	)
	if w.status != 0 {
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
	s.refuse(w, r, fail(openapi.CodeInternal, "the server's log has it under the request id"), true)
}

// refuse sends a problem. Those on the way to running a call say deny.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error, deny bool) {
	p := problemOf(err)
	if p.RequestID = w.Header().Get("Request-Id"); deny {
		p.Outcome = openapi.Deny
	}
	if p.Status >= 500 && r.Context().Err() == nil {
		s.cfg.Logger.Error(
			"not answered",
			"request_id",
			p.RequestID,
			"method",
			r.Method,
			"path",
			r.URL.Path,
			"code",
			p.Code,
			"error",
			errors.Join(p, p.cause),
		)
	}

	p.write(w)
}

// route is one operation.
type route struct {
	pattern string
	open    bool     // needs no token
	scopes  []scope  // of which one is enough
	query   []string // parameters that it knows
	lax     bool     // passes over parameters: monitoring adds its own
	leavers bool     // also for people whom the directory doesn't know any more
	body    bodySize
	deny    bool // every problem means that the call may not run
	handle  func(*exchange) error
}

// exchange is one request to an operation, and its answer.
type exchange struct {
	*Server
	w     http.ResponseWriter
	r     *http.Request
	token *store.Token // nil for open routes
	body  []byte
	query map[string]string

	sent    io.Reader   // the body as it comes
	who     quota.Who   // whose shares it takes
	entered *quota.Hold // nil: it is not worked on
	memory  *quota.Hold // nil: none
	turned  *quota.Hold // nil: it is no heavy work
}

// serve makes a handler of a route: first who asks, then whether they
// may, then what they ask.
func (s *Server) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{Server: s, w: w, r: r}
		if err := x.run(rt); err != nil {
			s.refuse(w, r, err, rt.deny)
		}
	})
}

func (x *exchange) run(rt route) (err error) {
	defer x.giveBack()
	if rt.open {
		x.who = quota.Who{Caller: addressOf(x.r)}
	} else {
		if err := x.enter(); err != nil {
			return err
		}
		if x.token, err = x.authenticate(x.r); err != nil {
			return err
		}
		if err := permit(x.token, rt.scopes); err != nil {
			return err
		}
		if !rt.leavers {
			if err := x.present(x.r.Context(), x.token, rt.scopes); err != nil {
				return err
			}
		}
		x.who = quota.Who{Tenant: x.token.Tenant, Caller: x.token.ID}
	}

	if x.query, err = queryOf(x.r, rt.query); err != nil && !rt.lax {
		return err
	}
	if rt.open && rt.body == 0 {
		return rt.handle(x)
	}
	if err := x.takeBody(rt.body); err != nil {
		x.turnAway(err, rt.deny)
		return nil
	}
	if err := x.outside(func() error {
		x.body, err = readBody(x.w, x.r, rt.body)
		return err
	}); err != nil {
		return err
	}

	if err := x.weighed(); err != nil {
		return err
	}
	return rt.handle(x)
}

// addressOf is the address that a request comes from, without its port.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}

	return host
}

// queryOf reads the query strictly: a misspelt filter must not list
// everything.
func queryOf(r *http.Request, known []string) (map[string]string, error) {
	all, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fail(openapi.CodeBadRequest, "the query: "+err.Error())
	}
	out := map[string]string{}
	for name, values := range all {
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			return nil, fail(
				openapi.CodeBadRequest,
				fmt.Sprintf("the query: %q is unknown, expected no parameters", name),
			).in(name)
		case !slices.Contains(known, name):
			return nil, fail(openapi.CodeBadRequest, "the query: "+name+": "+unknown(name, known)).in(name)
		case len(values) > 1:
			return nil, bad(name, "the parameter stands twice")
		}

		out[name] = values[0]
	}

	return out, nil
}

// tenant is the token's, whatever else the request says.
func (x *exchange) tenant() string { return x.token.Tenant }

// answer sends a JSON document.
func (x *exchange) answer(status int, v any) error {
	text, err := encode(v)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	x.leave() // sending it takes as long as the reader likes
	x.turned.Return()
	x.w.WriteHeader(status)
	_, _ = x.w.Write(text) // whoever is gone reads no error either
	return nil
}

// encode writes JSON as it is: no escapes for HTML, which would change
// texts that were signed or bound.
func encode(v any) ([]byte, error) {
	text, err := jsonmsg.Marshal(v)
	return append(text, '\n'), err
}

// wake tells the sealer that there is something to seal.
func (s *Server) wake() {
	select {
	case s.kick <- struct{}{}:
	default: // it has been told
	}
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController through.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// discard takes an answer that nobody reads.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
