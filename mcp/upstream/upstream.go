// Package upstream connects to MCP servers. It starts their processes, finds out which era they
// speak, and makes requests. Each request returns an answer, or an error that distinguishes
// requests that certainly did not arrive from those that may have run.
package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/backoff"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/rap/peer"
)

// The errors of a request without an answer.
var (
	// ErrNotSent means that the server certainly did not get the request.
	ErrNotSent = errors.New("the server did not get the request")
	// ErrSignIn means that a server requires a token, or refused the one that it got.
	ErrSignIn = errors.New("the server requires a sign-in")
	// ErrUnknown means that the server may have executed the request.
	ErrUnknown = errors.New("nobody knows what came of the request")
)

// ScopeError means that a server refused a token because it lacks a scope. Only a sign-in can help,
// so it is an ErrSignIn too.
type ScopeError struct {
	Scope string // that the request needs, as the server wrote it; may be empty
}

func (e *ScopeError) Error() string { return "the token lacks a scope" }

// Is reports whether the target is ErrSignIn.
func (e *ScopeError) Is(target error) bool { return target == ErrSignIn }

// Eras of a server.
const (
	Auto   = "auto"
	Legacy = "legacy"
	Modern = "modern"
)

// Config configures how a server is reached. Fields that are zero have the default that their
// comment names.
type Config struct {
	Alias   string
	Command []string // program and arguments, for which no shell is used
	Env     []string // NAME=value: all that the program gets
	Dir     string   // in which it starts; "": our own

	// URL is the address of a server that is reached by HTTP instead of a Command. No other origin
	// is contacted, and a private network only if it is in the URL or in Networks.
	URL      string
	Networks []netip.Prefix
	TLS      *tls.Config
	// Token returns the bearer token for each request; it is empty for none. refused is a token
	// that the server has refused, so that another one is needed, or empty. If Token is nil,
	// requests carry no token.
	Token func(ctx context.Context, refused string) (string, error)
	// TokenVersion returns a text that changes when there may be another token. After a failure the
	// server is then tried again at once. It may be nil.
	TokenVersion func() string
	Headers      map[string]string // of each request

	Era          string          // Auto, Legacy or Modern; Auto
	Capabilities json.RawMessage // that we declare; {}
	// Ask answers requests of a legacy server that belong to no call, such as for its roots after
	// the start. If it is nil, they are refused.
	Ask     func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *wire.Error)
	Version string // of this program; "0"

	Probe  time.Duration // how long a server may take to say which era it speaks; 3s
	Start  time.Duration // how long it may take to open; 30s
	Grace  time.Duration // how long it may take to end before it is killed; 5s
	Settle time.Duration // how long news of a list rests; 500ms
	Idle   time.Duration // how long a stream may bring nothing, not even a comment; 5m
	Log    *slog.Logger
}

// Request is one request of a server.
type Request struct {
	Method string
	Params json.RawMessage // without _meta; nil for none
	Meta   wire.Meta       // what follows the call, and keys of others
	// Progress receives progress reports. If it is nil, the server isn't asked for them.
	Progress func(wire.Progress)
	// Ask answers what the server asks before it answers: a request on a legacy connection, or an
	// input_required round on a modern one. If it is nil, a legacy server is refused with -32601,
	// and a modern server's question is returned as the answer.
	Ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *wire.Error)
	// Capabilities are declared to a modern server for this request. If they are nil, those of the
	// configuration are declared.
	Capabilities json.RawMessage
	// Logged receives the server's log messages during the request. If it is nil, they are dropped.
	Logged  func(params json.RawMessage)
	Headers map[string]string // that repeat arguments, Mcp-Param-…; by HTTP to modern servers only
}

// Answer is a server's answer: a result or an error.
type Answer struct {
	Result json.RawMessage
	Error  *wire.Error
}

// Peer holds the facts that a server reports about itself.
type Peer struct {
	Version      string // of the protocol
	Capabilities json.RawMessage
	Info         json.RawMessage // self-reported; nil for none
	Instructions string
}

// link is an open connection.
type link interface {
	do(ctx context.Context, r Request) (Answer, error)
	about() Peer
	ended() <-chan struct{}
	lapsed() <-chan struct{} // closed when the server has forgotten who subscribed to what
	anew()                   // says that all lists may be others
	cause() error
	close()
}

// Server is the connection to one server. It is safe for concurrent
// use.
type Server struct {
	cfg     Config
	http    *peer.Peer // nil: the server is a process
	changed chan string
	updated chan string

	mu       sync.Mutex
	conn     link           // nil: there is none now
	down     error          // why there is none; nil: it is being made
	news     chan struct{}  // closed when conn or down change
	endBy    time.Time      // deadline for its end; zero: Grace after it was asked to end
	followed map[string]int // who follows a resource, by its URI
	logs     string         // the level that conn logs from; "": its own
}

