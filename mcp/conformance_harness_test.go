package mcp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// row is a gateway in front of a recording server in a process of its own.
type row struct {
	*world
	t *testing.T
	u *mcptest.Server
}

// script returns a server with the tools of the tests.
func script(era string) mcptest.Script {
	return mcptest.Script{Era: era, Tools: upstreamTools()}
}

func newRow(t *testing.T, s mcptest.Script, change func(*mcp.Config)) *row {
	t.Helper()
	return newRowOf(t, mcptest.Clerk, policyFile, s, change)
}

// newRowOf returns a row under rules of its own.
func newRowOf(t *testing.T, agent, policy string, s mcptest.Script, change func(*mcp.Config)) *row {
	t.Helper()
	u := mcptest.New(t, s)
	w := newWorldOf(t, agent, policy, func(cfg *mcp.Config) {
		cfg.Servers[0].Upstream = started(t, u, func(cfg *upstream.Config) {
			if s.Era == "deaf" { // it never answers the probe
				cfg.Probe = 200 * time.Millisecond
			}
		})
		if change != nil {
			change(cfg)
		}
	})
	return &row{world: w, t: t, u: u}
}

// started starts a recording server.
func started(t *testing.T, u *mcptest.Server, change func(*upstream.Config)) *upstream.Server {
	t.Helper()
	cfg := upstream.Config{Alias: "files", Command: []string{os.Args[0]}, Env: u.Env()}
	if change != nil {
		change(&cfg)
	}
	return startedOf(t, cfg)
}

// startedOf starts whatever a configuration names.
func startedOf(t *testing.T, cfg upstream.Config) *upstream.Server {
	t.Helper()
	cfg.Alias = cmp.Or(cfg.Alias, "files")
	cfg.Grace = cmp.Or(cfg.Grace, 500*time.Millisecond)
	cfg.Settle = cmp.Or(cfg.Settle, 20*time.Millisecond)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.NewTextHandler(t.Output(), nil)))
	s := must.Get(upstream.New(cfg))(t)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return s
}

// sees checks the params of all calls that the server has received so far.
func (r *row) sees(want ...string) {
	r.t.Helper()
	if got := r.u.Calls(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		r.t.Errorf("the server got %q, expected %q", got, want)
	}
}

// ran checks the number of calls.
func (r *row) ran(n int) {
	r.t.Helper()
	if got := r.u.Calls(); len(got) != n {
		r.t.Errorf("the server got %q, expected %d calls", got, n)
	}
}

// approve approves the pending request as a person.
func (r *row) approve() {
	r.t.Helper()
	r.Votes(r.pending(r.t).ID, "mara", approval.Approve, approval.VoteApproved, nil)
}

func (r *row) deny() {
	r.t.Helper()
	r.Votes(r.pending(r.t).ID, "mara", approval.Deny, approval.VoteDenied, nil)
}

// choose approves a question as the user of the client.
func (r *row) choose(id string) {
	r.t.Helper()
	r.Votes(id, "mara", approval.Choose, approval.VoteAnswered, func(in *approval.VoteInput) { in.Choice = new(int) })
}

// waits checks that exactly one request is pending, and returns it.
func (r *row) waits(id string) {
	r.t.Helper()
	if got := r.pending(r.t).ID; got != id {
		r.t.Errorf("%s waits, expected %s", got, id)
	}
}

