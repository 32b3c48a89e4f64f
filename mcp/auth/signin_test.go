package auth_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/auth"
	"github.com/assent-dev/assent/mcp/auth/authtest"
)

// signInAt returns a sign-in at a site, in a new directory.
func signInAt(
	t *testing.T, s *authtest.Site, change func(*auth.SignInConfig),
) (in *auth.SignIn, at *clock, cfg auth.SignInConfig) {
	t.Helper()
	at = &clock{now: time.Now()}
	cfg = auth.SignInConfig{
		URL:  s.URL + "/mcp",
		File: filepath.Join(t.TempDir(), "sign-ins", "notes", "token.json"),
		Now:  at.read,
	}
	if change != nil {
		change(&cfg)
	}
	return must.Get(auth.NewSignIn(cfg))(t), at, cfg
}

// signedIn makes a person sign in.
func signedIn(t *testing.T, in *auth.SignIn, scopes ...string) auth.Result {
	t.Helper()
	a := must.Get(in.Begin(t.Context(), scopes, 0))(t)
	if status, text := authtest.Browse(t, a.Link); status != http.StatusOK || !strings.Contains(text, "Signed in") {
		t.Fatalf("%d: %s", status, text)
	}
	result := must.Get(a.Wait(t.Context()))(t)
	must.Do(t, a.Close())
	return result
}

// openSite checks that the token opens the server.
func openSite(t *testing.T, s *authtest.Site, token string) {
	t.Helper()
	r := must.Get(http.NewRequest(http.MethodPost, s.URL+"/mcp", nil))(t)
	r.Header.Set("Authorization", "Bearer "+token)
	resp := must.Get(http.DefaultClient.Do(r))(t)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the token %q is answered %s", token, resp.Status)
	}
}

func TestAPersonSignsIn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		site   func(*authtest.Site)
		change func(*auth.SignInConfig)
	}{
		"registers itself": {},
		"with a secret":    {site: func(s *authtest.Site) { s.Secret = "hush hush" }},
		"of before 2025-06-18": {site: func(s *authtest.Site) {
			s.Status = map[string]int{"/.well-known/oauth-protected-resource/mcp": 404}
		}},
		"its origin is the resource": {site: func(s *authtest.Site) {
			s.Resource = map[string]any{"resource": s.URL + "/"}
		}},
		"slash behind the issuer": {site: func(s *authtest.Site) {
			s.Resource = map[string]any{"authorization_servers": []string{s.URL + "/"}}
		}},
		"no refresh token": {site: func(s *authtest.Site) {
			s.Tokens = func(a map[string]any) { delete(a, "refresh_token") }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := authtest.NewSite(t)
			if test.site != nil {
				test.site(s)
			}
			in, _, cfg := signInAt(t, s, test.change)
			if token, err := in.Token(t.Context(), ""); token != "" || err != nil {
				t.Errorf("before anybody signed in: %q, %v", token, err)
			}
			before := in.Version()
			result := signedIn(t, in)
			openSite(t, s, must.Get(in.Token(t.Context(), ""))(t))
			info := must.Get(os.Stat(cfg.File))(t)
			if info.Mode().Perm() != 0o600 || in.Version() == before || result.Issuer != s.URL {
				t.Errorf("mode %v, version %q, issuer %q", info.Mode(), in.Version(), result.Issuer)
			}
			if gone, err := in.Forget(t.Context()); !gone || err != nil {
				t.Errorf("forget: %v, %v", gone, err)
			}
			if token, err := in.Token(t.Context(), ""); token != "" || err != nil {
				t.Errorf("after it was forgotten: %q, %v", token, err)
			}
		})
	}
}

