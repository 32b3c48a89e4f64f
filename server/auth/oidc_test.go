package auth_test

import (
	"crypto"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/server/auth"
	"github.com/assent-dev/assent/server/directory"
)

func TestSignIn(t *testing.T) {
	for _, alg := range []string{"RS256", "ES256"} {
		t.Run(alg, func(t *testing.T) {
			h := open(t, false)
			h.idp.alg = alg
			b := h.browser()
			page := b.get("/r/1?tab=2")
			if page.StatusCode != http.StatusOK ||
				page.Request.URL.String() != h.server.URL+"/auth/sign-in?next=%2Fr%2F1%3Ftab%3D2" ||
				!strings.Contains(page.body, "Sign in with Corp") {
				t.Fatalf("%d %s %s", page.StatusCode, page.Request.URL, page.body)
			}
			if end := b.get("/auth/start/corp?next=%2Fr%2F1%3Ftab%3D2"); end.body != aliceIs+"/r/1?tab=2" {
				t.Fatalf("%d %s\n%s", end.StatusCode, end.body, h.logged())
			}
			if want := "acme signed_in alice@example.com alice@example.com map[method:oidc provider:corp]"; len(
				h.entries,
			) != 1 ||
				h.entries[0] != want {
				t.Errorf("recorded: %v", h.entries)
			}

			if b.cookie("-flow") != "" || b.cookie("") == "" {
				t.Error("cookies")
			}
			for _, secret := range []string{b.cookie(""), "the-access-token", "eyJ", clientSecret} {
				if strings.Contains(h.values.text(), secret) || strings.Contains(h.logged(), secret) {
					t.Errorf("%s is stored or logged", secret)
				}
			}
			if h.restart(); b.who() != aliceIs+"/who" {
				t.Error("a restart ends sessions")
			}
		})
	}
}

func TestCookieFlags(t *testing.T) {
	h := open(t, false)
	b := h.browser()
	to := b.begin()
	b.follow = false
	for _, res := range []answer{b.get("/auth/start/corp"), b.get(to)} {
		for _, line := range res.Header.Values("Set-Cookie") {
			if !strings.HasPrefix(line, "__Host-assent") || strings.Contains(line, "Domain=") {
				t.Errorf("cookie: %s", line)
			}
			for _, flag := range []string{"; Path=/;", "; HttpOnly", "; Secure", "; SameSite=Lax"} {
				if !strings.Contains(line, flag) {
					t.Errorf("cookie without %s: %s", flag, line)
				}
			}
		}
	}

	// The callback of the first sign-in comes too late: the second one has replaced it.
	if b.who() != "" {
		t.Error("signed in by a flow that is over")
	}
}

