package gateway

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/runtime"
)

// behind puts a gateway in front of another: the server behind asks
// about writing, the one in front asks about nothing.
func behind(t *testing.T) (front, back *harness, up *runtime.UpstreamServer) {
	t.Helper()
	callbacks := httptest.NewUnstartedServer(nil)
	t.Cleanup(callbacks.Close)
	base := "http://" + callbacks.Listener.Addr().String()
	back = newHarness(t, func(c *Config) { c.Callers[0].Callbacks.Allow = []string{base} })
	u, err := runtime.Upstream(t.Context(), runtime.UpstreamConfig{
		Common: rap.Common{
			Records:   rap.NewMemory(),
			Namespace: "up",
			Key:       bytes.Repeat([]byte{9}, 32),
			Poll:      20 * time.Millisecond,
		},
		Server:      runtime.Server{Name: "back", Peer: peer.Config{URL: back.cfg.PublicURL, Token: callerToken}},
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
	front = newHarness(t, func(c *Config) {
		c.Operations, c.Closed = u.Operations(), u.CloseThread
	})
	return front, back, u
}

func open(names string) string {
	return strings.Replace(testAgent, "{alias: write, approval: true}", names, 1)
}

func TestUpstreamRelays(t *testing.T) {
	front, back, _ := behind(t)
	front.setPlan(testPlan(t, open("{alias: write}")))
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
	back.runtime.until(
		"its cancellation behind",
		func() bool { return strings.Contains(back.ledger(), "cancelled") },
	)
	back.mu.Lock()
	defer back.mu.Unlock()
	if len(back.ran) != 0 {
		t.Error("it ran")
	}
}

func TestUpstreamIsCancelled(t *testing.T) {
	front, back, _ := behind(t)
	front.setPlan(testPlan(t, open("{alias: write}")))
	front.mustInvoke("c1", "write", `{}`)
	front.runtime.choice("c1")
	front.post("/cancel_tool_call", `{"thread_id":"thread","tool_call_id":"c1"}`)
	if got := front.runtime.result("c1"); !strings.Contains(got, "cancelled") {
		t.Errorf("result %q", got)
	}
	back.runtime.until(
		"its cancellation behind",
		func() bool { return strings.Contains(back.ledger(), "cancelled") },
	)
}

// What the rules did not decide about is not called.
func TestUpstreamChanges(t *testing.T) {
	_, back, u := behind(t)
	write := u.Operations()[slices.IndexFunc(u.Operations(), func(o rap.Operation) bool { return o.Name == "write" })]
	ops := slices.Clone(back.cfg.Operations)
	for i := range ops {
		ops[i].Description += ", and more"
	}
	back.cfg.Operations = ops
	back.restart()
	_, err := write.Run(t.Context(), rap.Job{
		Asker:     approval.Asker{Token: "c"},
		Caller:    "c",
		Thread:    "child",
		Ancestors: []string{"another root"},
		ID:        "c1",
		Operation: write.Name,
		Arguments: []byte(`{}`),
	})
	if public, ok := errors.AsType[*rap.PublicError](err); !ok ||
		!strings.Contains(public.Text, "nothing was run") {
		t.Errorf("a tool that changed: %v", err)
	}
}

// Closures reach the server behind.
func TestUpstreamCloses(t *testing.T) {
	front, back, _ := behind(t)
	front.setPlan(testPlan(t, open("{alias: write}")))
	front.mustInvoke("c1", "write", `{}`)
	front.runtime.choice("c1")
	front.post("/close_thread", `{"thread_id":"thread"}`)
	if got := front.runtime.result("c1"); !strings.Contains(got, "closed") {
		t.Errorf("result %q", got)
	}
	back.runtime.until("the end behind", func() bool { return strings.Contains(back.ledger(), "cancelled") })
}
