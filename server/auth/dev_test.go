package auth_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/server/auth"
	"github.com/assent-dev/assent/server/directory"
)

func (h *harness) link(person string) string {
	h.t.Helper()
	to, err := h.auth.DevLink(h.t.Context(), "acme", person)
	must(h.t, err)
	return strings.TrimPrefix(to, h.server.URL)
}

func TestDevLink(t *testing.T) {
	h := open(t, true)
	to := h.link("BOB")
	b := h.browser()
	for range 3 { // mail scanners, previews, prefetch
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
			if res := h.browser().do(method, to, nil); method == http.MethodGet &&
				(!strings.Contains(res.body, "Sign in as <strong>bob</strong>") ||
					!strings.Contains(res.body, "Dev mode")) {
				t.Errorf("%s: %s", method, res.body)
			}
		}
	}

	b.header.Set("Origin", "https://evil.example")
	if res := b.do(http.MethodPost, to, nil); res.StatusCode != http.StatusForbidden {
		t.Errorf("from another site: %d", res.StatusCode)
	}
	b.header.Set("Origin", h.server.URL)
	if res := b.do(http.MethodPost, to, nil); res.body != "true acme bob [risk] dev  /" {
		t.Fatalf("%d %s", res.StatusCode, res.body)
	}
	if strings.Contains(h.values.text(), strings.TrimPrefix(to, "/auth/dev/")) ||
		strings.Contains(h.values.text(), b.cookie("")) {
		t.Error("secrets are stored")
	}
	if len(h.entries) != 1 || h.entries[0] != "acme signed_in bob bob map[method:dev]" {
		t.Errorf("recorded: %v", h.entries)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if res := h.browser().do(method, to, nil); res.StatusCode != http.StatusGone || len(h.entries) != 1 {
			t.Errorf("used: %d", res.StatusCode)
		}
	}
	if res := h.browser().do(http.MethodPost, "/auth/dev/guess", nil); res.StatusCode != http.StatusGone {
		t.Errorf("guessed: %d", res.StatusCode)
	}
	to = h.link("bob")
	if h.pass(auth.LinkAge); h.browser().do(http.MethodPost, to, nil).StatusCode != http.StatusGone {
		t.Error("an old link")
	}
}

// TestTheDevCookieNamesItsPort checks that a sign-in at a second server on the same machine
// does not replace the session at the first one.
func TestTheDevCookieNamesItsPort(t *testing.T) {
	h, other := open(t, true), open(t, true)
	b := h.browser()
	if res := b.do(http.MethodPost, h.link("bob"), nil); res.StatusCode != http.StatusOK {
		t.Fatal(res.body)
	}
	if res := b.do(http.MethodPost, other.server.URL+other.link("alice@example.com"),
		nil); res.StatusCode != http.StatusOK {
		t.Fatal(res.body)
	}
	if who := b.who(); !strings.Contains(who, " bob ") {
		t.Errorf("at the first server the browser is %q", who)
	}
}

func TestDevCookie(t *testing.T) {
	h := open(t, true)
	b := h.browser()
	b.follow = false
	res := b.do(http.MethodPost, h.link("bob"), nil)
	line := res.Header.Get("Set-Cookie")
	if !strings.HasPrefix(line, "assent-") || strings.Contains(line, "Secure") || !strings.Contains(line, "HttpOnly") ||
		!strings.Contains(line, "SameSite=Lax") ||
		!strings.Contains(line, "Path=/") {
		t.Errorf("cookie: %s", line)
	}

	if b.do(http.MethodPost, "/auth/sign-out", nil).Header.Get("Location") != "/auth/signed-out" || b.who() != "" {
		t.Error("sign-out")
	}
}

// TestDevLinkOnce checks that if many press the button at once, one gets in.
func TestDevLinkOnce(t *testing.T) {
	h := open(t, true)
	to := h.link("bob")
	var in atomic.Int32
	var all sync.WaitGroup
	for range 32 {
		b := h.browser()
		all.Go(func() {
			if b.do(http.MethodPost, to, nil).StatusCode == http.StatusOK {
				in.Add(1)
			}
		})
	}

	if all.Wait(); in.Load() != 1 {
		t.Errorf("%d got in", in.Load())
	}
}

