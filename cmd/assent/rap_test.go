package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/openapi"
)

// toolAgent decides on the tool's side.
const toolAgent = `schema_version: "1.0.0"
metadata: {id: tool, name: Tool, version: "1.0.0", description: Quotes}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: None., model: none}}
action_space: {local_tools: [{alias: quote, approval: true}]}
`

const quoteSchema = `{"type":"object","properties":{"of":{"type":"string"}},"required":["of"],` +
	`"additionalProperties":false}`

// keeper is a server that keeps the bodies that it is sent.
type keeper struct {
	*httptest.Server
	mu  sync.Mutex
	got []string
}

func newKeeper(t *testing.T, answer string) *keeper {
	t.Helper()
	k := &keeper{}
	k.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.got = append(k.got, string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(k.Close)
	return k
}

// newEndpoint returns the endpoint that the gateway wraps.
func newEndpoint(t *testing.T) *keeper {
	t.Helper()

	return newKeeper(t, `{"price":42}`)
}

func (k *keeper) bodies() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.got)
}

// freeAddress returns an address that is probably not in use. It doesn't use 127.0.0.1, because
// connections that are being made also take ports there.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.77:0")
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	must.Do(t, err)
	defer l.Close()
	return l.Addr().String()
}

// gatewayFor runs assent rap gateway over an endpoint, for a runtime at
// an origin, until the test ends.
func gatewayFor(t *testing.T, wrapped, callbacks string) (url string) {
	t.Helper()
	url, _ = gatewayOf(t, map[string]string{"tool.agf.yaml": toolAgent, "quote.json": quoteSchema}, `
name: quotes
description: Prices.
agent: tool
agents: tool.agf.yaml
callers: {name: here, callbacks: "`+callbacks+`"}
operations: {name: quote, description: Last price., schema: quote.json, url: "`+wrapped+`"}
`)
	return url
}

