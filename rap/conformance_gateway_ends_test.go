package rap_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/internal/raptest"
)

// confAcknowledged checks that a cancellation or closure got 200 with an empty body.
func confAcknowledged(t *testing.T, what string, status int, body string) {
	t.Helper()
	if status != http.StatusOK || body != "" {
		t.Errorf("%s: %d %q, want 200 and nothing", what, status, body)
	}
}

func confT11(t *testing.T) {
	confSoon(t, map[string]func(*testing.T){
		"user": func(t *testing.T) {
			h, r := confGateway(t)
			c, q := r.asked()
			status, body := r.cancel(c.in.GroupID, c.in.ID)
			confAcknowledged(t, "cancel", status, body)
			c.refuses(q)
			h.through(r)
			r.over(c.in.GroupID, c.in.ID)
			c.invoke() // a repetition is the cancelled call
			h.through(r)
			if c.count("user_choice") != 1 {
				t.Errorf("asked again:\n%s", r.heard())
			}
			h.ran("write_file", 0)
		},
		"approvers": func(t *testing.T) {
			desk := raptest.NewDesk(t)
			h, r := confGateway(t, confAsk(gateway.AskApprovers, desk))
			c := r.call("write_file", confMotd).invoke()
			desk.Request(1)
			status, body := r.cancel(c.in.GroupID, c.in.ID)
			confAcknowledged(t, "cancel", status, body)
			desk.Dropped(1)
			c = r.call("write_file", confMotd).invoke()
			desk.Request(2)
			status, body = r.cancel(c.in.GroupID, c.in.ID)
			confAcknowledged(t, "cancel", status, body)
			desk.Decide(2, hold.Approved, "") // possibly before it is withdrawn
			h.through(r)
			h.ran("write_file", 0)
		},
		"while the desk takes it": func(t *testing.T) {
			desk := raptest.NewDesk(t)
			desk.Stuck = make(chan struct{})
			h, r := confGateway(t, confAsk(gateway.AskApprovers, desk))
			c := r.call("write_file", confMotd).invoke()
			desk.Request(1)
			status, body := r.cancel(c.in.GroupID, c.in.ID)
			confAcknowledged(t, "cancel", status, body)
			close(desk.Stuck)
			desk.Dropped(1) // the question is withdrawn
			h.through(r)
			h.ran("write_file", 0)
		},
		"before the question was received": func(t *testing.T) {
			h, r := confGateway(t)
			reached, cancelled := make(chan struct{}), make(chan struct{})
			r.answers(func(cb *confCallback, nth int) int {
				if cb.Type == "user_choice" && nth == 1 {
					close(reached)
					<-cancelled
				}
				return 200
			})
			c := r.call("write_file", confMotd).invoke()
			<-reached
			status, body := r.cancel(c.in.GroupID, c.in.ID)
			confAcknowledged(t, "cancel", status, body)
			close(cancelled)
			c.refuses(c.choice())
			h.through(r)
			h.ran("write_file", 0)
		},
		"at the same moment": func(t *testing.T) {
			h, r := confGateway(t)
			var taken atomic.Int64
			var calls []*confCall
			for range 20 {
				c, q := r.asked()
				calls = append(calls, c)
				var wg sync.WaitGroup
				wg.Go(func() { r.cancel(c.in.GroupID, c.in.ID) })
				wg.Go(func() {
					if c.answer(q, 0) == http.StatusOK {
						taken.Add(1)
					}
				})
				wg.Wait()
			}

			h.through(r)
			h.stop()
			if ran := len(h.ops["write_file"].runs()); int64(ran) > taken.Load() {
				t.Errorf("%d runs by %d answers that were taken", ran, taken.Load())
			}
			for _, c := range calls {
				if c.count("tool_result") > 1 {
					t.Errorf("two results:\n%s", r.heard())
				}
			}
		},
	})
}

func confT12(t *testing.T) {
	r, beta := newConfRuntime(t, "alpha"), newConfRuntime(t, "beta")
	h := confGatewayOf(t, []*confRuntime{r, beta})
	open, q := r.asked()
	done := r.call("read_file", `{"path":"/a"}`).invoke()
	done.result()
	r.over(done.in.GroupID, done.in.ID)
	for what, ids := range map[string][2]string{
		"unknown id":     {"thread-1", "nobody"},
		"unknown thread": {"thread-2", open.in.ID},
		"empty":          {"", ""},
		"path":           {"../..", "/etc/passwd"},
		"ended":          {done.in.GroupID, done.in.ID},
		"mixed":          {open.in.ID, open.in.GroupID},
		"long":           {strings.Repeat("x", 5000), strings.Repeat("y", 5000)},
	} {
		for range 2 {
			status, body := r.cancel(ids[0], ids[1])
			confAcknowledged(t, what, status, body)
		}
	}

	status, body := beta.cancel(open.in.GroupID, open.in.ID)
	confAcknowledged(t, "another caller's", status, body)
	status, body = beta.closeThread(open.in.GroupID)
	confAcknowledged(t, "another caller's thread", status, body)
	for name, change := range map[string]func(*http.Request){
		"no bearer":    func(req *http.Request) { req.Header.Del("Authorization") },
		"wrong bearer": func(req *http.Request) { req.Header.Set("Authorization", "Bearer nobody") },
		"GET":          func(req *http.Request) { req.Method = http.MethodGet },
	} {
		for path, message := range map[string]map[string]any{
			"/cancel_tool_call": {"thread_id": open.in.GroupID, "tool_call_id": open.in.ID},
			"/close_thread":     {"thread_id": open.in.GroupID},
			"/tool_call_status": {"thread_id": open.in.GroupID, "tool_call_id": open.in.ID},
		} {
			if status, body := r.send(http.MethodPost, r.base+path, confJSON(t, message), change); !confRefused(
				status,
			) ||
				strings.Contains(body, "alive") {
				t.Errorf("%s at %s: %d %q", name, path, status, body)
			}
		}
	}

	h.through(r)
	if done.count("") != 1 || open.count("") != 1 || !r.alive(open.in.GroupID, open.in.ID) ||
		r.alive(done.in.GroupID, done.in.ID) {
		t.Fatalf("something was touched:\n%s", r.heard())
	}
	open.picks(q, 0)
	open.result()
	for range 2 {
		status, body := r.cancel(open.in.GroupID, open.in.ID)
		confAcknowledged(t, "after the result", status, body)
	}
	h.through(r)
	h.ran("write_file", 1)
	if open.count("tool_result") != 1 {
		t.Errorf("sent:\n%s", r.heard())
	}
}

