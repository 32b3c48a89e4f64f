//go:build bars

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/internal/testwait"
	gateway "github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/resolve"
)

// The bars.
const (
	barP50  = 300 * time.Microsecond // what the gateway may add to a call of the server
	barP99  = 2 * time.Millisecond
	barList = 50 * time.Millisecond // a list of 2,500 tools, after the first time
	barHeap = 30 << 20              // bytes that 1,000 waiting calls keep
)

// subject is a way to make the same call of the same server.
type subject struct {
	name   string
	client client
	rounds [][]time.Duration
}

// take makes calls and stores their durations.
func (s *subject) take(t *testing.T, round, calls int) {
	for range calls {
		begun := time.Now()
		answer, err := s.client.ask("tools/call", `{"name":"tool_0000","arguments":`+arguments+`}`)
		s.rounds[round] = append(s.rounds[round], time.Since(begun))
		if err != nil || !bytes.Contains(answer, []byte("done")) {
			t.Fatalf("%s: got %s, %v", s.name, answer, err)
		}
	}
}

const rounds, bursts, burst = 11, 20, 50

// measure runs the subjects alternately, in a different order each time.
func measure(t *testing.T, all []*subject) {
	for _, s := range all {
		s.rounds = make([][]time.Duration, rounds+1)
		s.take(t, rounds, 500) // warms up
	}
	for round := range rounds {
		for i := range bursts {
			for j := range all {
				all[(i+j)%len(all)].take(t, round, burst)
			}
		}
	}

	for _, s := range all {
		s.rounds = s.rounds[:rounds]
		for _, r := range s.rounds {
			slices.Sort(r)
		}
	}
}

// over returns how much longer this subject took than another one in each round, at a quantile.
// The shortest time is first.
func (s *subject) over(base *subject, q float64) (all []time.Duration) {
	for i := range s.rounds {
		all = append(all, at(s.rounds[i], q)-at(base.rounds[i], q))
	}
	slices.Sort(all)
	return all
}

// usual returns the median of the rounds at a quantile.
func (s *subject) usual(q float64) time.Duration {
	var all []time.Duration
	for _, r := range s.rounds {
		all = append(all, at(r, q))
	}
	slices.Sort(all)
	return at(all, 0.5)
}

func at(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1))]
}

// proxy is the path of mcp-proxy from npm.
const proxy = "../bin/mcp-proxy/node_modules/.bin/mcp-proxy"

// TestCall measures an allowed call over pipes and over HTTP. It compares them with the same
// call to the server itself and through mcp-proxy.
func TestCall(t *testing.T) {
	env := []string{variable + "=3"}
	direct := &subject{name: "direct", client: start(t, env, os.Args[0])}
	bin := assent(t)
	ours := &subject{name: "assent", client: start(t, nil, bin, "mcp", "gateway", "--config", configure(t, 3, ""))}
	at := port(t)
	file := configure(t, 3, "listen: 127.0.0.1:"+at+"\ncallers: {name: bench}\n")
	background(t, nil, bin, "mcp", "gateway", "--config", file)
	all := []*subject{direct, ours, {name: "assent by HTTP", client: connect(t, "http://127.0.0.1:"+at+"/mcp")}}
	if _, err := os.Stat(proxy); err == nil {
		at := port(t)
		background(t, env, proxy, "--host", "127.0.0.1", "--port", at, "--server", "stream", "--", os.Args[0])
		all = append(all, &subject{name: "mcp-proxy by HTTP", client: connect(t, "http://127.0.0.1:"+at+"/mcp")})
	} else {
		t.Log("mcp-proxy is not installed (make -C bench mcp installs it): measured without it")
	}

	measure(t, all)
	for _, s := range all {
		p50, p99 := s.over(direct, 0.5), s.over(direct, 0.99)
		t.Logf("RESULT %s: p50 %v, p99 %v; over direct %v and %v (medians of %d rounds), at best %v and %v; load %s",
			s.name, s.usual(0.5), s.usual(0.99), p50[rounds/2], p99[rounds/2], rounds, p50[0], p99[0], load())
		if s == ours && (p50[rounds/2] > barP50 || p99[0] > barP99) {
			t.Errorf("%s: %v over direct at the median (bar %v), %v at the 99th percentile (bar %v)",
				s.name, p50[rounds/2], barP50, p99[0], barP99)
		}
	}
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg") // empty on other systems
	return strings.Join(strings.Fields(string(text))[:min(3, len(strings.Fields(string(text))))], " ")
}

// TestList lists 2,500 tools on all pages, the first time and later.
func TestList(t *testing.T) {
	const tools, times = 2500, 21
	c := start(t, nil, assent(t), "mcp", "gateway", "--config", configure(t, tools, ""))
	first := list(t, c, tools)
	var later []time.Duration
	for range times {
		later = append(later, list(t, c, tools))
	}
	slices.Sort(later)
	t.Logf("RESULT %d tools listed in %v the first time, then in %v (median of %d; worst %v); load %s",
		tools, first, later[times/2], times, later[times-1], load())
	if later[times/2] > barList {
		t.Errorf("%v (bar %v)", later[times/2], barList)
	}
}