// TestTokenAttacks checks that a sign-in fails if its ID token is wrong in any way.
func TestTokenAttacks(t *testing.T) {
	now := time.Now().Unix()
	claim := func(k string, v any) func(*idp) { return func(p *idp) { p.claims = map[string]any{k: v} } }
	for name, attack := range map[string]func(*idp){
		"nonce of another":       claim("nonce", "bm9uY2U"),
		"no nonce":               claim("nonce", nil),
		"other audience":         claim("aud", "other-client"),
		"no audience":            claim("aud", nil),
		"several audiences":      claim("aud", []string{clientID, "other-client"}),
		"other authorized party": claim("azp", "other-client"),
		"expired":                claim("exp", now-90),
		"no expiry":              claim("exp", nil),
		"not yet":                claim("nbf", now+3600),
		"other issuer":           claim("iss", "https://evil.example"),
		"issuer with a slash":    func(p *idp) { p.claims = map[string]any{"iss": p.URL + "/"} },
		"no subject":             claim("sub", nil),
		"other access token":     claim("at_hash", "AAAAAAAAAAAAAAAAAAAAAA"),
		"claims of another type": claim("sub", 7),
		"unverified address": func(p *idp) {
			p.claims = map[string]any{"email_verified": false, "groups": nil}
		},
		"address without a word": func(p *idp) {
			p.claims = map[string]any{"email_verified": nil, "groups": nil}
		},
		"verified: 1": func(p *idp) {
			p.claims = map[string]any{"email_verified": 1, "groups": nil}
		},
		"nobody's address": func(p *idp) {
			p.claims = map[string]any{"email": "eve@example.com", "groups": []string{"staff"}}
		},
		"groups of another type": func(p *idp) {
			p.claims = map[string]any{"email": "eve@example.com", "groups": map[string]any{"risk": true}}
		},
		"look-alike address": func(p *idp) {
			p.claims = map[string]any{"email": "аlice@example.com", "groups": nil}
		},
		"alg none":  func(p *idp) { p.alg = "none" },
		"alg HS256": func(p *idp) { p.alg = "HS256" },
		"key of another": func(p *idp) {
			p.signer()
			p.forged = newKey(p.t, p.alg)
		},
		"no ID token": func(p *idp) {
			p.answer = func(m map[string]any) { delete(m, "id_token") }
		},
		"no token at all": func(p *idp) {
			p.answer = func(m map[string]any) { delete(m, "access_token") }
		},
		"ID token of no form": func(p *idp) {
			p.answer = func(m map[string]any) { m["id_token"] = "a.b" }
		},
		"ID token that is a list": func(p *idp) {
			p.answer = func(m map[string]any) { m["id_token"] = []string{"a"} }
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, false)
			attack(h.idp)
			b := h.browser()
			if res := b.get("/auth/start/corp"); res.StatusCode != http.StatusForbidden ||
				!strings.Contains(res.body, "Try again") {
				t.Errorf("%d %s", res.StatusCode, res.body)
			}
			if b.cookie("") != "" || b.who() != "" || len(h.entries) != 0 {
				t.Errorf("somebody is signed in: %s %v", b.who(), h.entries)
			}
			if log := h.logged(); !strings.Contains(log, "sign-in refused") || strings.Contains(log, "eyJ") {
				t.Errorf("log: %s", log)
			}
		})
	}
}

// TestCallbackAttacks checks that only the browser that began a sign-in can finish it,
// once, with the provider that it was sent to.
func TestCallbackAttacks(t *testing.T) {
	h := open(t, false)
	h.cfg.Providers = append(h.cfg.Providers, auth.Provider{
		ID:       "other",
		Tenant:   "acme",
		Issuer:   "https://other.example",
		ClientID: clientID,
	})
	h.restart()
	with := func(to, key, value string) string {
		u, _ := url.Parse(to)
		q := u.Query()
		q.Set(key, value)
		if value == "" {
			q.Del(key)
		}
		u.RawQuery = q.Encode()
		return u.String()
	}
	for name, c := range map[string]struct {
		change func(string) string
		status int
	}{
		"other state": {func(to string) string { return with(to, "state", "x") }, http.StatusBadRequest},
		"no state":    {func(to string) string { return with(to, "state", "") }, http.StatusBadRequest},
		"other provider": {func(to string) string {
			return strings.Replace(to, "/corp", "/other", 1)
		}, http.StatusBadRequest},
		"no provider": {func(to string) string {
			return strings.Replace(to, "/corp", "/none", 1)
		}, http.StatusNotFound},
		"other issuer": {func(to string) string {
			return with(to, "iss", "https://evil.example")
		}, http.StatusForbidden},
		"no code":    {func(to string) string { return with(to, "code", "") }, http.StatusForbidden},
		"other code": {func(to string) string { return with(to, "code", "x") }, http.StatusForbidden},
		"an error": {func(to string) string {
			return with(to, "error", "access_denied<b>")
		}, http.StatusForbidden},
	} {
		b := h.browser()
		if res := b.get(c.change(b.begin())); res.StatusCode != c.status || b.who() != "" ||
			strings.Contains(res.body, "<b>") {
			t.Errorf("%s: %d %s", name, res.StatusCode, res.body)
		}
	}

	b := h.browser()
	to := with(b.begin(), "iss", h.idp.URL)
	if res := h.browser().get(to); res.StatusCode != http.StatusBadRequest {
		t.Errorf("in another browser: %d", res.StatusCode)
	}
	if res := b.get(to); res.body != aliceIs+"/r/1" {
		t.Errorf("the real one: %d %s", res.StatusCode, res.body)
	}
	if res := b.get(to); res.StatusCode != http.StatusBadRequest {
		t.Errorf("the same callback again: %d", res.StatusCode)
	}
	used, _ := url.Parse(to)
	eve := h.browser()
	if res := eve.get(with(eve.begin(), "code", used.Query().Get("code"))); res.StatusCode != http.StatusForbidden ||
		eve.who() != "" {
		t.Errorf("a used code: %d", res.StatusCode)
	}
	stolen, _ := url.Parse(h.browser().begin()) // somebody else's code: PKCE binds it to their browser
	if res := eve.get(with(eve.begin(), "code", stolen.Query().Get("code"))); res.StatusCode != http.StatusForbidden ||
		eve.who() != "" {
		t.Errorf("a stolen code: %d", res.StatusCode)
	}
	late := h.browser()
	to = late.begin()
	h.pass(auth.LinkAge)
	if res := late.get(to); res.StatusCode != http.StatusBadRequest || late.who() != "" {
		t.Errorf("too late: %d", res.StatusCode)
	}
}