func confT13(t *testing.T) {
	confSoon(t, map[string]func(*testing.T){
		"the result is on its way": func(t *testing.T) {
			h, r := confGateway(t)
			c := r.call("read_file", `{"path":"/a"}`)
			r.answers(func(cb *confCallback, nth int) int {
				if cb.Type == "tool_result" && cb.ID == c.in.ID {
					status, body := r.cancel(c.in.GroupID, c.in.ID)
					confAcknowledged(t, "cancel", status, body)
				}
				return 200
			})
			if got := c.invoke().result(); got != `done {"path":"/a"}` {
				t.Errorf("the result is %q", got)
			}
			h.through(r)
			c.invoke()
			h.through(r)
			r.over(c.in.GroupID, c.in.ID)
			h.stop()
			if n := len(h.ops["read_file"].runs()); n != 3 { // the call and two barriers
				t.Errorf("%d runs", n)
			}
		},
		"the operation runs": func(t *testing.T) {
			h, r := confGateway(t)
			op := h.ops["write_file"]
			free := make(chan struct{})
			op.does(func(context.Context, rap.Job) (rap.Outcome, error) {
				<-free // ignores the cancellation
				return rap.Outcome{Text: "late"}, nil
			})
			c, q := r.asked()
			c.picks(q, 0)
			op.begun(t, 1)
			status, body := r.cancel(c.in.GroupID, c.in.ID)
			confAcknowledged(t, "cancel", status, body)
			c.answer(q, 0)
			close(free)
			h.through(r)
			c.invoke()
			h.through(r)
			h.ran("write_file", 1)
			if bodies := c.bodies("tool_result"); len(bodies) > 1 {
				t.Errorf("different results:\n%s", r.heard())
			}
		},
	})
}

// bodies counts the deliveries of each different message of a type for a call.
func (c *confCall) bodies(kind string) map[string]int {
	found, _ := c.found(c.of(kind))
	out := map[string]int{}
	for _, cb := range found {
		out[string(cb.body)]++
	}
	return out
}

func confT14(t *testing.T) {
	desk := raptest.NewDesk(t)
	h, r := confGateway(t, confOffer)
	one, q1 := r.asked()
	two, q2 := r.asked()
	other := r.call("write_file", confMotd).with(func(in *confInvocation) { in.GroupID = "thread-2" }).invoke()
	q3 := other.choice()

	status, body := r.closeThread("thread-1")
	confAcknowledged(t, "close", status, body)
	one.refuses(q1)
	two.refuses(q2)
	other.picks(q3, q3.index(t, "session"))
	other.result()
	r.over("thread-1", one.in.ID)
	r.over("thread-1", two.in.ID)

	// A grant ends with its thread, and with no other.
	covered := func(thread string) *confCall {
		return r.call("write_file", confMotd).with(func(in *confInvocation) { in.GroupID = thread }).invoke()
	}
	status, body = r.closeThread("thread-3")
	confAcknowledged(t, "close of an unknown thread", status, body)
	if c := covered("thread-2"); c.result() != "done "+confMotd || c.count("user_choice") != 0 {
		t.Errorf("the closing of another thread took the grant:\n%s", r.heard())
	}
	for range 2 {
		status, body = r.closeThread("thread-2")
		confAcknowledged(t, "close", status, body)
	}
	if grants, err := h.gateway.Grants(t.Context()); err != nil || len(grants) != 0 {
		t.Errorf("grants of closed threads: %v %v", grants, err)
	}
	covered("thread-2").choice()
	child := r.in("child", "ann", "root").invoke()
	child.picks(child.choice(), child.choice().index(t, "session"))
	child.result()
	r.closeThread("root") // and grants given below it
	r.in("child", "ann", "root").bound()
	h.through(r)
	h.ran("write_file", 3)

	h, r = confGateway(t, confAsk(gateway.AskApprovers, desk))
	r.call("write_file", confMotd).invoke()
	desk.Request(1)
	status, body = r.closeThread("thread-1")
	confAcknowledged(t, "close", status, body)
	desk.Dropped(1)
	h.through(r)
	h.ran("write_file", 0)
}
