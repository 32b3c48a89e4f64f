package rap

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap/peer"
)

// behind puts a gateway in front of another: the server behind asks about writing, the one in front asks about nothing.
func behind(t *testing.T) (front, back *house, up *UpstreamServer) {
	t.Helper()
	callbacks := httptest.NewUnstartedServer(nil)
	t.Cleanup(callbacks.Close)
	base := "http://" + callbacks.Listener.Addr().String()
	back = newHouse(t, func(c *GatewayConfig) { c.Callers[0].Callbacks.Allow = []string{base} })
	u, err := Upstream(t.Context(), UpstreamConfig{
		Common:      Common{Records: NewMemory(), Room: "up", Key: bytes.Repeat([]byte{9}, 32), Poll: 20 * time.Millisecond},
		Server:      Server{Name: "back", Peer: peer.Config{URL: back.cfg.PublicURL, Token: gatewayToken}},
		CallbackURL: base + "/up",
	})
	if err != nil {
		t.Fatal(err)
	}
	callbacks.Config.Handler = http.StripPrefix("/up", u)
	callbacks.Start()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- u.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	front = newHouse(t, func(c *GatewayConfig) {
		c.Operations, c.Closed = u.Operations(), u.CloseThread
	})
	return front, back, u
}

func open(names string) string {
	return strings.Replace(gatewayAgent, "{alias: write, approval: true}", names, 1)
}

func TestUpstreamRelays(t *testing.T) {
	front, back, _ := behind(t)
	front.setPlan(gatewayPlan(t, open("{alias: write}")))
	front.mustInvoke("c1", "look", `{"a":1}`)
	if got := front.runtime.result("c1"); got != `did look {"a":1}` {
		t.Errorf("result %q", got)
	}
	for id, want := range map[string]string{"yes": `did write {"path":"x"}`, "no": "Error: the user denied this call"} {
		front.mustInvoke(id, "write", `{"path":"x"}`)
		q := front.runtime.choice(id)
		if !strings.Contains(q.Prompt, `Arguments: {"path":"x"}`) || q.Choices[q.Default] != "Deny" {
			t.Errorf("%q %q", q.Prompt, q.Choices)
		}
		index := map[string]int{"yes": 0, "no": q.Default}[id]
		if code := front.answer(q, index); code != 200 {
			t.Errorf("answer: %d", code)
		}
		if got := front.runtime.result(id); got != want {
			t.Errorf("%s: %q", id, got)
		}
	}
	back.mu.Lock()
	defer back.mu.Unlock()
	if len(back.ran) != 2 {
		t.Errorf("%d runs", len(back.ran))
	}
}

// A call about which the gateway asked its user does not ask again: it ends.
func TestUpstreamAsksOnce(t *testing.T) {
	front, back, _ := behind(t)
	front.mustInvoke("c1", "write", `{}`)
	front.answer(front.runtime.choice("c1"), 0)
	if got := front.runtime.result("c1"); !strings.HasPrefix(got, "Error: ") || !strings.Contains(got, "asked") {
		t.Errorf("result %q", got)
	}
	if front.runtime.choices("c1") != 1 {
		t.Error("the user was asked twice")
	}
	back.runtime.until("its cancellation behind", func() bool { return strings.Contains(back.ledger(), "cancelled") })
	back.mu.Lock()
	defer back.mu.Unlock()
	if len(back.ran) != 0 {
		t.Error("it ran")
	}
}

func TestUpstreamIsCancelled(t *testing.T) {
	front, back, _ := behind(t)
	front.setPlan(gatewayPlan(t, open("{alias: write}")))
	front.mustInvoke("c1", "write", `{}`)
	front.runtime.choice("c1")
	front.post("/cancel_tool_call", `{"thread_id":"thread","tool_call_id":"c1"}`)
	if got := front.runtime.result("c1"); !strings.Contains(got, "cancelled") {
		t.Errorf("result %q", got)
	}
	back.runtime.until("its cancellation behind", func() bool { return strings.Contains(back.ledger(), "cancelled") })
}

// What the rules did not decide about is not called, and closures reach the server behind.
func TestUpstreamChangesAndCloses(t *testing.T) {
	front, back, u := behind(t)
	front.setPlan(gatewayPlan(t, open("{alias: write}")))
	changed := u.offers[0].Tool
	changed.Description += ", and more"
	_, err := u.run(t.Context(), &changed, Job{Asker: approval.Asker{Token: "c"}, Caller: "c", Thread: "child", Ancestors: []string{"root"}, ID: "c1", Operation: changed.Name, Arguments: []byte(`{}`)})
	if public, ok := errors.AsType[*PublicError](err); !ok || !strings.Contains(public.Text, "nothing was run") {
		t.Errorf("a tool that changed: %v", err)
	}
	front.mustInvoke("c1", "write", `{}`)
	front.runtime.choice("c1")
	front.post("/close_thread", `{"thread_id":"thread"}`)
	if got := front.runtime.result("c1"); !strings.Contains(got, "closed") {
		t.Errorf("result %q", got)
	}
	back.runtime.until("the end behind", func() bool { return strings.Contains(back.ledger(), "cancelled") })
}