// gatewayOf runs assent rap gateway with a configuration and files until the test ends. It also
// returns the log.
func gatewayOf(t *testing.T, files map[string]string, text string) (url string, log *testwait.Buffer) {
	t.Helper()
	dir := t.TempDir()
	files = maps.Clone(files)
	files["gateway.yaml"] = text + "\nstore: gateway.db\nlisten: 127.0.0.1:0\n"
	for name, text := range files {
		testfiles.Write(t, filepath.Join(dir, name), text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan operate.Ready, 1), make(chan error, 1)
	log = &testwait.Buffer{}
	b := backend()
	serves := b.Gateway
	b.Gateway = func(_ context.Context, c config.Gateway, w io.Writer, tell func(operate.Ready)) error {
		return serves(ctx, c, w, func(r operate.Ready) {
			tell(r)
			ready <- r
		})
	}
	go func() {
		if code := (program{
			Backend: b,
			Streams: term.Streams{Out: io.Discard, Err: log},
		}).Run([]string{"rap", "gateway", "--config", filepath.Join(dir, "gateway.yaml")}); code != 0 {
			t.Errorf("exit %d\n%s", code, log.String())
		}

		ended <- nil
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case r := <-ready:
		return r.URL, log
	case <-ended:
		t.Fatalf("the gateway ended\n%s", log.String())
	}

	return "", nil
}

// TestRAP: an agent calls a tool through the service; the tool's
// gateway asks; a person answers with the command line; the endpoint
// runs once with exactly the arguments that were asked about.
func TestRAP(t *testing.T) {
	wrapped := newEndpoint(t)
	listen := freeAddress(t)
	gateway := gatewayFor(t, wrapped.URL, "http://"+listen)
	files := withFiles(t, deskFiles())
	h := startWith(t, files, func(c *config.Serve) {
		c.Listen = listen
		c.Tenants[0].RAP = &config.RAP{
			Runtimes: []config.RAPRuntime{{Agent: "desk", Servers: []config.RAPServer{{Name: "quotes", URL: gateway}}}},
		}
	})
	agent := h.client(t, "runtime")
	tools, err := agent.RAPTools(t.Context(), "desk", "s1")
	if err != nil || len(tools.Offers) != 1 || tools.Offers[0].Operation != "quote" ||
		tools.Offers[0].Server != "quotes" ||
		len(tools.Problems) != 0 {
		t.Fatalf("%+v, %v", tools, err)
	}

	call := client.RAPCall{
		Thread:    "s1",
		ID:        "call_1",
		Operation: "quote",
		Arguments: json.RawMessage(`{ "of" : "ACME" }`),
	}
	if _, err := agent.RAPInvoke(t.Context(), "desk", call); err != nil {
		t.Fatal(err)
	}
	asked := h.awaitQuestion(t)
	if got := wrapped.bodies(); len(got) != 0 {
		t.Fatalf("it ran before: %q", got)
	}
	holds(t, h.prints(t, "alice", 0, "show", asked), "quotes", "Allow once: quote")
	h.prints(t, "alice", 0, "choose", asked, "0", "--yes", "--binding", h.request(t, asked).Binding())
	done := h.ends(t, "runtime", "s1", "call_1")
	if done.Failed || !strings.Contains(string(mustJSON(t, done.Outcome)), "price") {
		t.Errorf("got %s", mustJSON(t, done))
	}
	if got := wrapped.bodies(); len(got) != 1 || got[0] != `{ "of" : "ACME" }` {
		t.Errorf("it ran with %q", got)
	}

	call.ID, call.Arguments = "call_2", json.RawMessage(`{"of":"INIT"}`)
	if _, err := agent.RAPInvoke(t.Context(), "desk", call); err != nil {
		t.Fatal(err)
	}
	h.awaitQuestion(t)
	must.Do(t, agent.RAPClose(t.Context(), "desk", "s1"))
	if done := h.ends(t, "runtime", "s1", "call_2"); done.Why != "closed" || len(wrapped.bodies()) != 1 {
		t.Errorf("got %s, ran %q", mustJSON(t, done), wrapped.bodies())
	}

	h.testFrozen(t, agent, wrapped)
}

// testFrozen: the kill switch stops calls before they leave.
func (h *testServer) testFrozen(t *testing.T, agent *client.Client, wrapped *keeper) {
	t.Helper()
	h.prints(t, "alice", 0, "freeze", "--agent", "desk", "--reason", "odd")
	call := client.RAPCall{
		Thread:    "s2",
		ID:        "call_1",
		Operation: "quote",
		Arguments: json.RawMessage(`{"of":"ACME"}`),
	}
	if _, err := agent.RAPInvoke(t.Context(), "desk", call); err != nil && client.Code(err) != openapi.CodeFrozen {
		t.Fatal(err)
	} else if err == nil {
		if done := h.ends(t, "runtime", "s2", "call_1"); !done.Synthetic {
			t.Errorf("got %s", mustJSON(t, done))
		}
	}

	if got := wrapped.bodies(); len(got) != 1 {
		t.Errorf("it ran while frozen: %q", got)
	}
}

// awaitQuestion waits for the one question that is open, and returns its id.
func (h *testServer) awaitQuestion(t *testing.T) string {
	t.Helper()
	return h.awaitPending(t, func(s approval.Summary) bool { return s.Question })
}

// rapDone waits for the end of a call that a client made.
func rapDone(t *testing.T, c *client.Client, thread, id string) *openapi.RAPCall {
	t.Helper()
	return testwait.Value(t, "the end of call "+id, func() (*openapi.RAPCall, bool) {
		call, err := c.RAPWait(t.Context(), "desk", thread, id, 20*time.Second)
		must.Do(t, err)
		return call, call.State == openapi.RAPCallStateDone
	})
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	must.Do(t, err)
	return text
}

// TestRAPCall: the small runtime on the command line shows the choice,
// sends the answer and prints the result.
func TestRAPCall(t *testing.T) {
	wrapped := newEndpoint(t)
	listen := freeAddress(t)
	url := gatewayFor(t, wrapped.URL, "http://"+listen)
	run := func(in string, args ...string) (string, int) {
		out, errOut, code := ran(in, append([]string{"rap", "call", "--url", url, "--listen", listen}, args...)...)
		return out + errOut, code
	}
	if out, code := run(""); code != 0 || !strings.Contains(out, "quote      Last price.") {
		t.Errorf("exit %d\n%s", code, out)
	}
	out, code := run("what?\n0\n", "quote", "--args", `{"of":"ACME"}`)
	for _, want := range []string{
		"the tool says:",
		"  | Operation: quote",
		"  [0] Allow once: quote",
		"* [1] Deny",
		`{"price":42}`,
	} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, without %q\n%s", code, want, out)
		}
	}

	for _, refused := range [][]string{
		{"", "quote", "--args", `{"of":"ACME"}`},
		{"dismiss\n", "quote", "--args", `{"of":"ACME"}`},
		{"", "quote", "--args", `{"of":1}`},
		{"", "quote", "--args", `{"of":"A"}`, "--answer", "7"},
		{"", "quote", "--args", `{"of":"A"}`, "--answer", "1"},
		{"", "nothing"},
	} {
		if out, code := run(refused[0], refused[1:]...); code != 1 {
			t.Errorf("%q: exit %d\n%s", refused, code, out)
		}
	}

	if got := wrapped.bodies(); len(got) != 1 || got[0] != `{"of":"ACME"}` {
		t.Errorf("it ran with %q", got)
	}
	out, code = run("", "quote", "--args", `{"of":"ACME"}`, "--answer", "0", "--json")
	var end struct {
		State string
		Asked []struct{ Selected *int }
	}
	document, _, _ := strings.Cut(out, "\n}\n") // what was asked is shown behind it
	if err := json.Unmarshal([]byte(document+"}"), &end); err != nil || code != 0 || end.State != "done" ||
		len(end.Asked) != 1 ||
		*end.Asked[0].Selected != 0 {
		t.Errorf("exit %d, %v\n%s", code, err, out)
	}
}

