package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
)

func TestChecksItsConfiguration(t *testing.T) {
	for name, edit := range map[string]func(*Config){
		"no records":         func(c *Config) { c.Records = nil },
		"no room":            func(c *Config) { c.Namespace = "" },
		"no plan":            func(c *Config) { c.Plan = nil },
		"a short key":        func(c *Config) { c.Key = c.Key[:16] },
		"ask whom":           func(c *Config) { c.Ask = "everybody" },
		"no desk":            func(c *Config) { c.Ask = AskBoth },
		"a negative bound":   func(c *Config) { c.MaxOpen = -1 },
		"a relative address": func(c *Config) { c.PublicURL = "/tools" },
		"an odd scheme":      func(c *Config) { c.PublicURL = "ftp://tools.example" },
		"a user":             func(c *Config) { c.PublicURL = "https://me@tools.example" },
		"a query":            func(c *Config) { c.PublicURL = "https://tools.example/?a=1" },
		"no operations":      func(c *Config) { c.Operations = nil },
		"names twice":        func(c *Config) { c.Operations = append(c.Operations, c.Operations[0]) },
		"no schema":          func(c *Config) { c.Operations[0].InputSchema = nil },
		"nothing to run":     func(c *Config) { c.Operations[0].Run = nil },
		"no callers":         func(c *Config) { c.Callers = nil },
		"a caller twice":     func(c *Config) { c.Callers = append(c.Callers, c.Callers[0]) },
		"a token in clear":   func(c *Config) { c.Callers[0].TokenHash = "secret" },
		"no callback origin": func(c *Config) { c.Callers[0].Callbacks = peer.Config{} },
		"signed by nothing": func(c *Config) {
			c.Callers[0].TokenHash, c.Callers[0].AnswersSigned = "", true
		},
	} {
		h := newHarness(t, nil)
		cfg := h.cfg
		cfg.Operations, cfg.Callers = append(
			[]rap.Operation(nil),
			cfg.Operations...), append(
			[]Caller(nil),
			cfg.Callers...)
		edit(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
		h.stop()
	}
}

func TestKnowsItsCallers(t *testing.T) {
	h := newHarness(t, func(c *Config) {
		c.Callers = append(c.Callers, Caller{Name: "local", Callbacks: c.Callers[0].Callbacks})
	})
	for name, tt := range map[string]struct {
		from   string
		header http.Header
		want   int
	}{
		"its token":       {"203.0.113.9:1", http.Header{"Authorization": {"Bearer " + callerToken}}, 200},
		"in lower case":   {"203.0.113.9:1", http.Header{"Authorization": {"bearer " + callerToken}}, 200},
		"no token, local": {"127.0.0.1:1", nil, 200},
		"local, by IPv6":  {"[::1]:1", nil, 200},
		"local, mapped":   {"[::ffff:127.0.0.1]:1", nil, 200},
		"no token, far":   {"203.0.113.9:1", nil, 401},
		"no address":      {"", nil, 401},
		"a wrong token":   {"127.0.0.1:1", http.Header{"Authorization": {"Bearer other"}}, 401},
		"its hash":        {"127.0.0.1:1", http.Header{"Authorization": {"Bearer " + sum(callerToken)}}, 401},
		"an empty token":  {"127.0.0.1:1", http.Header{"Authorization": {"Bearer "}}, 401},
		"two tokens":      {"127.0.0.1:1", http.Header{"Authorization": {"Bearer " + callerToken, "Bearer x"}}, 401},
		"another scheme":  {"127.0.0.1:1", http.Header{"Authorization": {"Basic " + callerToken}}, 401},
		"a page":          {"127.0.0.1:1", http.Header{"Origin": {"https://evil.example"}}, 401},
		"a proxy":         {"127.0.0.1:1", http.Header{"X-Forwarded-For": {"203.0.113.9"}}, 401},
		"another proxy":   {"127.0.0.1:1", http.Header{"Forwarded": {"for=203.0.113.9"}}, 401},
	} {
		host := "forged.example"
		if tt.header["Authorization"] == nil {
			host = "127.0.0.1:7718"
		}
		req := httptest.NewRequestWithContext(
			t.Context(),
			http.MethodGet,
			"http://"+host+"/.well-known/rap-toolset",
			nil,
		)
		req.RemoteAddr = tt.from
		req.Header = tt.header.Clone()
		if req.Header == nil {
			req.Header = http.Header{}
		}
		w := httptest.NewRecorder()
		h.g.ServeHTTP(w, req)
		if w.Code != tt.want {
			t.Errorf("%s: %d", name, w.Code)
		}
		if w.Code == 200 && !strings.Contains(w.Body.String(), h.cfg.PublicURL+"/invoke") {
			t.Errorf("%s: %s", name, w.Body)
		}
	}

	if strings.Contains(h.logged(), callerToken) {
		t.Error("the log has a token")
	}
	if code := h.postAs("", "/invoke", string((&wire.Invocation{
		Operation:   "look",
		ID:          "forged",
		GroupID:     "child",
		Ancestors:   []string{"root"},
		CallbackURL: h.runtime.url(),
	}).Append(nil))); code != 200 {
		t.Errorf("ancestors from nobody in particular: %d", code)
	}

	h.runtime.result("forged")
}

// TestL9_AProxyIsNotLocal: a caller without a token is a program on
// this machine, which no proxy, no browser and no strange name is.
func TestL9_AProxyIsNotLocal(t *testing.T) {
	h := newHarness(t, func(c *Config) {
		c.Callers = append(c.Callers, Caller{Name: "local", Callbacks: c.Callers[0].Callbacks})
	})
	ask := func(change func(*http.Request)) int {
		req := httptest.NewRequestWithContext(
			t.Context(),
			http.MethodGet,
			"http://127.0.0.1:7718/.well-known/rap-toolset",
			nil,
		)
		req.RemoteAddr = "127.0.0.1:1"
		change(req)
		w := httptest.NewRecorder()
		h.g.ServeHTTP(w, req)
		return w.Code
	}
	for _, name := range []string{
		"X-Real-IP", "Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded",
		"X-Original-Host", "CF-Connecting-IP", "CF-Ray",
		"True-Client-IP", "X-Client-IP", "Fastly-Client-IP", "X-Envoy-External-Address", "CDN-Loop", "X-Amzn-Trace-Id",
		"Client-IP",
	} {
		if code := ask(func(r *http.Request) { r.Header.Set(name, "x") }); code != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, code)
		}
		if code := ask(func(r *http.Request) { r.Header.Set(name, "") }); code != http.StatusUnauthorized {
			t.Errorf("%s without a value: %d", name, code)
		}
		if code := ask(func(r *http.Request) {
			r.Header.Set(name, "x")
			r.Header.Set("Authorization",
				"Bearer "+callerToken)
		}); code != http.StatusOK {
			t.Errorf("%s with a token: %d", name, code)
		}
	}

	if code := ask(func(r *http.Request) { r.ProtoMinor = 0 }); code != http.StatusUnauthorized {
		t.Errorf("HTTP/1.0: %d", code)
	}
	for host, want := range map[string]int{
		"localhost:7718":    200,
		"[::1]:7718":        200,
		"127.0.0.1":         200,
		"evil.example":      401,
		"files.example.com": 401,
		"10.0.0.1":          401,
		"":                  401,
	} {
		if code := ask(func(r *http.Request) { r.Host = host }); code != want {
			t.Errorf("host %q: %d", host, code)
		}
	}

	for _, header := range []string{"User-Agent", "Accept", "Content-Type", "X-Request-Id", "Traceparent"} {
		if code := ask(func(r *http.Request) { r.Header.Set(header, "x") }); code != http.StatusOK {
			t.Errorf("%s: %d", header, code)
		}
	}
}

