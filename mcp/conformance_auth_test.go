package mcp_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/auth"
	"github.com/assent-dev/assent/mcp/auth/authtest"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// remote is a modern server by HTTP that takes one token for calls, and
// keeps what it gets.
type remote struct {
	mu    sync.Mutex
	good  string // the token that it takes
	heads []http.Header
	ran   []string // params of the calls that it took
}

func (s *remote) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heads = append(s.heads, r.Header)
	body, _ := io.ReadAll(r.Body)
	m, bad := wire.Parse(body, wire.Limits())
	switch {
	case bad != nil || m.Kind() != wire.Request:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.Method == wire.MethodCall && r.Header.Get("Authorization") != "Bearer "+s.good:
		w.WriteHeader(http.StatusUnauthorized)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+m.ID.Text()+`,`+s.answer(&m)+`}`)
	}
}

func (s *remote) answer(m *wire.Message) string {
	switch m.Method {
	case "server/discover":
		return `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	case "tools/list":
		tools := upstreamTools()
		return `"result":{"resultType":"complete","tools":[` + string(tools[0]) + `,` + string(tools[1]) + `]}`
	case wire.MethodCall:
		s.ran = append(s.ran, string(m.Params))
		return `"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}`
	}

	return `"error":{"code":-32601,"message":"no such method"}`
}

// runs wants so many calls to have run.
func (s *remote) runs(t *testing.T, n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ran) != n {
		t.Errorf("the server ran %q, expected %d calls", s.ran, n)
	}
}

// behind has a gateway's server be a remote one.
func behind(t *testing.T, cfg *mcp.Config, s *remote, token func(context.Context, string) (string, error)) {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	connection, err := upstream.New(upstream.Config{
		Alias: "files",
		URL:   h.URL + "/mcp",
		Token: token,
		Grace: 500 * time.Millisecond,
		Log:   slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- connection.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	cfg.Servers[0].Upstream = connection
	cfg.Servers[0].Identity = catalog.Server{Origin: h.URL, Path: "/mcp"}
}

// resourceURL is what tokens for the gateway are for.
const resourceURL = "https://gate.example/mcp"

// issued is the gateway at an HTTP endpoint, for tokens of an issuer.
func (w *world) issued(t *testing.T, i *authtest.Issuer, log io.Writer) *web {
	t.Helper()
	logs := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r, err := auth.New(auth.Config{
		URL:     resourceURL,
		Scopes:  []string{"mcp:tools"},
		Issuers: []auth.Issuer{{URL: i.URL, TLS: i.Roots()}},
		Callers: []auth.Caller{{Name: "desk", Issuer: i.URL, Subject: "00u1"}},
		Log:     logs,
	})
	if err != nil {
		t.Fatal(err)
	}
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

// claims are those of a token that opens the gateway, but for one.
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
	u := &remote{good: "t2"}
	var book ledger
	w := newWorld(t, func(cfg *mcp.Config) {
		behind(t, cfg, u, c.Token)
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
	u := &remote{good: "ours"}
	w := newWorld(t, func(cfg *mcp.Config) {
		behind(t, cfg, u, func(context.Context, string) (string, error) { return "ours", nil })
	})
	c := w.issued(t, i, t.Output())
	call := request("1", wire.MethodCall, `"name":"read_file","arguments":{},`+metaPlain)
	headers := modernHeaders(wire.MethodCall, "read_file")
	shows := func(authorization string) *http.Response {
		return c.post(call, append(
			headers,
			"Authorization",
			authorization,
			"Cookie",
			"their=secret",
			"Mcp-Session-Id",
			"theirs",
		)...)
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

// onlyOurs wants nothing of a client's credentials among what the
// server got.
func (s *remote) onlyOurs(t *testing.T, token string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, head := range s.heads {
		for name, values := range head {
			text := strings.Join(values, " ")
			if strings.Contains(text, token) || strings.Contains(text, "their") ||
				name == "Cookie" {
				t.Errorf("the server got %s: %s", name, text)
			}
		}

		if got := head.Values("Authorization"); len(got) != 1 || got[0] != "Bearer ours" {
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
		fresh.expect(http.StatusServiceUnavailable, "keys can't be had", fresh.post(call, headers...))
	}
}
