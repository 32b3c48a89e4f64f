package rap_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/runtime"
)

// eventsWorld is a gateway in front of a tool server that sends events after results.
type eventsWorld struct {
	*confHarness
	runtime *confRuntime
	tool    *raptest.Tool
	up      runtime.UpstreamConfig
	callees *httptest.Server // the server by which the tool server reaches us

	mu   sync.Mutex
	now  *runtime.UpstreamServer
	halt func()
}

func newEventsWorld(t testing.TB) *eventsWorld {
	t.Helper()
	w := &eventsWorld{runtime: newConfRuntime(t, "alpha"), tool: raptest.NewTool(t, "read_file")}
	w.callees = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		now := w.now
		w.mu.Unlock()
		now.ServeHTTP(rw, r)
	}))
	t.Cleanup(w.callees.Close)
	w.confHarness = confGatewayOf(t, []*confRuntime{w.runtime}, func(cfg *gateway.Config) {
		w.up = runtime.UpstreamConfig{
			Common:      cfg.Common,
			Server:      runtime.Server{Name: "behind", Peer: peer.Config{URL: w.tool.URL}},
			CallbackURL: w.callees.URL + "/up",
		}
		w.up.Namespace += "/upstream"
		w.behind(t, cfg)
	})
	t.Cleanup(func() { w.halt() })
	return w
}

// behind starts the wrapper of the tool server on the stored records.
func (w *eventsWorld) behind(t testing.TB, cfg *gateway.Config) {
	t.Helper()
	u := must.Get(runtime.Upstream(t.Context(), w.up))(t)
	w.mu.Lock()
	w.now = u
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- u.Run(ctx) }()
	w.halt = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	cfg.Operations, cfg.Closed = u.Operations(), u.CloseThread
}

// restart ends the gateway and the wrapper and starts them on their records.
func (w *eventsWorld) restart(meanwhile func()) {
	w.t.Helper()
	w.stop()
	w.halt()
	meanwhile()
	w.behind(w.t, &w.cfg)
	w.confHarness.restart()
}

// passes makes a call, and returns it as both sides have it.
func (w *eventsWorld) passes(thread string) (*confCall, *raptest.Call) {
	w.t.Helper()
	before := len(w.tool.Requests("invoke"))
	c := w.runtime.call("read_file", confMotd).with(func(in *confInvocation) { in.GroupID = thread }).invoke()
	return c, w.tool.Read(w.tool.Waits("invoke", before+1)[before].Body)
}

// follows makes a call whose result says that events follow, and returns it as both sides have
// it.
func (w *eventsWorld) follows(thread string) (*confCall, *raptest.Call) {
	w.t.Helper()
	c, sent := w.passes(thread)
	sent.Sends(sent.Result("still running").With("subscription", true))
	if got := c.result(); got != "still running" {
		w.t.Fatalf("the result is %q", got)
	}
	if cb := c.await("the result", 1, c.of("tool_result")); !cb.Subscription {
		w.t.Fatalf("the result ends it: %s", cb.body)
	}
	return c, sent
}

// event waits for the nth event of a call.
func (c *confCall) event(nth int) *confCallback {
	c.t.Helper()
	cb := c.await(fmt.Sprintf("event %d of %s", nth, c.in.ID), nth, func(cb *confCallback) bool {
		return c.of("subscription_event")(cb) && cb.status/100 == 2
	})
	if cb.GroupID != c.in.GroupID || cb.ToolCallID != c.in.ID {
		c.t.Errorf("the event came as %s in %s", cb.ToolCallID, cb.GroupID)
	}
	return cb
}

// brings checks that the events of a call are exactly these.
func (c *confCall) brings(texts ...string) {
	c.t.Helper()
	for i, want := range texts {
		if got := c.event(i + 1); *got.Text != want || got.Final != (i == len(texts)-1) {
			c.t.Errorf("event %d is %s, want %q", i+1, got.body, want)
		}
	}
	c.over(c.in.GroupID, c.in.ID)
	if n := c.count("subscription_event"); n != len(texts) {
		c.t.Errorf("%d events came, want %d\n%s", n, len(texts), c.heard())
	}
}

