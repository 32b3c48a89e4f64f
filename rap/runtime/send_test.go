package runtime

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/must"
)

// TestRuntimeAfterACrashWhileSending takes the place of a process that
// was killed between keeping an attempt and its end: nobody knows
// whether it arrived, and it is not made again.
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

// TestRuntimeAfterACrashBeforeSending finds a call that was registered
// and never begun.
func TestAfterACrashBeforeSending(t *testing.T) {
	w := newRTWorld(t)
	w.stop()
	w.keeps(w.lost("a"))
	w.start()
	w.tool.waits("/run", 1)
	w.is("a", CallPending)
}

// lost is a call as a process leaves it that was killed once it was kept.
func (w *rtWorld) lost(id string) *call {
	w.t.Helper()
	in := rtInvocation(id, "read", `{}`)
	return must.Get(w.mine.newCall(context.Background(), &in))(w.t)
}

// keeps stores a call as a process leaves it that was killed.
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
