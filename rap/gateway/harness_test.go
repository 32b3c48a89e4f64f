package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/store"
)

const testAgent = `schema_version: "1.0.0"
metadata: {id: files, name: Files, version: "1.0.0", description: Files, namespace: acme.files}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Write., model: any}}
action_space:
  local_tools:
    - {alias: write, approval: true}
    - {alias: look}
    - alias: pay
      approval: {condition: {args_match: {amount: {gt: 100}}}}
    - {alias: burn}
`

const testPolicy = `schema_version: "1.0.0"
policy_ref: harness
applies: implicit
rules:
  - id: large
    match: {kinds: [tool], targets: [pay]}
    approval: {condition: {args_match: {amount: {gt: 9000}}}}
    require: {stages: [{group: risk, people: 2}]}
  - id: middling
    match: {kinds: [tool], targets: [pay]}
    approval: {condition: {args_match: {amount: {gt: 1000}}}}
  - id: never
    match: {targets: [burn]}
    deny: "Nothing is burnt."
`

func testPlan(t testing.TB, file string, policies ...string) *resolve.Plan {
	t.Helper()
	a, findings := schema.Parse("files.agf.yaml", []byte(file))
	if a == nil {
		t.Fatal(findings)
	}
	var all []*policy.Policy
	for _, p := range policies {
		parsed, findings := policy.Parse("harness.policy.yaml", []byte(p))
		if parsed == nil {
			t.Fatal(findings)
		}
		all = append(all, parsed)
	}

	set, findings := policy.NewSet(all...)
	if set == nil {
		t.Fatal(findings)
	}
	plan, err := resolve.Compile(a, set, resolve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// scripted is a runtime of a few lines: it keeps what it is called back
// with, and answers as it was told.
type scripted struct {
	t      testing.TB
	server *httptest.Server
	mu     sync.Mutex
	got    []wire.Callback
	raw    [][]byte
	texts  map[string][]string // of results, by id
	status map[string][]int    // by type: the next statuses; then 200
	news   chan struct{}
}

func newScripted(t testing.TB) *scripted {
	s := &scripted{
		t:      t,
		texts:  map[string][]string{},
		status: map[string][]int{},
		news:   make(chan struct{}, 1),
	}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// url is where it is called back. What comes elsewhere is for whoever
// had the port before.
func (s *scripted) url() string { return s.server.URL + "/cb/x1" }

func (s *scripted) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path != "/cb/x1" {
		http.NotFound(w, req)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	cb, err := wire.ParseCallback(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.t.Errorf("a callback that no runtime takes: %v\n%s", err, body)
		return
	}
	kind := fmt.Sprintf("%T", cb)
	s.raw = append(s.raw, body)
	if next := s.status[kind]; len(next) > 0 {
		s.status[kind] = next[1:]
		w.WriteHeader(next[0])
		if next[0] >= 300 {
			return
		}
	}

	s.got = append(s.got, cb)
	if r, ok := cb.(*wire.Result); ok {
		s.texts[r.ID] = append(s.texts[r.ID], *r.Text)
	}
	select {
	case s.news <- struct{}{}:
	default:
	}
}

func (s *scripted) all() []wire.Callback {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// until waits until something holds, which callbacks may have made hold.
func (s *scripted) until(what string, holds func() bool) {
	s.t.Helper()
	if !s.eventually(holds) {
		s.t.Fatalf("never: %s; callbacks: %s", what, bytes.Join(s.raw, []byte("\n")))
	}
}

func (s *scripted) eventually(holds func() bool) bool {
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-s.news:
		case <-again.C:
		case <-deadline.C:
			return false
		}
	}

	return true
}

func (s *scripted) choice(id string) *wire.Choice {
	s.t.Helper()
	var found *wire.Choice
	s.until("a user_choice of "+id, func() bool {
		for _, cb := range s.all() {
			if c, ok := cb.(*wire.Choice); ok && c.ID == id {
				found = c
			}
		}
		return found != nil
	})
	return found
}

func (s *scripted) results(id string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.texts[id])
}

func (s *scripted) choices(id string) (n int) {
	for _, cb := range s.all() {
		if c, ok := cb.(*wire.Choice); ok && c.ID == id {
			n++
		}
	}
	return n
}

func (s *scripted) result(id string) string {
	s.t.Helper()
	s.until("a result of "+id, func() bool { return len(s.results(id)) > 0 })
	return s.results(id)[0]
}

// harness is a gateway with its runtime.
type harness struct {
	t       testing.TB
	runtime *scripted
	cfg     Config
	g       *Gateway
	http    *httptest.Server
	stop    func()
	mu      sync.Mutex
	ran     []rap.Job
	events  []string
	log     *bytes.Buffer
	clock   time.Duration // ahead of the real one
	plan    *resolve.Plan
	disk    *failing // what the gateway of now keeps its records on
	act     func(context.Context, rap.Job) (rap.Outcome, error)
	deaf    bool // the ledger takes nothing
}

// failing is a process's way to the records. It can be cut, at once or
// after some more writes: a process without it is as good as dead.
type failing struct {
	store.Records
	mu   sync.Mutex
	left int // writes before it is cut; negative: never
}

var errDead = errors.New("the process is dead")

func (f *failing) die(after int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = after
}

func (f *failing) alive(write bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 {
		return errDead
	}
	if write && f.left > 0 {
		f.left--
	}
	return nil
}

func (f *failing) PutRecord(ctx context.Context, r store.Record) (int64, error) {
	if err := f.alive(true); err != nil {
		return 0, err
	}
	return f.Records.PutRecord(ctx, r)
}

func (f *failing) Record(ctx context.Context, room, key string) (store.Record, error) {
	if err := f.alive(false); err != nil {
		return store.Record{}, err
	}
	return f.Records.Record(ctx, room, key)
}

func (f *failing) RecordByAlias(ctx context.Context, room, alias string) (store.Record, error) {
	if err := f.alive(false); err != nil {
		return store.Record{}, err
	}
	return f.Records.RecordByAlias(ctx, room, alias)
}

func (f *failing) ListRecords(
	ctx context.Context,
	room, prefix, after string,
	limit int,
) ([]store.Record, error) {
	if err := f.alive(false); err != nil {
		return nil, err
	}
	return f.Records.ListRecords(ctx, room, prefix, after, limit)
}

func (f *failing) DueRecords(ctx context.Context, room string, now time.Time, limit int) ([]store.Record, error) {
	if err := f.alive(false); err != nil {
		return nil, err
	}
	return f.Records.DueRecords(ctx, room, now, limit)
}

const callerToken = "runtime-token"

func sum(text string) string {
	b := sha256.Sum256([]byte(text))
	return hex.EncodeToString(b[:])
}

// guarded is a writer that several goroutines may use.
type guarded struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (g guarded) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.to.Write(p)
}