func confT37(t *testing.T) {
	w := newEventsWorld(t)
	one, sentOne := w.follows("thread-1")
	two, sentTwo := w.follows("thread-1")
	if sentOne.SentGroup != sentTwo.SentGroup || sentOne.SentID == sentTwo.SentID || sentOne.SentGroup == "thread-1" {
		t.Errorf("sent as %s %s and %s %s", sentOne.SentGroup, sentOne.SentID, sentTwo.SentGroup, sentTwo.SentID)
	}
	if !one.alive("thread-1", one.in.ID) {
		t.Error("a call whose events follow is not alive")
	}
	for i := range 30 {
		sentOne.Sends(sentOne.Event(fmt.Sprint("line ", i)))
		sentTwo.Sends(sentTwo.Event(fmt.Sprint("other ", i)).With("associative", i%2 == 0))
	}
	sentOne.Sends(sentOne.Event("exit 0").With("final", true))
	var lines []string
	for i := range 30 {
		lines = append(lines, fmt.Sprint("line ", i))
	}
	one.brings(append(lines, "exit 0")...)
	sentOne.Refused("an event after the last", sentOne.Event("late"))
	if got := two.event(2); got.Associative || !two.event(1).Associative {
		t.Errorf("associative is lost: %s", got.body)
	}

	// A repeated invocation gets the result again, but no event twice.
	if status := two.post(); status != http.StatusOK {
		t.Fatal(status)
	}
	two.await("the result again", 2, two.of("tool_result"))
	sentTwo.Sends(sentTwo.Event("exit 1").With("final", true))
	lines = nil
	for i := range 30 {
		lines = append(lines, fmt.Sprint("other ", i))
	}
	two.brings(append(lines, "exit 1")...)

	// After the subscription has ended, a repeated request for the result gets a last event
	// that says so.
	if status := two.post(); status != http.StatusOK {
		t.Fatal(status)
	}
	if last := two.event(32); !last.Final || !strings.HasPrefix(*last.Text, "Error: the subscription ended") {
		t.Errorf("got %s", last.body)
	}
	if n := strings.Count(w.said.String(), "ledger rap_subscription_ended"); n < 2 {
		t.Errorf("%d ends in the ledger", n)
	}
	w.tool.Exactly("cancel", 0)
}

func confT38(t *testing.T) {
	w := newEventsWorld(t)
	told := func(what string, sent *raptest.Call) {
		t.Helper()
		hears(w.tool, "cancel", map[string]string{"thread_id": sent.SentGroup, "tool_call_id": sent.SentID})
		sent.Refused("an event of "+what, sent.Event("late"))
	}

	c, sent := w.follows("cancelled")
	sent.Sends(sent.Event("one"))
	c.event(1)
	status, body := w.runtime.cancel("cancelled", c.in.ID)
	confAcknowledged(t, "cancel", status, body)
	told("a cancelled call", sent)
	c.over("cancelled", c.in.ID)

	c, sent = w.follows("closed")
	w.runtime.closeThread("closed")
	hears(w.tool, "close", map[string]string{"thread_id": sent.SentGroup})
	c.over("closed", c.in.ID)
	sent.Refused("an event of a closed thread", sent.Event("late"))

	c, sent = w.follows("refused")
	w.runtime.answers(func(cb *confCallback, _ int) int {
		return map[bool]int{true: http.StatusGone, false: http.StatusOK}[cb.GroupID == "refused"]
	})
	sent.Sends(sent.Event("one"))
	told("a call that the runtime has forgotten", sent)
	c.over("refused", c.in.ID)

	c, sent = w.follows("long")
	sent.Sends(sent.Event("one"))
	c.event(1)
	w.clock.pass(25 * time.Hour)
	if last := c.event(2); !last.Final ||
		!strings.HasPrefix(*last.Text, "Error: the subscription ended: it went on for 24h") {
		t.Errorf("got %s", last.body)
	}
	told("a call that went on for too long", sent)

	// A run that is lost in a crash may have started a subscription.
	lost, sent := w.passes("thread-1")
	w.restart(func() { w.clock.pass(time.Minute) })
	if got := lost.fails(); !strings.Contains(got, "unknown") {
		t.Errorf("a lost run came to %q", got)
	}
	hears(w.tool, "cancel", map[string]string{"thread_id": sent.SentGroup, "tool_call_id": sent.SentID})

	// An operation that is no longer offered has no events.
	c, sent = w.follows("gone")
	sent.Sends(sent.Event("one"))
	c.event(1)
	w.tool.Offers(raptest.Manifest(w.tool.URL+raptest.Endpoint, "another"))
	w.restart(func() { w.clock.pass(time.Minute) })
	if last := c.event(2); !last.Final ||
		!strings.HasPrefix(*last.Text, "Error: the subscription ended: the operation is offered no more") {
		t.Errorf("got %s", last.body)
	}
}

func confT39(t *testing.T) {
	w := newEventsWorld(t)
	c, sent := w.follows("thread-1")
	w.runtime.answers(func(cb *confCallback, nth int) int {
		switch {
		case cb.Type != "subscription_event":
			return http.StatusOK
		case nth == 1:
			return confCut
		case nth == 2:
			return http.StatusServiceUnavailable
		}

		return http.StatusOK
	})
	sent.Sends(sent.Event("one"))
	sent.Sends(sent.Event("two"))
	if one, two := c.event(1), c.event(2); *one.Text != "one" || *two.Text != "two" {
		t.Errorf("got %s, then %s", one.body, two.body)
	}

	// Events that came before a crash and were not passed on are passed on after it. Events
	// that come while no process is running have to be repeated by the tool server.
	w.runtime.answers(func(*confCallback, int) int { return confHang })
	sent.Sends(sent.Event("three"))
	c.await("the attempt", 5, c.of("subscription_event"))
	sent.Sends(sent.Event("four").With("final", true))
	w.restart(func() {
		w.clock.pass(time.Minute) // no process posts any more
		w.runtime.answers(nil)
	})
	three, four := c.event(3), c.event(4)
	if *three.Text != "three" || *four.Text != "four" || !four.Final {
		t.Errorf("got %s, then %s", three.body, four.body)
	}
	c.over("thread-1", c.in.ID)
}
