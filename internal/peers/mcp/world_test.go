//go:build peers

// Package mcp_test holds the gateway of MCP against clients and servers
// that others wrote. Its script run installs them, and builds this with
// the tag peers.
package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/resolve"
)

const policyFile = `schema_version: "1.0.0"
policy_ref: acme.none
rules:
  - {id: none, match: {kinds: [tool], targets: [wire]}, approval: true}
`

const peopleFile = `schema_version: "1.0.0"
people:
  - {id: mara, groups: [risk]}
groups: {risk: {description: People who judge.}}
`

// installed returns the directory of programs of others.
func installed(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ASSENT_MCP_PEERS")
	if dir == "" {
		t.Fatal("software of others is not installed: internal/peers/run mcp installs and runs it")
	}
	return dir
}

// world is a gateway with people, which clients reach by HTTP and by
// pipes.
type world struct {
	*assenttest.Assent
	gateway *mcp.Gateway
	server  *server.Server
	front   *httptest.Server // a path for each caller, and what a test is asked to do
	mux     *http.ServeMux   // of front

	mu    sync.Mutex
	calls map[string]int // requests of tools/call that came, by the path in their arguments
	open  map[string]int // those that somebody waits for
}

func newWorld(t *testing.T, agent string, up mcp.Upstream, change func(*mcp.Config)) *world {
	t.Helper()
	w := &world{calls: map[string]int{}, open: map[string]int{}}
	w.Assent = assenttest.New(t, assenttest.Config{
		Runs: true,
		Files: fstest.MapFS{
			"agents/clerk.agf.yaml":     {Data: []byte(agent)},
			"policies/none.policy.yaml": {Data: []byte(policyFile)},
			"people.yaml":               {Data: []byte(peopleFile)},
		},
	})
	cfg := mcp.Config{
		Records:   w.Store,
		Namespace: "mcp/desk",
		Key:       make([]byte, 32),
		Plan:      w.plan,
		People:    hold.Service(w.Service, w.Store, hold.Place{Tenant: assenttest.Tenant, Agent: "clerk"}),
		Log:       slog.New(slog.NewTextHandler(t.Output(), nil)),
		Poll:      20 * time.Millisecond,
		Naming:    catalog.Naming{Page: 5},
		Pins:      &mcptest.Pins{},
		Servers:   []mcp.Server{{Alias: "files", Upstream: up, PassMeta: []string{"*"}}},
		Callers:   []mcp.Caller{{Name: "short", Hold: time.Second}, {Name: "long", Hold: 40 * time.Second}},
		Announce:  func(ctx context.Context, method string) { w.server.Announce(ctx, method) },
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	if w.gateway, err = mcp.New(cfg); err != nil {
		t.Fatal(err)
	}
	w.server = server.New(server.Config{Handler: counted{w}})
	w.start(t)
	return w
}

func (w *world) start(t *testing.T) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.gateway.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	mux := http.NewServeMux()
	w.mux = mux
	w.front = httptest.NewServer(mux)
	t.Cleanup(w.front.Close)
	mux.HandleFunc("POST /approve", w.approve)
	for _, name := range []string{"short", "long"} {
		mux.Handle("/"+name, w.server.HTTP(server.HTTPConfig{
			Authenticate: func(*http.Request) (string, *server.Refusal) { return name, nil },
			Origins:      []string{w.front.URL},
		}))
	}
}

func (w *world) plan(ctx context.Context) (*resolve.Plan, error) {
	compiled, err := w.Plans.Plan(ctx, assenttest.Tenant, "clerk")
	if err != nil {
		return nil, err
	}
	return compiled.Plan, nil
}

// counted counts the calls that come.
type counted struct{ *world }

func (c counted) Describe(ctx context.Context, caller string) server.Description {
	return c.gateway.Describe(ctx, caller)
}

func (c counted) Listen(
	ctx context.Context, r *server.Request, t server.Topics, tell server.Tell,
) (server.Topics, *wire.Error) {
	return c.gateway.Listen(ctx, r, t, tell)
}

func (c counted) Notified(ctx context.Context, r *server.Request) { c.gateway.Notified(ctx, r) }

func (c counted) Handle(ctx context.Context, r *server.Request, with *server.Exchange) (json.RawMessage, *wire.Error) {
	if r.Method == wire.MethodCall {
		path, _ := jsonmsg.ReadString(jsonmsg.Get(jsonmsg.Get(r.Params, "arguments"), "path"))
		c.mu.Lock()
		c.calls[path]++
		c.open[path]++
		c.mu.Unlock()
		defer c.left(path)
	}

	return c.gateway.Handle(ctx, r, with)
}

func (w *world) left(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[path]--
}

// untilLeft waits until the gateway has noticed that no client waits for a call. Clients that give
// up report that on a separate connection.
func (w *world) untilLeft(path string) {
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for range 1500 {
		w.mu.Lock()
		open := w.open[path]
		w.mu.Unlock()
		if open == 0 {
			return
		}
		<-ticks.C
	}
}

// came says how many calls with a path came.
func (w *world) came(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[path]
}

// handle has the test do something about a path when a client says so.
func (w *world) handle(what string, do func(path string)) {
	w.mux.HandleFunc("POST /"+what, func(_ http.ResponseWriter, r *http.Request) { do(r.FormValue("path")) })
}

// approve has mara approve the request about a path.
func (w *world) approve(out http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		if id := w.about(r.Context(), r.FormValue("path")); id != "" {
			if _, err := w.Vote(id, "mara", approval.Approve, nil); err != nil {
				http.Error(out, err.Error(), http.StatusConflict)
			}
			return
		}
	}
}

// about returns the pending request about a path. It is empty if there is none.
func (w *world) about(ctx context.Context, path string) string {
	page, err := w.Service.Waiting(ctx, assenttest.Tenant, "mara", approval.Filter{})
	if err != nil {
		return ""
	}
	for _, s := range page.Requests {
		r, err := w.Service.Request(ctx, assenttest.Tenant, s.ID)
		if err != nil {
			continue
		}
		last := r.Revisions[len(r.Revisions)-1]
		if strings.Contains(string(last.Call.Args), `"`+path+`"`) {
			return s.ID
		}
	}

	return ""
}

// pipe lets programs connect to a port as a caller by a pipe.
func (w *world) pipe(t *testing.T, caller string) string {
	t.Helper()
	at := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := at.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				_ = w.server.Pipe(t.Context(), caller, conn, conn)
			})
		}
	})

	t.Cleanup(func() {
		_ = at.Close()
		all.Wait()
	})
	_, port, _ := net.SplitHostPort(at.Addr().String())
	return port
}

// run runs a program of others, and returns what it prints.
func run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	text, err := try(t, name, args...)
	if err != nil {
		t.Fatalf("%s: %v", filepath.Base(name), err)
	}
	return text
}

func try(t *testing.T, name string, args ...string) ([]byte, error) {
	t.Helper()
	var told, wrong bytes.Buffer
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = installed(t)
	c.Stdout, c.Stderr = &told, &wrong
	err := c.Run()
	if err != nil {
		t.Logf("%s %s\n%s%s", name, args, told.String(), wrong.String())
	}
	return told.Bytes(), err
}