// The desk of an upstream server approves nothing and knows nothing.
func TestRelayDeskApprovesNothing(t *testing.T) {
	d := newRelayDesk()
	held, err := d.Open(t.Context(), "k", hold.Verdict{})
	if err != nil || held.State != hold.Denied {
		t.Errorf("%v, %v", held, err)
	}
	if _, err := d.Look(t.Context(), held.Ref); !errors.Is(err, hold.ErrNoRequest) {
		t.Error(err)
	}
	if err := d.Claim(t.Context(), held.Ref, "k", hold.Verdict{}); !errors.Is(err, hold.ErrNotClaimed) {
		t.Error(err)
	}
	ref, err := d.Ask(t.Context(), "q", hold.Question{Within: -2 * relayKept})
	if err != nil || !d.waiting() {
		t.Fatal(err)
	}
	if _, err := d.Ask(t.Context(), "q2", hold.Question{Within: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Answer(t.Context(), ref); !errors.Is(err, hold.ErrNoRequest) {
		t.Errorf("what expired is known: %v", err)
	}
}

func TestUpstreamMustBeThere(t *testing.T) {
	for name, url := range map[string]string{"nobody": "http://127.0.0.1:1", "no address": "", "far": "http://tools.example"} {
		_, err := Upstream(t.Context(), UpstreamConfig{
			Common: Common{Records: NewMemory(), Room: "up", Key: bytes.Repeat([]byte{9}, 32)},
			Server: Server{Name: "back", Peer: peer.Config{URL: url, Timeout: time.Second, Attempts: 1}}, CallbackURL: "http://127.0.0.1:2",
		})
		if err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestEndpoint(t *testing.T) {
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body := make([]byte, 100)
		n, _ := req.Body.Read(body) // its end comes with it
		switch {
		case bytes.Contains(body, []byte("fail")):
			http.Error(w, "secret", 500)
			return
		case bytes.Contains(body, []byte("text")):
			return
		case bytes.Contains(body, []byte("bytes")):
			body, n = []byte("\"\xff\""), 3
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body[:n])
	}))
	defer far.Close()
	op, err := Endpoint(Operation{Name: "look"}, peer.Config{URL: far.URL + "/api"})
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`{ "a":1}`: `{ "a":1}`, `{"fail":1}`: "answered 500", `{"text":1}`: "the outcome is unknown", `{"bytes":1}`: "is not text",
	} {
		out, err := op.Run(t.Context(), Job{Arguments: []byte(args)})
		var public *PublicError
		if got := out.Text; err == nil && got != want || err != nil && (!errors.As(err, &public) || !strings.Contains(public.Text, want)) {
			t.Errorf("%s: %q, %v", args, got, err)
		}
	}
	if _, err := Endpoint(op, peer.Config{URL: "ftp://far.example"}); err == nil {
		t.Error("taken")
	}
	if _, err := Endpoint(op, peer.Config{Allow: []string{far.URL}}); err == nil {
		t.Error("an endpoint without an address")
	}
}

// TestD10_AnswersAfterACancellationAreNotThere: a relayed question is nobody's once its run was told to stop, as the rules' own questions are.
func TestD10_AnswersAfterACancellationAreNotThere(t *testing.T) {
	stuck := make(chan struct{})
	h := newHouse(t, func(c *GatewayConfig) {
		c.Operations[1].Run = func(ctx context.Context, job Job) (Outcome, error) {
			_, err := job.Ask(ctx, "Really?", []string{"Yes", "No"}, 1)
			<-stuck // it is slow to stop
			return Outcome{}, err
		}
	})
	t.Cleanup(sync.OnceFunc(func() { close(stuck) }))
	h.mustInvoke("c1", h.cfg.Operations[1].Name, `{}`)
	q := h.runtime.choice("c1")
	h.post("/cancel_tool_call", `{"thread_id":"thread","tool_call_id":"c1"}`)
	if code := h.answer(q, 0); code != http.StatusNotFound {
		t.Errorf("the answer after the cancellation: %d", code)
	}
	stuck <- struct{}{}
	if got := h.runtime.result("c1"); !strings.HasPrefix(got, "Error: ") {
		t.Errorf("result %q", got)
	}
	if code := h.answer(q, 0); code != http.StatusNotFound {
		t.Errorf("the answer after the end: %d", code)
	}
}
