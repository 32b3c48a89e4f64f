package auth

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/server/directory"
	"github.com/assent-dev/assent/server/quota"
)

// start redirects the browser to the provider. It is a link and not a form, because
// browsers apply form-action to the redirects of a form.
func (a *Auth) start(w http.ResponseWriter, r *http.Request) {
	p := a.provider(r.PathValue("provider"))
	if p == nil {
		http.NotFound(w, r)
		return
	}
	d, err := p.discover(r.Context())
	if err != nil {
		a.fail(w, r, p, err)
		return
	}
	f := flow{
		Provider: p.ID,
		State:    secret(),
		Nonce:    secret(),
		Verifier: oauth2.GenerateVerifier(),
		Next:     local(r.URL.Query().Get("next")),
		Expires:  a.cfg.Now().Add(LinkAge),
	}
	a.putFlow(w, f)
	http.Redirect(
		w,
		r,
		d.oauth.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)),
		http.StatusFound,
	)
}

// Reasons to refuse a callback, in addition to errors from the provider and the directory.
var (
	errOtherBrowser = errors.New("the sign-in was not begun in this browser, or is over")
	errAnotherIdP   = errors.New("the answer comes from another provider")
	errDeclined     = errors.New("the provider declined")
	errBusy         = errors.New("too many sign-ins at once")
)

// callback handles the provider's redirect back to us.
func (a *Auth) callback(w http.ResponseWriter, r *http.Request) {
	p := a.provider(r.PathValue("provider"))
	if p == nil {
		http.NotFound(w, r)
		return
	}
	f, err := a.checkCallback(r, p)
	if err == nil {
		err = a.finish(w, r, p, f)
	}
	if !errors.Is(err, errBusy) { // after errBusy the same page may be requested again
		a.forgetFlow(w)
	}
	if err != nil {
		a.fail(w, r, p, err)
		return
	}
	http.Redirect(w, r, local(f.Next), http.StatusSeeOther) // local again, because the cookie comes from the browser
}

// checkCallback checks that this browser began the sign-in with this provider.
func (a *Auth) checkCallback(r *http.Request, p *provider) (flow, error) {
	f, ok := a.flowOf(r, p.ID)
	q := r.URL.Query()
	switch {
	case !ok || f.Provider != p.ID || !same(f.State, q.Get("state")):
		return f, errOtherBrowser
	case q.Has("iss") && q.Get("iss") != p.Issuer:
		return f, errAnotherIdP
	case q.Get("error") != "" || q.Get("code") == "":
		return f, fmt.Errorf("%w: %.60q", errDeclined, q.Get("error"))
	}

	return f, nil
}

// finish gets the person's claims from the provider and signs them in.
func (a *Auth) finish(w http.ResponseWriter, r *http.Request, p *provider, f flow) error {
	slot, err := a.slot(r, f)
	if err != nil {
		return err
	}
	defer slot.Return()
	if err := a.use(r.Context(), f); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), a.cfg.Timeout)
	defer cancel()
	c, err := p.exchange(ctx, r.URL.Query().Get("code"), f)
	if err != nil {
		return err
	}
	who, err := a.cfg.People.SignIn(r.Context(), p.Tenant, c, a.cfg.Now().Add(Absolute))
	if errors.Is(err, directory.ErrUnknown) || errors.Is(err, directory.ErrConflict) ||
		errors.Is(err, directory.ErrBlocked) {
		return &refusedError{c, err}
	}
	if err == nil {
		err = a.begin(w, r, signedIn{
			tenant:   p.Tenant,
			person:   who.ID,
			method:   MethodOIDC,
			provider: p.ID,
		})
	}

	if err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

// refusedError means that the provider has authenticated a person and the directory does
// not accept them.
type refusedError struct {
	claims directory.Claims
	err    error
}

func (e *refusedError) Error() string { return e.err.Error() }

func (e *refusedError) Unwrap() error { return e.err }

// mostGroups is the maximal number of groups of one sign-in in the log.
const mostGroups = 20

