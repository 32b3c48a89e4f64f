package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/resolve"
)

// policyFile has no rule for this agent.
const policyFile = `schema_version: "1.0.0"
policy_ref: acme.none
rules:
  - {id: none, match: {kinds: [tool], targets: [wire]}, approval: true}
`

// peopleFile names the people who may answer.
const peopleFile = `schema_version: "1.0.0"
people:
  - {id: mara, groups: [risk]}
  - {id: ben, groups: [risk]}
groups: {risk: {description: People who judge.}}
`

// upstreamTools returns the tools of the server.
func upstreamTools() []json.RawMessage {
	return []json.RawMessage{
		json.RawMessage(`{"name":"read_file","description":"Reads.","inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":"write_file","description":"Writes.","inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":"format_disk","description":"Formats.","inputSchema":{"type":"object"}}`),
	}
}

// files is a server that records the calls that it gets.
type files struct {
	mu      sync.Mutex
	tools   []json.RawMessage
	calls   []string // params of tools/call
	fails   []error  // of the next calls
	says    string   // the result of every call; "": a text
	changed chan string
	hold    chan struct{} // calls end when it is closed
}

func (f *files) Changed() <-chan string { return f.changed }

func (f *files) List(context.Context, string) ([]json.RawMessage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tools, nil
}

func (f *files) Do(_ context.Context, r upstream.Request) (upstream.Answer, error) {
	out, err := f.take(r)
	if f.hold != nil {
		<-f.hold
	}
	return out, err
}

func (f *files) take(r upstream.Request) (upstream.Answer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.fails) > 0 {
		err := f.fails[0]
		f.fails = f.fails[1:]
		if err != nil {
			return upstream.Answer{}, err
		}
	}

	f.calls = append(f.calls, string(r.Params))
	if f.says != "" {
		return upstream.Answer{Result: json.RawMessage(f.says)}, nil
	}
	text := fmt.Sprintf(`{"content":[{"type":"text","text":"done %d"}],"isError":false}`, len(f.calls))
	return upstream.Answer{Result: json.RawMessage(text)}, nil
}

func (f *files) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

// world is a gateway with a client, a server and people.
type world struct {
	*assenttest.Assent
	files   *files
	cfg     mcp.Config
	gateway *mcp.Gateway
	stop    func()
}

func newWorld(t *testing.T, change func(*mcp.Config)) *world {
	t.Helper()
	return newWorldOf(t, mcptest.Clerk, policyFile, change)
}

// newWorldOf returns a world with an agent's file and a policy of its own.
func newWorldOf(t *testing.T, agent, policy string, change func(*mcp.Config)) *world {
	t.Helper()
	w := &world{files: &files{tools: upstreamTools(), changed: make(chan string)}}
	w.Assent = assenttest.New(t, assenttest.Config{
		Runs: true,
		Files: fstest.MapFS{
			"agents/clerk.agf.yaml":     {Data: []byte(agent)},
			"policies/none.policy.yaml": {Data: []byte(policy)},
			"people.yaml":               {Data: []byte(peopleFile)},
		},
	})
	cfg := mcp.Config{
		Records:   w.Store,
		Namespace: "mcp/desk",
		Key:       make([]byte, 32),
		Plan:      w.plan,
		People:    hold.Service(w.Service, w.Store, hold.Place{Tenant: assenttest.Tenant, Agent: "clerk"}),
		User:      mcp.ServiceUser(w.Service, assenttest.Tenant),
		Now:       w.Clock.Now,
		Log:       slog.New(slog.NewTextHandler(t.Output(), nil)),
		Poll:      20 * time.Millisecond,
		Servers:   []mcp.Server{{Alias: "files", Upstream: w.files, Identity: catalog.Server{Command: "files"}}},
		Callers:   []mcp.Caller{{Name: "desk", Hold: time.Second}},
		Pins:      &mcptest.Pins{},

		ListPatience: time.Hour, // a busy machine has the same lists
	}
	if change != nil {
		change(&cfg)
	}
	w.cfg = cfg
	w.start(t)
	return w
}

func (w *world) plan(ctx context.Context) (*resolve.Plan, error) {
	compiled, err := w.Plans.Plan(ctx, assenttest.Tenant, "clerk")
	if err != nil {
		return nil, err
	}
	return compiled.Plan, nil
}