// TestAConfiguredClientSignsIn: the client was registered by hand, for a port and with a secret.
func TestAConfiguredClientSignsIn(t *testing.T) {
	t.Parallel()
	s := authtest.NewSite(t)
	s.Meta = map[string]any{"registration_endpoint": nil}
	in, _, _ := signInAt(t, s, nil)
	if _, err := in.Begin(t.Context(), nil, 0); err == nil || !strings.Contains(err.Error(), "client_id") {
		t.Errorf("without a client: %v", err)
	}
	in, at, _ := signInAt(t, s, func(cfg *auth.SignInConfig) {
		cfg.ID, cfg.Scopes, cfg.Issuer = "desk", []string{"b", "a"}, s.URL
		cfg.Secret = func() (string, error) { return "hush", nil }
	})
	a := must.Get(in.Begin(t.Context(), []string{"c"}, 0))(t)
	q := must.Get(url.Parse(a.Link))(t).Query()
	s.Client("desk", "hush", q.Get("redirect_uri"))
	if q.Get("scope") != "a b c" || q.Get("resource") != s.URL+"/mcp" {
		t.Errorf("the link is %s", a.Link)
	}
	authtest.Browse(t, a.Link)
	must.Get(a.Wait(t.Context()))(t)
	must.Do(t, a.Close())
	at.forward(2 * time.Hour)
	openSite(t, s, must.Get(in.Token(t.Context(), ""))(t))
}

// TestTokensAreRenewedOnce: refresh tokens are used once, so of several processes one renews the
// token, and the others read it.
func TestTokensAreRenewedOnce(t *testing.T) {
	t.Parallel()
	s := authtest.NewSite(t)
	in, at, cfg := signInAt(t, s, nil)
	signedIn(t, in)
	other := must.Get(auth.NewSignIn(cfg))(t)
	first := must.Get(in.Token(t.Context(), ""))(t)
	at.forward(3585 * time.Second)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			token, err := []*auth.SignIn{in, other}[i%2].Token(t.Context(), "")
			if err != nil || token == first {
				t.Errorf("got %q, %v", token, err)
			}
			openSite(t, s, token)
		})
	}
	all.Wait()
	if n := s.Count("/token"); n != 2 {
		t.Errorf("%d tokens were got", n)
	}

	second := must.Get(in.Token(t.Context(), ""))(t)
	s.Revoke(false)
	if again := must.Get(other.Token(t.Context(), second))(t); again != second {
		t.Error("a token that was just issued is renewed")
	}
	at.forward(time.Minute)
	openSite(t, s, must.Get(other.Token(t.Context(), second))(t))
}

// watched is a context that calls before whenever Done is called.
type watched struct {
	context.Context
	before func()
}

func (w watched) Done() <-chan struct{} {
	w.before()
	return w.Context.Done()
}

// TestSigningOutEndsRenewals: a renewal that has begun doesn't write the tokens back.
func TestSigningOutEndsRenewals(t *testing.T) {
	t.Parallel()
	s := authtest.NewSite(t)
	in, at, cfg := signInAt(t, s, nil)
	signedIn(t, in)
	at.forward(2 * time.Hour)
	asked, goOn := make(chan struct{}), make(chan struct{})
	s.Set(func() {
		s.Tokens = func(map[string]any) {
			close(asked)
			<-goOn
		}
	})
	answer := sync.OnceFunc(func() { close(goOn) })
	var renewal sync.WaitGroup
	renewal.Go(func() {
		if _, err := in.Token(t.Context(), ""); err != nil {
			t.Errorf("the renewal: %v", err)
		}
	})
	testwait.Receive(t, "the renewal", asked)
	// The issuer answers when Forget waits for the renewal, or has ended.
	had, err := must.Get(auth.NewSignIn(cfg))(t).Forget(watched{t.Context(), answer})
	answer()
	renewal.Wait()
	if !had || err != nil || in.Version() != "" {
		t.Errorf("%v, %v, and the file is %s", had, err, in.Version())
	}

	s.Set(func() { s.Tokens = nil })
	signedIn(t, in)
	cfg.Now = func() time.Time { // it is called after the file was read, and before it is locked
		_ = os.Remove(cfg.File)
		return time.Now().Add(48 * time.Hour)
	}
	if token, err := must.Get(auth.NewSignIn(cfg))(t).Token(t.Context(), ""); token != "" || err != nil {
		t.Errorf("after the person has signed out: %q, %v", token, err)
	}
}

