// Package server is the HTTP API of assent (server/openapi/openapi.yaml,
// docs/contracts/http.md), with its health checks, metrics and background work: deadlines
// of requests, and sealing.
//
// It has no rules of its own. The token determines what a caller may do; the approval
// package decides what a call or an answer means. Tokens are the only credential: the
// server never looks for one in cookies, query parameters or bodies, so a web page in a
// browser can't act here. If anything fails, the answer is a denial.
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

// Leave makes /readyz report that the server is shutting down, so that it gets no new
// traffic. It still answers.
func (s *Server) Leave() { s.leave() }

// Config configures a server. Service, Store, Directory and Signer are required.
type Config struct {
	Service   *approval.Service
	Store     store.Store
	Directory approval.Directory
	Signer    ledger.Signer // of checkpoints
	// Key protects the codes with which command lines sign in: at least 32 random bytes,
	// the same on every replica. If it is nil, the process uses a random key of its own.
	Key    []byte
	Now    func() time.Time // time.Now if nil
	Random io.Reader        // crypto/rand.Reader if nil
	Logger *slog.Logger     // if nil, nothing is logged
	Inbox  http.Handler     // everything except the API and health; not found if nil
	Checks []Check          // additional checks of /readyz
	// Clock returns an error if the clock of this process is wrong. Then the server is not
	// ready, and deadlines are not processed. If it is nil, the clock is assumed to be
	// right.
	Clock   func(context.Context) error
	Version string // of the program, for figures
	// Loaded returns the files of a tenant that are in force, with their problems. For an
	// empty tenant it returns those of all tenants together, without problems. If it is
	// nil, the server does not show them.
	Loaded func(tenant string) []openapi.Loaded
	// Agents returns the agents of a tenant that can be used, sorted by their ids, and the
	// files that decide about them. If it is nil, the list is empty.
	Agents func(tenant string) openapi.Agents
	// Candidate returns the candidate that a tenant's calls are compared with, or nil if
	// the tenant has none. If the function is nil, no tenant has one.
	Candidate func(tenant string) *candidate.Candidate
	// CandidateCounts counts the calls that were compared, and those that could not be. If
	// it is nil, there is no metric for it.
	CandidateCounts func() ([]candidate.Count, uint64)
	// UnusableAgents counts the agents whose current file can't be used. If it is nil,
	// there is no metric for it.
	UnusableAgents func() int
	// Witnesses returns the state of the external witnesses of checkpoints. If it is nil,
	// there are none.
	Witnesses func() []witness.State
	// Tools returns the RAP runtime of an agent, or nil if it has none. If the function is
	// nil, no agent has one.
	Tools func(tenant, agent string) *runtime.Runtime
	// Sessions are the session grants of RAP gateways. If it is nil, there are none.
	Sessions rap.Sessions
	// SignIns are the sign-ins that RAP tools ask people for. If it is nil, there are none.
	SignIns signin.Book
	// Programs are handlers outside of the API that use its tokens.
	Programs []Program
	// Administration asks people about administrative acts that permit more. If it is nil,
	// the API refuses such acts.
	Administration *administration.Desk
	// Channels are the names under which answers from channels of this server are recorded.
	// No client may use one of them as its own channel.
	Channels []string
	// PublicURL is the address of the inbox. Command lines that sign in show it to the
	// person.
	PublicURL string
	// MetricsToken requires a token with scope read at /metrics.
	MetricsToken bool
	// MetricsElsewhere removes /metrics from the API, because a separate listener serves
	// MetricsHandler.
	MetricsElsewhere bool
	// Shares are the limits of this process that its callers share. If it is nil,
	// quota.Default of 1 GiB is used.
	Shares *quota.Shares
	// Feed sends events to watchers. If it is nil, the server makes its own.
	Feed *feed.Feed
	// Values is the maximal number of JSON values in a call, the same as for the plans. 0
	// means resolve.DefaultValues.
	Values int64
	// Timing is for tests. Use its zero value in production.
	Timing Timing
}