func (h *harness) logged() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.String()
}

func TestServesNothingElse(t *testing.T) {
	h := newHarness(t, nil)
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
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.cfg.PublicURL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+callerToken)
		if code := h.do(req); code != want {
			t.Errorf("GET %s: %d", path, code)
		}
	}
}

// Notices are answered alike whatever they are about, but nobody else's
// are heard.
func TestHearsNotices(t *testing.T) {
	h := newHarness(t, nil)
	h.mustInvoke("c1", "write", `{}`)
	q := h.runtime.choice("c1")
	for _, path := range []string{"/close_thread", "/cancel_tool_call"} {
		for _, body := range []string{
			"",
			"{",
			"[]",
			`{"thread_id":1}`,
			`{"thread_id":"none","tool_call_id":"none"}`,
			`{"thread_id":"../../etc","tool_call_id":"c1"}`,
			strings.Repeat(" ", maxNotice+1),
		} {
			if code := h.post(path, body); code != 200 {
				t.Errorf("%s %.40q: %d", path, body, code)
			}
		}

		if code := h.postAs("other", path, wire.CancelCall{ThreadID: "thread", ToolCallID: "c1"}); code != 401 {
			t.Errorf("%s from nobody: %d", path, code)
		}
	}

	if len(h.runtime.results("c1")) != 0 {
		t.Fatal("it was ended by what was not about it")
	}
	for range 2 {
		if code := h.post(
			"/cancel_tool_call",
			string(wire.CancelCall{ThreadID: "thread", ToolCallID: "c1"}.Append(nil)),
		); code != 200 {
			t.Errorf("cancel: %d", code)
		}
	}

	if code := h.answer(q, 0); code != 404 {
		t.Errorf("an answer after the cancellation: %d", code)
	}
	if got := h.runtime.result("c1"); !strings.Contains(got, "cancelled") || h.runs("c1") != 0 {
		t.Errorf("result %q, %d runs", got, h.runs("c1"))
	}
}