// TestASignInEnds: only a person can help then, and the issuer isn't asked again. Trouble of the
// issuer ends nothing.
func TestASignInEnds(t *testing.T) {
	t.Parallel()
	s := authtest.NewSite(t)
	in, at, cfg := signInAt(t, s, nil)
	signedIn(t, in)
	at.forward(2 * time.Hour)
	s.Set(func() { s.Status = map[string]int{"/token": 503} })
	for range 3 {
		if _, err := in.Token(t.Context(), ""); err == nil || errors.Is(err, auth.ErrSignIn) {
			t.Errorf("while the issuer is down: %v", err)
		}
	}
	if n := s.Count("/token"); n != 2 {
		t.Errorf("it was asked %d times", n)
	}
	s.Set(func() { s.Status = nil })
	at.forward(4 * time.Second)
	openSite(t, s, must.Get(in.Token(t.Context(), ""))(t))

	s.Revoke(true)
	at.forward(2 * time.Hour)
	n := s.Count("/token")
	for range 3 {
		_, err := in.Token(t.Context(), "")
		if !errors.Is(err, auth.ErrSignIn) || strings.Contains(err.Error(), "hush") {
			t.Errorf("after it was revoked: %v", err)
		}
	}
	text := must.Get(os.ReadFile(cfg.File))(t)
	if s.Count("/token") != n+1 || strings.Contains(string(text), "access-") {
		t.Errorf("it was asked %d times, and the file is %s", s.Count("/token")-n, text)
	}
	signedIn(t, in)
	openSite(t, s, must.Get(in.Token(t.Context(), ""))(t))
}

// TestSignInsThatAreRefused: nothing is opened in a browser, and nothing is kept.
func TestSignInsThatAreRefused(t *testing.T) {
	t.Parallel()
	meta := func(name string, v any) func(*authtest.Site) {
		return func(s *authtest.Site) { s.Meta = map[string]any{name: v} }
	}
	resource := func(name string, v any) func(*authtest.Site) {
		return func(s *authtest.Site) { s.Resource = map[string]any{name: v} }
	}
	status := func(path string, n int) func(*authtest.Site) {
		return func(s *authtest.Site) { s.Status = map[string]int{path: n} }
	}
	own := func(path string) func(*authtest.Site) {
		return func(s *authtest.Site) { s.Resource = map[string]any{"resource": s.URL + path} }
	}
	const self, server = "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"
	open := func(s *authtest.Site) { s.Status = map[string]int{"/mcp": 200, self: 404} }
	inside, query := []string{"https://10.0.0.1"}, []string{"https://a.example/?x"}
	script, byKey := "javascript:alert(1)", []string{"private_key_jwt"}
	for name, test := range map[string]struct {
		site func(*authtest.Site)
		want string
	}{
		"another's resource":   {resource("resource", "https://other.example/"), `is that of "https://other.example/"`},
		"another path":         {own("/mcp2"), "is that of"},
		"below it":             {own("/mcp/x"), "is that of"},
		"another port":         {resource("resource", "http://127.0.0.1:1/mcp"), "is that of"},
		"a query of its own":   {own("/mcp?a=b"), "is that of"},
		"no resource":          {resource("resource", nil), "resource: expected a string"},
		"no issuer":            {resource("authorization_servers", []string{}), "names no authorization server"},
		"an issuer by http":    {resource("authorization_servers", []string{"http://login.example"}), "expected https"},
		"an issuer inside":     {resource("authorization_servers", inside), "may not be reached"},
		"an issuer of a query": {resource("authorization_servers", query), "without query"},
		"metadata elsewhere":   {status(self, 302), "answered 302"},
		"a lie":                {meta("issuer", "https://login.example"), `is that of "https://login.example"`},
		"server elsewhere":     {status(server, 302), "can't be had"},
		"no proof":             {meta("code_challenge_methods_supported", nil), "PKCE"},
		"plain proof":          {meta("code_challenge_methods_supported", []string{"plain"}), "PKCE"},
		"a page by http":       {meta("authorization_endpoint", "http://login.example/"), "authorization endpoint"},
		"a page of a script":   {meta("authorization_endpoint", script), "authorization endpoint"},
		"a page of a user":     {meta("authorization_endpoint", "https://a:b@l.example/"), "authorization endpoint"},
		"tokens by http":       {meta("token_endpoint", "http://login.example/token"), "token endpoint"},
		"tokens inside":        {meta("token_endpoint", "https://192.168.0.1/token"), "token endpoint"},
		"clients by http":      {meta("registration_endpoint", "http://login.example/"), "registration endpoint"},
		"no clients":           {status("/register", 403), "registers no client: status 403"},
		"clients elsewhere":    {status("/register", 302), "registers no client: status 302"},
		"clients by a key":     {meta("token_endpoint_auth_methods_supported", byKey), "in no way"},
		"no sign-in":           {open, "doesn't ask for a sign-in"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := authtest.NewSite(t)
			test.site(s)
			in, _, cfg := signInAt(t, s, nil)
			a, err := in.Begin(t.Context(), nil, 0)
			if err == nil || !strings.Contains(err.Error(), test.want) || a != nil {
				t.Errorf("got %v, expected %s", err, test.want)
			}
			if s.Count("/authorize")+s.Count("/token") != 0 || in.Version() != "" {
				t.Errorf("%s is kept", cfg.File)
			}
		})
	}
}

