package rap_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

const confToolsFile = `
schema_version: "1.0.0"
metadata: {id: toolkeeper, name: Toolkeeper, version: "1.0.0", description: Keeps a few tools., namespace: acme.tools}
interface: {input: {type: object}, output: {type: object}}
constraints:
  governance_policies:
    - {policy_ref: acme.tools, required: true, description: What needs more than the user.}
action_space:
  local_tools:
    - {alias: write_file, description: Writes a file., approval: true}
    - {alias: move_file, description: Moves a file., approval: true}
    - {alias: read_file, description: Reads a file.}
    - alias: pay
      description: Pays somebody.
      approval: {condition: {args_match: {amount: {gt: 100}}}}
    - {alias: list_files, description: Lists files.}
    - {alias: drop_table, description: Drops a table.}
    - {alias: deploy, description: Ships the product.}
execution_policy: {id: agf.react, config: {instructions: Keep., model: any, max_steps: 5}}
`

const confToolsPolicy = `
schema_version: "1.0.0"
policy_ref: acme.tools
description: What needs more than the user.
rules:
  - id: ship
    match: {targets: [deploy]}
    approval: true
    require: {stages: [{group: ops, people: 2}]}
  - id: each-move
    match: {targets: [move_file]}
    approval: true
    require: {grants: forbid}
  - id: never
    match: {targets: [drop_table]}
    deny: "Tables stay."
`

func confPlan(text string, rules ...string) (*resolve.Plan, error) {
	agent, findings := schema.Parse("agent.agf.yaml", []byte(text))
	if agent == nil {
		return nil, fmt.Errorf("agent: %v", findings)
	}
	var policies []*policy.Policy
	for _, text := range rules {
		p, findings := policy.Parse("tools.policy.yaml", []byte(text))
		if p == nil {
			return nil, fmt.Errorf("policy: %v", findings)
		}
		policies = append(policies, p)
	}

	set, findings := policy.NewSet(policies...)
	if set == nil {
		return nil, fmt.Errorf("policies: %v", findings)
	}
	return resolve.Compile(agent, set, resolve.Options{})
}

// confOperation is a wrapped operation. It counts its runs, and may wait, fail or panic.
type confOperation struct {
	mu      sync.Mutex
	jobs    []rap.Job
	arrived chan struct{}
	gate    chan struct{} // runs wait until it is closed; nil: they don't wait
	do      func(ctx context.Context, job rap.Job) (rap.Outcome, error)
}

func (o *confOperation) run(ctx context.Context, job rap.Job) (rap.Outcome, error) {
	o.mu.Lock()
	o.jobs = append(o.jobs, job)
	close(o.arrived)
	o.arrived = make(chan struct{})
	gate, do := o.gate, o.do
	o.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return rap.Outcome{}, ctx.Err()
		}
	}

	if do != nil {
		return do(ctx, job)
	}
	return rap.Outcome{Text: "done " + string(job.Arguments)}, nil
}

func (o *confOperation) block() (open func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	gate := make(chan struct{})
	o.gate = gate
	return sync.OnceFunc(func() { close(gate) })
}

func (o *confOperation) does(do func(ctx context.Context, job rap.Job) (rap.Outcome, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.do = do
}

func (o *confOperation) runs() []rap.Job {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]rap.Job(nil), o.jobs...)
}

// begun waits for the nth run to begin.
func (o *confOperation) begun(t testing.TB, nth int) rap.Job {
	t.Helper()
	ctx, stop := raptest.Patience(t)
	defer stop()
	for {
		o.mu.Lock()
		jobs, arrived := o.jobs, o.arrived
		o.mu.Unlock()
		if len(jobs) >= nth {
			return jobs[nth-1]
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			t.Fatalf("%d runs, want %d", len(jobs), nth)
		}
	}
}

// confClock is the current time plus the time that a test let pass.
type confClock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *confClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *confClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// confText collects logs and ledger events.
type confText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (c *confText) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.Write(p)
}

func (c *confText) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.String()
}

// confHarness is a listening gateway with its operations and everything visible from outside.
type confHarness struct {
	t        testing.TB
	cfg      gateway.Config
	gateway  *gateway.Gateway
	runtimes []*confRuntime
	address  string
	clock    confClock
	said     confText    // logs and ledger events
	deaf     atomic.Bool // the ledger fails
	plan     atomic.Pointer[resolve.Plan]
	disk     *confDisk // records of the current gateway
	ops      map[string]*confOperation
	stop     func()
}