func TestClosesThreads(t *testing.T) {
	closed := make(chan string, 1)
	h := newHarness(t, func(c *Config) {
		c.Closed = func(_ context.Context, who approval.Asker, thread string) error {
			closed <- who.Token + " " + thread
			return nil
		}
	})
	ids := []string{"a", "b", "c"}
	for _, id := range ids {
		h.mustInvoke(id, "write", `{}`, in("closing"))
	}
	h.mustInvoke("other", "write", `{}`, in("other"))
	for _, id := range append(ids, "other") {
		h.runtime.choice(id)
	}
	if code := h.post("/close_thread", string(wire.CloseThread{ThreadID: "closing"}.Append(nil))); code != 200 {
		t.Fatalf("close: %d", code)
	}
	for _, id := range ids {
		if code := h.answer(h.runtime.choice(id), 0); code != 404 {
			t.Errorf("answer of %s: %d", id, code)
		}
		h.runtime.result(id)
	}

	if got := <-closed; got != "gw/runtime closing" {
		t.Errorf("told %q", got)
	}
	if code := h.answer(h.runtime.choice("other"), 0); code != 200 {
		t.Errorf("the other thread: %d", code)
	}
	h.runtime.result("other")
	if h.runs("a")+h.runs("b")+h.runs("c") != 0 || h.runs("other") != 1 {
		t.Error("what was closed ran, or what was not did not")
	}
}

func TestTellsWhatIsAlive(t *testing.T) {
	h := newHarness(t, nil)
	h.mustInvoke("c1", "write", `{}`)
	q := h.runtime.choice("c1")
	if !h.alive("c1") || h.alive("c2") {
		t.Error("the call that waits is alive, and no other")
	}
	h.answer(q, q.Default)
	h.runtime.result("c1")
	h.runtime.until("the end of c1", func() bool { return !h.alive("c1") })
	if code := h.post("/tool_call_status", "{"); code != 400 {
		t.Errorf("no JSON: %d", code)
	}
	h.disk.die(0)
	if code := h.post(
		"/tool_call_status",
		string(wire.Status{ThreadID: "thread", ToolCallID: "c1"}.Append(nil)),
	); code != 503 {
		t.Errorf("without records: %d", code)
	}
}

func (h *harness) alive(id string) bool {
	h.t.Helper()
	w := httptest.NewRecorder()
	body := string(wire.Status{ThreadID: "thread", ToolCallID: id}.Append(nil))
	req := httptest.NewRequestWithContext(
		context.Background(),
		http.MethodPost,
		"/tool_call_status",
		strings.NewReader(body),
	)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+callerToken)
	h.g.ServeHTTP(w, req)
	switch got := strings.TrimSpace(w.Body.String()); got {
	case `{"alive":true}`:
		return true
	case `{"alive":false}`:
		return false
	default:
		h.t.Fatalf("status: %d %s", w.Code, got)
	}

	return false
}