// TestAnswersThatAreRefused: what was kept before stays, and nothing is half-written.
func TestAnswersThatAreRefused(t *testing.T) {
	t.Parallel()
	answers := func(change func(url.Values)) func(*authtest.Site) {
		return func(s *authtest.Site) { s.Answers = change }
	}
	set := func(name, v string) func(*authtest.Site) { return answers(func(q url.Values) { q.Set(name, v) }) }
	tokens := func(name string, v any) func(*authtest.Site) {
		return func(s *authtest.Site) { s.Tokens = func(a map[string]any) { a[name] = v } }
	}
	for name, test := range map[string]struct {
		site func(*authtest.Site)
		want string
	}{
		"another issuer": {set("iss", "https://login.example"), "is that of the issuer"},
		"no issuer":      {answers(func(q url.Values) { q.Del("iss") }), "doesn't name its issuer"},
		"an empty issuer": {func(s *authtest.Site) {
			s.Meta = map[string]any{"authorization_response_iss_parameter_supported": nil}
			s.Answers = func(q url.Values) { q.Set("iss", "") }
		}, "is that of the issuer"},
		"two issuers":      {answers(func(q url.Values) { q.Add("iss", q.Get("iss")) }), "twice"},
		"two codes":        {answers(func(q url.Values) { q.Add("code", "x") }), "twice"},
		"refused":          {set("error", "access_denied"), `"access_denied"`},
		"no code":          {set("code", ""), "no code"},
		"a wrong code":     {set("code", "x"), `"invalid_grant"`},
		"tokens elsewhere": {func(s *authtest.Site) { s.Status = map[string]int{"/token": 302} }, "status 302"},
		"another type":     {tokens("token_type", "DPoP"), "expected Bearer"},
		"a broken token":   {tokens("access_token", "a\r\nX: y"), "can't be sent"},
		"no token":         {tokens("access_token", ""), "can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := authtest.NewSite(t)
			in, _, cfg := signInAt(t, s, nil)
			signedIn(t, in)
			before := must.Get(os.ReadFile(cfg.File))(t)
			s.Set(func() { test.site(s) })
			a := must.Get(in.Begin(t.Context(), nil, 0))(t)
			status, page := authtest.Browse(t, a.Link)
			_, err := a.Wait(t.Context())
			must.Do(t, a.Close())
			if status != http.StatusBadRequest || err == nil || !strings.Contains(err.Error(), test.want) ||
				strings.Contains(err.Error()+page, "hush") {
				t.Errorf("%d, %s, %v: expected %s", status, page, err, test.want)
			}
			if after := must.Get(os.ReadFile(cfg.File))(t); string(after) != string(before) {
				t.Errorf("the file is another one: %s", after)
			}
			if left := must.Get(filepath.Glob(filepath.Join(filepath.Dir(cfg.File), ".*")))(t); len(left) > 0 {
				t.Errorf("%q is left", left)
			}
		})
	}
}

