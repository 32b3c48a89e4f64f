// Package serve makes an agent.Agent available on the network: A2A speaks A2A 1.0 as JSON-RPC
// over HTTP, AGUI speaks AG-UI as server-sent events. Both keep their threads in a store, so
// that any process can continue a task or a thread.
//
// Callers are identified by bearer tokens. Only the caller who began a task can see and answer
// it. For all other callers it doesn't exist. An answer is applied only to a request that is
// open in the caller's own thread, and must show exactly the requested call (packages a2a and
// agui). Requests that people answer elsewhere, with a holder, are not shown to callers: the
// task is working until those people have answered.
//
// The handlers expect requests at the root path. Use http.StripPrefix to mount them elsewhere.
// TLS and connection timeouts must be configured in the http.Server.
package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// Config configures a host.
type Config struct {
	Agent agent.Agent
	// Store keeps the threads. The agent itself needs no store, or must use the same one.
	Store agent.ThreadStore
	// Callers authenticates callers.
	Callers Callers
	// Withdraw ends a request that people are asked elsewhere, such as the Cancel method of the
	// agent's holder. If it is nil, such requests stay open until their deadline.
	Withdraw func(ctx context.Context, ref, reason string) error
	RunFor   time.Duration // of one run of the agent; 5 minutes by default
	MaxBytes int64         // of one request; 1 MiB by default
	MaxRuns  int           // at the same time; 64 by default
	Log      *slog.Logger  // receives errors of runs that callers don't see; may be nil
	Now      func() time.Time
}

// Callers returns the name of the caller that owns a bearer token, or ErrUnknownCaller.
type Callers func(ctx context.Context, token string) (string, error)

// ErrUnknownCaller is returned for a token that belongs to no caller.
var ErrUnknownCaller = errors.New("the token is not known here")

// Tokens returns Callers for a fixed set: the keys are the Hash of each token, the values the
// callers' names.
func Tokens(names map[string]string) Callers {
	return func(_ context.Context, token string) (string, error) {
		if name := names[Hash(token)]; name != "" {
			return name, nil
		}
		return "", ErrUnknownCaller
	}
}

// Hash returns the hexadecimal SHA-256 of a token. Looking up the hash instead of the token
// prevents timing attacks: the time doesn't depend on how similar a wrong token is.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// host is shared by both hosts: it authenticates callers and allows one run of a thread at a
// time.
type host struct {
	cfg  Config
	ctx  context.Context // parent context of runs; cancelled by Close
	stop context.CancelFunc

	mu     sync.Mutex
	active map[string]*turn // by the id of the thread
	all    sync.WaitGroup
}

// turn is one run of a thread, or one change of it.
type turn struct {
	ctx    context.Context
	cancel context.CancelFunc
	noted  chan struct{} // closed when the message is in the store
	done   chan struct{} // closed when the thread is free again
	once   sync.Once     // for closing noted
}

func (t *turn) note() { t.once.Do(func() { close(t.noted) }) }

func newHost(cfg Config) (*host, error) {
	if cfg.Agent == nil || cfg.Store == nil || cfg.Callers == nil {
		return nil, errors.New("serve: an agent, a store of threads and callers are needed")
	}
	cfg.RunFor = cmp.Or(cfg.RunFor, 5*time.Minute)
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 1<<20)
	cfg.MaxRuns = cmp.Or(cfg.MaxRuns, 64)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	return &host{
		cfg:    cfg,
		ctx:    ctx,
		stop:   stop,
		active: map[string]*turn{},
	}, nil
}

// Close ends the current runs and waits for them.
func (h *host) Close() {
	h.stop()
	h.all.Wait()
}

// errFull is returned if too many runs are in progress.
var errFull = errors.New("too many runs are under way here; try again later")

// begin reserves a thread for one turn. If another turn has reserved it, begin returns that
// turn and false.
func (h *host) begin(thread string) (*turn, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.active[thread]; t != nil {
		return t, false, nil
	}
	if len(h.active) >= h.cfg.MaxRuns || h.ctx.Err() != nil {
		return nil, false, errFull
	}
	ctx, cancel := context.WithTimeout(h.ctx, h.cfg.RunFor)
	t := &turn{
		ctx:    ctx,
		cancel: cancel,
		noted:  make(chan struct{}),
		done:   make(chan struct{}),
	}
	h.active[thread] = t
	h.all.Add(1)
	return t, true, nil
}

// running returns the turn that has reserved a thread, or nil.
func (h *host) running(thread string) *turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.active[thread]
}

// end releases a thread.
func (h *host) end(thread string) {
	h.mu.Lock()
	t := h.active[thread]
	delete(h.active, thread)
	h.mu.Unlock()
	t.cancel()
	t.note()
	close(t.done)
	h.all.Done()
}

// caller authenticates the caller. If it fails, it writes the error response and returns false.
func (h *host) caller(w http.ResponseWriter, r *http.Request) (string, bool) {
	name, err := "", ErrUnknownCaller
	if all := r.Header.Values("Authorization"); len(all) == 1 {
		scheme, token, ok := strings.Cut(all[0], " ")
		if ok && strings.EqualFold(scheme, "Bearer") && token != "" {
			name, err = h.cfg.Callers(r.Context(), token)
		}
	}

	switch {
	case errors.Is(err, ErrUnknownCaller):
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "expected one header Authorization: Bearer … with a token that is known here",
			http.StatusUnauthorized)
	case err != nil || name == "":
		h.cfg.Log.Error("find out who calls", "error", err)
		http.Error(w, "who calls can't be found out now", http.StatusServiceUnavailable)
	default:
		return name, true
	}

	return "", false
}

// threadID returns the thread id for a name that a caller chose.
func threadID(protocol, caller, name string) string {
	return protocol + "/" + url.PathEscape(caller) + "/" + url.PathEscape(name)
}

// openRequests returns the open requests of a thread, split into those that its caller answers
// and those that people answer elsewhere.
func openRequests(t *agent.Thread) (own []content.InputRequest, held []agent.Pending) {
	for _, p := range t.Pending() {
		if p.Ref != "" {
			held = append(held, p)
		} else {
			own = append(own, p.Request)
		}
	}

	return own, held
}