func newHarness(t testing.TB, edit func(*Config)) *harness {
	t.Helper()
	h := &harness{
		t:       t,
		runtime: newScripted(t),
		log:     &bytes.Buffer{},
		plan:    testPlan(t, testAgent, testPolicy),
	}
	op := func(name, schema string) rap.Operation {
		return rap.Operation{
			Name:        name,
			Description: name,
			InputSchema: json.RawMessage(schema),
			Run:         h.run,
		}
	}
	h.cfg = Config{
		Common: rap.Common{
			Records:   rap.NewMemory(),
			Namespace: "gw",
			Key:       bytes.Repeat([]byte{7}, 32),
			Poll:      20 * time.Millisecond,
			Plan:      func(context.Context) (*resolve.Plan, error) { return h.rules(), nil },
			Now:       h.now,
			Log:       slog.New(slog.NewTextHandler(guarded{&h.mu, h.log}, nil)),
			Record:    h.record,
		},
		Name:      "Files",
		PublicURL: "http://127.0.0.1:1",
		Grants:    SessionGrants{Offer: true},
		Operations: []rap.Operation{
			op("write", `{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":true}`),
			op("look", `{"type":"object"}`),
			op("pay", `{"type":"object","properties":{"amount":{"type":"number"}},"required":["amount"]}`),
			op("burn", `{"type":"object"}`),
			op("fail", `{"type":"object"}`),
		},
		Callers: []Caller{{
			Name:      "runtime",
			TokenHash: sum(callerToken),
			Callbacks: peer.Config{
				Allow:    []string{h.runtime.server.URL},
				Backoff:  5 * time.Millisecond,
				Attempts: 4,
				Timeout:  2 * time.Second,
			},
		}},
	}
	if edit != nil {
		edit(&h.cfg)
	}
	h.start()
	t.Cleanup(func() { h.stop() })
	return h
}

