package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/must"
)

// If a process was killed after storing an attempt and before its end, the invocation may have
// arrived, and is not sent again.
func TestAfterACrashWhileSending(t *testing.T) {
	w := newRTWorld(t)
	w.stop()
	c := w.lost("a")
	c.State = durable.Running
	c.Run = durable.Attempt{Name: "dead", Tries: 1, Lease: w.now().Add(time.Minute)}
	w.keeps(c)
	w.start()
	w.settles()
	w.is("a", CallSending)
	w.pass(time.Minute)
	w.is("a", CallPending)
	w.accepts("a", rtResult("a", "done"))
	w.ends("a", "")
	if n := len(w.tool.bodies("/run")); n != 0 {
		t.Errorf("sent %d times", n)
	}
}

// A call that was stored but not sent when its process died is sent.
func TestAfterACrashBeforeSending(t *testing.T) {
	w := newRTWorld(t)
	w.stop()
	w.keeps(w.lost("a"))
	w.start()
	w.tool.waits("/run", 1)
	w.is("a", CallPending)
}

// lost returns a call as stored by a process that was killed right after.
func (w *rtWorld) lost(id string) *call {
	w.t.Helper()
	in := rtInvocation(id, "read", `{}`)
	return must.Get(w.mine.newCall(context.Background(), &in))(w.t)
}

// keeps stores a call as a killed process left it.
func (w *rtWorld) keeps(c *call) {
	w.t.Helper()
	calls := must.Get(durable.NewVault[call](w.sealing(), "calls"))(w.t)
	due := c.Run.Lease
	switch {
	case c.Message != nil:
		due = c.Message.Lease
	case due.IsZero():
		due = w.now()
	}

	d := &durable.Doc[call]{Key: c.Key, Alias: c.Alias, Due: due, Body: *c}
	if old, err := calls.Get(context.Background(), c.Key); err == nil {
		d.Version = old.Version
	}
	d.Body.Format = 2
	must.Do(w.t, calls.Put(context.Background(), d))
}

func TestSendsNothingThatTheLedgerLacks(t *testing.T) {
	w := newRTWorld(t)
	w.sets(func() { w.deaf = errors.New("the ledger is full") })
	w.invoke("a", "read", `{}`)
	w.until("tried", func() bool { return w.logged("the ledger is full") })
	w.settles()
	if n := len(w.tool.bodies("/run")); n != 0 {
		t.Fatalf("sent %d times", n)
	}
	w.sets(func() { w.deaf = nil })
	w.pass(time.Minute)
	w.is("a", CallPending)
	w.sets(func() { w.deaf = errors.New("the ledger is full") })
	w.accepts("a", w.choice("a", "1"))
	ref := w.asked(1)
	w.desk.Says(ref, hold.Answer{State: hold.Chosen, Selected: 0})
	w.until("answered", func() bool { return w.kept("a").Message != nil })
	w.settles()
	if n := len(w.tool.bodies("/answers/1")); n != 0 {
		t.Fatalf("posted %d times", n)
	}
	w.sets(func() { w.deaf = nil })
	w.pass(time.Minute)
	w.tool.waits("/answers/1", 1)
}

func TestOfAServerThatIsGone(t *testing.T) {
	w := newRTWorld(t)
	w.sent("asks")
	w.accepts("asks", w.choice("asks", "1"))
	ref := w.asked(1)
	w.shows("asks", ref)
	w.stop()
	w.keeps(w.lost("new"))
	w.cfg.Servers[0].Name = "others"
	w.start()
	w.ends("new", WhyNotAccepted)
	w.desk.Says(ref, hold.Answer{State: hold.Chosen})
	w.until("given up", func() bool { return w.kept("asks").Part.Told.Trouble != "" })
	if code := w.calls("asks", w.choice("asks", "2")); code != http.StatusConflict &&
		code != http.StatusNotFound {
		t.Errorf("a question of a server that is gone is answered with %d", code)
	}
	if _, err := w.mine.Alive(t.Context(), "t", "asks"); err == nil {
		t.Error("a server that is gone was asked")
	}
	w.accepts("asks", rtResult("asks", "done"))
	w.ends("asks", "")
}

func (w *rtWorld) tools(session string) Tools {
	w.t.Helper()
	return must.Get(w.mine.Tools(w.t.Context(), session))(w.t)
}

func TestToolsOfASession(t *testing.T) {
	w := newRTWorld(t)
	for range 3 {
		if got := w.tools("s"); len(got.Offers) != 4 || len(got.Problems) != 0 ||
			got.Offers[0].Server != "files" ||
			got.Offers[0].Name != "read" {
			t.Fatalf("%+v", got)
		}
	}

	in := rtInvocation("a", "read", `{}`)
	in.Ancestors = []string{"s", "mid"}
	must.Get(w.mine.Invoke(t.Context(), in))(t)
	if n := len(w.tool.bodies(toolsetPath)); n != 1 {
		t.Errorf("fetched %d times", n)
	}
	w.tools("other")
	w.pass(toolsFor)
	w.tools("s")
	if n := len(w.tool.bodies(toolsetPath)); n != 3 {
		t.Errorf("fetched %d times", n)
	}
	for n := range 2 * maxSessions {
		w.r.decider.toolsets.claim(fmt.Sprint(n), w.now(), func(*session) {})
	}
	if n := len(w.r.decider.toolsets.of); n != maxSessions {
		t.Errorf("%d sessions are kept", n)
	}
}

func TestToolsAfterTheServerCameBack(t *testing.T) {
	w := newRTWorld(t)
	w.tool.Answers(toolsetPath, http.StatusServiceUnavailable)
	if c := w.invoke("a", "read", `{}`); c.Why != WhyInvalid {
		t.Errorf("%+v", c)
	}
	w.tool.On(toolsetPath, nil)
	w.pass(retryAfter)
	if c := w.invoke("b", "read", `{}`); c.State == CallDone {
		t.Errorf("%+v", c)
	}
}

func TestToolsWaitForNobody(t *testing.T) {
	w := newRTWorld(t)
	late := make(chan struct{})
	w.tool.On(toolsetPath, func(rw http.ResponseWriter, _ *http.Request, _ int) {
		<-late
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(rw, rtManifest, w.tool.URL)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		w.tool.Waits(toolsetPath, 1)
		cancel()
	}()
	if _, err := w.mine.Tools(ctx, "t"); err == nil {
		t.Error("no error")
	}
	close(late)
	w.tools("t")
}

func TestCancelWhileSending(t *testing.T) {
	w := newRTWorld(t)
	w.tool.On("/run", func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() })
	w.invoke("a", "read", `{}`)
	w.tool.waits("/run", 1)
	must.Do(t, w.mine.Cancel(t.Context(), "t", "a", ""))
	w.until("the request has ended", w.r.engine.Idle)
	w.ends("a", WhyInterrupted)
	w.settles()
	if n := len(w.tool.bodies("/run")); n != 1 {
		t.Errorf("sent %d times", n)
	}
}
