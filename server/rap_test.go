package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server"
)

// toolServer is a RAP tool server with one operation. It sends the answers that a test sets
// to the callback URL of the call.
type toolServer struct {
	*httptest.Server
	mu    sync.Mutex
	calls []sentCall
}

// sentCall is a call as the tool server received it.
type sentCall struct {
	Group string `json:"group_id"`
	ID    string `json:"id"`
	URL   string `json:"callback_url"`
}

func newToolServer(t *testing.T) *toolServer {
	t.Helper()
	s := &toolServer{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/rap-toolset", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(
			w,
			`{"name":"prices","endpoint":"http://%s/run","tools":[{"name":"quote","description":"Last `+
				`price.","inputSchema":{"type":"object"}}]}`,
			r.Host,
		)
	})
	mux.HandleFunc("POST /run", func(_ http.ResponseWriter, r *http.Request) {
		var in sentCall
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls = append(s.calls, in)
	})
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {}) // closures and cancellations
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// got waits for the nth call, counted from 0.
func (s *toolServer) got(t *testing.T, nth int) sentCall {
	t.Helper()
	return testwait.Value(t, fmt.Sprint("call ", nth), func() (sentCall, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()

		if len(s.calls) <= nth {
			return sentCall{}, false
		}
		return s.calls[nth], true
	})
}

// says posts a message about the nth call and expects it to be accepted. GROUP and ID in
// the message are replaced by the call's ids.
func (s *toolServer) says(t *testing.T, nth int, message string) {
	t.Helper()
	c := s.got(t, nth)
	message = strings.NewReplacer("GROUP", c.Group, "ID", c.ID).Replace(message)
	resp, err := http.Post(c.URL, "application/json", strings.NewReader(message))
	must(t, err)
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", message, resp.StatusCode, text)
	}
}

// withTools returns a server whose agent desk has a runtime.
func withTools(t *testing.T, tools *toolServer, change ...func(*server.Config)) *harness {
	t.Helper()
	var ours *runtime.Runtime
	offer := func(c *server.Config) {
		c.Tools = func(tenant, agent string) *runtime.Runtime {
			if tenant != "acme" || agent != "desk" {
				return nil
			}
			return ours
		}
	}
	h := newHarness(t, append(change, offer)...)
	h.tools = offer
	callbacks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ours.ServeHTTP(w, r)
	}))
	t.Cleanup(callbacks.Close)
	var err error
	ours, err = runtime.New(runtime.Config{
		Common: rap.Common{
			Records:   h.store,
			Namespace: "tools",
			Key:       make([]byte, 32),
			Now:       h.clock.Now,
			Poll:      20 * time.Millisecond,
			Plan: func(ctx context.Context) (*resolve.Plan, error) {
				c, err := h.plans.Plan(ctx, "acme", "desk")
				if err != nil {
					return nil, err
				}
				return c.Plan, nil
			},
		},
		CallbackURL: callbacks.URL,
		Servers:     []runtime.Server{{Name: "prices", Peer: peer.Config{URL: tools.URL}}},
	})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = ours.Run(ctx) // ends with ctx
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return h
}

const rapOf = "/v1/agents/desk/rap/"

