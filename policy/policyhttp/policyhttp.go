// Package policyhttp is a policy registry that is fetched over HTTP(S).
//
// All policies come as one document, the bundle: one GET returns a consistent state, and its ETag
// covers all of it. docs/contracts/policy-registry-http.md is the contract. WriteBundle makes a
// bundle from a directory. NewHandler serves it, and any static file server can too.
//
// A Registry does its I/O only in Refresh, which the program must call regularly (Run does).
// Policies are read from memory. If a fetch fails, or returns anything but a complete valid bundle,
// the last good copy stays in use up to MaxAge, with a finding; after that Err returns an error,
// and every call is denied (docs/contracts/policy.md).
package policyhttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
)

// These are the defaults for the zero fields of a Config.
const (
	DefaultTimeout  = 10 * time.Second
	DefaultMaxAge   = time.Hour
	DefaultMaxBytes = 32 << 20
)

// Config is the location of the registry and the conditions for using it. Only URL is required.
type Config struct {
	// URL is the address of the bundle. It must use https, because anyone on the network path could
	// otherwise remove policies. Plain http is accepted for loopback addresses, or if
	// AllowPlainHTTP is set. Credentials belong in Header, not here.
	URL            string
	AllowPlainHTTP bool
	Header         http.Header // sent with every request, such as Authorization
	// Token returns the bearer token. It is called before each request, so the token may change. If
	// it is nil, no token is sent. An error counts as a failed fetch.
	Token     func() (string, error)
	Transport http.RoundTripper // nil: http.DefaultTransport
	Timeout   time.Duration     // of one whole fetch
	MaxAge    time.Duration     // how long the last good copy is used while fetches fail
	MaxBytes  int               // of a bundle
	Now       func() time.Time  // nil: time.Now
	// Keep is called with each usable bundle, as it was fetched, or with nil if the last bundle was
	// confirmed. Keep may be nil.
	Keep func(bundle []byte)
}

// State describes the state of a registry.
type State struct {
	Origin    string        // its URL, without what may be secret
	Confirmed time.Time     // when the request was sent that last confirmed the copy in use; zero: there is none
	MaxAge    time.Duration // see Config
	Failure   error         // of the last fetch; nil when it succeeded, or none was tried
	Usable    bool          // decisions may rest on the copy
}

// Registry is a policy.Registry that answers from the last good bundle.
// It is safe for concurrent use.
type Registry struct {
	cfg    Config
	client *http.Client
	origin string // the URL as findings show it

	refreshing sync.Mutex
	now        atomic.Pointer[state]
}

// state is the result of the last fetches. It is replaced as a whole.
type state struct {
	set      *policy.Set // the last good copy, nil before there is one
	etag     string
	findings []diag.Finding // of the last good copy
	asked    time.Time      // when the request was sent that last confirmed the copy
	failure  error          // of the last fetch, nil when it succeeded
}

// UnavailableError is the reason why no usable copy exists.
type UnavailableError struct {
	Origin string
	Age    time.Duration // of the last good copy; 0: there is none, negative: the clock went back
	Cause  error         // why the last fetch failed; nil when none was tried since
}

