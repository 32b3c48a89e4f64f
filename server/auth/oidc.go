package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/assent-dev/assent/server/directory"
)

const (
	providerTimeout = 10 * time.Second // for all requests to a provider during one request of ours
	retryDiscovery  = 3 * time.Second  // after it failed
	freshDiscovery  = time.Hour
	againDiscovery  = 10 * time.Second // at least, between two questions because of tokens that don't verify
	maxAnswer       = 1 << 20          // bytes of one answer of a provider
	// leeway is how far our clock may be ahead of the provider's for an ID token that has
	// just expired. go-oidc itself accepts an nbf of up to 5 minutes in the future, of
	// which this leaves 4. The time of issue is not checked, because a token is valid only
	// for this sign-in (nonce, PKCE).
	leeway = time.Minute
)

// Provider is an OpenID Connect provider that authenticates the people of one tenant.
type Provider struct {
	ID           string // in addresses: its redirect address is URL/auth/callback/ID
	Title        string // on the button; empty for the issuer's host
	Tenant       string
	Issuer       string // exactly as the provider writes it
	ClientID     string
	ClientSecret string
	Scopes       []string // in addition to openid; email and profile if nil
	GroupsClaim  string   // the claim with the groups, in the ID token or UserInfo; empty for groups
}

func (p *Provider) check() error {
	if !providerID().MatchString(p.ID) {
		return fmt.Errorf("sign-in provider %q: expected an id of lower-case letters, digits and -", p.ID)
	}
	if p.ClientID == "" {
		return fmt.Errorf("sign-in provider %q: expected a client id", p.ID)
	}
	u, err := url.Parse(p.Issuer)
	if err != nil || !safeURL(p.Issuer, false) || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("sign-in provider %q: issuer %q: expected an https address", p.ID, p.Issuer)
	}
	return nil
}

// safeURL accepts https. It accepts http only for a provider on this machine, where the
// connection can't be intercepted.
func safeURL(text string, httpsOnly bool) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" &&
		(u.Scheme == "https" || u.Scheme == "http" && !httpsOnly && isLoopback(u.Hostname()))
}

// errUnreachable means that the provider can't be used at the moment.
var errUnreachable = errors.New("the identity provider can't be reached")

// provider is a Provider with its discovery document.
type provider struct {
	Provider
	redirect string
	client   *http.Client
	now      func() time.Time

	mu      sync.Mutex
	found   *discovered
	failed  error // of the last question
	retryAt time.Time
	again   time.Time // when a token that didn't verify last caused a new request
}

// discovered is the parsed discovery document.
type discovered struct {
	provider   *oidc.Provider
	oauth      oauth2.Config
	verifier   *oidc.IDTokenVerifier
	algorithms []string // of ID tokens
	scopes     []string // in the document; the provider may support more
	endSession string
	at         time.Time
}

func newProvider(p Provider, base *url.URL, client *http.Client, now func() time.Time) *provider {
	if u, err := url.Parse(p.Issuer); p.Title == "" && err == nil {
		p.Title = u.Host
	}
	if len(p.Scopes) == 0 {
		p.Scopes = []string{oidc.ScopeEmail, oidc.ScopeProfile}
	}
	if !slices.Contains(p.Scopes, oidc.ScopeOpenID) {
		p.Scopes = append([]string{oidc.ScopeOpenID}, p.Scopes...)
	}
	if p.GroupsClaim == "" {
		p.GroupsClaim = "groups"
	}
	return &provider{
		Provider: p,
		redirect: base.String() + "/auth/callback/" + p.ID,
		client:   bounded(client),
		now:      now,
	}
}

// bounded limits the duration of a provider's answers, and their size.
func bounded(client *http.Client) *http.Client {
	c := &http.Client{Timeout: providerTimeout}
	if client != nil {
		*c = *client
	}
	c.Transport = limited{c.Transport}
	return c
}

type limited struct{ next http.RoundTripper }

// RoundTrip truncates answers after maxAnswer. A truncated answer doesn't parse.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	next := l.next
	if next == nil {
		next = http.DefaultTransport
	}
	res, err := next.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}

	return res, err
}

// discover returns the provider's discovery document. It is read on first use, so that
// assent can start without the provider, soon after a failure, and once an hour.
func (p *provider) discover(ctx context.Context) (*discovered, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil && p.now().Sub(p.found.at) < freshDiscovery {
		return p.found, nil
	}
	return p.lookAgain(ctx)
}

// rediscover reads the discovery document again after a token didn't verify, because the
// provider may have changed its keys or algorithms. It returns the known document if it was
// read a moment ago or can't be read.
func (p *provider) rediscover(ctx context.Context, before *discovered) *discovered {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != before || p.now().Sub(p.again) < againDiscovery {
		return p.found
	}
	p.again = p.now()
	found, _ := p.lookAgain(ctx)
	return found
}

// lookAgain asks the provider, unless that failed a moment ago. While the provider doesn't
// answer, the previous document is used. The caller holds p.mu.
func (p *provider) lookAgain(ctx context.Context) (*discovered, error) {
	if now := p.now(); !now.Before(p.retryAt) {
		// The answer is shared by all requests, so it must not be cancelled with this one.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), providerTimeout)
		defer cancel()
		found, err := p.ask(ctx)
		p.failed = err
		if err == nil {
			found.at = now
			p.found = found
			return found, nil
		}
		p.retryAt = now.Add(retryDiscovery)
	}

	if p.found != nil {
		return p.found, nil
	}
	return nil, fmt.Errorf("%w: %w", errUnreachable, p.failed)
}