// facts returns what an operator needs to give the person access: the provider's claims,
// and the line to write. It contains no tokens.
func (e *refusedError) facts() []any {
	also := fmt.Sprintf("also: [%s]", strconv.Quote(people.Subject(e.claims.Issuer, e.claims.Subject)))
	groups := e.claims.Groups[:min(len(e.claims.Groups), mostGroups)]
	facts := []any{
		"issuer", e.claims.Issuer, "subject", e.claims.Subject,
		"email", e.claims.Email, "email_verified", e.claims.EmailVerified, "groups", groups,
	}
	if errors.Is(e.err, directory.ErrBlocked) {
		return facts
	}
	return append(
		facts, "line", also,
		"hint", "to let this account in, write the line at its person in people.yaml, or list one of its groups there",
	)
}

// exchangeParts limits concurrent exchanges. As the tenant, slot uses the sign-in's age.
func exchangeParts() quota.Parts {
	return quota.Parts{Total: 16, Tenant: 8, Caller: 4}
}

// slot waits until the code may be exchanged. Sign-ins of similar age share at most half of
// the slots, and those of one address a quarter. So a program that begins many sign-ins and
// returns at once does not delay a person who took the time to type a password, or anybody
// at another address.
func (a *Auth) slot(r *http.Request, f flow) (*quota.Hold, error) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	age := bits.Len64(uint64(max(0, f.age(a.cfg.Now())/time.Second))) // up to 1, 2, 4, 8… seconds
	slot, err := a.exchanges.Take(
		r.Context(),
		quota.Who{Tenant: strconv.Itoa(age), Caller: host},
		1,
		a.cfg.Timeout,
	)
	var full *quota.FullError
	if errors.As(err, &full) {
		return nil, fmt.Errorf("%w: %w", errBusy, err)
	}
	return slot, err
}

// errStore means that our own store failed.
var errStore = errors.New("the sign-in could not be kept")

// fail answers a failed sign-in. The page says what the person can do; the reason is
// logged.
func (a *Auth) fail(w http.ResponseWriter, r *http.Request, p *provider, err error) {
	facts := []any{"provider", p.ID, "tenant", p.Tenant, "error", err}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		facts = append(facts, refused.facts()...)
	}
	a.cfg.Log.WarnContext(r.Context(), "sign-in refused", facts...)
	m, status := message{Again: "/auth/sign-in"}, http.StatusForbidden
	switch {
	case errors.Is(err, errUnreachable):
		status, m.Title = http.StatusServiceUnavailable, p.Title+" can't be reached"
		m.Text = "The identity provider doesn't answer, so nobody can sign in right now. Nothing was decided. Try " +
			"again in a moment."
	case errors.Is(err, errBusy):
		status, m.Again = http.StatusTooManyRequests, ""
		m.Title, m.Text = "Many people are signing in",
			"Nothing is lost: reload this page in a moment, and your sign-in goes on."
	case errors.Is(err, errOtherBrowser):
		status, m.Title = http.StatusBadRequest, "Start again"
		m.Text = "This sign-in was begun in another browser or tab, or more than ten minutes ago."
	case errors.Is(err, errDeclined):
		m.Title, m.Text = "Not signed in", p.Title+" didn't sign you in."
	case errors.Is(err, directory.ErrUnknown):
		m.Title = "Not in the directory"
		m.Text = p.Title + " knows you, but the directory of people here doesn't. Whoever runs assent can add you, " +
			"or a group that you are in."
	case errors.Is(err, directory.ErrConflict):
		m.Title = "Two people in one account"
		m.Text = "The names of this account belong to two people of the directory. Whoever runs assent can mend it."
	case errors.Is(err, directory.ErrBlocked):
		m.Title = "Blocked"
		m.Text = "The directory of people here bars your account. Whoever runs assent can lift that."
	case errors.Is(err, errStore):
		status, m = http.StatusServiceUnavailable, unavailable()
	default:
		m.Title, m.Text = "Not signed in", "What "+p.Title+" sent could not be confirmed, so you are not signed in."
	}

	refuse(w, r, status, m)
}
