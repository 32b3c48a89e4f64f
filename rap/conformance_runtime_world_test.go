package rap_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/resolve"
)

// runtimeAgent may use everything that the scripted servers offer, and needs approval for one
// operation.
const runtimeAgent = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Works with scripted tools, namespace: acme.tests}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Work., model: any}}
action_space:
  local_tools:
    - {alias: write_file}
    - {alias: read_file}
    - {alias: list_files}
`

// runtimeWorld is a runtime with an approval service and tool servers, over real HTTP.
type runtimeWorld struct {
	t     *testing.T
	desk  *raptest.Desk
	tools *raptest.Tool // the first server, registered as "files"
	other *raptest.Tool // the second one, "mail"
	rt    *runtime.Runtime
	mine  *runtime.Threads // of the default asker
	cfg   runtime.Config
	front *httptest.Server
	said  *notes // logs and ledger events
	calls int

	house   *askHarness // the real approval service, if it replaces desk
	process *process    // the runtime, if it has a process of its own
}

// newRuntimeWorld starts a runtime with two tool servers after set changed its configuration.
func newRuntimeWorld(t *testing.T, set ...func(w *runtimeWorld)) *runtimeWorld {
	t.Helper()
	w := &runtimeWorld{t: t, desk: raptest.NewDesk(t), said: &notes{}}
	w.tools, w.other = raptest.NewTool(t, "write_file", "read_file"), raptest.NewTool(t, "list_files")
	// Callbacks may come before the runtime is complete.
	var gate sync.WaitGroup
	gate.Add(1)
	w.front = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		gate.Wait()
		w.rt.ServeHTTP(rw, r)
	}))
	t.Cleanup(w.front.Close)
	plan := must.Get(confPlan(runtimeAgent))(t)
	w.cfg = runtime.Config{
		Common: rap.Common{
			Records:   rap.NewMemory(),
			Namespace: raptest.Room,
			Key:       raptest.Key(),
			People:    w.desk,
			Poll:      10 * time.Millisecond,
			Now:       time.Now,
			Plan:      func(context.Context) (*resolve.Plan, error) { return plan, nil },
			Record:    w.said.record,
			Log:       slog.New(slog.NewTextHandler(w.said, nil)),
		},
		Servers: []runtime.Server{
			{Name: "files", Peer: peer.Config{URL: w.tools.URL, Attempts: 3, Backoff: time.Millisecond}},
			{Name: "mail", Peer: peer.Config{URL: w.other.URL, Attempts: 3, Backoff: time.Millisecond}},
		},
		CallbackURL: w.front.URL + "/callbacks",
	}
	for _, s := range set {
		s(w)
	}
	w.rt = startRuntime(t, w.cfg)
	w.mine = threadsOf(t, w.rt)
	gate.Done()
	t.Cleanup(w.keepsSecrets)
	return w
}

// startRuntime runs a runtime until the end of the test. Run must return soon after it is
// stopped.
func startRuntime(t *testing.T, cfg runtime.Config) *runtime.Runtime {
	t.Helper()
	rt := must.Get(runtime.New(cfg))(t)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the runtime ended with %v", err)
		}
	})
	return rt
}

// threadsOf returns the threads of the default asker.
func threadsOf(t testing.TB, rt *runtime.Runtime) *runtime.Threads {
	t.Helper()
	return must.Get(rt.As(raptest.Asker()))(t)
}

// notes collects logs and ledger events.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to the log.
func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) record(_ context.Context, event, subject, actor string, facts map[string]any) error {
	_, err := fmt.Fprintln(n, event, subject, actor, facts)
	return err
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// keepsSecrets checks that logs and ledger events contain no tokens.
func (w *runtimeWorld) keepsSecrets() {
	said := w.said.String()
	secrets := []string{raptest.Secret}
	for _, p := range []*raptest.Tool{w.tools, w.other} {
		for _, r := range p.Requests("invoke") {
			secrets = append(secrets, path.Base(p.Read(r.Body).CallbackURL))
		}
	}
	for _, secret := range secrets {
		if strings.Contains(said, secret) {
			w.t.Errorf("a token was written down: %s", said)
		}
	}
}

// refusals counts the lines of the log.
func (w *runtimeWorld) refusals() int { return strings.Count(w.said.String(), "\n") }

// invoke makes a call of write_file and waits until the tool server has it.
func (w *runtimeWorld) invoke(thread, id string) *raptest.Call {
	w.t.Helper()
	return w.invokes(runtime.Invocation{
		Thread:    thread,
		ID:        id,
		User:      "ann",
		Operation: "write_file",
		Arguments: json.RawMessage(`{"path":"/etc/motd"}`),
	})
}

func (w *runtimeWorld) invokes(in runtime.Invocation) *raptest.Call {
	w.t.Helper()
	w.starts(in)
	if in.Operation == "list_files" {
		return w.other.Call(in.Thread, in.ID)
	}
	return w.tools.Call(in.Thread, in.ID)
}

// starts makes a call and does not wait for the tool server.
func (w *runtimeWorld) starts(in runtime.Invocation) {
	w.t.Helper()
	w.tools.Expects(in.Thread, in.ID)
	w.other.Expects(in.Thread, in.ID)
	if w.process != nil {
		if status, text := w.process.invoke(in); status != http.StatusOK {
			w.t.Fatalf("the process answered %d: %s", status, text)
		}
		return
	}
	must.Get(w.mine.Invoke(w.t.Context(), in))(w.t)
}

// simply makes a call of write_file and does not wait for the tool server.
func (w *runtimeWorld) simply(thread, id string) {
	w.t.Helper()
	w.starts(runtime.Invocation{Thread: thread, ID: id, Operation: "write_file", Arguments: json.RawMessage(`{}`)})
}

// asks makes a call and has the tool ask about it. The answer goes to
// /answers/{thread}/{id}/s3cr3t.
func (w *runtimeWorld) asks(thread, id string) (*raptest.Call, raptest.Shown, string) {
	w.t.Helper()
	c := w.invoke(thread, id)
	uri := c.AnswerAt("")
	c.Sends(c.Choice(uri))
	return c, w.desk.Asked(c.Name(), 1), uri
}

// look returns the state of a call.
func (w *runtimeWorld) look(c *raptest.Call) runtime.Call { return w.lookAt(c.GroupID, c.ID) }

func (w *runtimeWorld) lookAt(thread, id string) runtime.Call {
	w.t.Helper()
	if w.process != nil {
		return w.process.call(thread, id)
	}
	return must.Get(w.mine.Call(w.t.Context(), thread, id))(w.t)
}

// until waits until a call satisfies a condition.
func (w *runtimeWorld) until(c *raptest.Call, what string, is func(runtime.Call) bool) runtime.Call {
	w.t.Helper()
	return testwait.Value(w.t, "a call that is "+what, func() (runtime.Call, bool) {
		got := w.look(c)
		return got, is(got)
	})
}

// troubled waits until a call reports that an answer could not be delivered.
func (w *runtimeWorld) troubled(c *raptest.Call) {
	w.t.Helper()
	if got := w.until(c, "troubled", func(got runtime.Call) bool {
		return got.Trouble != ""
	}); strings.Contains(got.Trouble, raptest.Secret) {
		w.t.Errorf("the trouble tells a token: %s", got.Trouble)
	}
}

// pending checks that a call waits for its result.
func (w *runtimeWorld) pending(c *raptest.Call) runtime.Call {
	w.t.Helper()
	got := w.until(c, "sent", func(got runtime.Call) bool { return got.State != runtime.CallSending })
	if got.State != runtime.CallPending || got.Outcome != nil || got.Why != "" {
		w.t.Errorf("the call of %s is %+v, want it pending", c.Name(), got)
	}
	return got
}

// ends waits for the end of a call.
func (w *runtimeWorld) ends(thread, id string) runtime.Call {
	w.t.Helper()
	got := testwait.Value(w.t, "the end of "+thread+"/"+id, func() (runtime.Call, bool) {
		got := w.lookAt(thread, id)
		return got, got.State == runtime.CallDone
	})
	if got.Outcome == nil || got.Question != "" {
		w.t.Errorf("an end that is none: %+v", got)
	}
	return got
}

// completes sends a call's result and checks that it becomes the outcome.
func (w *runtimeWorld) completes(c *raptest.Call) {
	w.t.Helper()
	text := "Done: " + c.Name()
	c.Sends(c.Result(text))
	w.endedWith(c, text)
}

func (w *runtimeWorld) endedWith(c *raptest.Call, text string) {
	w.t.Helper()
	got := w.ends(c.GroupID, c.ID)
	if got.Outcome == nil || got.Outcome.Text != text || got.Failed || got.Synthetic || got.Why != "" {
		w.t.Errorf("the call of %s ended with %+v (%+v), want %q", c.Name(), got, got.Outcome, text)
	}
}

// gaveUp waits for a synthetic outcome with a reason.
func (w *runtimeWorld) gaveUp(thread, id string, why runtime.Why) {
	w.t.Helper()
	got := w.ends(thread, id)
	if !got.Synthetic || !got.Failed || got.Why != why || got.Outcome == nil ||
		!strings.HasPrefix(got.Outcome.Text, "Error: ") {
		w.t.Errorf("the call of %s/%s ended with %+v (%+v), want %s", thread, id, got, got.Outcome, why)
	}
}

// answered waits for the one answer at an address and checks it exactly.
func (w *runtimeWorld) answered(c *raptest.Call, uri string, selected int) {
	w.t.Helper()
	isAnswer(w.t, c.P.Waits(uri, 1)[0], c.SentID, selected)
}

func isAnswer(t *testing.T, r raptest.Request, id string, selected int) {
	t.Helper()
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(r.Body), &got); err != nil {
		t.Fatalf("an answer that can't be read: %v: %s", err, r.Body)
	}
	wantID := must.Get(json.Marshal(id))(t)
	right := len(got) == 2 && string(got["selected"]) == fmt.Sprint(selected) && sameJSON(got["id"], wantID)
	if !right || r.Method != http.MethodPost || r.ContentType != "application/json" {
		t.Errorf("the answer was %s %s %s, want %q and %d", r.Method, r.ContentType, r.Body, id, selected)
	}
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// settles waits until everything that could happen by now has happened: a later call was asked
// about, answered and completed, and all attempts to deliver the answer of another one were
// made.
func (w *runtimeWorld) settles() {
	w.t.Helper()
	w.calls++
	c, q, uri := w.asks(fmt.Sprint("barrier-", w.calls), "first")
	w.desk.Picks(q.Ref, 0)
	w.answered(c, uri, 0)
	w.completes(c)

	c, q, uri = w.asks(fmt.Sprint("barrier-", w.calls), "second")
	w.tools.Answers(uri, http.StatusServiceUnavailable)
	w.desk.Picks(q.Ref, 1)
	w.troubled(c)
	w.completes(c)
}

// nothingShown checks that no question of a call was shown to people.
func (w *runtimeWorld) nothingShown(c *raptest.Call) {
	w.t.Helper()
	w.desk.Exactly("Allow "+c.Name(), 0)
}

// raptest.Desk implements the interfaces of an approval service.
var _ hold.People = (*raptest.Desk)(nil)
var _ hold.Requests = (*raptest.Desk)(nil)