func TestKeyRotation(t *testing.T) {
	h := open(t, false)
	if res := h.browser().get("/auth/start/corp"); res.StatusCode != http.StatusOK {
		t.Fatal(res.body)
	}
	h.idp.set(func() { h.idp.kid = "second" })
	b := h.browser()
	if res := b.get("/auth/start/corp"); res.body != aliceIs+"/" {
		t.Errorf("a new key: %d %s", res.StatusCode, h.logged())
	}
	old := h.idp.keys["firstRS256"].(crypto.Signer)
	h.idp.set(func() { h.idp.forged = old })
	b = h.browser()
	if res := b.get("/auth/start/corp"); res.StatusCode != http.StatusForbidden || b.who() != "" {
		t.Errorf("a withdrawn key: %d", res.StatusCode)
	}
}

func TestProviderDown(t *testing.T) {
	h := open(t, false)
	down := func(b *browser, to string) {
		t.Helper()
		res := b.get(to)
		if res.StatusCode != http.StatusServiceUnavailable ||
			!strings.Contains(res.body, "Corp can&#39;t be reached") ||
			res.Header.Get("Retry-After") == "" ||
			b.who() != "" {
			t.Errorf("%d %s", res.StatusCode, res.body)
		}
	}
	h.idp.set(func() { h.idp.down = true })
	h.restart() // starts without the provider
	b := h.browser()
	down(b, "/auth/start/corp")
	down(b, "/auth/start/corp")
	if n := h.idp.calls["/.well-known/openid-configuration"]; n != 1 {
		t.Errorf("a provider that is down was asked %d times at once", n)
	}
	h.idp.set(func() { h.idp.down = false })
	h.pass(4 * time.Second)
	to := b.begin() // the provider answers again
	h.idp.set(func() { h.idp.down = true })
	down(b, to)
	h.idp.set(func() { h.idp.down, h.idp.broken = false, true })
	down(b, "/auth/start/corp")
	h.idp.set(func() { h.idp.broken = false })
	h.cfg.Client = &http.Client{Transport: withoutToken{h.cfg.Client.Transport}}
	h.restart()
	down(b, "/auth/start/corp")
	h.cfg.Client = nil // trusts no certificate of a test
	h.restart()
	down(b, "/auth/start/corp")
	h.cfg.Client = &http.Client{Transport: transport(h.idp.Server)}
	h.restart()
	if res := b.get("/auth/start/corp"); res.body != aliceIs+"/" {
		t.Errorf("%d %s", res.StatusCode, h.logged())
	}
	h.idp.set(func() {
		h.idp.meta = func(m map[string]any) { m["issuer"] = "https://evil.example" }
	})
	h.pass(25 * time.Hour) // asked again, and fails: yesterday's document is used
	if b.follow = false; b.get("/auth/start/corp").StatusCode != http.StatusFound {
		t.Error("a failed refresh closes the door")
	}
	if strings.Contains(h.logged(), "secret-of-the-idp") {
		t.Errorf("log: %s", h.logged())
	}
	h.idp.Close()
	h.restart()
	down(h.browser(), "/auth/start/corp")
}