// New checks the configuration.
func New(cfg Config) (*Server, error) {
	cfg.Era = cmp.Or(cfg.Era, Auto)
	cfg.Version = cmp.Or(cfg.Version, "0")
	cfg.Probe = cmp.Or(cfg.Probe, 3*time.Second)
	cfg.Start = cmp.Or(cfg.Start, 30*time.Second)
	cfg.Grace = cmp.Or(cfg.Grace, 5*time.Second)
	cfg.Settle = cmp.Or(cfg.Settle, 500*time.Millisecond)
	cfg.Idle = cmp.Or(cfg.Idle, 5*time.Minute)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Capabilities == nil {
		cfg.Capabilities = json.RawMessage("{}")
	}
	if (len(cfg.Command) == 0) == (cfg.URL == "") {
		return nil, fmt.Errorf("server %s: expected either a command or a URL", cfg.Alias)
	}
	s := &Server{
		cfg:      cfg,
		changed:  make(chan string, 8),
		updated:  make(chan string, 8),
		news:     make(chan struct{}),
		followed: map[string]int{},
	}
	if cfg.URL == "" {
		return s, nil
	}
	for name := range cfg.Headers { // net/http would send such a request again by itself
		if name = http.CanonicalHeaderKey(name); name == "Idempotency-Key" || name == "X-Idempotency-Key" {
			return nil, fmt.Errorf("server %s: expected no header %s", cfg.Alias, name)
		}
	}
	var err error
	s.http, err = peer.New(peer.Config{
		URL:      cfg.URL,
		Networks: cfg.Networks,
		TLS:      cfg.TLS,
		Timeout:  -1, // calls are limited by the context of the caller
	})
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", cfg.Alias, err)
	}
	return s, nil
}

// leastGrace is the minimum time to end a program if EndBy is near.
const leastGrace = 500 * time.Millisecond

// EndBy shortens the grace so that the server is stopped by a time. It is for programs that have to
// exit by a deadline.
func (s *Server) EndBy(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endBy = t
}

// grace returns how long the server may take to end now.
func (s *Server) grace() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endBy.IsZero() {
		return s.cfg.Grace
	}
	return max(min(leastGrace, s.cfg.Grace), min(s.cfg.Grace, time.Until(s.endBy)))
}

// Changed delivers the methods of lists that have changed.
func (s *Server) Changed() <-chan string { return s.changed }

// Run keeps the connection until ctx ends. A server that ends is started again after a growing
// pause, and all its lists are treated as changed then.
func (s *Server) Run(ctx context.Context) error {
	for fails := 0; ctx.Err() == nil; {
		began := time.Now()
		version := s.tokenVersion()
		err := s.connect(ctx, fails > 0)
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > time.Minute {
			fails = 0
		}
		fails++
		s.set(nil, err)
		s.cfg.Log.WarnContext(ctx, "the server has ended", "server", s.cfg.Alias, "error", err)
		if s.rest(ctx, backoff.Jitter(200*time.Millisecond, 30*time.Second, fails), version) {
			fails = 1
		}
	}

	return ctx.Err()
}

// lookForToken is how often rest looks for another token.
const lookForToken = 300 * time.Millisecond

// rest pauses before the next attempt. It returns true early if the version of the token is another
// one.
func (s *Server) rest(ctx context.Context, pause time.Duration, version string) bool {
	for until := time.Now().Add(pause); ctx.Err() == nil; {
		left := time.Until(until)
		if s.tokenVersion() != version {
			return true
		}
		if left <= 0 {
			return false
		}
		if s.cfg.TokenVersion != nil {
			left = min(left, lookForToken)
		}
		_ = wait.Pause(ctx, left)
	}
	return false
}

func (s *Server) tokenVersion() string {
	if s.cfg.TokenVersion == nil {
		return ""
	}
	return s.cfg.TokenVersion()
}

// connect starts the server and returns when it has ended. After a restart the lists may have
// changed.
func (s *Server) connect(ctx context.Context, again bool) error {
	c, err := s.open(ctx)
	if err != nil {
		return err
	}
	if s.set(c, nil); again {
		c.anew()
	}
	select {
	case <-ctx.Done():
	case <-c.ended():
	}
	c.close()
	return c.cause()
}

func (s *Server) open(ctx context.Context) (link, error) {
	if s.http != nil {
		return s.openWeb(ctx)
	}
	return s.openPipe(ctx)
}

func (s *Server) set(c link, down error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.down = c, down
	s.logs = ""
	close(s.news)
	s.news = make(chan struct{})
}

// current returns the current connection. It waits for the first one.
func (s *Server) current(ctx context.Context) (link, error) {
	for {
		s.mu.Lock()
		c, down := s.conn, s.down
		news := s.news
		s.mu.Unlock()
		if c != nil {
			return c, nil
		}
		if down != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotSent, down)
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrNotSent, context.Cause(ctx))
		}
	}
}

// Peer returns what the server last reported about itself.
func (s *Server) Peer() Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return Peer{}
	}
	return s.conn.about()
}

// Do makes a request. Its errors wrap ErrNotSent or ErrUnknown. If ctx ends after the request was
// sent, it is cancelled at the server, which may still answer within the grace.
func (s *Server) Do(ctx context.Context, r Request) (Answer, error) {
	c, err := s.current(ctx)
	if err != nil {
		return Answer{}, err
	}
	s.level(ctx, c, &r)
	out, err := c.do(ctx, r)
	for round := 0; err == nil && asks(&r, out); round++ {
		if round == mostRounds {
			return Answer{}, fmt.Errorf("%w: the server asked more than %d times", ErrUnknown, mostRounds)
		}

		if r.Params, err = answerRound(ctx, &r, out.Result); err == nil {
			out, err = c.do(ctx, r)
		}
		if errors.Is(err, ErrNotSent) { // the round before was
			err = fmt.Errorf("%w: %s", ErrUnknown, err.Error())
		}
	}

	if task := taskOf(out); err == nil && r.Method == wire.MethodCall && task != nil {
		return s.untilDone(ctx, c, task)
	}
	return out, err
}