// TestRAPCalls has an agent call a tool, wait, read later messages and close the thread.
// Every answer must match openapi.yaml.
func TestRAPCalls(t *testing.T) {
	tools := newToolServer(t)
	h := withTools(t, tools)
	token := h.runtime()
	want := func(a *answer, status int, words ...string) {
		t.Helper()
		for _, w := range words {
			if a.status != status || !strings.Contains(a.text, w) {
				t.Fatalf("%d %s, want %d and %q", a.status, a.text, status, w)
			}
		}
	}
	want(h.do("GET", rapOf+"tools?session=s", token, ""), 200, `"operation":"quote"`, `"problems":[]`)
	call := `{"thread":"s","id":"c1","operation":"quote","arguments":{"of":"ACME"},"call_id":"x","user":"mara"}`
	want(h.do("POST", rapOf+"calls", token, call), 200, `"id":"c1"`)
	want(h.do("POST", rapOf+"calls", token, call), 200, `"id":"c1"`)
	want(h.do("POST", rapOf+"calls", token, strings.Replace(call, "ACME", "INIT", 1)), 422, "key_reuse")
	tools.says(t, 0, `{"type":"view_update","group_id":"GROUP","view_type":"chart","content":{"points":[1,2]}}`)
	tools.says(t, 0, `{"type":"tool_result","group_id":"GROUP","id":"ID","text":"42","subscription":true}`)
	want(
		h.do("GET", rapOf+"calls?thread=s&id=c1&wait=20s", token, ""),
		200,
		`"state":"done"`,
		`"text":"42"`,
		`"subscription":true`,
	)
	tools.says(t, 0, `{"type":"subscription_event","group_id":"GROUP","tool_call_id":"ID","text":"43","final":true}`)
	want(h.do("GET", rapOf+"events?thread=s", token, ""), 200, `"text":"43"`, `"final":true`)
	want(h.do("GET", rapOf+"events?thread=s&from=1", token, ""), 200, `"events":[]`)
	want(h.do("GET", rapOf+"views?thread=s", token, ""), 200, `"chart":{"points":[1,2]}`)

	call = strings.Replace(call, `,"user"`, `,"context":[{"label":"Why","text":"the ticket"}],"user"`, 1)
	want(h.do("POST", rapOf+"calls", token, strings.Replace(call, "c1", "c2", 1)), 200, `"id":"c2"`)
	want(
		h.do("POST", rapOf+"cancel", token, `{"thread":"s","id":"c2","reason":"the user went on"}`),
		200,
		`"why":"interrupted"`,
	)
	want(h.do("POST", rapOf+"cancel", token, `{"thread":"s","id":"c2"}`), 200, `"why":"interrupted"`)
	if a := h.do("POST", rapOf+"close", token, `{"thread":"s"}`); a.status != 204 || a.text != "" {
		t.Errorf("%d %s", a.status, a.text)
	}
	want(h.do("GET", rapOf+"views?thread=s", token, ""), 200, `"views":{}`)
}

// TestRAPRefusals covers requests that a runtime refuses.
func TestRAPRefusals(t *testing.T) {
	h := withTools(t, newToolServer(t))
	token, other := h.runtime(), h.voter("mara")
	for _, c := range []struct {
		method, path, token, body string
		status                    int
	}{
		{"GET", rapOf + "tools?session=s", other, "", 403},
		{"GET", rapOf + "tools?session=s", "", "", 401},
		{"GET", rapOf + "tools", token, "", 400},
		{"GET", "/v1/agents/nobody/rap/tools?session=s", token, "", 404},
		{"GET", rapOf + "calls?thread=s&id=none", token, "", 404},
		{"GET", rapOf + "calls?thread=s", token, "", 400},
		{"GET", rapOf + "calls?id=c", token, "", 400},
		{"GET", rapOf + "calls?thread=s&id=c&wait=soon", token, "", 400},
		{"GET", rapOf + "events", token, "", 400},
		{"GET", rapOf + "events?thread=s&from=-1", token, "", 400},
		{"GET", rapOf + "views", token, "", 400},
		{"POST", rapOf + "calls", token, `{"thread":"s","id":"c"}`, 400},
		{"POST", rapOf + "calls", token, `{"thread":"s","id":"c","operation":"quote","operation":"quote"}`, 400},
		{"POST", rapOf + "calls", token, `{"thread":"s","id":"c","operation":"quote","context":[{"label":"x"}]}`, 422},
		{"POST", rapOf + "cancel", token, `{"thread":"s","id":"none"}`, 404},
		{"POST", rapOf + "cancel", token, `{"thread":"s"}`, 400},
		{"POST", rapOf + "close", token, `{}`, 400},
	} {
		if a := h.do(c.method, c.path, c.token, c.body); a.status != c.status {
			t.Errorf("%s %s %s: %d %s, want %d", c.method, c.path, c.body, a.status, a.text, c.status)
		}
	}
}