// start begins a gateway on the records that are there, as a process
// that starts does.
func (h *harness) start() {
	h.t.Helper()
	h.http = httptest.NewUnstartedServer(nil)
	h.cfg.PublicURL = "http://" + h.http.Listener.Addr().String() + "/tools"
	var err error
	h.disk = &failing{Records: h.cfg.Records, left: -1}
	cfg := h.cfg
	cfg.Records = h.disk
	if h.g, err = New(cfg); err != nil {
		h.t.Fatal(err)
	}
	h.http.Config.Handler = h.g
	h.http.Start()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := h.g.Run(ctx); err != nil {
			h.t.Errorf("run: %v", err)
		}
	}()
	h.stop = func() {
		cancel()
		<-ended
		h.http.Close()
	}
}

// crash kills the gateway and starts the next one.
func (h *harness) crash() {
	h.t.Helper()
	h.disk.die(0)
	h.restart()
}

func (h *harness) restart() {
	h.t.Helper()
	h.stop()
	h.start()
}

func (h *harness) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Add(h.clock)
}

func (h *harness) rules() *resolve.Plan {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.plan
}

func (h *harness) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock += d
}

func (h *harness) record(_ context.Context, event, subject, actor string, facts map[string]any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.deaf {
		return errors.New("the ledger is full")
	}
	h.events = append(h.events, fmt.Sprint(event, " ", facts))
	return nil
}

func (h *harness) run(ctx context.Context, job rap.Job) (rap.Outcome, error) {
	h.mu.Lock()
	h.ran = append(h.ran, job)
	act := h.act
	h.mu.Unlock()
	if act != nil {
		return act(ctx, job)
	}
	return rap.Outcome{Text: "did " + job.Operation + " " + string(job.Arguments)}, nil
}

func (h *harness) runs(id string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, j := range h.ran {
		if j.ID == id {
			n++
		}
	}
	return n
}

// post sends a document to the gateway and returns the status.
func (h *harness) post(path string, body any) int { return h.postAs(callerToken, path, body) }

func (h *harness) postAs(token, path string, body any) int {
	h.t.Helper()
	text, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		if err != nil {
			h.t.Fatal(err)
		}
		text = string(b)
	}

	if strings.HasPrefix(path, "/") {
		path = h.cfg.PublicURL + path
	}
	req := h.request(path, text)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return h.do(req)
}

func (h *harness) request(url, body string) *http.Request {
	h.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}

func (h *harness) do(req *http.Request) int {
	h.t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		h.t.Fatal(err)
	}
	return resp.StatusCode
}

type invoking func(*wire.Invocation)

// invoke sends an invocation and returns the status.
func (h *harness) invoke(id, op, args string, edits ...invoking) int {
	h.t.Helper()
	in := wire.Invocation{
		Operation:   op,
		Arguments:   json.RawMessage(args),
		ID:          id,
		CallbackURL: h.runtime.url(),
		GroupID:     "thread",
		UserID:      "ann",
	}
	for _, edit := range edits {
		edit(&in)
	}
	return h.post("/invoke", string(in.Append(nil)))
}

func (h *harness) mustInvoke(id, op, args string, edits ...invoking) {
	h.t.Helper()
	if code := h.invoke(id, op, args, edits...); code != http.StatusOK {
		h.t.Fatalf("invoke %s: %d", id, code)
	}
}

func (h *harness) answer(c *wire.Choice, index int) int {
	h.t.Helper()
	return h.postAs("", c.ResponseURL, string(wire.Answer{ID: c.ID, Selected: index}.Append(nil)))
}

func in(thread string, ancestors ...string) invoking {
	return func(i *wire.Invocation) { i.GroupID, i.Ancestors = thread, ancestors }
}

func (h *harness) setPlan(p *resolve.Plan) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.plan = p
}
