package rap_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/peer"
)

func TestGatewayChecksItsConfiguration(t *testing.T) {
	h, _ := confGateway(t)
	for name, edit := range map[string]func(*gateway.Config){
		"no records":         func(c *gateway.Config) { c.Records = nil },
		"no room":            func(c *gateway.Config) { c.Namespace = "" },
		"no plan":            func(c *gateway.Config) { c.Plan = nil },
		"a short key":        func(c *gateway.Config) { c.Key = c.Key[:16] },
		"ask whom":           func(c *gateway.Config) { c.Ask = "everybody" },
		"no desk":            func(c *gateway.Config) { c.Ask = gateway.AskBoth },
		"a negative bound":   func(c *gateway.Config) { c.MaxOpen = -1 },
		"a relative address": func(c *gateway.Config) { c.PublicURL = "/tools" },
		"an odd scheme":      func(c *gateway.Config) { c.PublicURL = "ftp://tools.example" },
		"a user":             func(c *gateway.Config) { c.PublicURL = "https://me@tools.example" },
		"a query":            func(c *gateway.Config) { c.PublicURL = "https://tools.example/?a=1" },
		"no operations":      func(c *gateway.Config) { c.Operations = nil },
		"names twice":        func(c *gateway.Config) { c.Operations = append(c.Operations, c.Operations[0]) },
		"no schema":          func(c *gateway.Config) { c.Operations[0].InputSchema = nil },
		"nothing to run":     func(c *gateway.Config) { c.Operations[0].Run = nil },
		"no callers":         func(c *gateway.Config) { c.Callers = nil },
		"a caller twice":     func(c *gateway.Config) { c.Callers = append(c.Callers, c.Callers[0]) },
		"a token in clear":   func(c *gateway.Config) { c.Callers[0].TokenHash = "secret" },
		"no callback origin": func(c *gateway.Config) { c.Callers[0].Callbacks = peer.Config{} },
		"signed by nothing": func(c *gateway.Config) {
			c.Callers[0].TokenHash, c.Callers[0].AnswersSigned = "", true
		},
	} {
		cfg := h.cfg
		cfg.Operations, cfg.Callers = slices.Clone(cfg.Operations), slices.Clone(cfg.Callers)
		edit(&cfg)
		if _, err := gateway.New(cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// TestAProxyIsNotLocal: a caller without a token is a program on
// this machine, which no proxy, no browser and no strange name is.
func TestAProxyIsNotLocal(t *testing.T) {
	h, r := confGateway(t, func(cfg *gateway.Config) {
		cfg.Callers = append(cfg.Callers, gateway.Caller{Name: "local", Callbacks: cfg.Callers[0].Callbacks})
	})
	asks := func(what string, want int, change func(*http.Request)) {
		t.Helper()
		req := httptest.NewRequestWithContext(
			t.Context(),
			http.MethodGet,
			"http://127.0.0.1:7718/.well-known/rap-toolset",
			nil,
		)
		req.RemoteAddr = "127.0.0.1:1"
		change(req)
		w := httptest.NewRecorder()
		h.gateway.ServeHTTP(w, req)
		if w.Code != want || want == 200 && !strings.Contains(w.Body.String(), h.cfg.PublicURL+"/invoke") {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
	header := func(name string, values ...string) func(*http.Request) {
		return func(req *http.Request) { req.Header[http.CanonicalHeaderKey(name)] = values }
	}

	for from, want := range map[string]int{
		"127.0.0.1:1":          200,
		"[::1]:1":              200,
		"[::ffff:127.0.0.1]:1": 200,
		"203.0.113.9:1":        401,
		"":                     401,
	} {
		asks("from "+from, want, func(req *http.Request) { req.RemoteAddr = from })
	}

	for _, scheme := range []string{"Bearer ", "bearer "} {
		asks("its token from afar", 200, func(req *http.Request) {
			req.RemoteAddr, req.Host = "203.0.113.9:1", "forged.example"
			header("Authorization", scheme+r.token)(req)
		})
	}

	for _, given := range [][]string{
		{"Bearer other"},
		{"Bearer " + h.cfg.Callers[0].TokenHash},
		{"Bearer "},
		{"Bearer " + r.token, "Bearer x"},
		{"Basic " + r.token},
	} {
		asks(strings.Join(given, " and "), 401, header("Authorization", given...))
	}

	asks("a page", 401, header("Origin", "https://evil.example"))

	for _, name := range []string{
		"X-Real-IP", "Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded",
		"X-Original-Host", "CF-Connecting-IP", "CF-Ray",
		"True-Client-IP", "X-Client-IP", "Fastly-Client-IP", "X-Envoy-External-Address", "CDN-Loop", "X-Amzn-Trace-Id",
		"Client-IP",
	} {
		asks(name, 401, header(name, "x"))
		asks(name+" without a value", 401, header(name, ""))
		asks(name+" with a token", 200, func(req *http.Request) {
			header(name, "x")(req)
			header("Authorization", "Bearer "+r.token)(req)
		})
	}

	for _, name := range []string{"User-Agent", "Accept", "Content-Type", "X-Request-Id", "Traceparent"} {
		asks(name, 200, header(name, "x"))
	}

	asks("HTTP/1.0", 401, func(req *http.Request) { req.ProtoMinor = 0 })
	for host, want := range map[string]int{
		"localhost:7718":    200,
		"[::1]:7718":        200,
		"127.0.0.1":         200,
		"evil.example":      401,
		"files.example.com": 401,
		"10.0.0.1":          401,
		"":                  401,
	} {
		asks("host "+host, want, func(req *http.Request) { req.Host = host })
	}
}

func TestGatewayServesNothingElse(t *testing.T) {
	_, r := confGateway(t)
	for path, want := range map[string]int{
		"/invoke":                  405,
		"/close_thread":            405,
		"/cancel_tool_call":        405,
		"/tool_call_status":        405,
		"/answer/x":                405,
		"/.well-known/rap-toolset": 200,
		"/migrate":                 404,
		"/":                        404,
		"/invoke/":                 404,
	} {
		if status, _ := r.send(http.MethodGet, r.base+path, nil); status != want {
			t.Errorf("GET %s: %d", path, status)
		}
	}

	if status, _ := r.send(http.MethodPost, r.base+"/tool_call_status", []byte("{")); status != 400 {
		t.Errorf("a status of nothing: %d", status)
	}
	for _, path := range []string{"/close_thread", "/cancel_tool_call"} {
		for _, body := range []string{"", "{", "[]", `{"thread_id":1}`, strings.Repeat(" ", 1<<17)} {
			status, text := r.send(http.MethodPost, r.base+path, []byte(body))
			confAcknowledged(t, path, status, text)
		}
	}
}

// A call whose caller is configured no more reaches nobody, and does not run.
func TestGatewayDropsOrphans(t *testing.T) {
	h, r := confGateway(t)
	c, q := r.asked()
	h.through(r)
	h.stop()
	h.cfg.Callers[0].Name = "renamed"
	h.restart()
	c.refuses(q)
	h.clock.pass(time.Hour)
	h.through(r)
	h.ran("write_file", 0)
	if c.count("") != 1 {
		t.Errorf("sent:\n%s", r.heard())
	}
}

// A session grant of an asker that is no more the same covers nothing:
// here the runtime belongs to somebody else by now.
func TestSessionGrantsAreTheAskersOwn(t *testing.T) {
	h, r, _ := confSession(t, gateway.SessionGrants{})
	r.in("root", "ann").free()
	h.stop()
	h.cfg.Callers[0].Person = "mara"
	h.restart()
	r.in("root", "ann").bound()
}