// ask reads the discovery document.
func (p *provider) ask(ctx context.Context) (*discovered, error) {
	op, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.Issuer)
	if err != nil {
		return nil, err
	}
	var meta struct {
		JWKS       string   `json:"jwks_uri"`
		EndSession string   `json:"end_session_endpoint"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
		Scopes     []string `json:"scopes_supported"`
	}
	if err := op.Claims(&meta); err != nil {
		return nil, err
	}
	httpsOnly := safeURL(p.Issuer, true)
	needed := []string{op.Endpoint().AuthURL, op.Endpoint().TokenURL, meta.JWKS}
	if info := op.UserInfoEndpoint(); info != "" {
		needed = append(needed, info)
	}
	for _, u := range needed {
		if !safeURL(u, httpsOnly) {
			return nil, fmt.Errorf("its discovery document names %q: expected an https address", u)
		}
	}
	if !safeURL(meta.EndSession, httpsOnly) {
		meta.EndSession = ""
	}
	return &discovered{
		provider: op,
		oauth: oauth2.Config{
			ClientID:     p.ClientID,
			ClientSecret: p.ClientSecret,
			Endpoint:     op.Endpoint(),
			RedirectURL:  p.redirect,
			Scopes:       p.Scopes,
		},
		verifier: op.Verifier(&oidc.Config{
			ClientID: p.ClientID,
			Now: func() time.Time {
				return p.now().Add(-leeway)
			},
		}),
		algorithms: meta.Algorithms,
		scopes:     meta.Scopes,
		endSession: meta.EndSession,
	}, nil
}

func (p *provider) startPath(next string) string {
	return "/auth/start/" + p.ID + "?next=" + url.QueryEscape(next)
}

// endSession returns the address at which the person can also end the session at the
// provider, or an empty string if there is none. The ID token is not kept, so the provider
// may ask the person.
func (p *provider) endSession(back string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil || p.found.endSession == "" {
		return ""
	}
	u, err := url.Parse(p.found.endSession)
	if err != nil {
		return ""
	}
	q := u.Query()
	q.Set("client_id", p.ClientID)
	q.Set("post_logout_redirect_uri", back)
	u.RawQuery = q.Encode()
	return u.String()
}

// exchange exchanges a code for the provider's claims about the person. The tokens are not
// kept.
func (p *provider) exchange(ctx context.Context, code string, f flow) (directory.Claims, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return directory.Claims{}, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	tokens, err := d.oauth.Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return directory.Claims{}, exchangeError(err)
	}
	raw, ok := tokens.Extra("id_token").(string)
	if !ok {
		return directory.Claims{}, errors.New("the provider sent no ID token")
	}
	token, d, err := p.verify(ctx, d, raw)
	if err == nil {
		err = p.confirm(token, tokens.AccessToken, f)
	}
	if err != nil {
		return directory.Claims{}, err
	}
	return p.claims(ctx, d, token, tokens)
}

// verify checks an ID token with the known discovery document, and if that fails, with the
// current one.
func (p *provider) verify(ctx context.Context, d *discovered, raw string) (*oidc.IDToken, *discovered, error) {
	token, err := d.verifier.Verify(ctx, raw)
	if err != nil {
		if now := p.rediscover(ctx, d); now != d {
			d = now
			token, err = d.verifier.Verify(ctx, raw)
		}
	}

	if err != nil {
		return nil, nil, fmt.Errorf("verify the ID token: %w", err)
	}
	return token, d, nil
}

// exchangeError removes everything that the provider sent except its error code.
func exchangeError(err error) error {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		if refused.Response != nil && refused.Response.StatusCode >= 500 {
			return fmt.Errorf(
				"%w: its token endpoint answers with status %d",
				errUnreachable,
				refused.Response.StatusCode,
			)
		}

		return fmt.Errorf("the provider refused the code: %.60q", refused.ErrorCode)
	}

	if unreached, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%w: %w", errUnreachable, unreached)
	}
	return errors.New("the provider's answer to the code can't be read")
}

// confirm makes the checks that the verifier leaves to its caller.
func (p *provider) confirm(t *oidc.IDToken, access string, f flow) error {
	var c struct {
		AuthorizedParty string `json:"azp"`
	}
	if err := t.Claims(&c); err != nil {
		return fmt.Errorf("read the ID token: %w", err)
	}
	switch {
	case !same(t.Nonce, f.Nonce):
		return errors.New("the ID token is for another sign-in (nonce)")
	case c.AuthorizedParty != "" && c.AuthorizedParty != p.ClientID,
		c.AuthorizedParty == "" && len(t.Audience) > 1:
		return errors.New("the ID token was given to another client (azp)")
	case t.Subject == "":
		return errors.New("the ID token has no subject")
	case t.AccessTokenHash != "":
		if err := t.VerifyAccessToken(access); err != nil {
			return fmt.Errorf("the ID token belongs to another access token: %w", err)
		}
	}

	return nil
}

func (a *Auth) provider(id string) *provider {
	i := slices.IndexFunc(a.providers, func(p *provider) bool { return p.ID == id })
	if i < 0 {
		return nil
	}
	return a.providers[i]
}
