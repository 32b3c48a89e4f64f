package crashtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
	"github.com/assent-dev/assent/internal/testwait"
)

// Moments in the life of an approved call at which its gateway dies.
const (
	dieApproved = iota // a moment after people approved it: before, in and after the consume
	dieSent            // when the server has the call, and before it answers
	dieAnswered        // a moment after the server answered
	dieTold            // when the client has the result
	moments
)

const (
	filesAgent = `schema_version: "1.0.0"
metadata: {id: files, name: Files, version: "1.0.0", description: Keeps files.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space:
  mcp_servers:
    - {alias: files, server_ref: files, description: Files., approval: true}
`
	// filesPolicy requires the approval of one person of the desk.
	filesPolicy = `schema_version: "1.0.0"
policy_ref: crash.files
description: One person for each file.
applies: implicit
rules:
  - id: files
    match: {servers: [files]}
    approval: true
    require: {stages: [{group: desk, people: 1}]}
`
)

// TestKillMCP kills an MCP gateway with SIGKILL between the approval of a call and its result: three
// times at each moment, and 220 times in make long (ASSENT_KILLS). Its server never gets a call twice,
// and both the clients' answers and the gateway's ledger are correct.
func TestKillMCP(t *testing.T) {
	kills := 3 * moments
	if n, err := strconv.Atoi(os.Getenv("ASSENT_KILLS")); err == nil {
		kills = n
	}
	g := newMCP(t)
	ctx := t.Context()
	for n := range kills {
		g.round(ctx, n)
	}

	g.settle(kills)
	g.audit(ctx)
	t.Logf(
		"%d kills: %d calls ran once; of all, %d were told the result, %d that they may have run, %d lost the answer",
		kills,
		len(g.files.seen),
		g.done,
		g.unknown,
		g.lost,
	)
}

// mcpGateway is a gateway that is killed again and again, with a server whose people answer, and an
// MCP server.
type mcpGateway struct {
	*harness
	config  string
	people  *client.Client
	files   *filesServer
	random  *rand.Rand
	life    *life
	done    int
	unknown int
	lost    int
	// requests maps the numbers of calls to the requests to people.
	requests map[int]string
}