// TestStrangersCanNotAnswer: a request without the exact state has no effect, and the person can
// still sign in, once.
func TestStrangersCanNotAnswer(t *testing.T) {
	t.Parallel()
	s := authtest.NewSite(t)
	in, _, cfg := signInAt(t, s, nil)
	a := must.Get(in.Begin(t.Context(), nil, 0))(t)
	q := must.Get(url.Parse(a.Link))(t).Query()
	state, redirect := q.Get("state"), q.Get("redirect_uri")
	for query, status := range map[string]int{
		"?code=x":                        400,
		"?code=x&state=":                 400,
		"?code=x&state=" + state[1:]:     400,
		"?code=x&state=" + state + "x":   400,
		"?error=access_denied":           400,
		"?state=x&state=" + state:        400,
		"?code=%zz&state=" + state:       400,
		"/more?code=x&state=" + state:    404,
		"?x=<script>&code=x&state=wrong": 400,
	} {
		if got, page := authtest.Browse(t, redirect+query); got != status || strings.Contains(page, "<script>") {
			t.Errorf("%s: %d, %s", query, got, page)
		}
	}
	r := must.Get(http.NewRequest(http.MethodGet, redirect+"?code=x&state="+state, nil))(t)
	r.Host = "evil.example"
	if resp := must.Get(http.DefaultClient.Do(r))(t); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("by another name: %s", resp.Status)
	}
	posted := must.Get(http.PostForm(redirect+"?code=x&state="+state, nil))(t)
	if posted.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("by POST: %s", posted.Status)
	}

	if _, err := in.Begin(t.Context(), nil, 0); !errors.Is(err, auth.ErrBusy) {
		t.Errorf("a second sign-in at once: %v", err)
	}
	if status, page := authtest.Browse(t, a.Link); status != http.StatusOK {
		t.Errorf("%d: %s", status, page)
	}
	if status, _ := authtest.Browse(t, redirect+"?code=x&state="+state); status != http.StatusConflict {
		t.Errorf("a second answer: %d", status)
	}
	must.Get(a.Wait(t.Context()))(t)
	must.Do(t, a.Close())

	next := must.Get(must.Get(auth.NewSignIn(cfg))(t).Begin(t.Context(), nil, 0))(t)
	ended, stop := context.WithCancelCause(t.Context())
	stop(errors.New("the time is over"))
	if _, err := next.Wait(ended); err == nil || !strings.Contains(err.Error(), "nobody signed in: the time is over") {
		t.Errorf("got %v", err)
	}
	must.Do(t, next.Close())
}

// TestAnswersAtTheLastMoment: the time ends while the code is exchanged for tokens. They are stored,
// so Wait must not report that nobody signed in.
func TestAnswersAtTheLastMoment(t *testing.T) {
	t.Parallel()
	s := authtest.NewSite(t)
	in, _, _ := signInAt(t, s, nil)
	a := must.Get(in.Begin(t.Context(), nil, 0))(t)
	asked, goOn := make(chan struct{}), make(chan struct{})
	s.Set(func() {
		s.Tokens = func(map[string]any) {
			close(asked)
			<-goOn
		}
	})
	var browser sync.WaitGroup
	browser.Go(func() {
		resp, err := http.Get(a.Link)
		if err != nil {
			t.Error(err)
			return
		}
		_ = resp.Body.Close()
	})
	testwait.Receive(t, "the exchange", asked)
	ended, stop := context.WithCancel(t.Context())
	stop()
	result, err := a.Wait(watched{ended, sync.OnceFunc(func() { close(goOn) })})
	browser.Wait()
	must.Do(t, a.Close())
	if err != nil || result.Issuer != s.URL || in.Version() == "" {
		t.Errorf("%+v, %v, and the file is %q", result, err, in.Version())
	}
}