// TestRAPCallTellsWhatIsWrong: developers of a tool get the reason why its messages are refused,
// and how to fix an address.
func TestRAPCallTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	var base string
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(
				w,
				`{"name":"t","endpoint":"%s/invoke","tools":[{"name":"ask","description":"A.",`+
					`"inputSchema":{"type":"object"}},{"name":"no","description":"N.",`+
					`"inputSchema":{"type":"object"}}]}`,
				base,
			)
			return
		}

		var in struct {
			Operation string
			Callback  string `json:"callback_url"`
			Group     string `json:"group_id"`
			ID        string `json:"id"`
		}
		if json.NewDecoder(req.Body).Decode(&in) != nil || req.URL.Path != "/invoke" {
			return
		}
		if in.Operation == "no" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		for _, m := range []string{
			`{"type":"user_choice","prompt":3}`,
			`{"type":"oauth","group_id":"` + in.Group + `","id":"` + in.ID +
				`","auth_url":"https://idp.example/a?state=1"}`,
		} {
			if answer, err := http.Post(in.Callback, "application/json", strings.NewReader(m)); err == nil {
				answer.Body.Close()
			}
		}
	}))
	defer tool.Close()
	base = tool.URL
	for name, c := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"a message and a sign-in": {
			[]string{"--url", base, "ask", "--within", "1s", "--allow", "https://idp.example"},
			term.ExitNo,
			[]string{
				"a callback was refused",
				"status=400",
				"group_id: expected a string",
				"sign in at idp.example: https://idp.example/a?state=1",
			},
		},
		"a sign-in anywhere else": {
			[]string{"--url", base, "ask", "--within", "1s"},
			term.ExitNo,
			[]string{"an origin that is not registered: --allow ORIGIN takes one"},
		},
		"another origin": {
			[]string{"--url", strings.Replace(base, "127.0.0.1", "localhost", 1), "ask"},
			term.ExitFailure,
			[]string{"--allow ORIGIN takes another one"},
		},
		"another operation": {
			[]string{"--url", base, "asks"},
			term.ExitNo,
			[]string{"offers no asks, but ask, no\n", "no such operation"},
		},
		"no callbacks": {
			[]string{"--url", base, "no"},
			term.ExitNo,
			[]string{"the peer answered 403", "was to answer at http://127.0.0.1:", "--listen and --callback-url"},
		},
		"no answer": {
			[]string{"--url", base, "ask", "--answer", "yes"},
			term.ExitFailure,
			[]string{`"yes": expected the INDEX of a choice`},
		},
	} {
		out, errOut, code := ran("", append([]string{"rap", "call"}, c.args...)...)
		if code != c.code {
			t.Errorf("%s: exit %d\n%s", name, code, errOut)
		}
		holds(t, out+errOut, c.want...)
	}
}