// Error names what is missing, with the reason.
func (e *UnavailableError) Error() string {
	text := "policy registry " + e.Origin + ": "
	switch {
	case e.Age == 0:
		text += "no copy was fetched yet"
	case e.Age < 0:
		text += "the clock went back, so the age of the last good copy is not known"
	default:
		text += fmt.Sprintf("the last good copy is %s old, which is too old", e.Age.Round(time.Second))
	}

	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

// New prepares a registry. It fetches nothing: until the first Refresh
// succeeds, Err is set.
func New(cfg Config) (*Registry, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("policy registry: %w", withoutURL(err))
	}
	if err := checkURL(u, cfg.AllowPlainHTTP); err != nil {
		return nil, fmt.Errorf("policy registry: %w", err)
	}
	if cfg.Timeout < 0 || cfg.MaxAge < 0 || cfg.MaxBytes < 0 {
		return nil, errors.New("policy registry: timeout, age and size can't be negative")
	}
	cfg.Header = cfg.Header.Clone()
	cfg.Timeout = orDefault(cfg.Timeout, DefaultTimeout)
	cfg.MaxAge = orDefault(cfg.MaxAge, DefaultMaxAge)
	cfg.MaxBytes = orDefault(cfg.MaxBytes, DefaultMaxBytes)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	r := &Registry{
		cfg:    cfg,
		client: &http.Client{Transport: cfg.Transport, CheckRedirect: sameOrigin},
		origin: (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(),
	}
	r.now.Store(&state{})
	return r, nil
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func checkURL(u *url.URL, plain bool) error {
	switch {
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("the address is no http(s) URL with a host")
	case u.User != nil:
		return errors.New("the address holds credentials; send them in a header")
	case u.Scheme == "http" && !plain && !loopback(u.Hostname()):
		return fmt.Errorf("plain http to %s could be changed on the way; use https", u.Hostname())
	}

	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Refresh fetches the bundle if it has changed, and returns Findings. It may be called at any time
// and concurrently; the calls run one after the other.
func (r *Registry) Refresh(ctx context.Context) []diag.Finding {
	r.refreshing.Lock()
	defer r.refreshing.Unlock()
	r.now.Store(r.next(ctx, r.now.Load()))
	return r.Findings()
}

// next is the state after one more fetch.
func (r *Registry) next(ctx context.Context, last *state) *state {
	asked := r.cfg.Now()
	got, err := r.fetch(ctx, last.etag)
	if err != nil {
		return last.failed(err)
	}
	if got.unchanged {
		r.keep(nil)
		return &state{
			set:      last.set,
			etag:     last.etag,
			findings: last.findings,
			asked:    asked,
		}
	}

	set, findings := policy.LoadBundle(got.body, r.origin, r.cfg.MaxBytes)
	if err := set.Err(); err != nil {
		return last.failed(err)
	}
	r.keep(got.body)
	return &state{set: set, etag: got.etag, findings: findings, asked: asked}
}

func (r *Registry) keep(bundle []byte) {
	if r.cfg.Keep != nil {
		r.cfg.Keep(bundle)
	}
}

func (s *state) failed(err error) *state {
	failed := *s
	failed.failure = err
	return &failed
}

// Run refreshes at once and then every so often, until ctx is done.
// Each time it hands the findings to report, which may be nil.
func (r *Registry) Run(ctx context.Context, every time.Duration, report func([]diag.Finding)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		if findings := r.Refresh(ctx); report != nil && ctx.Err() == nil {
			report(findings)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// Snapshot returns the policies at one moment, for compiling a plan that must not mix two bundles.
// If the registry is unavailable, the set is refused. A snapshot doesn't expire: check Err before
// each decision.
func (r *Registry) Snapshot() *policy.Set {
	s := r.now.Load()
	if r.unavailable(s) != nil {
		return policy.Refuse(r.findingsOf(s))
	}
	return s.set
}

// Policy returns the policy of that ref.
func (r *Registry) Policy(ref string) (*policy.Policy, bool) { return r.Snapshot().Policy(ref) }

// Implicit lists the implicit policies, ordered by ref.
func (r *Registry) Implicit() []*policy.Policy { return r.Snapshot().Implicit() }

// Err returns an *UnavailableError when there is no good copy, or it is
// older than MaxAge.
func (r *Registry) Err() error {
	if err := r.unavailable(r.now.Load()); err != nil {
		return err
	}
	return nil
}

// Findings returns the findings of the policies in use. If the last fetch failed, it also returns
// the findings of the fetched bundle, and one about which copy the registry uses.
func (r *Registry) Findings() []diag.Finding { return r.findingsOf(r.now.Load()) }

// State returns the current state of the registry.
func (r *Registry) State() State {
	s := r.now.Load()

	return State{
		Origin:    r.origin,
		Confirmed: s.asked,
		MaxAge:    r.cfg.MaxAge,
		Failure:   s.failure,
		Usable:    r.unavailable(s) == nil,
	}
}

func (r *Registry) unavailable(s *state) *UnavailableError {
	if s.set == nil {
		return &UnavailableError{Origin: r.origin, Cause: s.failure}
	}
	// If the clock went back, the age is unknown.
	if age := r.age(s); age < 0 || age > r.cfg.MaxAge {
		return &UnavailableError{Origin: r.origin, Age: age, Cause: s.failure}
	}

	return nil
}

func (r *Registry) age(s *state) time.Duration { return r.cfg.Now().Sub(s.asked) }

func (r *Registry) findingsOf(s *state) []diag.Finding {
	var found []diag.Finding
	if refused, ok := errors.AsType[*policy.RefusedError](s.failure); ok {
		found = append(found, refused.Findings...)
	}
	if err := r.unavailable(s); err != nil {
		return append(
			found,
			diag.Finding{
				Rule:     policy.RuleUnavailable,
				Severity: diag.Error,
				Stops:    true,
				File:     r.origin,
				Message:  err.Error(),
				Expected: "a bundle as docs/contracts/policy-registry-http.md describes; every call is denied until " +
					"there is one",
			},
		)
	}

	if s.failure == nil {
		return append(found, s.findings...)
	}
	for i := range found {
		found[i].Stops = false // what is in use is the copy from before
	}
	return append(found, diag.Finding{
		Rule:     policy.RuleStale,
		Severity: diag.Warning,
		File:     r.origin,
		Message: fmt.Sprintf(
			"the policies in use were fetched %s ago; the last fetch failed: %v",
			r.age(s).Round(time.Second),
			s.failure,
		),
		Expected: fmt.Sprintf(
			"a fetch that succeeds within %s of the last one; then every call is denied",
			r.cfg.MaxAge,
		),
	})
}
