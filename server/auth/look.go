package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/wait"
)

// How often Run asks a provider: one that answers, and one that doesn't.
const (
	lookEvery = time.Minute
	lookSoon  = 10 * time.Second
)

// Run asks every provider at once, and repeatedly until ctx ends, so that operators learn
// of a provider that doesn't answer before people want to sign in.
func (a *Auth) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, p := range a.providers {
		all.Go(func() { a.follow(ctx, p) })
	}
	all.Wait()
}

func (a *Auth) follow(ctx context.Context, p *provider) {
	told := errors.New("nothing was told yet")
	for ctx.Err() == nil {
		d, _ := p.discover(ctx)
		failed := p.unreached()
		a.tell(p, d, told, failed)
		told = failed
		pause := lookEvery
		if failed != nil {
			pause = lookSoon
		}
		_ = wait.Pause(ctx, pause) // the loop checks ctx
	}
}

// tell logs when a provider begins or stops to answer.
func (a *Auth) tell(p *provider, d *discovered, before, now error) {
	facts := []any{"provider", p.ID, "tenant", p.Tenant, "issuer", p.Issuer}
	switch {
	case now != nil && (before == nil || before.Error() != now.Error()):
		a.cfg.Log.Warn("the identity provider can't be reached: nobody can sign in there until it answers",
			append(facts, "error", now)...)
	case now == nil && before != nil:
		a.cfg.Log.Info(
			"the identity provider answers",
			append(facts, "algorithms", d.algorithms, "scopes", p.Scopes, "redirect_uri", p.redirect)...)
		for _, hint := range p.hints(d) {
			a.cfg.Log.Warn(hint, facts...)
		}
	}
}

// unreached returns the error of the last request to the provider, or nil.
func (p *provider) unreached() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// hints returns what is unusual about a provider's offer, but may be correct.
func (p *provider) hints(d *discovered) []string {
	var out []string
	if slices.Contains(d.scopes, p.GroupsClaim) && !slices.Contains(p.Scopes, p.GroupsClaim) {
		out = append(out, fmt.Sprintf("the provider offers the scope %q, which is not asked for: "+
			"without it the claim of that name may never come", p.GroupsClaim))
	}
	for _, scope := range p.Scopes {
		if len(d.scopes) > 0 && !slices.Contains(d.scopes, scope) {
			out = append(
				out,
				fmt.Sprintf("the scope %q is asked for, and the provider's discovery document doesn't name it",
					scope),
			)
		}
	}

	return out
}

// Check returns an error while a provider doesn't answer.
func (a *Auth) Check(context.Context) error {
	var errs []error
	for _, p := range a.providers {
		if err := p.unreached(); err != nil {
			errs = append(errs, fmt.Errorf("tenant %s: %s: %w", p.Tenant, p.Issuer, err))
		}
	}
	return errors.Join(errs...)
}

// Registered holds the addresses that must be registered at a provider.
type Registered struct {
	Tenant    string
	Redirect  string // where it sends browsers back to
	SignedOut string // where it may send them after they sign out there
}

// Addresses lists the addresses that must be registered at the providers.
func (a *Auth) Addresses() []Registered {
	var out []Registered
	for _, p := range a.providers {
		out = append(out, p.registered(a.base.String()))
	}
	return out
}

func (p *provider) registered(base string) Registered {
	return Registered{
		Tenant:    p.Tenant,
		Redirect:  p.redirect,
		SignedOut: base + "/auth/signed-out",
	}
}

// Offer is what a provider offers, for the person who configures it.
type Offer struct {
	Registered
	Algorithms []string // by which it signs ID tokens
	Scopes     []string // that sign-ins ask for
	UserInfo   bool     // it can be asked for claims that the ID token lacks
	ClockAhead time.Duration
	Problems   []string // because of which nobody could sign in
	Hints      []string
}

// Look asks a provider for its offer. url is the public address of assent.
func Look(ctx context.Context, config Provider, url string, client *http.Client) (Offer, error) {
	base, err := checkURL(url, false)
	if err != nil {
		return Offer{}, err
	}
	if err := config.check(); err != nil {
		return Offer{}, err
	}
	p := newProvider(config, base, client, time.Now)
	watch := &dated{next: p.client.Transport}
	p.client.Transport = watch
	d, err := p.discover(ctx)
	if err != nil {
		return Offer{}, err
	}
	offer := Offer{
		Registered: p.registered(base.String()),
		Algorithms: d.algorithms,
		Scopes:     p.Scopes,
		UserInfo:   d.provider.UserInfoEndpoint() != "",
		ClockAhead: watch.ahead,
		Hints:      p.hints(d),
	}
	if len(d.algorithms) > 0 && !slices.ContainsFunc(d.algorithms, signs) {
		offer.Problems = append(
			offer.Problems,
			fmt.Sprintf(
				"it signs ID tokens by %v only: expected RS256, or another of RS, PS, ES and EdDSA",
				d.algorithms,
			),
		)
	}

	if offer.ClockAhead.Abs() > leeway {
		offer.Problems = append(offer.Problems, fmt.Sprintf("its clock and ours are %s apart: set both by NTP",
			offer.ClockAhead.Abs()))
	}
	return offer, nil
}

// signs reports whether ID tokens with an algorithm are accepted.
func signs(algorithm string) bool {
	return slices.Contains(
		[]string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512",
			"EdDSA"},
		algorithm,
	)
}

// dated records how far the answering server's clock is ahead.
type dated struct {
	next  http.RoundTripper
	ahead time.Duration
}

func (d *dated) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := d.next.RoundTrip(r)
	if err == nil {
		if at, err := http.ParseTime(res.Header.Get("Date")); err == nil {
			d.ahead = time.Until(at).Round(time.Second)
		}
	}
	return res, err
}