// list reads all pages.
func list(t *testing.T, c client, tools int) time.Duration {
	t.Helper()
	begun := time.Now()
	var pages [][]byte
	for params := `{}`; ; {
		page, err := c.ask("tools/list", params)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, page)
		i := bytes.LastIndex(page, []byte(`"nextCursor":"`))
		if i < 0 {
			break
		}
		cursor, _, _ := bytes.Cut(page[i+len(`"nextCursor":"`):], []byte(`"`))
		params = `{"cursor":"` + string(cursor) + `"}`
	}

	took := time.Since(begun)
	if n := bytes.Count(bytes.Join(pages, nil), []byte(`"inputSchema"`)); n != tools {
		t.Fatalf("%d tools are listed", n)
	}
	return took
}

// trusting accepts all tools and stores nothing.
type trusting struct{}

func (trusting) Pins(context.Context) (*catalog.Pins, error) { return &catalog.Pins{}, nil }

func (trusting) Accept(context.Context, *catalog.Judgement) error { return nil }

// idle is a server that gets no calls.
type idle struct{}

func (idle) Do(context.Context, upstream.Request) (upstream.Answer, error) {
	return upstream.Answer{}, upstream.ErrNotSent
}

func (idle) List(context.Context, string) (all []json.RawMessage, err error) {
	var list struct{ Tools []json.RawMessage }
	err = json.Unmarshal([]byte(listOf(3)), &list)
	return list.Tools, err
}

func (idle) Changed() <-chan string { return nil }

// TestWaiting measures the memory of calls that wait for people. Each call also has an open
// request of the client.
func TestWaiting(t *testing.T) {
	const calls = 1000
	a := assenttest.New(t, assenttest.Config{Runs: true, Files: fstest.MapFS{
		"agents/clerk.agf.yaml":     {Data: []byte(agentFile)},
		"policies/asks.policy.yaml": {Data: []byte(policyFile)},
		"people.yaml":               {Data: []byte("schema_version: \"1.0.0\"\npeople: [{id: mara}]\n")},
	}})
	g := gatewayOf(t, a)
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	go func() {
		_ = server.New(server.Config{Handler: g}).Pipe(t.Context(), "bench", theirs, ours)
	}()
	go func() { _, _ = io.Copy(io.Discard, out) }()
	send := func(id int, method, params string) {
		if _, err := in.Write(message(id, method, params)); err != nil {
			t.Fatal(err)
		}
	}
	send(1, "initialize", hello)
	send(2, "tools/list", "{}")
	before := heap()
	for i := range calls {
		send(10+i, "tools/call", fmt.Sprintf(`{"name":"tool_0001","arguments":{"n":%d,"all":%s},"_meta":{"progressToken":%d}}`,
			i, arguments, i))
	}
	for n := 0; waiting(t, a) < calls; n = waiting(t, a) { // the requests take a while to open
		testwait.Until(t, "more of them wait", func() bool { return waiting(t, a) > n })
	}

	testwait.Until(t, "they rest", func() bool { return waiting(t, a) == calls && g.Idle() })
	kept := heap() - before
	t.Logf("RESULT %d waiting calls keep %.1f MB on the heap", calls, float64(kept)/(1<<20))
	if kept > barHeap {
		t.Errorf("%d bytes (bar %d)", kept, barHeap)
	}
	_ = in.Close()
}

func gatewayOf(t *testing.T, a *assenttest.Assent) *gateway.Gateway {
	t.Helper()
	g, err := gateway.New(gateway.Config{
		Records:   a.Store,
		Namespace: "mcp/bench",
		Key:       make([]byte, 32),
		Plan: func(ctx context.Context) (*resolve.Plan, error) {
			c, err := a.Plans.Plan(ctx, assenttest.Tenant, "clerk")
			if err != nil {
				return nil, err
			}
			return c.Plan, nil
		},
		People:     hold.Service(a.Service, a.Store, hold.Place{Tenant: assenttest.Tenant, Agent: "clerk"}),
		Servers:    []gateway.Server{{Alias: "files", Upstream: idle{}, Identity: catalog.Server{Command: "files"}}},
		Callers:    []gateway.Caller{{Name: "bench", Hold: time.Hour}},
		Pins:       trusting{},
		MaxPending: 2000,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = g.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return g
}

func waiting(t *testing.T, a *assenttest.Assent) int {
	page, err := a.Store.Requests(
		t.Context(),
		assenttest.Tenant,
		approval.Filter{States: []approval.State{approval.Pending}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return page.Total
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
