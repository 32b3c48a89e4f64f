package auth_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/server/auth"
	"github.com/assent-dev/assent/server/directory"
)

// signedIn returns a browser whose person is signed in.
func (h *harness) signedIn() *browser {
	h.t.Helper()
	b := h.browser()
	if res := b.get("/auth/start/corp"); res.body != aliceIs+"/" {
		h.t.Fatalf("%d %s\n%s", res.StatusCode, res.body, h.logged())
	}
	return b
}

// plant puts a session cookie into a browser.
func (b *browser) plant(token string) {
	u, _ := url.Parse(b.h.server.URL)
	name := "__Host-assent"
	if u.Scheme == "http" {
		name = "assent-" + u.Port()
	}
	b.client.Jar.SetCookies(u, []*http.Cookie{{Name: name, Value: token, Path: "/", Secure: u.Scheme == "https"}})
}

func TestIdleAndAbsolute(t *testing.T) {
	h := open(t, false)
	b := h.signedIn()
	for range 11 {
		h.pass(time.Hour)
		if b.who() == "" {
			t.Fatal("a session that is used ends")
		}
	}

	if h.pass(time.Hour + time.Minute); b.who() != "" {
		t.Error("a session outlives twelve hours")
	}
	b = h.signedIn()
	if h.pass(auth.Idle - time.Minute); b.who() == "" {
		t.Error("idle too early")
	}
	if h.pass(auth.Idle + time.Minute); b.who() != "" {
		t.Error("an idle session lives on")
	}
	if h.pass(-auth.Idle); b.who() != "" {
		t.Error("an idle session came back")
	}
}

// TestFewWrites checks that pages that poll don't write to the store each time.
func TestFewWrites(t *testing.T) {
	h := open(t, false)
	b := h.signedIn()
	before := h.values.sets
	for range 20 {
		b.who()
		h.pass(time.Second)
	}
	if h.values.sets != before {
		t.Errorf("%d writes", h.values.sets-before)
	}
}

func TestSessionFixation(t *testing.T) {
	h := open(t, false)
	b := h.browser()
	b.plant("planted-by-somebody-else")
	b.get("/auth/start/corp")
	if b.who() != aliceIs+"/who" || b.cookie("") == "planted-by-somebody-else" {
		t.Error("the planted token is in use")
	}
	eve := h.browser()
	if eve.plant("planted-by-somebody-else"); eve.who() != "" {
		t.Error("the planted token is signed in")
	}
	first := b.cookie("")
	b.get("/auth/start/corp")
	if eve.plant(first); eve.who() != "" || b.cookie("") == first || b.who() == "" {
		t.Error("the token of an earlier sign-in lives on")
	}
}

// TestStolenStore checks that nothing in the store can be used to sign in.
func TestStolenStore(t *testing.T) {
	h := open(t, false)
	h.signedIn()
	eve := h.browser()
	for k := range h.values.all {
		if eve.plant(k[1]); eve.who() != "" {
			t.Errorf("%s signs somebody in", k[0])
		}
	}
}

func TestBrokenSession(t *testing.T) {
	h := open(t, false)
	b := h.signedIn()
	for text, status := range map[string]int{
		"{":  http.StatusServiceUnavailable,
		"{}": http.StatusUnauthorized,
		`{"values":{"person":"bob","tenant":"acme","at":"x"}}`: http.StatusServiceUnavailable,
	} {
		h.values.set(func() {
			for k, v := range h.values.all {
				if k[0] == "session" {
					h.values.all[k] = value{[]byte(text), v.expires}
				}
			}
		})
		if b.header = nil; b.get("/").StatusCode != status {
			t.Errorf("%s: %d", text, b.get("/").StatusCode)
		}
	}
}

