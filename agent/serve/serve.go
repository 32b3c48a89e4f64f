// Package serve puts an agent.Agent on the network: A2A speaks A2A 1.0
// as JSON-RPC over HTTP, AGUI speaks AG-UI as server-sent events. Both
// keep their threads in a store, so that a task or a thread is gone on
// with by any process.
//
// Callers are known by bearer tokens. What a caller began is seen and
// answered by that caller alone: to all others it does not exist. An
// answer acts only on a request that is open in the caller's own
// thread, and shows the very call that was asked about (packages a2a
// and agui). Requests that people answer elsewhere, by a holder, are
// not shown to callers: their task is at work until those people have
// answered.
//
// The handlers take requests at the root of their path; mount them with
// http.StripPrefix elsewhere. TLS, and time limits of connections, are
// those of the http.Server around them.
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

// Config are the choices for a host.
type Config struct {
	Agent agent.Agent
	// Store keeps the threads. The agent itself needs none, or the same.
	Store agent.ThreadStore
	// Callers finds out who calls.
	Callers Callers
	// Withdraw ends a request that people are asked elsewhere, such as
	// the Cancel of the agent's holder; nil leaves it to its deadline.
	Withdraw func(ctx context.Context, ref, reason string) error
	RunFor   time.Duration // of one run of the agent; 0 means 5 min
	MaxBytes int64         // of one request; 0 means 1 MiB
	MaxRuns  int           // at the same time; 0 means 64
	Log      *slog.Logger  // errors of runs, which callers are not told; nil means none
	Now      func() time.Time
}

// Callers returns the name of the caller that a bearer token belongs
// to, or ErrUnknownCaller.
type Callers func(ctx context.Context, token string) (string, error)

// ErrUnknownCaller says that a token is nobody's.
var ErrUnknownCaller = errors.New("the token is not known here")

// Tokens are callers that are known beforehand: their names by the Hash
// of their tokens.
func Tokens(names map[string]string) Callers {
	return func(_ context.Context, token string) (string, error) {
		if name := names[Hash(token)]; name != "" {
			return name, nil
		}
		return "", ErrUnknownCaller
	}
}

// Hash is the hash of a token: hexadecimal SHA-256. Looking a token up
// by it takes the same time however near a wrong one comes.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// host is what both hosts share: who calls, and that a thread has one
// run at a time.
type host struct {
	cfg  Config
	ctx  context.Context // of runs; it ends with Close
	stop context.CancelFunc

	mu     sync.Mutex
	active map[string]*turn // by the id of the thread
	all    sync.WaitGroup
}

// turn is one run of a thread, or one change of it.
type turn struct {
	ctx    context.Context
	cancel context.CancelFunc
	noted  chan struct{} // closed when what it is about is in the store
	done   chan struct{} // closed when the thread is free again
	once   sync.Once     // of noted
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

// Close ends the runs that are under way, and waits for them.
func (h *host) Close() {
	h.stop()
	h.all.Wait()
}

// errFull says that too many runs are under way.
var errFull = errors.New("too many runs are under way here; try again later")

// begin takes a thread for one turn. It returns false with the turn
// that has it when there is one.
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

// running is the turn that has a thread, nil for none.
func (h *host) running(thread string) *turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.active[thread]
}

// end frees a thread.
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

// caller finds out who calls, and answers those whom nobody knows.
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

// threadID names the thread of something that a caller names.
func threadID(protocol, caller, name string) string {
	return protocol + "/" + url.PathEscape(caller) + "/" + url.PathEscape(name)
}

// openRequests are the requests of a thread that its caller answers,
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