// TestFilesOfSignInsThatAreRefused: their tokens are not used, and another sign-in replaces them.
func TestFilesOfSignInsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := authtest.NewSite(t)
	in, _, cfg := signInAt(t, s, nil)
	signedIn(t, in)
	good := string(must.Get(os.ReadFile(cfg.File))(t))
	write := func(text string) func() {
		return func() { must.Do(t, os.WriteFile(cfg.File, []byte(text), 0o600)) }
	}
	with := func(old, text string) func() { return write(strings.Replace(good, old, text, 1)) }
	for name, test := range map[string]struct {
		change func()
		want   string
	}{
		"readable":        {func() { must.Do(t, os.Chmod(cfg.File, 0o640)) }, "others may read it (mode 0640)"},
		"empty":           {write(""), "can't be read"},
		"half":            {write(good[:len(good)/2]), "can't be read"},
		"a later version": {with(`"version": 1`, `"version": 2`), "can't be read"},
		"unknown":         {with(`"version": 1`, `"version": 1, "more": 1`), "can't be read"},
		"another address": {with(s.URL+"/mcp", "https://other.example/mcp"), "another address"},
		"a link": {func() {
			must.Do(t, os.Rename(cfg.File, cfg.File+".real"))
			must.Do(t, os.Symlink(cfg.File+".real", cfg.File))
		}, "regular file"},
	} {
		_ = os.Remove(cfg.File)
		write(good)()
		test.change()
		token, err := in.Token(t.Context(), "")
		if token != "" || !errors.Is(err, auth.ErrSignIn) || !strings.Contains(err.Error(), test.want) ||
			strings.Contains(err.Error(), "access-") {
			t.Errorf("%s: %q, %v", name, token, err)
		}
		signedIn(t, in)
		openSite(t, s, must.Get(in.Token(t.Context(), ""))(t))
	}

	for name, change := range map[string]func(*auth.SignInConfig){
		"another issuer": func(c *auth.SignInConfig) { c.Issuer = "https://login.example" },
		"another client": func(c *auth.SignInConfig) { c.ID = "other" },
		"another client, later": func(c *auth.SignInConfig) {
			c.ID = "other"
			c.Now = func() time.Time { return time.Now().Add(48 * time.Hour) }
		},
	} {
		changed := cfg
		change(&changed)
		other := must.Get(auth.NewSignIn(changed))(t)
		if _, err := other.Token(t.Context(), ""); !errors.Is(err, auth.ErrSignIn) {
			t.Errorf("%s: %v", name, err)
		}
		openSite(t, s, must.Get(in.Token(t.Context(), ""))(t)) // the tokens of the right one are kept
	}
}

// TestScopesAreAdded: those of the challenge are requested before those of the metadata, and a
// later sign-in keeps what an earlier one had.
func TestScopesAreAdded(t *testing.T) {
	t.Parallel()
	s := authtest.NewSite(t)
	s.Resource = map[string]any{"scopes_supported": []string{"all"}}
	s.Meta = map[string]any{"scopes_supported": []string{"offline_access"}}
	in, _, _ := signInAt(t, s, nil)
	if got := signedIn(t, in).Scopes; !slices.Equal(got, []string{"all", "offline_access"}) {
		t.Errorf("got %q", got)
	}
	s.Set(func() { s.Scope, s.Needs = "read", "write" })
	if got := signedIn(t, in, "write").Scopes; !slices.Equal(got, []string{"all", "offline_access", "read", "write"}) {
		t.Errorf("got %q", got)
	}
	openSite(t, s, must.Get(in.Token(t.Context(), ""))(t))
}

func TestSignInsThatCanNotWork(t *testing.T) {
	t.Parallel()
	for _, cfg := range []auth.SignInConfig{
		{}, {URL: "http://a.example/mcp"}, {URL: "https://10.0.0.1:x/mcp"}, {URL: "https://a.example", Issuer: "://"},
		{URL: "https://a.example", ID: "a", Secret: func() (string, error) { return "hush", nil }},
	} {
		if _, err := auth.NewSignIn(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