func TestSignOut(t *testing.T) {
	h := open(t, false)
	b := h.signedIn()
	second := h.signedIn()
	third := h.signedIn()
	token := b.cookie("")
	res := b.do(http.MethodPost, "/auth/sign-out", nil)
	if res.StatusCode != http.StatusOK || b.cookie("") != "" || b.who() != "" || second.who() == "" {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	if b.plant(token); b.who() != "" {
		t.Error("the token lives on")
	}
	end := h.idp.URL + "/end?client_id=" + clientID + "&amp;post_logout_redirect_uri=" + strings.ReplaceAll(
		url.QueryEscape(h.server.URL+"/auth/signed-out"),
		"+",
		"%20",
	) + "&amp;theme=dark"
	if !strings.Contains(res.body, end) {
		t.Errorf("no way to sign out of the provider (%s):\n%s", end, res.body)
	}
	bob := read(
		t,
		"schema_version: \"1.0.0\"\npeople:\n  - {id: alice@example.com, groups: [desk-heads]}\n  - {id: bob}\n"+
			"groups: {desk-heads: {}, x: {}}\n",
	)
	h.people.set(func() { h.people.base = directory.Tenants{"acme": bob} })
	h.idp.set(func() {
		h.idp.claims = map[string]any{"sub": "b", "email": "bob@example.com", "groups": []string{"x"}}
	})
	other := h.browser()
	other.get("/auth/start/corp")
	second.do(http.MethodPost, "/auth/sign-out", url.Values{"everywhere": {"yes"}})
	if second.who() != "" || third.who() != "" || other.who() == "" {
		t.Errorf("everywhere: %q %q %q", second.who(), third.who(), other.who())
	}
	if res := h.browser().do(http.MethodPost, "/auth/sign-out", nil); res.StatusCode != http.StatusOK {
		t.Errorf("without a session: %d", res.StatusCode)
	}
	h.values.set(func() { h.values.lost = errors.New("lost") })
	if res := other.do(http.MethodPost, "/auth/sign-out", nil); res.StatusCode != http.StatusServiceUnavailable ||
		!strings.Contains(res.body, "still signed in") {
		t.Errorf("store lost: %d", res.StatusCode)
	}
}

// TestStoreFailsAnywhere checks that, whichever access to the store fails, nobody gets in
// because of that, and no page says that a person is signed out if they are not.
func TestStoreFailsAnywhere(t *testing.T) {
	h := open(t, false)
	b := h.signedIn()
	for _, form := range []url.Values{nil, {"everywhere": {"yes"}}} {
		for n := 1; ; n++ {
			h.values.set(func() { h.values.failAt = n })
			b.header = http.Header{}
			res := b.do(http.MethodPost, "/auth/sign-out", form)
			var survived bool
			h.values.set(func() {
				survived = h.values.failAt > 0
				h.values.failAt = 0
			})
			if survived { // there were fewer accesses than that
				break
			}
			if res.StatusCode != http.StatusServiceUnavailable || b.cookie("") == "" {
				t.Errorf("sign-out %v, access %d fails: %d", form, n, res.StatusCode)
			}
			b = h.signedIn()
		}

		b = h.signedIn()
	}

	for n := 1; ; n++ {
		h.pass(30 * time.Minute) // so that the use is noted
		h.values.set(func() { h.values.failAt = n })
		b.header = http.Header{}
		res := b.get("/who")
		var survived bool
		h.values.set(func() {
			survived = h.values.failAt > 0
			h.values.failAt = 0
		})
		if survived {
			break
		}
		if res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("page, access %d fails: %d", n, res.StatusCode)
		}
	}

	for n := 1; ; n++ {
		eve := h.browser()
		to := eve.begin()
		h.values.set(func() { h.values.failAt = n })
		res := eve.get(to)
		var survived bool
		h.values.set(func() {
			survived = h.values.failAt > 0
			h.values.failAt = 0
		})
		if survived {
			break
		}
		if strings.HasPrefix(res.Request.URL.Path, "/auth/") &&
			(res.StatusCode != http.StatusServiceUnavailable || eve.cookie("") != "") {
			t.Errorf("sign-in, access %d fails: %d", n, res.StatusCode)
		}
	}
}

// TestNoResurrection checks that a request that is still running when a person signs out
// does not bring the session back.
func TestNoResurrection(t *testing.T) {
	h := open(t, false)
	b := h.signedIn()
	var inside func()
	slow := h.auth.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		inside()
		w.WriteHeader(http.StatusOK)
	}))
	inside = func() { b.do(http.MethodPost, "/auth/sign-out", nil) }
	token := b.cookie("")
	r, _ := http.NewRequest(http.MethodGet, "/slow", nil)
	r.AddCookie(&http.Cookie{Name: "__Host-assent", Value: token})
	h.pass(time.Hour) // so that this use is noted
	slow.ServeHTTP(discard{}, r)
	if b.plant(token); b.who() != "" {
		t.Error("the session is back")
	}
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