// start starts a gateway, as a new process would.
func (w *world) start(t *testing.T) {
	t.Helper()
	g := must.Get(mcp.New(w.cfg))(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	w.gateway = g
	w.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(w.stop)
}

func (w *world) restart(t *testing.T) {
	t.Helper()
	w.stop()
	w.start(t)
}

// client is one at the end of a pipe.
type client struct {
	t     *testing.T
	in    io.Writer
	lines *bufio.Scanner
}

// connect opens a legacy conversation on a pipe.
func (w *world) connect(t *testing.T) *client {
	t.Helper()
	c := w.pipe(t, server.Config{})
	c.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"desk","version":"1"}}}`)
	return c
}

// pipe returns a client that has sent nothing yet.
func (w *world) pipe(t *testing.T, cfg server.Config) *client {
	t.Helper()
	cfg.Handler = w.gateway
	return pipeTo(t, server.New(cfg))
}

// pipeTo returns a client of a server that has sent nothing yet.
func pipeTo(t *testing.T, s *server.Server) *client {
	t.Helper()
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Pipe(t.Context(), "desk", theirs, ours)
		_ = ours.Close()
	}()
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		<-ended
	})
	c := &client{t: t, in: in, lines: bufio.NewScanner(out)}
	c.lines.Buffer(nil, 16<<20)
	return c
}

// say sends a message and returns the answer.
func (c *client) say(text string) string {
	c.t.Helper()
	c.send(text)
	return c.hear()
}

func (c *client) send(text string) {
	c.t.Helper()
	must.Get(io.WriteString(c.in, text+"\n"))(c.t)
}

func (c *client) hear() string {
	c.t.Helper()
	if !c.lines.Scan() {
		c.t.Fatalf("the pipe ended: %v", c.lines.Err())
	}
	return c.lines.Text()
}

// call calls a tool and returns the text of the result.
func (c *client) call(name, args string) string {
	c.t.Helper()
	return c.text(c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + args + `}}`))
}

func (c *client) text(answer string) string {
	c.t.Helper()
	m, bad := wire.Parse([]byte(answer), wire.Limits())
	if bad != nil {
		c.t.Fatalf("%s: %v", answer, bad)
	}
	if m.Error != nil {
		return m.Error.Error()
	}
	var result struct {
		Content []struct{ Text string }
	}
	err := json.Unmarshal(m.Result, &result)
	if len(result.Content) == 2 && strings.HasPrefix(result.Content[0].Text, "A person changed this call") {
		return result.Content[0].Text + "\n" + result.Content[1].Text
	}
	if err != nil || len(result.Content) != 1 {
		c.t.Fatalf("%s: %v", answer, err)
	}
	return result.Content[0].Text
}

func (c *client) expect(got, want string) {
	c.t.Helper()
	if !strings.Contains(got, want) {
		c.t.Errorf("got %q, expected %q", got, want)
	}
}

// pending returns the only pending request.
func (w *world) pending(t *testing.T) approval.Summary {
	t.Helper()
	return testwait.Value(t, "a request waits for people", func() (approval.Summary, bool) {
		page := must.Get(w.Service.Waiting(t.Context(), assenttest.Tenant, "mara", approval.Filter{}))(t)
		if len(page.Requests) == 0 {
			return approval.Summary{}, false
		}
		return page.Requests[0], true
	})
}

// TestRulesMeetDeclaredArguments: a rule with takes meets calls of a tool that declares the argument in its
// schema, also if a call leaves it out and the server uses its own default.
func TestRulesMeetDeclaredArguments(t *testing.T) {
	t.Parallel()
	policy := strings.Replace(ruled(`match: {takes: [mode]}, deny: No mode is chosen here.`), "1.0.0", "1.1.0", 1)
	w := newWorldOf(t, open, policy, nil)
	w.files.tools[1] = json.RawMessage(
		`{"name":"write_file","description":"Writes.","inputSchema":{"type":"object","properties":{"mode":{}}}}`)
	r := &row{world: w, t: t}
	c := r.connect(t)
	c.expect(c.call("write_file", `{}`), "No mode is chosen here.")
	c.expect(c.call("read_file", `{"mode":1}`), "No mode is chosen here.")
	c.expect(c.call("read_file", `{}`), "done 1")
}