// The _meta of modern requests.
const (
	metaPlain = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{}}`
	metaTasks = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
)

// request returns a request without modern _meta.
func request(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `}}`
}

// modernCall returns a call of a modern client.
func modernCall(id, name, args, more string) string {
	return request(id, wire.MethodCall, `"name":"`+name+`","arguments":`+args+`,`+more+metaPlain)
}

// taskCall returns a call of a modern client that can follow tasks.
func taskCall(id, name, args string) string {
	return request(id, wire.MethodCall, `"name":"`+name+`","arguments":`+args+`,`+metaTasks)
}

// taskRequest returns a request about a task, in either era.
func taskRequest(method, task string, modern bool) string {
	params := `"taskId":"` + task + `"`
	if modern {
		params += "," + metaTasks
	}
	return request(`"t"`, method, params)
}

// result returns the result of an answer. An error fails the test.
func (c *client) result(answer string) json.RawMessage {
	c.t.Helper()
	m, bad := wire.Parse([]byte(answer), wire.Limits())
	if bad != nil || m.Error != nil {
		c.t.Fatalf("%s: %v", answer, bad)
	}
	return m.Result
}

// member returns a member of a result, as text.
func (c *client) member(result json.RawMessage, name string) string {
	c.t.Helper()
	var all map[string]any
	must.Do(c.t, json.Unmarshal(result, &all))
	text, _ := all[name].(string)
	return text
}

// code checks that an answer is a protocol error with a code.
func (c *client) code(code int, answer string) {
	c.t.Helper()
	var m struct{ Error *struct{ Code int } } // the id may be one that wire.Parse refuses
	if err := json.Unmarshal([]byte(answer), &m); err != nil || m.Error == nil || m.Error.Code != code {
		c.t.Errorf("got %s, expected the error %d", answer, code)
	}
}

// no checks that a text is not in an answer.
func (c *client) no(answer, text string) {
	c.t.Helper()
	if strings.Contains(answer, text) {
		c.t.Errorf("got %s, expected it without %s", answer, text)
	}
}

// hearUntil reads messages until one contains a text. It returns the earlier messages and that one.
func (c *client) hearUntil(text string) (before []string, answer string) {
	c.t.Helper()
	for {
		line := c.hear()
		if strings.Contains(line, text) {
			return before, line
		}
		before = append(before, line)
	}
}

// web is the gateway at a real HTTP endpoint, for two callers.
type web struct {
	t      *testing.T
	url    string
	client *http.Client
}

func (r *row) web(changes ...func(*server.HTTPConfig)) *web {
	r.t.Helper()
	cfg := server.HTTPConfig{
		Authenticate: func(r *http.Request) (string, *server.Refusal) {
			for _, name := range []string{"desk", "other"} {
				if r.Header.Get("Authorization") == "Bearer "+name {
					return name, nil
				}
			}
			return "", &server.Refusal{
				Status:    http.StatusUnauthorized,
				Challenge: "Bearer",
				Reason:    "expected a token",
			}
		},
	}
	for _, change := range changes {
		change(&cfg)
	}
	endpoint := server.New(server.Config{Handler: r.gateway}).HTTP(cfg)
	at := httptest.NewServer(endpoint)
	r.t.Cleanup(func() {
		endpoint.Close()
		at.Close()
	})
	return &web{t: r.t, url: at.URL, client: at.Client()}
}

// at returns the same gateway at an address with a suffix.
func (w *web) at(behind string) *web {
	return &web{t: w.t, url: w.url + behind, client: w.client}
}

// ask sends a request; headers come in pairs.
func (w *web) ask(ctx context.Context, method, body string, headers ...string) *http.Response {
	w.t.Helper()
	return mcptest.Ask(ctx, w.t, w.client, method, w.url, body, headers...)
}

// two is a configuration with a second caller.
func two(cfg *mcp.Config) {
	cfg.Callers = append(cfg.Callers, mcp.Caller{Name: "other", Hold: time.Second})
}

// short makes callers wait so briefly that each pending call is answered. An approved call runs
// only while its caller waits, so the time must be enough for that on a busy machine. If it is too
// short, the call is only repeated more often.
func short(cfg *mcp.Config) { cfg.Callers[0].Hold = 200 * time.Millisecond }

// another returns a second server behind the gateway.
func another(t *testing.T, cfg *mcp.Config, alias string, s mcptest.Script) *mcptest.Server {
	t.Helper()
	u := mcptest.New(t, s)
	cfg.Servers = append(cfg.Servers, mcp.Server{
		Alias:    alias,
		Upstream: started(t, u, func(cfg *upstream.Config) { cfg.Alias = alias }),
		Identity: catalog.Server{Command: alias},
	})
	return u
}

// post sends a message.
func (w *web) post(body string, headers ...string) *http.Response {
	w.t.Helper()
	return w.ask(w.t.Context(), http.MethodPost, body, headers...)
}

// expect checks the status and a text of the answer, and returns the answer.
func (w *web) expect(status int, text string, resp *http.Response) string {
	w.t.Helper()
	got := must.Get(io.ReadAll(resp.Body))(w.t)
	if resp.StatusCode != status || !strings.Contains(string(got), text) {
		w.t.Errorf("got %d %s, expected %d %s", resp.StatusCode, got, status, text)
	}
	return string(got)
}

// modernHeaders returns the headers that repeat values of a modern request.
func modernHeaders(method, name string) []string {
	return []string{"Mcp-Protocol-Version", wire.V20260728, "Mcp-Method", method, "Mcp-Name", name}
}

// ledger collects the records of the gateway.
type ledger struct {
	mu      sync.Mutex
	entries []entry
}

type entry struct {
	event, subject, actor string
	facts                 map[string]any
}

func (l *ledger) keep(cfg *mcp.Config) {
	cfg.Record = func(_ context.Context, event, subject, actor string, facts map[string]any) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.entries = append(l.entries, entry{event: event, subject: subject, actor: actor, facts: facts})
		return nil
	}
}

// all returns the entries of an event.
func (l *ledger) all(event string) (found []entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		if e.event == event {
			found = append(found, e)
		}
	}
	return found
}

func (l *ledger) count(event string) int { return len(l.all(event)) }