func TestDevLinkRefused(t *testing.T) {
	h := open(t, true)
	if _, err := h.auth.DevLink(t.Context(), "acme", "eve"); !errors.Is(err, approval.ErrUnknownName) {
		t.Errorf("nobody: %v", err)
	}
	if _, err := h.auth.DevLink(t.Context(), "other", "bob"); !errors.Is(err, approval.ErrUnknownName) {
		t.Errorf("another tenant: %v", err)
	}
	gone := h.link("bob")
	h.people.set(func() { h.people.base = directory.Tenants{} })
	if res := h.browser().do(http.MethodPost, gone, nil); res.StatusCode != http.StatusGone {
		t.Errorf("taken out of the directory: %d", res.StatusCode)
	}
	h.values.set(func() { h.values.lost = errors.New("lost") })
	if res := h.browser().do(http.MethodPost, gone, nil); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("store lost: %d", res.StatusCode)
	}
	h.people.set(func() {
		h.people.base = directory.Tenants{"acme": read(t, peopleFile)}
	})
	if _, err := h.auth.DevLink(t.Context(), "acme", "bob"); err == nil {
		t.Error("a link that is nowhere")
	}
	h.people.set(func() { h.people.lost = errors.New("lost") })
	if _, err := h.auth.DevLink(t.Context(), "acme", "bob"); err == nil {
		t.Error("a link for whom nobody knows")
	}
	real := open(t, false)
	if _, err := real.auth.DevLink(t.Context(), "acme", "bob"); !errors.Is(err, auth.ErrNoDev) {
		t.Errorf("without dev mode: %v", err)
	}
	if res := real.browser().get("/auth/dev/x"); res.StatusCode != http.StatusNotFound {
		t.Errorf("without dev mode: %d", res.StatusCode)
	}
}

func TestCheckDev(t *testing.T) {
	for addr, fine := range map[string]bool{
		"127.0.0.1:8080":           true,
		"127.8.9.1:0":              true,
		"[::1]:8080":               true,
		"localhost:8080":           true,
		"LOCALHOST:1":              true,
		":8080":                    false,
		"0.0.0.0:8080":             false,
		"[::]:8080":                false,
		"192.168.0.1:80":           false,
		"example.com:80":           false,
		"localhost.example.com:80": false,
		"localhost":                false,
		"":                         false,
		"[::ffff:10.0.0.1]:80":     false,
	} {
		if err := auth.CheckDev(addr); (err == nil) != fine {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestNew(t *testing.T) {
	h := open(t, true)
	fine := auth.Provider{ID: "corp", Issuer: "https://idp.example", ClientID: "c"}
	for name, change := range map[string]func(*auth.Config){
		"no URL":            func(c *auth.Config) { c.URL = "" },
		"http without dev":  func(c *auth.Config) { c.Dev = false },
		"dev for everybody": func(c *auth.Config) { c.URL = "https://assent.example" },
		"other scheme":      func(c *auth.Config) { c.URL = "ftp://localhost" },
		"URL with a path":   func(c *auth.Config) { c.URL = "http://localhost/assent" },
		"URL with a user":   func(c *auth.Config) { c.URL = "http://u@localhost" },
		"no values":         func(c *auth.Config) { c.Values = nil },
		"no people":         func(c *auth.Config) { c.People = nil },
		"no record":         func(c *auth.Config) { c.Record = nil },
		"provider id": func(c *auth.Config) {
			p := fine
			p.ID = "a/b"
			c.Providers = []auth.Provider{p}
		},
		"no client": func(c *auth.Config) {
			p := fine
			p.ClientID = ""
			c.Providers = []auth.Provider{p}
		},
		"http issuer": func(c *auth.Config) {
			p := fine
			p.Issuer = "http://idp.example"
			c.Providers = []auth.Provider{p}
		},
		"issuer with query": func(c *auth.Config) {
			p := fine
			p.Issuer += "?a=b"
			c.Providers = []auth.Provider{p}
		},
		"two of the same id": func(c *auth.Config) { c.Providers = []auth.Provider{fine, fine} },
	} {
		cfg := h.cfg
		if change(&cfg); true {
			if _, err := auth.New(cfg); err == nil {
				t.Errorf("%s is accepted", name)
			}
		}
	}

	cfg := h.cfg
	cfg.Now = nil
	cfg.Log = nil
	cfg.Providers = []auth.Provider{fine}
	if _, err := auth.New(cfg); err != nil {
		t.Error(err)
	}
}

// TestPages checks that no page has inline scripts or styles, and that foreign values are
// escaped.
func TestPages(t *testing.T) {
	h := open(t, true)
	for _, path := range []string{
		"/auth/sign-in",
		"/auth/signed-out",
		"/auth/signed-out?from=x",
		"/auth/dev/x",
		h.link(`<b>&mallory"`),
	} {
		page := h.browser().get(path)
		for _, bad := range []string{"<script", "<style", "style=", " on", "<b>"} {
			if strings.Contains(page.body, bad+"=") ||
				!strings.HasPrefix(bad, " ") && strings.Contains(page.body, bad) {
				t.Errorf("%s has %s:\n%s", path, bad, page.body)
			}
		}

		if !strings.Contains(page.body, `<link rel="stylesheet" href="/assets/inbox.css">`) ||
			!strings.Contains(page.body, `class="card"`) ||
			page.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s:\n%s", path, page.body)
		}
	}
}