// confGateway returns a gateway with one runtime that has discovered it.
func confGateway(t testing.TB, change ...func(*gateway.Config)) (*confHarness, *confRuntime) {
	t.Helper()
	r := newConfRuntime(t, "alpha")
	return confGatewayOf(t, []*confRuntime{r}, change...), r
}

func confGatewayOf(t testing.TB, runtimes []*confRuntime, change ...func(*gateway.Config)) *confHarness {
	t.Helper()
	listener := confListen(t)
	h := &confHarness{t: t, runtimes: runtimes, address: listener.Addr().String(), ops: map[string]*confOperation{}}
	h.rules(confToolsFile, confToolsPolicy)
	h.cfg = gateway.Config{
		Common: rap.Common{
			Records:   rap.NewMemory(),
			Namespace: "harness",
			Key:       bytes.Repeat([]byte{7}, 32),
			Poll:      10 * time.Millisecond,
			Now:       h.clock.Now,
			Plan:      func(context.Context) (*resolve.Plan, error) { return h.plan.Load(), nil },
			Log:       slog.New(slog.NewTextHandler(&h.said, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Record:    h.record,
		},
		Name:        "toolkeeper",
		Description: "A few tools.",
		PublicURL:   "http://" + h.address,
		Operations:  h.operations(),
		Ask:         gateway.AskUser,
	}
	for _, r := range runtimes {
		c := confCaller(r.name, r.server.URL, r.token)
		c.Callbacks.Token = r.shown
		h.cfg.Callers = append(h.cfg.Callers, c)
	}
	for _, f := range change {
		f(&h.cfg)
	}
	h.serve(listener)
	t.Cleanup(func() {
		h.stop()
		h.discreet()
	})
	for _, r := range runtimes {
		r.meet(h.cfg.PublicURL)
	}
	return h
}

// confCaller returns the registration of a runtime.
func confCaller(name, origin, token string) gateway.Caller {
	c := gateway.Caller{
		Name: name,
		Callbacks: peer.Config{
			Allow:    []string{origin},
			Attempts: 4,
			Backoff:  2 * time.Millisecond,
			Connect:  5 * time.Second,
			Timeout:  20 * time.Second,
		},
	}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		c.TokenHash = hex.EncodeToString(sum[:])
	}
	return c
}

func (h *confHarness) record(_ context.Context, event, subject, actor string, facts map[string]any) error {
	if h.deaf.Load() {
		return errors.New("the ledger is full")
	}
	text, err := json.Marshal(facts)
	fmt.Fprintf(&h.said, "ledger %s %s %s %s\n", event, subject, actor, text)
	return err
}

// rules replaces the rules.
func (h *confHarness) rules(agent, rules string) {
	h.t.Helper()
	plan := must.Get(confPlan(agent, rules))(h.t)
	h.plan.Store(plan)
}

func (h *confHarness) operations() []rap.Operation {
	file := `{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}},"required":["path"],` +
		`"additionalProperties":false}`
	all := []rap.Operation{
		{
			Name:        "write_file",
			Description: "Writes a file.",
			InputSchema: json.RawMessage(file),
			Destructive: true,
			Label:       confLabel,
		},
		{Name: "move_file", Description: "Moves a file.", InputSchema: json.RawMessage(file)},
		{Name: "read_file", Description: "Reads a file.", InputSchema: json.RawMessage(file), ReadOnly: true},
		{
			Name:        "list_files",
			Description: "Lists files.",
			InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false}`),
		},
		{
			Name:        "pay",
			Description: "Pays somebody.",
			InputSchema: json.RawMessage(
				`{"type":"object","properties":{"amount":{"type":"number"}},"required":["amount"]}`,
			),
		},
		{Name: "drop_table", Description: "Drops a table.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		{Name: "deploy", Description: "Ships the product.", InputSchema: json.RawMessage(`{"type":"object"}`)},
	}
	for i := range all {
		op := &confOperation{arrived: make(chan struct{})}
		h.ops[all[i].Name] = op
		all[i].Run = op.run
	}
	return all
}

// confLabel returns a description of a write_file call for people.
func confLabel(args json.RawMessage) string {
	var a struct{ Path, Text string }
	if json.Unmarshal(args, &a) != nil {
		return ""
	}
	return fmt.Sprintf("write %d bytes to %s", len(a.Text), a.Path)
}

// serve starts a gateway with the configuration; stop ends it and everything it began.
func (h *confHarness) serve(listener net.Listener) {
	h.t.Helper()
	h.disk = &confDisk{Records: h.cfg.Records, left: -1}
	cfg := h.cfg
	cfg.Records = h.disk
	h.gateway = must.Get(gateway.New(cfg))(h.t)
	ctx, cancel := context.WithCancel(context.Background())
	ended, served := make(chan error, 1), make(chan error, 1)
	go func() { ended <- h.gateway.Run(ctx) }()
	front := &http.Server{Handler: h.gateway, ReadHeaderTimeout: 10 * time.Second}
	go func() { served <- front.Serve(listener) }()
	h.stop = sync.OnceFunc(func() {
		h.t.Helper()
		front.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			h.t.Errorf("the server: %v", err)
		}
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			h.t.Errorf("run: %v", err)
		}
	})
}

// restart ends the gateway and starts another one on its records, at the same address.
func (h *confHarness) restart() {
	h.t.Helper()
	h.stop()
	for _, r := range h.runtimes {
		r.client.CloseIdleConnections()
	}
	h.serve(listenAgain(h.t, h.address))
}

// listenAgain listens at an address that was in use before. Another process may have taken the port in
// between, for a moment or for a test.
func listenAgain(t testing.TB, address string) net.Listener {
	t.Helper()
	return testwait.Value(t, "the port of "+address, func() (net.Listener, bool) {
		l, err := net.Listen("tcp", address)
		return l, err == nil
	})
}

// crash kills the gateway and starts the next one.
func (h *confHarness) crash() {
	h.t.Helper()
	h.disk.die(0)
	h.restart()
}

// ran ends the gateway, so that nothing more can begin, and checks the number of runs of an
// operation.
func (h *confHarness) ran(operation string, want int) {
	h.t.Helper()
	h.stop()
	if got := len(h.ops[operation].runs()); got != want {
		h.t.Errorf("%s ran %d times, want %d", operation, got, want)
	}
}

// through makes a call that needs no approval and waits for its result. Everything that was due
// before has been processed then.
func (h *confHarness) through(r *confRuntime) {
	h.t.Helper()
	c := r.call("read_file", `{"path":"barrier"}`).invoke()
	if got := c.result(); got != `done {"path":"barrier"}` {
		h.t.Fatalf("the barrier came back with %q", got)
	}
}

// settles waits until the gateway has stored what it did, so that no call is due soon.
func (h *confHarness) settles() {
	h.t.Helper()
	testwait.Until(h.t, "records of calls that are not due", func() bool {
		soon := h.clock.Now().Add(time.Hour)
		due := must.Get(h.cfg.Records.DueRecords(h.t.Context(), h.cfg.Namespace+"/calls", soon, 1))(h.t)

		return len(due) == 0
	})
}

// discreet checks that logs, ledger events and results contain no token and no URL with one.
func (h *confHarness) discreet() {
	h.t.Helper()
	said := h.said.String()
	for _, r := range h.runtimes {
		all, _ := r.found(func(*confCallback) bool { return true })
		secrets := []string{r.server.URL + "/cb/", "-secret", "Bearer "}
		if r.token != "" {
			secrets = append(secrets, r.token)
		}
		for _, cb := range all {
			if cb.ResponseURL != "" {
				secrets = append(secrets, cb.secret())
			}
		}
		for _, secret := range secrets {
			if strings.Contains(said, secret) {
				h.t.Errorf("logs or ledger facts hold %q", secret)
			}
			for _, cb := range all {
				if cb.Type == "tool_result" && strings.Contains(string(cb.body), secret) {
					h.t.Errorf("a result holds %q: %s", secret, cb.body)
				}
			}
		}
	}
}

// confListen listens on a port outside the range that the system assigns, so that no other
// program can take it between two lives.
func confListen(t testing.TB) net.Listener {
	t.Helper()
	for range 100 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.N(12_000))); err == nil {
			return l
		}
	}
	t.Fatal("no port is free")
	return nil
}