// withoutToken fails connections to the token endpoint.
type withoutToken struct{ http.RoundTripper }

func (w withoutToken) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/token" {
		return nil, errors.New("connection reset")
	}
	return w.RoundTripper.RoundTrip(r)
}

// TestDiscoveryAttacks checks that a document of another issuer, or with addresses that are
// not https, is not used.
func TestDiscoveryAttacks(t *testing.T) {
	for key, value := range map[string]string{
		"issuer":                 "https://evil.example",
		"authorization_endpoint": "javascript:alert(1)",
		"token_endpoint":         "http://127.0.0.1/token",
		"jwks_uri":               "http://127.0.0.1/keys",
	} {
		h := open(t, false)
		h.idp.meta = func(m map[string]any) { m[key] = value }
		if res := h.browser().get("/auth/start/corp"); res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", key, res.StatusCode)
		}
	}

	h := open(t, false)
	h.idp.meta = func(m map[string]any) { m["padding"] = strings.Repeat("x", 2<<20) }
	if res := h.browser().get("/auth/start/corp"); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a huge document: %d", res.StatusCode)
	}
}

func TestGroupsOfClaims(t *testing.T) {
	h := open(t, false)
	h.cfg.Providers[0].GroupsClaim = "https://acme.example/groups"
	h.restart()
	for _, c := range []struct {
		claim any
		want  string
	}{
		{[]any{"risk", 7, "staff", ""}, "[desk-heads risk]"},
		{"risk", "[desk-heads risk]"},
		{nil, "[desk-heads]"},
		{true, "[desk-heads]"},
	} {
		h.idp.set(func() {
			h.idp.claims = map[string]any{"https://acme.example/groups": c.claim, "email_verified": "true"}
		})
		if res := h.browser().get("/auth/start/corp"); !strings.Contains(res.body, c.want) {
			t.Errorf("%v: %s", c.claim, res.body)
		}
	}

	h.idp.set(func() {
		h.idp.claims = map[string]any{
			"email":                       "eve@example.com",
			"name":                        "Eve",
			"https://acme.example/groups": "risk",
		}
		h.idp.claims["sub"] = "eve"
	})
	b := h.browser()
	if res := b.get("/auth/start/corp"); res.body != "true acme eve@example.com [risk] oidc corp /" {
		t.Errorf("whom only the provider knows: %s", res.body)
	}
}

func TestSignInThatCannotBeKept(t *testing.T) {
	lost := errors.New("lost")
	for name, lose := range map[string]func(*harness){
		"ledger": func(h *harness) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.refuse = lost
		},
		"store":     func(h *harness) { h.values.set(func() { h.values.lost = lost }) },
		"directory": func(h *harness) { h.people.set(func() { h.people.lost = lost }) },
	} {
		h := open(t, false)
		b := h.browser()
		to := b.begin()
		lose(h)
		if res := b.get(to); res.StatusCode != http.StatusServiceUnavailable || b.cookie("") != "" ||
			strings.Contains(res.body, "lost") {
			t.Errorf("%s: %d %s", name, res.StatusCode, res.body)
		}
	}
}

func TestConflict(t *testing.T) {
	h := open(t, false)
	both := "schema_version: \"1.0.0\"\npeople:\n  - {id: alice@example.com}\n  - {id: bob, also: [\"oidc:" +
		h.idp.URL + "|abc123\"]}\n"
	h.people.set(func() { h.people.base = directory.Tenants{"acme": read(t, both)} })
	if res := h.browser().get("/auth/start/corp"); res.StatusCode != http.StatusForbidden ||
		!strings.Contains(res.body, "two people") {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
}
