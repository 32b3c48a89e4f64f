package mcp_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/auth"
	"github.com/assent-dev/assent/mcp/auth/authtest"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// remote is a modern HTTP server that accepts calls with one token.
type remote struct {
	*mcptest.Site
	good string
}

// behind configures a remote server as the gateway's server.
func behind(t *testing.T, cfg *mcp.Config, good string, token func(context.Context, string) (string, error)) *remote {
	t.Helper()
	s := mcptest.NewSite(t, script("modern"), onCall(func(w http.ResponseWriter, v *mcptest.Visit) bool {
		refused := v.Header.Get("Authorization") != "Bearer "+good
		if refused {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return refused
	}))
	cfg.Servers[0].Upstream = startedOf(t, upstream.Config{URL: s.URL + "/mcp", Token: token})
	cfg.Servers[0].Identity = catalog.Server{Origin: s.URL, Path: "/mcp"}
	return &remote{s, good}
}

// runs checks the number of calls that ran.
func (s *remote) runs(t *testing.T, n int) {
	t.Helper()
	ran := 0
	for _, v := range s.Visits(wire.MethodCall) {
		if v.Header.Get("Authorization") == "Bearer "+s.good {
			ran++
		}
	}
	if ran != n {
		t.Errorf("the server ran %d calls, expected %d", ran, n)
	}
}

// resourceURL is the resource for which tokens of the gateway are issued.
const resourceURL = "https://gate.example/mcp"

// issued returns the gateway at an HTTP endpoint that accepts tokens of an issuer.
func (w *world) issued(t *testing.T, i *authtest.Issuer, log io.Writer) *web {
	t.Helper()
	logs := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := must.Get(auth.New(auth.Config{
		URL:     resourceURL,
		Scopes:  []string{"mcp:tools"},
		Issuers: []auth.Issuer{{URL: i.URL, TLS: i.Roots()}},
		Callers: []auth.Caller{{Name: "desk", Issuer: i.URL, Subject: "00u1"}},
		Log:     logs,
	}))(t)
	inside := server.New(server.Config{Handler: w.gateway, Log: logs})
	endpoint := inside.HTTP(server.HTTPConfig{Authenticate: r.Authenticate})
	at := httptest.NewServer(endpoint)
	at.Config.ErrorLog = slog.NewLogLogger(logs.Handler(), slog.LevelError)
	t.Cleanup(func() {
		endpoint.Close()
		at.Close()
	})
	return &web{t: t, url: at.URL, client: at.Client()}
}

// claims returns the claims of a valid token with one claim replaced.
func claims(i *authtest.Issuer, name string, value any) map[string]any {
	all := map[string]any{
		"iss":   i.URL,
		"aud":   resourceURL,
		"sub":   "00u1",
		"exp":   time.Now().Add(time.Hour).Unix(),
		"scope": "mcp:tools",
	}
	all[name] = value
	return all
}

func testM50(t *testing.T) {
	i := authtest.New(t)
	i.Gives("")
	var ahead sync.Mutex
	now := time.Now()
	c, err := auth.NewClient(auth.ClientConfig{
		TokenURL: i.URL + "/token",
		ID:       "assent",
		Secret:   func() (string, error) { return "secret", nil },
		TLS:      i.Roots(),
		Now: func() time.Time { // every question comes a minute later
			ahead.Lock()
			defer ahead.Unlock()
			now = now.Add(time.Minute)
			return now
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var u *remote
	var book ledger
	w := newWorld(t, func(cfg *mcp.Config) {
		u = behind(t, cfg, "t2", c.Token)
		book.keep(cfg)
	})
	desk := w.connect(t)
	desk.expect(desk.call("write_file", write), "Not run yet.")
	if i.Count("/token") != 1 {
		t.Fatalf("%d tokens were got before the call", i.Count("/token"))
	}
	w.Votes(w.pending(t).ID, "mara", approval.Approve, approval.VoteApproved, nil)
	desk.until("write_file", write, "done")
	u.runs(t, 1)
	testwait.Until(t, "the run is in the ledger", func() bool { return book.count("mcp_call_ran") == 1 })
	if i.Count("/token") != 2 || book.count("mcp_call_runs") != 1 {
		t.Errorf("%d tokens were got, for %d attempts", i.Count("/token"), book.count("mcp_call_runs"))
	}
}

func testM88(t *testing.T) {
	i, other := authtest.New(t), authtest.New(t)
	var u *remote
	w := newWorld(t, func(cfg *mcp.Config) {
		u = behind(t, cfg, "ours", func(context.Context, string) (string, error) { return "ours", nil })
	})
	c := w.issued(t, i, t.Output())
	call := request("1", wire.MethodCall, `"name":"read_file","arguments":{},`+metaPlain)
	headers := modernHeaders(wire.MethodCall, "read_file")
	shows := func(authorization string) *http.Response {
		theirs := []string{"Authorization", authorization, "Cookie", "their=secret", "Mcp-Session-Id", "theirs"}
		return c.post(call, slices.Concat(headers, theirs)...)
	}
	good := i.Sign(claims(i, "sub", "00u1"))
	for authorization, challenge := range map[string]string{
		"":                                      "",
		"Basic YTpi":                            "",
		"Bearer wrong":                          "invalid_token",
		"Bearer " + good[1:]:                    "invalid_token",
		"Bearer " + i.Sign(claims(i, "exp", 1)): "invalid_token",
		"Bearer " + i.Sign(claims(i, "aud", "https://gate.example")): "invalid_token",
		"Bearer " + other.Sign(claims(i, "sub", "00u1")):             "invalid_token",
		"Bearer " + other.Sign(claims(other, "sub", "00u1")):         "invalid_token",
	} {
		resp := shows(authorization)
		c.expect(http.StatusUnauthorized, "", resp)
		got := resp.Header.Get("WWW-Authenticate")
		where := `resource_metadata="https://gate.example/.well-known/oauth-protected-resource/mcp"`
		if !strings.Contains(got, where) || !strings.Contains(got, challenge) {
			t.Errorf("the challenge is %s", got)
		}
	}

	small := shows("Bearer " + i.Sign(claims(i, "scope", "mcp:read")))
	c.expect(http.StatusForbidden, "mcp:tools", small)
	if got := small.Header.Get("WWW-Authenticate"); !strings.Contains(got, `error="insufficient_scope"`) {
		t.Errorf("the challenge is %s", got)
	}

	u.runs(t, 0)
	c.expect(http.StatusOK, "done", shows("Bearer "+good))
	u.runs(t, 1)
	u.onlyOurs(t, good)
}

// onlyOurs checks that the server received nothing of a client's credentials.
func (s *remote) onlyOurs(t *testing.T, token string) {
	t.Helper()
	for _, v := range slices.Concat(s.Visits("server/discover"), s.Visits("tools/list"), s.Visits(wire.MethodCall)) {
		for name, values := range v.Header {
			text := strings.Join(values, " ")
			if strings.Contains(text, token) || strings.Contains(text, "their") || name == "Cookie" {
				t.Errorf("the server got %s: %s", name, text)
			}
		}
		if got := v.Header.Values("Authorization"); len(got) != 1 || got[0] != "Bearer ours" {
			t.Errorf("the server got %q", got)
		}
	}
}

func testM89(t *testing.T) {
	i := authtest.New(t)
	w := newWorld(t, nil)
	log := &testwait.Buffer{}
	c := w.issued(t, i, log)
	token := i.Sign(claims(i, "sub", "00u1"))
	call := request("1", wire.MethodCall, `"name":"read_file","arguments":{},`+metaPlain)
	headers := append(modernHeaders(wire.MethodCall, "read_file"), "Authorization", "Bearer "+token)
	for _, query := range []string{"access_token=", "Access-Token=", "token=", "api_key=", "a;access_token="} {
		in := c.at("?" + query + token)
		c.expect(http.StatusUnauthorized, "header Authorization", in.post(call, headers[:6]...))
		c.expect(http.StatusUnauthorized, "header Authorization", in.post(call, headers...))
	}

	if got := w.files.seen(); len(got) != 0 || strings.Contains(log.String(), token[:20]) {
		t.Errorf("the server saw %q, and the log is %s", got, log.String())
	}
	c.expect(http.StatusOK, "done", c.at("?trace=1").post(call, headers...))

	bait := httptest.NewTLSServer(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("%s was asked for", r.URL)
		}),
	)
	defer bait.Close()
	for _, change := range []func(){
		func() { i.Meta = map[string]any{"jwks_uri": "https://10.0.0.1/keys"} },
		func() { i.Meta = map[string]any{"jwks_uri": "https://169.254.169.254/keys"} },
		func() { i.Moved = bait.URL },
	} {
		i.Set(change)
		fresh := w.issued(t, i, t.Output())
		fresh.expect(http.StatusServiceUnavailable, "keys can't be fetched", fresh.post(call, headers...))
	}
}
