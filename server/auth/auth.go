// Package auth signs people in to the pages on which they vote: through an identity
// provider (OpenID Connect), or through a one-time link on a developer's own machine.
// Runtimes don't sign in here; they have tokens.
//
// A session only identifies a person. Every request looks the person and their groups up in
// the directory, so a person who is removed from it loses access at once. Everything fails
// closed: if a provider, the store or the directory can't be reached, nobody gets in, and a
// sign-in that can't be recorded does not happen.
//
// Failed sign-ins are deliberately not counted by address. There is nothing to guess:
// passwords are checked by the provider, and every secret here has 256 bits. There is also
// nothing to fill up: the state of a sign-in is in an encrypted cookie, and only sign-ins
// that come back are stored, to accept them once. A counter would let one client lock out
// everyone behind the same proxy. Strangers could only use up the provider's time, so that
// is shared between addresses, and between sign-ins of different ages: programs come back
// at once, people after seconds or minutes.
package auth

import (
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/alexedwards/scs/v2"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/server/directory"
	"github.com/assent-dev/assent/server/quota"
	"github.com/assent-dev/assent/store"
)

// Lifetimes.
const (
	Idle     = 2 * time.Hour    // of a session without requests
	Absolute = 12 * time.Hour   // of any session, and of the groups from its sign-in
	LinkAge  = 10 * time.Minute // of a one-time link, and of a sign-in in progress
)

// Directory looks people up; directory.Joined implements it.
type Directory interface {
	Person(ctx context.Context, tenant, name string) (approval.Person, bool, error)
	SignIn(ctx context.Context, tenant string, c directory.Claims, until time.Time) (approval.Person, error)
}

// Config configures who may sign in, and what is needed for that.
type Config struct {
	URL       string // public address of assent, such as https://assent.example; http only with Dev
	Providers []Provider
	Values    store.Values
	Records   store.Records // record which sign-ins came back; needed with Providers
	People    Directory
	// Key is the server's secret, from which the key of flow cookies is derived. It must be
	// the same on all replicas. If it is empty, the process makes its own.
	Key []byte
	// Record notes a sign-in in the ledger. If it fails, the person is not signed in.
	Record func(ctx context.Context, tenant, event, subject, actor string, facts map[string]any) error
	Dev    bool // allow DevLink; the URL, and the listener (CheckDev), must be loopback
	// Personal means that DevLink is how the person of this machine signs in to their own
	// inbox. The pages then show no warning about it.
	Personal bool
	Client   *http.Client // to reach providers; if nil, one with short timeouts
	// Timeout limits everything that one callback asks of a provider, including its wait
	// for a turn; 10s.
	Timeout time.Duration
	Log     *slog.Logger     // reasons of failed sign-ins; may be nil
	Now     func() time.Time // time.Now if nil
}

// Identity is the person who makes a request.
type Identity struct {
	Tenant   string
	Person   approval.Person // from the directory, as of this request
	SignedIn time.Time
	Method   string // "oidc" or "dev"; pages show a warning for "dev"
	Provider string // id of the provider, "" for "dev"
}

// The ways to sign in.
const (
	MethodOIDC = "oidc"
	MethodDev  = "dev"
)

// Auth signs people in. It is safe for concurrent use.
type Auth struct {
	cfg       Config
	base      *url.URL
	providers []*provider
	sessions  *scs.SessionManager
	store     *sessionStore
	seal      cipher.AEAD // of flow cookies
	exchanges *quota.Pool // limits concurrent exchanges of codes for tokens
}

