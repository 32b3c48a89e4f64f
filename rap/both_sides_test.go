package rap_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

const callerFile = `
schema_version: "1.0.0"
metadata: {id: writer, name: Writer, version: "1.0.0", description: Writes files., namespace: acme.tools}
interface: {input: {type: object}, output: {type: object}}
action_space:
  local_tools:
    - {alias: write_file, description: Writes a file.}
    - {alias: read_file, description: Reads a file.}
execution_policy: {id: agf.react, config: {instructions: Write., model: any, max_steps: 5}}
`

// bothSides connects our runtime and our gateway by HTTP. Each has its own store.
type bothSides struct {
	t       *testing.T
	harness *confHarness
	desk    *raptest.Desk // of the runtime
	cfg     runtime.Config
	runtime *runtime.Runtime
	address string
	stop    func()
}

func newBothSides(t *testing.T, change ...func(*gateway.Config)) *bothSides {
	t.Helper()
	listener := confListen(t)
	b := &bothSides{t: t, desk: raptest.NewDesk(t), address: listener.Addr().String()}
	b.harness = confGatewayOf(t, nil, append([]func(*gateway.Config){func(cfg *gateway.Config) {
		cfg.Records, cfg.Grants.Offer = openRecords(t), true
		cfg.Callers = []gateway.Caller{confCaller("ours", "http://"+b.address, "a-bearer")}
		cfg.Callers[0].AnswersSigned = true
	}}, change...)...)
	agent := must.Get(confPlan(callerFile, strings.ReplaceAll(confToolsPolicy, "acme.tools", "acme.none")))(t)
	b.cfg = runtime.Config{
		Common: rap.Common{
			Records:   openRecords(t),
			Namespace: "runtime",
			Key:       bytes.Repeat([]byte{9}, 32),
			Poll:      10 * time.Millisecond,
			People:    b.desk,
			Plan:      func(context.Context) (*resolve.Plan, error) { return agent, nil },
		},
		Servers: []runtime.Server{{
			Name:             "files",
			TrustDestructive: true,
			Peer: peer.Config{
				URL:     b.harness.cfg.PublicURL,
				Token:   "a-bearer",
				Backoff: 20 * time.Millisecond,
				Connect: 5 * time.Second,
				Timeout: 20 * time.Second,
			},
		}},
		CallbackURL: "http://" + b.address,
	}
	b.serve(listener)
	t.Cleanup(func() { b.stop() })
	return b
}

func openRecords(t *testing.T) store.Records {
	t.Helper()
	db := must.Get(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "records.db"), sqlite.Options{}))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

func (b *bothSides) serve(listener net.Listener) {
	b.t.Helper()
	b.runtime = must.Get(runtime.New(b.cfg))(b.t)
	ctx, cancel := context.WithCancel(context.Background())
	ended, served := make(chan error, 1), make(chan error, 1)
	go func() { ended <- b.runtime.Run(ctx) }()
	front := &http.Server{Handler: b.runtime, ReadHeaderTimeout: 10 * time.Second}
	go func() { served <- front.Serve(listener) }()
	b.stop = sync.OnceFunc(func() {
		b.t.Helper()
		front.Close()
		<-served
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			b.t.Errorf("run: %v", err)
		}
	})
}

// restart ends the runtime and starts another one on its records, at the same address.
func (b *bothSides) restart(meanwhile func()) {
	b.t.Helper()
	b.stop()
	meanwhile()
	b.serve(listenAgain(b.t, b.address))
}

// invoke makes a call of write_file.
func (b *bothSides) invoke(thread, id string) {
	b.t.Helper()
	must.Get(threadsOf(b.t, b.runtime).Invoke(b.t.Context(), runtime.Invocation{
		Thread:    thread,
		ID:        id,
		User:      "ann",
		Operation: "write_file",
		Arguments: json.RawMessage(confMotd),
	}))(b.t)
}

// ends waits until a call is done.
func (b *bothSides) ends(thread, id string) runtime.Call {
	b.t.Helper()
	ctx, cancel := raptest.Patience(b.t)
	defer cancel()
	c, err := threadsOf(b.t, b.runtime).Wait(ctx, thread, id)
	if err != nil || c.State != runtime.CallDone || c.Outcome == nil {
		b.t.Fatalf("%s in %s: %+v %v", id, thread, c, err)
	}
	return c
}

// done checks that a call ended with the gateway's result.
func (b *bothSides) done(thread, id string) {
	b.t.Helper()
	if c := b.ends(thread, id); c.Failed || c.Synthetic || c.Outcome.Text != "done "+confMotd || c.Question != "" {
		b.t.Errorf("%s in %s ended as %+v with %+v", id, thread, c, c.Outcome)
	}
}

// fails checks that a call ended with an error of the gateway, or, if why is not empty, of the
// runtime.
func (b *bothSides) fails(thread, id string, why runtime.Why) {
	b.t.Helper()
	if c := b.ends(thread, id); !c.Failed || c.Why != why || c.Synthetic != (why != "") {
		b.t.Errorf("%s in %s ended as %+v with %+v", id, thread, c, c.Outcome)
	}
}

