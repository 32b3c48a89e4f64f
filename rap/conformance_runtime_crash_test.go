package rap_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/resolve"
)

// confSpec names the variable that tells a process what to work with.
const confSpec = "ASSENT_RAP_CONFORMANCE_SPEC"

// processSpec is what a runtime in a process of its own works with. Its
// clock may run ahead of the others.
type processSpec struct {
	File, CallbackURL, ToolsURL string
	Ahead                       time.Duration
}

// runtimeProcess is a runtime in a process of its own, which a row may
// kill. It serves on the listener that it inherits, so that its address
// outlives it: callbacks, and what the test has it do under /test/.
func runtimeProcess() error {
	var spec processSpec
	if err := json.Unmarshal([]byte(os.Getenv(confSpec)), &spec); err != nil {
		return err
	}
	listener, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	h, err := openClerk(spec.File)
	if err != nil {
		return err
	}
	rt, err := runtime.New(runtime.Config{
		Common: rap.Common{
			Records:   h.store,
			Namespace: confRoom,
			Key:       confKey(),
			People:    h.desk(),
			Poll:      20 * time.Millisecond,
			Now:       func() time.Time { return time.Now().Add(spec.Ahead) },
			Plan: func(context.Context) (*resolve.Plan, error) {
				return h.plan, nil
			},
			Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		},
		Servers: []runtime.Server{{
			Name: "files",
			Peer: peer.Config{URL: spec.ToolsURL, Attempts: 5, Backoff: 5 * time.Millisecond},
		}},
		CallbackURL: spec.CallbackURL,
	})
	if err != nil {
		return err
	}
	threads, err := rt.As(confAsker())
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/callbacks/", rt)
	mux.HandleFunc("POST /test/invoke", func(w http.ResponseWriter, r *http.Request) {
		var in runtime.Invocation
		err := json.NewDecoder(r.Body).Decode(&in)
		if err == nil {
			_, err = threads.Invoke(r.Context(), in)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET /test/call", func(w http.ResponseWriter, r *http.Request) {
		got, err := threads.Call(r.Context(), r.FormValue("thread"), r.FormValue("id"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(got)
	})
	failed := make(chan error, 2)
	go func() { failed <- rt.Run(context.Background()) }()
	go func() { failed <- http.Serve(listener, mux) }()
	return <-failed
}

// mortal is a runtime that a test kills, and what stays when it is
// dead: the store, the people, the tool server and the address.
type mortal struct {
	t        *testing.T
	harness  *askHarness
	tools    *toolPeer
	spec     processSpec
	listener *os.File
	process  *exec.Cmd
	said     bytes.Buffer
	calls    int
}

func newMortal(t *testing.T) *mortal {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m := &mortal{t: t, tools: newToolPeer(t, "write_file")}
	m.spec = processSpec{
		File:        t.TempDir() + "/assent.db",
		CallbackURL: "http://" + l.Addr().String() + "/callbacks",
		ToolsURL:    m.tools.URL,
	}
	if m.listener, err = l.(*net.TCPListener).File(); err != nil {
		t.Fatal(err)
	}
	if m.harness, err = openClerk(m.spec.File); err != nil {
		t.Fatal(err)
	}
	m.start()
	t.Cleanup(func() {
		m.kill()
		_ = m.listener.Close()
		_ = m.harness.store.Close()
		if strings.Contains(m.said.String(), responseSecret) {
			t.Errorf("a token was written down: %s", &m.said)
		}
		if t.Failed() {
			t.Log(m.said.String())
		}
	})
	return m
}

func (m *mortal) start() {
	m.t.Helper()
	program, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	spec, err := json.Marshal(m.spec)
	if err != nil {
		m.t.Fatal(err)
	}
	m.process = exec.Command(program)
	m.process.Env = append(os.Environ(), confProcess+"=runtime", confSpec+"="+string(spec))
	m.process.ExtraFiles, m.process.Stderr = []*os.File{m.listener}, &m.said
	if err := m.process.Start(); err != nil {
		m.t.Fatal(err)
	}
}

// kill ends the process as a power cut would (SIGKILL).
func (m *mortal) kill() {
	m.t.Helper()
	if err := m.process.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		m.t.Error(err)
	}
	_ = m.process.Wait()
}

func (m *mortal) restart() {
	m.t.Helper()
	m.kill()
	m.start()
}

func (m *mortal) at(path string) string {
	return strings.TrimSuffix(m.spec.CallbackURL, "/callbacks") + path
}

func (m *mortal) invoke(thread, id string) *toolCall {
	m.t.Helper()
	m.tools.expects(thread, id)
	body, err := json.Marshal(runtime.Invocation{
		Thread:    thread,
		ID:        id,
		User:      "ann",
		Operation: "write_file",
		Arguments: json.RawMessage(`{"n":1}`),
	})
	if err != nil {
		m.t.Fatal(err)
	}
	if status := postTo(m.t, m.at("/test/invoke"), "application/json", string(body)); status != http.StatusOK {
		m.t.Fatalf("the process answered %d: %s", status, &m.said)
	}
	return m.tools.call(thread, id)
}

func (m *mortal) look(c *toolCall) runtime.Call {
	m.t.Helper()
	res, err := ownClient().Get(fmt.Sprintf("%s?thread=%s&id=%s", m.at("/test/call"), c.GroupID, c.ID))
	if err != nil {
		m.t.Fatal(err)
	}
	defer res.Body.Close()
	var got runtime.Call
	if text, err := io.ReadAll(res.Body); err != nil || json.Unmarshal(text, &got) != nil {
		m.t.Fatalf("the process answered %d: %s, %v", res.StatusCode, text, err)
	}
	return got
}

func (m *mortal) until(c *toolCall, what string, is func(runtime.Call) bool) runtime.Call {
	m.t.Helper()
	ctx, stop := patience(m.t)
	defer stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		got := m.look(c)
		if is(got) {
			return got
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			m.t.Fatalf("the call is not %s: %+v", what, got)
		}
	}
}

// asks makes a call about which the tool asks, and returns the
// question's ref.
func (m *mortal) asks(thread, id string) (*toolCall, string) {
	m.t.Helper()
	c := m.invoke(thread, id)
	c.sends(c.choice(c.answerAt("")))
	return c, m.open(c)
}

func (m *mortal) open(c *toolCall) string {
	m.t.Helper()
	return m.until(c, "asking", func(got runtime.Call) bool { return got.Question != "" }).Question
}

func (m *mortal) completes(c *toolCall) {
	m.t.Helper()
	c.sends(c.result("Done: " + c.name()))
	got := m.until(c, "done", func(got runtime.Call) bool { return got.State == runtime.CallDone })
	if got.Failed || got.Synthetic || got.Outcome == nil || got.Outcome.Text != "Done: "+c.name() {
		m.t.Errorf("the call of %s ended with %+v (%+v)", c.name(), got, got.Outcome)
	}
}

// settles has the process do everything once more, from call to result.
func (m *mortal) settles() {
	m.t.Helper()
	m.calls++
	c, ref := m.asks(fmt.Sprint("barrier-", m.calls), "call_1")
	m.harness.picks(m.t, ref, "ann", 0)
	isAnswer(m.t, m.tools.waits(c.answerAt(""), 1)[0], c.SentID, 0)
	m.completes(c)
}

// once wants a call to have been sent once, and answered with one body.
func (m *mortal) once(c *toolCall) {
	m.t.Helper()
	sent := 0
	for _, r := range m.tools.requests("invoke") {
		if m.tools.read(r.Body).name() == c.name() {
			sent++
		}
	}
	if sent != 1 {
		m.t.Errorf("%s was sent %d times", c.name(), sent)
	}
}

func testR26(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	while, whileRef := m.asks("t-1", "answered_while_alive")
	dead, deadRef := m.asks("t-1", "answered_while_dead")
	late, lateRef := m.asks("t-1", "result_first")
	m.kill()
	for _, ref := range []string{whileRef, deadRef, lateRef} {
		if r, err := m.harness.service.Request(t.Context(), "acme", ref); err != nil ||
			r.State != approval.Pending {
			t.Fatalf("the question became %+v, %v", r, err)
		}
	}

	m.harness.picks(t, deadRef, "ann", 0)
	m.start()
	isAnswer(t, m.tools.waits(dead.answerAt(""), 1)[0], dead.SentID, 0)
	if got := m.look(while); got.State != runtime.CallPending || got.Question != whileRef {
		t.Errorf("the question is not restored: %+v", got)
	}
	m.completes(late)
	while.sends(while.choice(while.answerAt(""))) // the tool repeats itself; it is the same question
	m.settles()
	if got := m.look(while); got.Question != whileRef {
		t.Errorf("a repeated question became %q", got.Question)
	}
	m.harness.picks(t, whileRef, "ann", 1)
	isAnswer(t, m.tools.waits(while.answerAt(""), 1)[0], while.SentID, 1)
	m.harness.tooLate(t, lateRef, "ann", 0)
	m.restart()
	m.settles()
	m.completes(while)
	m.completes(dead)
	m.tools.exactly(while.answerAt(""), 1)
	m.tools.exactly(dead.answerAt(""), 1)
	m.tools.exactly(late.answerAt(""), 0)
	for _, c := range []*toolCall{while, dead, late} {
		m.once(c)
	}
}

// killedSending is R7 where the process dies before it reads the
// acknowledgement of what the tool asks about.
func killedSending(t *testing.T) {
	m := newMortal(t)
	m.tools.on(toolEndpoint, func(_ http.ResponseWriter, r *http.Request, nth int) {
		if nth == 1 {
			c := m.tools.reads(r)
			c.sends(c.choice(c.answerAt("")))
			<-m.tools.quit
		}
	})
	c := m.invoke("t-1", "call_1")
	ref := m.open(c)
	m.spec.Ahead = time.Minute // whatever the dead process had begun is over
	m.restart()
	m.settles()
	m.once(c)
	m.harness.picks(t, ref, "ann", 1)
	isAnswer(t, m.tools.waits(c.answerAt(""), 1)[0], c.SentID, 1)
	m.completes(c)
	m.settles()
	m.once(c)
	m.tools.exactly(c.answerAt(""), 1)
}

// killedAnswering is R8 where the process dies while it delivers the
// answer: it was kept before it was posted, so it is posted again as it
// was.
func killedAnswering(t *testing.T) {
	m := newMortal(t)
	c, ref := m.asks("t-1", "call_1")
	m.tools.on(c.answerAt(""), func(_ http.ResponseWriter, r *http.Request, nth int) {
		if nth == 1 {
			select {
			case <-m.tools.quit:
			case <-r.Context().Done():
			}
		}
	})
	m.harness.picks(t, ref, "ann", 1)
	m.tools.waits(c.answerAt(""), 1)
	m.spec.Ahead = time.Minute // the dead process has this long to be heard of again
	m.restart()
	got := m.tools.waits(c.answerAt(""), 2)
	m.settles()
	m.tools.exactly(c.answerAt(""), 2)
	for _, r := range got {
		isAnswer(t, r, c.SentID, 1)
		if r.Body != got[0].Body {
			t.Errorf("posted %s, then %s", got[0].Body, r.Body)
		}
	}

	m.completes(c)
	m.once(c)
}