// New checks the configuration. It contacts no provider: the first sign-in does, and
// retries after a failure.
func New(cfg Config) (*Auth, error) {
	if err := CheckProviders(cfg.URL, cfg.Dev, cfg.Providers); err != nil {
		return nil, err
	}
	base, err := checkURL(cfg.URL, cfg.Dev)
	if err != nil {
		return nil, err
	}
	if cfg.Values == nil || cfg.People == nil || cfg.Record == nil {
		return nil, errors.New("sign-in needs Values, People and Record")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = providerTimeout
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Records == nil && len(cfg.Providers) > 0 {
		return nil, errors.New("sign-in at a provider needs Records")
	}
	a := &Auth{
		cfg:       cfg,
		base:      base,
		store:     &sessionStore{values: cfg.Values, now: cfg.Now},
		exchanges: quota.NewPool(exchangeParts()),
	}
	if a.seal, err = sealing(cfg.Key); err != nil {
		return nil, err
	}
	a.sessions = newSessions(a.store, a.cookieName(""), base.Scheme == "https")
	for _, p := range cfg.Providers {
		a.providers = append(a.providers, newProvider(p, base, cfg.Client, cfg.Now))
	}
	a.tellApart()
	return a, nil
}

// CheckProviders returns an error for an address or providers with which no sign-in could
// succeed. It makes no connection.
func CheckProviders(url string, dev bool, providers []Provider) error {
	if _, err := checkURL(url, dev); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, p := range providers {
		if err := p.check(); err != nil {
			return err
		}
		if seen[p.ID] {
			return fmt.Errorf("two sign-in providers have the id %q: give each its own", p.ID)
		}
		seen[p.ID] = true
	}

	return nil
}

// tellApart adds the tenant to titles that several providers share, because people choose
// one on the sign-in page.
func (a *Auth) tellApart() {
	count := map[string]int{}
	for _, p := range a.providers {
		count[p.Title]++
	}
	for _, p := range a.providers {
		if count[p.Title] > 1 {
			p.Title += " (" + p.Tenant + ")"
		}
	}
}

func checkURL(text string, dev bool) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		u.Path != "" && u.Path != "/" {
		return nil, fmt.Errorf(
			"public URL %q: expected a scheme and a host, such as https://assent.example",
			text,
		)
	}

	switch {
	case dev && !isLoopback(u.Hostname()):
		return nil, fmt.Errorf("public URL %q: dev mode is for http://localhost and the like only", text)
	case u.Scheme == "https", u.Scheme == "http" && dev:
		return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
	}

	return nil, fmt.Errorf("public URL %q: expected https (plain http is for dev mode on localhost)", text)
}

// providerID is the form of a provider's id, which is part of redirect addresses.
var providerID = pattern.Of(`^[a-z0-9][a-z0-9-]{0,39}$`)

// Handler answers everything below /auth/.
func (a *Auth) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /auth/sign-in", a.signInPage)
	mux.HandleFunc("GET /auth/start/{provider}", a.start)
	mux.HandleFunc("GET /auth/callback/{provider}", a.callback)
	mux.HandleFunc("GET /auth/dev/{secret}", a.devPage)
	mux.HandleFunc("POST /auth/dev/{secret}", a.devSignIn)
	mux.HandleFunc("POST /auth/sign-out", a.signOut)
	mux.HandleFunc("GET /auth/signed-out", a.signedOutPage)
	return Secure(mux, a.base)
}

// identityKey is the context key of an Identity.
type identityKey struct{}

// FromContext returns the person who makes the request. It returns false outside of
// Middleware.
func FromContext(ctx context.Context) (Identity, bool) {
	id, ok := ctx.Value(identityKey{}).(Identity)
	return id, ok
}

// errNobody means that a request has no session, or one that has ended.
var errNobody = errors.New("not signed in")

// errLeft means that the session's person is no longer in the directory.
var errLeft = errors.New("signed in, but not in the directory any more")

// Middleware passes requests of signed-in people to next, with their Identity
// (FromContext). Other requests for a page are redirected to the sign-in and return
// afterwards; everything else is answered with 401.
func (a *Auth) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := a.identify(r)
		switch {
		case err == nil:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, id)))
		case errors.Is(err, errNobody) && wantsPage(r):
			http.Redirect(
				w,
				r,
				"/auth/sign-in?next="+url.QueryEscape(local(r.URL.RequestURI())),
				http.StatusSeeOther,
			)
		case errors.Is(err, errNobody):
			refuse(w, r, http.StatusUnauthorized, message{Title: "Not signed in", Text: "Sign in first."})
		case errors.Is(err, errLeft):
			refuse(
				w,
				r,
				http.StatusForbidden,
				message{
					Title: "Not in the directory",
					Text: "You are signed in, but the directory of people doesn't know you (any more). Whoever " +
						"runs assent can add you.",
					SignOut: true,
				},
			)
		default:
			a.cfg.Log.ErrorContext(r.Context(), "who is signed in could not be found out", "error", err)
			refuse(w, r, http.StatusServiceUnavailable, unavailable())
		}
	})
}

func unavailable() message {
	return message{
		Title: "Not available",
		Text: "assent can't reach its store or its directory right now, so nobody is let in. Nothing was decided. " +
			"Try again in a moment.",
	}
}

// identify returns the person who makes a request.
func (a *Auth) identify(r *http.Request) (Identity, error) {
	s, err := a.session(r)
	if err != nil {
		return Identity{}, err
	}
	p, ok, err := a.cfg.People.Person(r.Context(), s.tenant, s.person)
	switch {
	case err != nil:
		return Identity{}, fmt.Errorf("find the person: %w", err)
	case !ok || p.ID != s.person:
		return Identity{}, errLeft
	}

	return Identity{
		Tenant:   s.tenant,
		Person:   p,
		SignedIn: s.at,
		Method:   s.method,
		Provider: s.provider,
	}, nil
}