// shows waits until a call has an open question.
func (b *bothSides) shows(thread, id string) {
	b.t.Helper()
	testwait.Value(b.t, "an open question", func() (runtime.Call, bool) {
		c := must.Get(threadsOf(b.t, b.runtime).Call(b.t.Context(), thread, id))(b.t)
		return c, c.State == runtime.CallPending && c.Question != ""
	})
}

// gone waits until the gateway no longer works on a call.
func (b *bothSides) gone(thread, id string) {
	b.t.Helper()
	r := &confRuntime{t: b.t, token: "a-bearer", client: raptest.OwnClient(), base: b.harness.cfg.PublicURL}
	r.over(thread, id)
}

// label returns the index of the choice that contains a word.
func label(t *testing.T, q hold.Question, word string) int {
	t.Helper()
	for i, c := range q.Choices {
		if strings.Contains(strings.ToLower(c), word) {
			return i
		}
	}
	t.Fatalf("no choice speaks of %q: %q", word, q.Choices)
	return -1
}

func (b *bothSides) chooses(nth int, word string) {
	b.t.Helper()
	q := b.desk.Asked("", nth)
	b.desk.Picks(q.Ref, label(b.t, q.Question, word))
}

func TestBothSides(t *testing.T) {
	for name, part := range map[string]func(t *testing.T, b *bothSides){
		"no question": func(t *testing.T, b *bothSides) {
			must.Get(threadsOf(b.t, b.runtime).Invoke(t.Context(), runtime.Invocation{
				Thread:    "t",
				ID:        "1",
				Operation: "read_file",
				Arguments: json.RawMessage(confMotd),
			}))(t)
			b.done("t", "1")
			b.harness.ran("read_file", 1)
		},
		"allow once": func(t *testing.T, b *bothSides) {
			b.invoke("t", "1")
			q := b.desk.Asked("", 1).Question
			if q.Server != "files" || q.Call.Tool != "write_file" || string(q.Call.Args) != confMotd ||
				!strings.Contains(q.Prompt, "/etc/motd") ||
				q.Default != len(q.Choices)-1 || len(q.Choices) != 3 {
				t.Errorf("asked %+v", q)
			}
			b.shows("t", "1")
			if n := len(b.harness.ops["write_file"].runs()); n != 0 {
				t.Errorf("%d runs before the answer", n)
			}
			b.chooses(1, "once")
			b.done("t", "1")
			b.invoke("t", "2")
			b.chooses(2, "once")
			b.done("t", "2")
			b.harness.ran("write_file", 2)
		},
		"session": func(t *testing.T, b *bothSides) {
			b.invoke("t", "1")
			b.chooses(1, "session")
			b.done("t", "1")
			b.invoke("t", "2")
			b.done("t", "2")
			b.invoke("u", "3")
			b.chooses(2, "deny")
			b.fails("u", "3", "")
			b.harness.ran("write_file", 2)
		},
		"expires with the people": func(t *testing.T, b *bothSides) {
			b.invoke("t", "1")
			b.desk.Says(b.desk.Asked("", 1).Ref, hold.Answer{State: hold.Expired})
			b.fails("t", "1", runtime.WhyUnanswered)
			b.gone("t", "1")
			b.harness.ran("write_file", 0)
		},
		"cancel": func(t *testing.T, b *bothSides) {
			b.invoke("t", "1")
			b.desk.Asked("", 1)
			must.Do(t, threadsOf(b.t, b.runtime).Cancel(t.Context(), "t", "1", "changed my mind"))
			b.fails("t", "1", runtime.WhyInterrupted)
			b.desk.Withdrawn(b.desk.Asked("", 1).Ref)
			b.gone("t", "1")
			b.chooses(1, "once")
			b.harness.ran("write_file", 0)
		},
		"close": func(t *testing.T, b *bothSides) {
			b.invoke("t", "1")
			b.chooses(1, "session")
			b.done("t", "1")
			b.invoke("u", "2")
			b.desk.Asked("", 2)
			must.Do(t, threadsOf(b.t, b.runtime).CloseThread(t.Context(), "u"))
			b.desk.Withdrawn(b.desk.Asked("", 2).Ref)
			b.gone("u", "2")
			b.chooses(2, "once")
			must.Do(t, threadsOf(b.t, b.runtime).CloseThread(t.Context(), "t"))
			testwait.Value(t, "the end of the grants of a closed thread", func() ([]gateway.SessionGrant, bool) {
				grants := must.Get(b.harness.gateway.Grants(t.Context()))(t)
				return grants, len(grants) == 0
			})

			b.harness.ran("write_file", 1)
		},
		"both restart": func(t *testing.T, b *bothSides) {
			for i := range 5 {
				b.invoke("t", fmt.Sprint(i))
				b.desk.Asked("", i+1)
			}
			b.restart(b.harness.restart)
			for i := range 5 {
				b.chooses(i+1, "once")
			}
			for i := range 5 {
				b.done("t", fmt.Sprint(i))
			}
			b.harness.ran("write_file", 5)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t, newBothSides(t))
		})
	}
}
