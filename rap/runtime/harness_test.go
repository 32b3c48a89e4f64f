package runtime

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/store"
)

// rtAgent allows reading and writing, asks about sending and forbids formatting.
const rtAgent = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Works with scripted tools, namespace: acme.tests}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Work., model: any}}
action_space:
  local_tools:
    - {alias: read}
    - {alias: wipe}
    - {alias: send, approval: {message_template: "Send to {{tool_args.to}}?"}}
`

const rtManifest = `{"name":"files","endpoint":"%s/run","tools":[
  {"name":"read","description":"reads","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":false}},
  {"name":"wipe","description":"wipes","inputSchema":{"type":"object"},"annotations":{"destructive":true,"readOnly":true}},
  {"name":"send","description":"sends","inputSchema":{"type":"object","properties":{"to":{"type":"string"}}}},
  {"name":"hidden","description":"not in the agent's file","inputSchema":{"type":"object"}}]}`

// rtTool is a tool server whose requests are read by path.
type rtTool struct{ *raptest.Tool }

func newRTTool(t testing.TB) *rtTool {
	s := &rtTool{raptest.NewTool(t)}
	s.Offers(fmt.Sprintf(rtManifest, s.URL))
	return s
}

func (s *rtTool) bodies(path string) (all []string) {
	for _, r := range s.Requests(path) {
		all = append(all, r.Body)
	}
	return all
}

// waits waits until a path got n requests, and returns their bodies.
func (s *rtTool) waits(path string, n int) []string {
	s.Waits(path, n)
	return s.bodies(path)
}

// rtWorld is a runtime between a tool server and an approval service.
type rtWorld struct {
	t     testing.TB
	tool  *rtTool
	desk  *raptest.Desk
	store store.Records
	r     *Runtime
	mine  *Threads
	stop  func()
	cfg   Config

	mu     sync.Mutex
	plan   *resolve.Plan
	broken error // of plan
	deaf   error // of the ledger
	facts  []string
	ahead  time.Duration // offset of the clock
	log    bytes.Buffer
}

func rtPlan(t testing.TB, file string) *resolve.Plan {
	t.Helper()
	a, findings := schema.Parse("clerk.agf.yaml", []byte(file))
	if a == nil {
		t.Fatal(findings)
	}
	return must.Get(resolve.Compile(a, policy.Registry(nil), resolve.Options{}))(t)
}

// newRTWorld starts a runtime after edits changed its configuration.
func newRTWorld(t testing.TB, edits ...func(*Config)) *rtWorld {
	t.Helper()
	w := &rtWorld{t: t, tool: newRTTool(t), desk: raptest.NewDesk(t), store: rap.NewMemory(), plan: rtPlan(t, rtAgent)}
	w.cfg = Config{
		Common: rap.Common{
			Records:   w.store,
			Namespace: "clerk",
			Key:       bytes.Repeat([]byte{7}, 32),
			Plan:      w.rules,
			People:    w.desk,
			Record:    w.record,
			Log:       slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Now:       w.now,
			Poll:      2 * time.Millisecond,
		},
		Servers: []Server{{
			Name: "files",
			Peer: peer.Config{URL: w.tool.URL, Attempts: 3, Backoff: time.Millisecond},
		}},
		CallbackURL: "http://127.0.0.1:1/callbacks/",
		Only:        rtAsker(),
	}
	for _, edit := range edits {
		edit(&w.cfg)
	}
	w.start()
	t.Cleanup(func() {
		w.stop()
		w.keepsSecrets()
	})
	return w
}

// start creates a runtime on the stored records.
func (w *rtWorld) start() {
	w.t.Helper()
	w.r, w.stop = w.process()
	w.mine = w.as(w.r, rtAsker())
}

// rtAsker returns the default asker. With Config.Only its names are sent unchanged, so that tests
// can spell them out.
func rtAsker() approval.Asker { return approval.Asker{Token: "clerk-token"} }

// as returns the threads of an asker.
func (w *rtWorld) as(r *Runtime, who approval.Asker) *Threads {
	w.t.Helper()
	return must.Get(r.As(who))(w.t)
}

// key returns the key of a call in the default thread.
func (w *rtWorld) key(id string) string { return w.r.names.Call(rtAsker(), "t", id) }

// process starts another runtime on the stored records.
func (w *rtWorld) process() (*Runtime, func()) {
	w.t.Helper()
	r := must.Get(New(w.cfg))(w.t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Run(ctx)
	}()
	return r, func() {
		cancel()
		<-done
	}
}

func (w *rtWorld) rules(context.Context) (*resolve.Plan, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plan, w.broken
}

func (w *rtWorld) record(_ context.Context, event, subject, actor string, facts map[string]any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deaf == nil {
		w.facts = append(w.facts, fmt.Sprint(event, " ", subject, " ", actor, " ", facts))
	}
	return w.deaf
}

// recorded counts ledger events with a name.
func (w *rtWorld) recorded(event string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.facts {
		if strings.HasPrefix(f, event+" ") {
			n++
		}
	}
	return n
}

func (w *rtWorld) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

func (w *rtWorld) sets(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

func (w *rtWorld) pass(d time.Duration) { w.sets(func() { w.ahead += d }) }

// Write appends to the log.
func (w *rtWorld) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func (w *rtWorld) logged(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.log.String(), text)
}

// keepsSecrets checks that neither the log nor the ledger contains a token or a URL.
func (w *rtWorld) keepsSecrets() {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := w.log.String() + strings.Join(w.facts, "\n")
	for _, secret := range []string{"http://", "https://", "/answers/", "secret"} {
		if strings.Contains(said, secret) {
			w.t.Errorf("log or ledger hold %q:\n%s", secret, said)
		}
	}
}

// until waits until a condition holds.
func (w *rtWorld) until(what string, holds func() bool) {
	w.t.Helper()
	ctx, stop := raptest.Patience(w.t)
	defer stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Fatalf("waited for: %s", what)
		}
	}
}

// settles waits until no process has anything left to do now.
func (w *rtWorld) settles(others ...*Runtime) {
	w.t.Helper()
	quiet := func() bool {
		due, err := w.cfg.Records.DueRecords(context.Background(), w.cfg.Namespace+"/calls", w.now(), 10)
		busy := slices.ContainsFunc(append(others, w.r), func(r *Runtime) bool { return !r.engine.Idle() })
		return err == nil && len(due) == 0 && !busy
	}
	w.until("quiet", func() bool {
		first := quiet()
		return quiet() && first // a second look, for work that began during the first
	})
}

func (w *rtWorld) invoke(id, operation, args string) Call {
	w.t.Helper()
	return must.Get(w.mine.Invoke(context.Background(), rtInvocation(id, operation, args)))(w.t)
}

func rtInvocation(id, operation, args string) Invocation {
	return Invocation{Thread: "t", ID: id, User: "ann", Operation: operation, Arguments: []byte(args)}
}

// sent invokes a call and waits until the tool has it.
func (w *rtWorld) sent(id string) {
	w.t.Helper()
	w.invoke(id, "read", `{"path":"/a"}`)
	w.is(id, CallPending)
}

// is waits until a call has a state.
func (w *rtWorld) is(id string, state CallState) (c Call) {
	w.t.Helper()
	w.until(id+" is "+string(state), func() bool {
		var err error
		c, err = w.mine.Call(context.Background(), "t", id)
		return err == nil && c.State == state
	})
	return c
}

// ends waits until a call is done, and checks its reason.
func (w *rtWorld) ends(id string, why Why) Call {
	w.t.Helper()
	ctx, done := raptest.Patience(w.t)
	defer done()
	c, err := w.mine.Wait(ctx, "t", id)
	if err != nil || c.Why != why || c.Synthetic != (why != "") {
		w.t.Fatalf("%s: want an end by %q, got %+v (%v), %v", id, why, c, c.Outcome, err)
	}
	return c
}

// kept returns the record of a call.
func (w *rtWorld) kept(id string) *call {
	w.t.Helper()
	return must.Get(w.r.engine.Get(context.Background(), w.key(id)))(w.t)
}

// sealing returns the sealing of the runtime's records.
func (w *rtWorld) sealing() durable.Sealing {
	return names.Sealing(w.cfg.Records, w.cfg.Namespace, w.cfg.Key)
}

// calls posts a callback for a call and returns the status.
func (w *rtWorld) calls(id string, m wire.Callback) int {
	w.t.Helper()
	return w.posts(w.kept(id).Part.Token, string(m.Append(nil)))
}

func (w *rtWorld) posts(token, body string) int {
	req := httptest.NewRequest(http.MethodPost, "/callbacks/"+token, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	w.r.ServeHTTP(rec, req)
	return rec.Code
}

// accepts posts a callback that must be accepted.
func (w *rtWorld) accepts(id string, m wire.Callback) {
	w.t.Helper()
	if code := w.calls(id, m); code != http.StatusOK {
		w.t.Fatalf("%s: answered with %d", id, code)
	}
}

func (w *rtWorld) choice(id, path string) *wire.Choice {
	return &wire.Choice{
		GroupID:     "t",
		ID:          id,
		Prompt:      "Write?",
		Choices:     []string{"Yes", "No"},
		Default:     1,
		ResponseURL: w.tool.URL + "/answers/" + path,
	}
}

func rtResult(id, text string) *wire.Result {
	return &wire.Result{GroupID: "t", ID: id, Text: &text}
}

// asked waits until n requests were made, and returns the reference of the last.
func (w *rtWorld) asked(n int) (ref string) {
	w.t.Helper()
	w.until(fmt.Sprint("asked ", n, " times"), func() bool {
		refs := w.desk.Refs()
		if len(refs) < n {
			return false
		}
		ref = refs[n-1]
		return true
	})
	return ref
}

// shows waits until a call refers to a request.
func (w *rtWorld) shows(id, ref string) {
	w.t.Helper()
	w.until(id+" shows "+ref, func() bool {
		c, err := w.mine.Call(context.Background(), "t", id)
		return err == nil && c.Question == ref
	})
}

// openOf counts the requests about a call that the engine still has references for.
func (w *rtWorld) openOf(id string) (n int) {
	type reference struct {
		Key string `json:"key"`
	}
	known := must.Get(durable.NewVault[reference](w.sealing(), "refs"))(w.t)
	for _, ref := range w.desk.Refs() {
		d, err := known.Get(context.Background(), durable.Hash(ref))
		if err != nil || d.Body.Key != w.key(id) {
			continue
		}
		if s := w.desk.Of(ref); s.Answer.State == hold.Pending || s.Held.State == hold.Pending {
			n++
		}
	}

	return n
}
