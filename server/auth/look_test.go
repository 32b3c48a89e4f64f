package auth_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/auth"
)

// TestNoticesAChangeOfAlgorithm checks that a provider that starts to use another
// algorithm, or another address of its keys, is asked again at once, but not for every
// token that doesn't verify.
func TestNoticesAChangeOfAlgorithm(t *testing.T) {
	h := open(t, false)
	h.idp.algs = []string{"RS256"}
	if res := h.browser().get("/auth/start/corp"); res.body != aliceIs+"/" {
		t.Fatalf("%d %s", res.StatusCode, res.body)
	}
	asked := func() int { return h.idp.calls["/.well-known/openid-configuration"] }
	h.idp.set(func() {
		h.idp.alg = "ES256"
		h.idp.kid = "second"
		h.idp.algs = []string{"ES256"}
	})
	if res := h.browser().get("/auth/start/corp"); res.body != aliceIs+"/" || asked() != 2 {
		t.Errorf("%d, asked %d times\n%s", res.StatusCode, asked(), h.logged())
	}
	h.idp.set(func() { h.idp.forged = newKey(t, "ES256") })
	for range 3 {
		if res := h.browser().get("/auth/start/corp"); res.StatusCode != http.StatusForbidden || asked() != 2 {
			t.Errorf("a forged token: %d, asked %d times", res.StatusCode, asked())
		}
	}
	h.pass(2 * time.Minute)
	if res := h.browser().get("/auth/start/corp"); res.StatusCode != http.StatusForbidden || asked() != 3 {
		t.Errorf("later: %d, asked %d times", res.StatusCode, asked())
	}
}

// TestLeewayOfAMinute checks that short-lived tokens are accepted if the clocks differ by
// up to a minute, and not by more.
func TestLeewayOfAMinute(t *testing.T) {
	for behind, status := range map[time.Duration]int{
		45 * time.Second: http.StatusOK,
		85 * time.Second: http.StatusOK,
		95 * time.Second: http.StatusForbidden,
	} {
		h := open(t, false)
		issued := h.clock().Add(-behind)
		h.idp.claims = map[string]any{"iat": issued.Unix(), "exp": issued.Add(30 * time.Second).Unix()}
		if res := h.browser().get("/auth/start/corp"); res.StatusCode != status {
			t.Errorf("%s old: %d", behind, res.StatusCode)
		}
	}

	h := open(t, false) // a provider whose clock is ahead
	at := h.clock().Add(2 * time.Minute)
	h.idp.claims = map[string]any{"iat": at.Unix(), "nbf": at.Unix(), "exp": at.Add(time.Minute).Unix()}
	if res := h.browser().get("/auth/start/corp"); res.StatusCode != http.StatusOK {
		t.Errorf("ahead: %d %s", res.StatusCode, h.logged())
	}
}

// TestSaysAtTheStartThatAProviderIsDown also checks that the provider is a degraded part
// until it answers.
func TestSaysAtTheStartThatAProviderIsDown(t *testing.T) {
	h := open(t, false)
	h.idp.down = true
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		h.auth.Run(ctx)
		close(ended)
	}()
	testwait.Until(t, "the log reports the failure", func() bool {
		return strings.Contains(h.logged(), "the identity provider can't be reached")
	})
	if err := h.auth.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "tenant acme: "+h.idp.URL) {
		t.Errorf("got %v", err)
	}
	cancel()
	<-ended
	h.idp.set(func() {
		h.idp.down = false
		h.idp.meta = func(m map[string]any) { m["scopes_supported"] = []string{"openid", "groups"} }
	})
	h.restart()
	ctx, cancel = context.WithCancel(t.Context())
	ended = make(chan struct{})
	go func() {
		h.auth.Run(ctx)
		close(ended)
	}()
	testwait.Until(t, "the log reports the recovery", func() bool {
		return strings.Contains(h.logged(), "the identity provider answers")
	})
	if err := h.auth.Check(t.Context()); err != nil {
		t.Error(err)
	}
	cancel()
	<-ended
	for _, want := range []string{"redirect_uri=" + h.server.URL + "/auth/callback/corp",
		`offers the scope \"groups\", which is not asked for`} {
		if !strings.Contains(h.logged(), want) {
			t.Errorf("no %s in %s", want, h.logged())
		}
	}
}

// TestAddressesToRegister checks that they are the addresses at which the server answers.
func TestAddressesToRegister(t *testing.T) {
	h := open(t, false)
	got := h.auth.Addresses()
	want := auth.Registered{
		Tenant:    "acme",
		Redirect:  h.server.URL + "/auth/callback/corp",
		SignedOut: h.server.URL + "/auth/signed-out",
	}
	if len(got) != 1 || got[0] != want {
		t.Fatalf("got %+v", got)
	}
	h.browser().get("/auth/start/corp")
	if asked := h.idp.asked[0].Get("redirect_uri"); asked != want.Redirect {
		t.Errorf("browsers come back to %s", asked)
	}
	if res := h.browser().get(want.SignedOut); res.StatusCode != http.StatusOK {
		t.Errorf("%s: %d", want.SignedOut, res.StatusCode)
	}
}

// TestTheSignInPageNamesTheProvider checks that it has its title or else the issuer's host,
// and the tenant only if several providers have the same title.
func TestTheSignInPageNamesTheProvider(t *testing.T) {
	h := open(t, false)
	host := strings.TrimPrefix(h.idp.URL, "https://")
	h.cfg.Providers[0].Title = ""
	h.restart()
	if page := h.browser().get("/auth/sign-in"); !strings.Contains(page.body, "Sign in with "+host+"<") {
		t.Error(page.body)
	}
	second := h.cfg.Providers[0]
	second.ID, second.Tenant = "second", "globex"
	h.cfg.Providers = append(h.cfg.Providers, second)
	h.restart()
	for _, tenant := range []string{"acme", "globex"} {
		if page := h.browser().get("/auth/sign-in"); !strings.Contains(
			page.body,
			"Sign in with "+host+" ("+tenant+")<",
		) {
			t.Error(page.body)
		}
	}
}

func TestLook(t *testing.T) {
	h := open(t, false)
	look := func() (auth.Offer, error) {
		return auth.Look(t.Context(), h.cfg.Providers[0], "https://assent.example", h.cfg.Client)
	}
	offer, err := look()
	if err != nil || len(offer.Problems)+len(offer.Hints) > 0 ||
		offer.Redirect != "https://assent.example/auth/callback/corp" || offer.UserInfo {
		t.Errorf("%+v, %v", offer, err)
	}
	h.idp.set(func() {
		h.idp.algs = []string{"HS256"}
		h.idp.info = says(nil)
		h.idp.meta = func(m map[string]any) { m["scopes_supported"] = []string{"openid", "email"} }
	})
	offer, err = look()
	if err != nil || len(offer.Problems) != 1 || !strings.Contains(offer.Problems[0], "HS256") ||
		len(offer.Hints) != 1 ||
		!strings.Contains(offer.Hints[0], `"profile"`) ||
		!offer.UserInfo {
		t.Errorf("%+v, %v", offer, err)
	}

	h.idp.set(func() { h.idp.down = true })
	if _, err := look(); err == nil {
		t.Error("a provider that is down has no offer")
	}
	if _, err := auth.Look(t.Context(), h.cfg.Providers[0], "http://assent.example", nil); err == nil {
		t.Error("people can't sign in over http")
	}
}
