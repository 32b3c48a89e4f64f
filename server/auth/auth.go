// Package auth signs people in, for the pages that people vote on:
// through an identity provider (OpenID Connect), or through a one-time
// link on a developer's own machine. Runtimes don't come this way; they
// have tokens.
//
// A session says who somebody is and nothing else. Who that is today,
// and in which groups, is asked of the directory with every request, so
// whoever leaves it is out at once. Everything fails closed: a
// provider, a store or a directory that can't be reached lets nobody
// in, and a sign-in that can't be recorded doesn't happen.
//
// Failed sign-ins aren't counted by address, on purpose. There is
// nothing to guess: passwords are the provider's business, and every
// secret here has 256 bits. Nor is there anything to fill: the state of
// a sign-in travels in a sealed cookie, and of one that comes back it
// is only remembered that it did. A counter would let whoever shares a
// proxy's address lock out everybody behind it. What strangers could
// use up is the provider's time, so that is shared out: between
// addresses, and between sign-ins of different ages, since programs
// come back at once, and people after some seconds or minutes.
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

// How long things hold.
const (
	Idle     = 2 * time.Hour    // a session that nobody uses
	Absolute = 12 * time.Hour   // any session, and the groups that its sign-in brought
	LinkAge  = 10 * time.Minute // a one-time link, and a sign-in under way
)

// Directory knows people; directory.Joined is one.
type Directory interface {
	Person(ctx context.Context, tenant, name string) (approval.Person, bool, error)
	SignIn(ctx context.Context, tenant string, c directory.Claims, until time.Time) (approval.Person, error)
}

// Config says who may sign in, and where what is needed for it is.
type Config struct {
	URL       string // where people reach assent, such as https://assent.example; http only with Dev
	Providers []Provider
	Values    store.Values
	Records   store.Records // where it stands that a sign-in came back; needed with Providers
	People    Directory
	// Key is the server's secret, from which that of sign-ins under way
	// is derived; the same on all replicas. Empty: one of this process.
	Key []byte
	// Record notes a sign-in in the ledger; when it fails nobody is
	// signed in.
	Record func(ctx context.Context, tenant, event, subject, actor string, facts map[string]any) error
	Dev    bool // allow DevLink; the URL, and the listener (CheckDev), must be loopback
	// Personal says that DevLink is how the person of this machine signs
	// in to an inbox of their own: no page warns of it.
	Personal bool
	Client   *http.Client // to reach providers; nil: one with short timeouts
	// Timeout is for everything that one callback asks of a provider, and for its wait until it may ask; 10s.
	Timeout time.Duration
	Log     *slog.Logger     // why sign-ins failed; nil: nowhere
	Now     func() time.Time // nil: time.Now
}

// Identity is who makes a request.
type Identity struct {
	Tenant   string
	Person   approval.Person // as the directory has it now
	SignedIn time.Time
	Method   string // "oidc" or "dev"; pages show a loud banner for "dev"
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
	exchanges *quota.Pool // of codes for tokens, at a time
}

// New checks the configuration. It reaches no provider: the first
// sign-in does, and tries again when that fails.
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

// CheckProviders refuses an address and providers with which nobody
// could sign in. It reaches nobody.
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

// tellApart adds the tenant to the titles that several providers share:
// people choose one on the sign-in page.
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

// providerID is what stands in redirect addresses.
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

// identityKey is where a context keeps an Identity.
type identityKey struct{}

// FromContext returns who makes the request; false outside of Middleware.
func FromContext(ctx context.Context) (Identity, bool) {
	id, ok := ctx.Value(identityKey{}).(Identity)
	return id, ok
}

// errNobody says that a request has no session, or one that has ended.
var errNobody = errors.New("not signed in")

// errLeft says that whoever has the session is nobody any more.
var errLeft = errors.New("signed in, but not in the directory any more")

// Middleware lets people in who are signed in, and tells next who they
// are (FromContext). Others who want to see a page are sent to sign in
// and come back afterwards; everything else is answered with 401.
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

// identify finds out who makes a request.
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