// Timing holds intervals and time limits.
type Timing struct {
	Tick      time.Duration // how often due requests are processed; 250ms
	Seal      time.Duration // interval at which unsealed entries are looked for if no write wakes the sealer; 250ms
	Sweep     time.Duration // how often expired values are deleted; 1m
	Heartbeat time.Duration // how long an event stream is silent at most; 15s
	Body      time.Duration // how long a client may take to send a body; 30s
	Slow      time.Duration // how long a reader may take to read what it is sent; 10s
	Gauges    time.Duration // how often metrics are read from the store; 15s
}

// Check is a check that must succeed before the server gets traffic.
type Check struct {
	Name  string
	Check func(context.Context) error
	// Degrades means that the server stays ready if the check fails: a part can't be used,
	// and the rest works. The code that owns the part logs the failure.
	Degrades bool
}

// Server serves the API. Run does the background work.
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

// New returns a server. There is no background work before Run.
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

// HTTPServer returns an http.Server with suitable limits: slow headers are cut off. Event
// streams, long polls and bodies have their own deadlines.
func HTTPServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    mostHeader,
	}
}

// mostHeader limits the first line and the header of a request, in bytes: thread and id of
// a RAP call with their greatest lengths and every byte percent-encoded, and the same again
// for everything else. If it is exceeded, net/http answers 431 in plain text.
const mostHeader = 2 * 2 * 3 * 8192

// answerTime is the time limit for a client to read an answer.
const answerTime = 30 * time.Second

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &recorder{ResponseWriter: w}
	began := s.cfg.Now()
	id := rand.Text()
	h := out.Header()
	h.Set("Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // test recorders have no deadlines
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

// inAPI reports whether a path belongs to the API, so that errors about it have the API's
// format.
func inAPI(path string) bool {
	return path == "/v1" || strings.HasPrefix(path, "/v1/") || path == "/healthz" || path == "/readyz" ||
		path == "/metrics" || path == "/openapi.json" || path == "/docs"
}

// nowhere answers for unknown paths and methods. theirs is the handler of the mux, which
// knows the methods of a path.
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

// broken answers after a panic. The client gets a general error; the log gets the panic.
func (s *Server) broken(w *recorder, r *http.Request, id string, what any) {
	if what == http.ErrAbortHandler {
		panic(what) // net/http closes the connection without an answer, as intended
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

// refuse sends a problem. If deny is true, the problem also has the outcome deny.
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

	sent    io.Reader   // the original body, not wrapped by takeBody
	who     quota.Who   // owner of the shares that it takes
	entered *quota.Hold // nil while the exchange is not being processed
	memory  *quota.Hold // may be nil
	turned  *quota.Hold // nil unless it does heavy work
}

// of returns the handler of an operation in a group such as adminOps.
func of[Ops ~struct{ *exchange }](operation func(Ops) error) func(*exchange) error {
	return func(x *exchange) error { return operation(Ops{x}) }
}

// serve returns a handler for a route. It authenticates, then checks access, then reads the
// request.
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

// addressOf returns the address that a request comes from, without its port.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}

	return host
}

// queryOf parses the query strictly, because a misspelt filter must not list everything.
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

// tenant returns the token's tenant, whatever else the request contains.
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
	_, _ = x.w.Write(text) // a client that has disconnected can't read an error either
	return nil
}

// encode writes JSON without escapes for HTML, which would change texts that were signed or
// bound.
func encode(v any) ([]byte, error) {
	text, err := jsonmsg.Marshal(v)
	return append(text, '\n'), err
}

// wake wakes the sealer.
func (s *Server) wake() {
	select {
	case s.kick <- struct{}{}:
	default: // it is already woken
	}
}

// recorder records the status of an answer.
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

// Unwrap is used by http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// discard is a ResponseWriter that drops the answer.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