func newMCP(t *testing.T) *mcpGateway {
	t.Helper()
	g := &mcpGateway{
		harness:  newHarness(t, testbin.Path(t, "cmd/assent"), ""),
		files:    &filesServer{seen: map[int]int{}},
		random:   rand.New(rand.NewPCG(17, 19)),
		requests: map[int]string{},
	}
	at := httptest.NewServer(g.files)
	t.Cleanup(at.Close)
	address := g.address()
	for name, text := range map[string]string{
		"agents/files.agf.yaml":        filesAgent,
		"policies/files.policy.yaml":   filesPolicy,
		"own/agents/files.agf.yaml":    filesAgent,
		"own/policies/two.policy.yaml": policyFile,
		"own/people.yaml":              peopleFile,
		"own/bot.token":                g.bot,
		"own/gateway.yaml": "agent: ../agents/files.agf.yaml\npolicies: ../policies\nserver: http://" + address +
			"\nserver_token_file: bot.token\ncallers: {name: desk, hold: 10s}\n" +
			"upstream: {alias: files, url: '" + at.URL + "', era: legacy, networks: [127.0.0.0/8]}\n",
	} {
		path := filepath.Join(g.dir, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}

	g.config = filepath.Join(g.dir, "own", "gateway.yaml")
	g.serve(address)
	g.people = g.client(address, g.bob)
	g.life = g.begin()
	return g
}

// life is one process of the gateway, and the client that started it.
type life struct {
	cmd *exec.Cmd
	in  io.WriteCloser

	mu      sync.Mutex
	waiting map[int]chan string // by the ids of calls
	ended   chan struct{}
}

func (g *mcpGateway) begin() *life {
	g.t.Helper()
	l := &life{
		cmd:     exec.Command(g.bin, "mcp", "gateway", "--config", g.config),
		waiting: map[int]chan string{},
		ended:   make(chan struct{}),
	}
	in, err1 := l.cmd.StdinPipe()
	out, err2 := l.cmd.StdoutPipe()
	l.in = in
	must.Do(g.t, errors.Join(err1, err2, l.cmd.Start()))
	g.t.Cleanup(l.kill)
	go l.read(out)
	<-l.ask(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	return l
}

// read hands out answers until the gateway has ended.
func (l *life) read(out io.Reader) {
	defer close(l.ended)
	for in := bufio.NewScanner(out); in.Scan(); {
		var m struct{ ID *int }
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		l.mu.Lock()
		l.waiting[*m.ID] <- in.Text()
		l.mu.Unlock()
	}

	_ = l.cmd.Wait() // it was killed
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, waits := range l.waiting {
		close(waits)
	}
}

// ask sends a request. The channel delivers its answer, or nothing if the gateway dies.
func (l *life) ask(id int, method, params string) <-chan string {
	answer := make(chan string, 1)
	l.mu.Lock()
	l.waiting[id] = answer
	l.mu.Unlock()
	fmt.Fprintf(l.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
	return answer
}

// call makes the call with a number.
func (l *life) call(n int) <-chan string {
	return l.ask(n+1, "tools/call", fmt.Sprintf(`{"name":"write_file","arguments":{"n":%d}}`, n))
}

func (l *life) kill() {
	_ = l.cmd.Process.Kill() // it may be dead
	<-l.ended
}

// round brings a call to the moment at which the gateway is killed, and starts the next one.
func (g *mcpGateway) round(ctx context.Context, n int) {
	g.t.Helper()
	moment := n % moments
	reached := g.files.expect(n, moment == dieSent)
	told := g.life.call(n)
	id := g.asked(ctx, n)
	g.requests[n] = id
	must.Get(vote(ctx, g.people, id))(g.t)
	switch moment {
	case dieSent, dieAnswered:
		await(g.t, reached, "the server gets the call")
	case dieTold:
		await(g.t, told, "the client gets the result")
	}

	if moment == dieApproved || moment == dieAnswered {
		<-time.After(time.Duration(g.random.IntN(25000)) * time.Microsecond)
	}

	g.life.kill()
	g.files.release()
	g.life = g.begin()
}

// await waits for an expected value.
func await[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	return testwait.Value(t, what, func() (got T, ok bool) {
		select {
		case got = <-c:
			return got, true
		default:
			return got, false
		}
	})
}

// asked returns the request of the call with a number.
func (g *mcpGateway) asked(ctx context.Context, n int) string {
	g.t.Helper()
	return testwait.Value(g.t, fmt.Sprintf("a question about call %d", n), func() (string, bool) {
		page := must.Get(g.people.Requests(ctx, client.Query{State: "pending", Agent: "files"}))(g.t)
		if len(page.Requests) == 0 {
			return "", false
		}
		return page.Requests[0].ID, true
	})
}

// settle makes each call once more with the last gateway.
func (g *mcpGateway) settle(kills int) {
	g.t.Helper()
	answers := map[int]<-chan string{}
	for n := range kills {
		if n%moments == dieTold {
			g.done++ // its client had the result; the same call would be another one
			continue
		}
		answers[n] = g.life.call(n)
	}

	for n, answer := range answers {
		text := await(g.t, answer, "the call is answered again")
		ran := g.files.ran(n)
		switch {
		case strings.Contains(text, "ran "+strconv.Itoa(n)+`"`) && ran == 1:
			g.done++
		case strings.Contains(text, "This call may have run") && ran <= 1:
			g.unknown++
		case strings.Contains(text, "another call than the same one before, which ran") && ran == 1:
			g.lost++ // it died between telling its client and the client's reading
		default:
			g.t.Errorf("call %d ran %d times, and its client is told %s", n, ran, text)
		}
	}

	for n, ran := range g.files.seen {
		if ran != 1 {
			g.t.Errorf("call %d ran %d times", n, ran)
		}
	}
}

// audit compares the gateway's ledger with the calls that its server received: each call that was
// sent has one run in the ledger, under its request, with its outcome if the gateway lived long
// enough to record it.
func (g *mcpGateway) audit(ctx context.Context) {
	g.t.Helper()
	must.Do(g.t, g.life.in.Close())
	<-g.life.ended
	own := *g.harness
	own.dir = filepath.Dir(g.config)
	own.store = filepath.Join(own.dir, "mcp.db")
	public := must.Get(os.ReadFile(filepath.Join(own.dir, "assent.key.pub")))(g.t)
	own.key = strings.TrimSpace(string(public))
	address := own.address()
	own.serve(address)
	_, events := own.audit(ctx, own.client(address, own.token("auditor", "read", "")), nil)

	runs, outcomes := map[string]int{}, map[string][]string{}
	for _, l := range events["mcp/files/write_file"] {
		var facts struct{ Request, Outcome, Binding, Definition string }
		if err := json.Unmarshal(l.Facts.AppendCanonical(nil), &facts); err != nil || facts.Binding == "" ||
			facts.Definition == "" {
			g.t.Errorf("%s has %s: %v", l.Type, l.Facts.AppendCanonical(nil), err)
		}
		switch l.Type {
		case "mcp_call_runs":
			runs[facts.Request]++
		case "mcp_call_ran":
			outcomes[facts.Request] = append(outcomes[facts.Request], facts.Outcome)
		}
	}

	for n, id := range g.requests {
		if ran := g.files.ran(n); runs[id] != 1 && ran == 1 || runs[id] > 1 {
			g.t.Errorf("call %d was sent %d times, and the ledger has %d runs of %s", n, ran, runs[id], id)
		}
		if n%moments == dieTold && fmt.Sprint(outcomes[id]) != "[returned]" {
			g.t.Errorf("call %d was told, and the ledger has %q", n, outcomes[id])
		}
		if n%moments == dieSent && fmt.Sprint(outcomes[id]) != "[unknown]" {
			g.t.Errorf("call %d was not answered, and the ledger has %q", n, outcomes[id])
		}
	}
}

// filesServer is an MCP server that counts the calls that it gets.
type filesServer struct {
	mu      sync.Mutex
	seen    map[int]int
	reached chan struct{}
	hold    chan struct{} // closed when the call may be answered; nil: at once
	last    int
}

// expect sets which call comes next, and whether it is held.
func (f *filesServer) expect(n int, held bool) (reached <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = n
	f.reached = make(chan struct{}, 1)
	f.hold = nil
	if held {
		f.hold = make(chan struct{})
	}
	return f.reached
}

// release answers the held call.
func (f *filesServer) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hold != nil {
		close(f.hold)
		f.hold = nil
	}
}

func (f *filesServer) ran(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[n]
}

// run counts a call, and waits while calls are held.
func (f *filesServer) run(n int) {
	f.mu.Lock()
	f.seen[n]++
	hold := f.hold
	if n == f.last {
		f.reached <- struct{}{}
	}
	f.mu.Unlock()
	if hold != nil {
		<-hold
	}
}

func (f *filesServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Arguments struct{ N int } }
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := ""
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"files","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"write_file","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		f.run(m.Params.Arguments.N)
		result = fmt.Sprintf(`{"content":[{"type":"text","text":"ran %d"}],"isError":false}`, m.Params.Arguments.N)
	}

	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}