func TestMiddleware(t *testing.T) {
	h := open(t, false)
	b := h.browser()
	b.follow = false
	for name, c := range map[string]struct {
		method string
		header http.Header
		status int
	}{
		"page": {http.MethodGet, http.Header{"Accept": {"text/html"}}, http.StatusSeeOther},
		"navigation": {
			http.MethodGet,
			http.Header{"Accept": {"*/*"}, "Sec-Fetch-Mode": {"navigate"}},
			http.StatusSeeOther,
		},
		"head": {http.MethodHead, http.Header{"Accept": {"text/html"}}, http.StatusSeeOther},
		"script": {
			http.MethodGet,
			http.Header{"Accept": {"text/html"}, "Sec-Fetch-Mode": {"cors"}},
			http.StatusUnauthorized,
		},
		"event stream": {http.MethodGet, http.Header{"Accept": {"text/event-stream"}}, http.StatusUnauthorized},
		"program":      {http.MethodGet, nil, http.StatusUnauthorized},
		"form":         {http.MethodPost, http.Header{"Accept": {"text/html"}}, http.StatusUnauthorized},
	} {
		b.header = c.header
		res := b.do(c.method, "/r/1?a=b", nil)
		if res.StatusCode != c.status ||
			c.status == http.StatusSeeOther && res.Header.Get("Location") != "/auth/sign-in?next=%2Fr%2F1%3Fa%3Db" ||
			c.status == http.StatusUnauthorized && !strings.Contains(res.body, `"next_action":"none"`) {
			t.Errorf("%s: %d %v %s", name, res.StatusCode, res.Header, res.body)
		}
	}

	b = h.signedIn()
	h.people.set(func() { h.people.lost = errors.New("lost") })
	if res := b.get("/"); res.StatusCode != http.StatusServiceUnavailable || strings.Contains(res.body, "lost") {
		t.Errorf("directory lost: %d %s", res.StatusCode, res.body)
	}
	h.people.set(func() {
		h.people.lost = nil
		h.people.base = directory.Tenants{"acme": read(t, strings.Replace(peopleFile, "[desk-heads]", "[]", 1))}
	})
	if got := b.who(); got != "true acme alice@example.com [risk] oidc corp /who" {
		t.Errorf("groups are those of now: %s", got)
	}
	h.people.set(func() { h.people.base = directory.Tenants{} })
	if res := b.get("/"); res.StatusCode != http.StatusForbidden || !strings.Contains(res.body, "Sign out") {
		t.Errorf("taken out of the directory: %d %s", res.StatusCode, res.body)
	}
	h.values.set(func() { h.values.lost = errors.New("lost") })
	b.header = nil
	if res := b.get("/"); res.StatusCode != http.StatusServiceUnavailable ||
		!strings.Contains(res.body, `"next_action":"retry"`) {
		t.Errorf("store lost: %d %s", res.StatusCode, res.body)
	}
	if _, ok := auth.FromContext(t.Context()); ok {
		t.Error("somebody out of nothing")
	}
}

// TestCSRF checks that another site can't change anything in the name of the person who is
// signed in.
func TestCSRF(t *testing.T) {
	h := open(t, false)
	b := h.signedIn()
	for _, header := range []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}},
		{"Sec-Fetch-Site": {"same-site"}},
		{"Origin": {"https://evil.example"}},
		{"Origin": {"null"}},
		{"Origin": {strings.Replace(h.server.URL, "https", "http", 1) + "0"}},
	} {
		b.header = header
		for _, path := range []string{"/auth/sign-out", "/r/1/vote"} {
			if res := b.do(http.MethodPost, path, nil); res.StatusCode != http.StatusForbidden || b.who() == "" {
				t.Errorf("%v %s: %d", header, path, res.StatusCode)
			}
		}
	}

	for _, header := range []http.Header{{"Sec-Fetch-Site": {"same-origin"}}, {"Origin": {h.server.URL}}, {}} {
		if b.header = header; b.do(http.MethodPost, "/r/1/vote", nil).StatusCode != http.StatusOK {
			t.Errorf("%v is refused", header)
		}
	}
}

func TestHeaders(t *testing.T) {
	want := map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
			"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Frame-Options":            "DENY",
		"X-Content-Type-Options":     "nosniff",
		"Referrer-Policy":            "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin",
		"Cache-Control":              "no-store",
		"Strict-Transport-Security":  "max-age=31536000",
	}
	for _, dev := range []bool{false, true} {
		h := open(t, dev)
		for _, path := range []string{"/auth/sign-in", "/auth/none", "/"} {
			res := h.browser().get(path)
			for k, v := range want {
				if dev && k == "Strict-Transport-Security" {
					v = ""
				}
				if got := res.Header.Get(k); got != v {
					t.Errorf("%s: %s: %q", path, k, got)
				}
			}

			if res.Header.Get("Permissions-Policy") == "" {
				t.Error("no Permissions-Policy")
			}
		}
	}
}
