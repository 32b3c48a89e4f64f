package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/wire"
)

func (h *harness) acts(act func(context.Context, rap.Job) (rap.Outcome, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.act = act
}

// What an operation says in an error stays here, but what was written
// for the other side (T32).
func TestTellsNoInternals(t *testing.T) {
	h := newHarness(t, nil)
	for name, tt := range map[string]struct {
		act  func(context.Context, rap.Job) (rap.Outcome, error)
		want string
	}{
		"an error": {func(context.Context, rap.Job) (rap.Outcome, error) {
			return rap.Outcome{}, errors.New("secret")
		}, "Error: the operation failed"},
		"a panic": {func(context.Context, rap.Job) (rap.Outcome, error) {
			panic("secret")
		}, "Error: the operation failed"},
		"no return": {func(context.Context, rap.Job) (rap.Outcome, error) {
			runtime.Goexit()
			return rap.Outcome{}, nil
		}, "Error: the operation failed"},
		"for others": {func(context.Context, rap.Job) (rap.Outcome, error) {
			return rap.Outcome{}, &rap.PublicError{Text: "no such file"}
		}, "Error: no such file"},
		"wrapped": {func(context.Context, rap.Job) (rap.Outcome, error) {
			return rap.Outcome{}, fmt.Errorf("secret: %w", &rap.PublicError{Text: "Error: no such file"})
		}, "Error: no such file"},
		"nothing": {func(context.Context, rap.Job) (rap.Outcome, error) { return rap.Outcome{}, nil }, ""},
		"broken": {func(context.Context, rap.Job) (rap.Outcome, error) {
			return rap.Outcome{Text: "a\xffb"}, nil
		}, "a\uFFFDb"},
		"too large": {func(context.Context, rap.Job) (rap.Outcome, error) {
			return rap.Outcome{Text: strings.Repeat("x", maxResult)}, nil
		}, "Error: the operation ran, but its result is too large to be sent"},
		"odd images": {func(context.Context, rap.Job) (rap.Outcome, error) {
			return rap.Outcome{Content: []wire.Content{{Image: "%", MediaType: "x"}}}, nil
		}, "Error: the operation ran, but its result can't be written as a tool_result"},
		"odd display": {func(context.Context, rap.Job) (rap.Outcome, error) {
			return rap.Outcome{Text: "fine", DisplayAs: []byte(`{`)}, nil
		}, "fine"},
	} {
		h.acts(tt.act)
		h.mustInvoke(name, "look", `{}`)
		if got := h.runtime.result(name); got != tt.want {
			t.Errorf("%s: %.200q", name, got)
		}
	}
}

func TestStopsWhatIsCancelled(t *testing.T) {
	h := newHarness(t, nil)
	began := make(chan string, 4)
	h.acts(func(ctx context.Context, job rap.Job) (rap.Outcome, error) {
		began <- job.ID
		<-ctx.Done()
		return rap.Outcome{}, ctx.Err()
	})
	h.mustInvoke("c1", "look", `{}`)
	<-began
	if code := h.post(
		"/cancel_tool_call",
		string(wire.CancelCall{ThreadID: "thread", ToolCallID: "c1"}.Append(nil)),
	); code != 200 {
		t.Errorf("cancel: %d", code)
	}

	if got := h.runtime.result("c1"); !strings.Contains(got, "cancelled") {
		t.Errorf("result %q", got)
	}
	h.mustInvoke("c2", "look", `{}`)
	<-began
	if code := h.post("/close_thread", string(wire.CloseThread{ThreadID: "thread"}.Append(nil))); code != 200 {
		t.Errorf("close: %d", code)
	}
	if got := h.runtime.result("c2"); !strings.Contains(got, "closed") {
		t.Errorf("result %q", got)
	}
}

func TestBoundsRuns(t *testing.T) {
	h := newHarness(t, func(c *Config) { c.RunWithin = 50 * time.Millisecond })
	deaf := make(chan struct{})
	defer close(deaf)
	h.acts(func(ctx context.Context, job rap.Job) (rap.Outcome, error) {
		if job.ID == "deaf" {
			<-deaf
		}
		<-ctx.Done()
		return rap.Outcome{}, ctx.Err()
	})
	for _, id := range []string{"obeys", "deaf"} {
		h.mustInvoke(id, "look", `{}`)
		if got := h.runtime.result(id); !strings.Contains(got, "too long") {
			t.Errorf("%s: %q", id, got)
		}
	}
}

// A run that can't be recorded is none.
func TestRunsNothingUnrecorded(t *testing.T) {
	h := newHarness(t, nil)
	h.mustInvoke("c1", "write", `{}`)
	q := h.runtime.choice("c1")
	h.mustInvoke("c2", "write", `{}`)
	q2 := h.runtime.choice("c2")
	h.mu.Lock()
	h.deaf = true
	h.mu.Unlock()
	h.answer(q, 0)
	h.answer(q2, 1)
	for _, id := range []string{"c1", "c2"} {
		if got := h.runtime.result(id); !strings.Contains(got, "could not be recorded") || h.runs(id) != 0 {
			t.Errorf("%s: %q, %d runs", id, got, h.runs(id))
		}
	}
}

// What changed between the question and the answer does not run.
func TestDecidesAgain(t *testing.T) {
	stricter := strings.Replace(testPolicy, "targets: [burn]", "targets: [burn, write]", 1)
	for name, tt := range map[string]struct {
		agent, policy, want string
	}{
		"denied now": {testAgent, stricter, "denied by the rules"},
		"other rules": {
			strings.Replace(testAgent, `version: "1.0.0", desc`, `version: "1.0.1", desc`, 1),
			testPolicy,
			"changed since",
		},
	} {
		h := newHarness(t, nil)
		h.mustInvoke("c1", "write", `{}`)
		q := h.runtime.choice("c1")
		h.setPlan(testPlan(t, tt.agent, tt.policy))
		if code := h.answer(q, 0); code != 200 {
			t.Errorf("%s: %d", name, code)
		}
		if got := h.runtime.result("c1"); !strings.Contains(got, tt.want) || h.runs("c1") != 0 {
			t.Errorf("%s: %q, %d runs", name, got, h.runs("c1"))
		}
	}
}

// A call whose process died while it ran is not run again (T26), and
// one that another process runs is left to it.
func TestFindsRunsLost(t *testing.T) {
	h := newHarness(t, nil)
	began, free := make(chan struct{}), make(chan struct{})
	h.acts(func(ctx context.Context, job rap.Job) (rap.Outcome, error) {
		close(began)
		<-free
		return rap.Outcome{Text: "late"}, nil
	})
	h.mustInvoke("c1", "look", `{}`)
	<-began
	second, err := New(h.cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- second.Run(ctx) }()
	key := callKey("runtime", "thread", "c1")
	state := func() durable.State {
		r, err := second.engine.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return r.State
	}
	in := wire.Invocation{
		Operation:   "unknown",
		Arguments:   []byte("{}"),
		CallbackURL: h.runtime.url(),
		GroupID:     "thread",
		ID:          "c2",
	}
	req := h.request(h.cfg.PublicURL+"/invoke", string(in.Append(nil)))
	req.Header.Set("Authorization", "Bearer "+callerToken)
	second.ServeHTTP(httptest.NewRecorder(), req)
	h.runtime.result("c2") // so the second one works
	if got := state(); got != durable.Running {
		t.Errorf("taken for lost while it runs: %s", got)
	}
	h.runtime.until("that it is lost", func() bool { // unless its process shows that it lives meanwhile
		h.pass(2 * runLease)
		return state() != durable.Running
	})
	close(free)
	h.runtime.until("that both agree", func() bool { return len(h.runtime.results("c1")) > 0 })
	if got := h.runtime.result("c1"); !strings.Contains(got, "outcome unknown") || h.runs("c1") != 1 {
		t.Errorf("result %q, %d runs", got, h.runs("c1"))
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRelaysOneQuestion(t *testing.T) {
	h := newHarness(t, nil)
	h.acts(func(ctx context.Context, job rap.Job) (rap.Outcome, error) {
		if _, err := job.Ask(ctx, "?", []string{"a"}, 1); err == nil {
			return rap.Outcome{}, &rap.PublicError{Text: "a default that is none was taken"}
		}
		i, err := job.Ask(ctx, "Really?\x1b[2J", []string{"yes", "no", "\u202eperhaps"}, 1)
		if err != nil {
			return rap.Outcome{}, errors.Join(err, &rap.PublicError{Text: "not asked"})
		}
		if _, err := job.Ask(ctx, "And now?", []string{"yes"}, 0); !errors.Is(err, rap.ErrAskedAlready) {
			return rap.Outcome{}, &rap.PublicError{Text: "asked twice"}
		}
		return rap.Outcome{Text: fmt.Sprint("chose ", i)}, nil
	})
	h.mustInvoke("c1", "look", `{}`)
	q := h.runtime.choice("c1")
	if strings.ContainsAny(q.Prompt+q.Choices[2], "\x1b\u202e") || q.Default != 1 || len(q.Choices) != 3 ||
		!strings.Contains(q.Prompt, "Really?") {
		t.Errorf("%q %q %d", q.Prompt, q.Choices, q.Default)
	}
	for i, want := range []int{200, 200, 404} {
		if code := h.answer(q, []int{2, 2, 0}[i]); code != want {
			t.Errorf("answer %d: %d", i, code)
		}
	}
	if got := h.runtime.result("c1"); got != "chose 2" {
		t.Errorf("result %q", got)
	}

	h.mustInvoke("c2", "look", `{}`)
	q = h.runtime.choice("c2")
	if code := h.postAs("", q.ResponseURL, `{"id":"c2","selected":7}`); code != 400 {
		t.Errorf("out of range: %d", code)
	}
	if got := h.runtime.result("c2"); got != "Error: the answer to the question was not valid" &&
		got != "Error: not asked" {
		t.Errorf("result %q", got)
	}

	h.mustInvoke("c3", "look", `{}`)
	h.runtime.choice("c3")
	h.pass(time.Hour)
	h.runtime.result("c3")

	h.mustInvoke("c4", "write", `{}`)
	h.answer(h.runtime.choice("c4"), 0)
	if got := h.runtime.result("c4"); got != "Error: not asked" && !strings.Contains(got, "Error") {
		t.Errorf("asked after the rules had: %q", got)
	}
	if n := h.runtime.choices("c4"); n != 1 {
		t.Errorf("%d questions", n)
	}
}

func TestClockStandsWhileItAsks(t *testing.T) {
	h := newHarness(t, func(c *Config) { c.RunWithin = 300 * time.Millisecond })
	h.acts(func(ctx context.Context, job rap.Job) (rap.Outcome, error) {
		_, err := job.Ask(ctx, "?", []string{"yes"}, 0)
		return rap.Outcome{Text: "went on"}, err
	})
	h.mustInvoke("c1", "look", `{}`)
	q := h.runtime.choice("c1")
	later := time.NewTimer(600 * time.Millisecond)
	<-later.C
	if code := h.answer(q, 0); code != 200 {
		t.Errorf("answer: %d", code)
	}
	if got := h.runtime.result("c1"); got != "went on" {
		t.Errorf("result %q", got)
	}
}

// Another process that takes a cancellation stops a run here by its
// record (T11).
func TestStopsForOthers(t *testing.T) {
	h := newHarness(t, nil)
	began := make(chan struct{})
	h.acts(func(ctx context.Context, job rap.Job) (rap.Outcome, error) {
		close(began)
		<-ctx.Done()
		return rap.Outcome{}, ctx.Err()
	})
	h.mustInvoke("c1", "look", `{}`)
	<-began
	second, err := New(h.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.cancel(
		t.Context(),
		callKey("runtime", "thread", "c1"),
		"the call was cancelled",
		false,
	); err != nil {
		t.Fatal(err)
	}

	if got := h.runtime.result("c1"); !strings.Contains(got, "cancelled") {
		t.Errorf("result %q", got)
	}
}

// A call whose caller is configured no more reaches nobody, and does not run.
func TestDropsOrphans(t *testing.T) {
	h := newHarness(t, nil)
	h.mustInvoke("c1", "write", `{}`)
	q := h.runtime.choice("c1")
	h.cfg.Callers[0].Name = "renamed"
	h.restart()
	token := q.ResponseURL[strings.LastIndex(q.ResponseURL, "/"):]
	if code := h.postAs("", "/answer"+token, `{"id":"c1","selected":0}`); code != 404 {
		t.Errorf("an answer: %d", code)
	}
	h.pass(time.Hour)
	h.runtime.until("its end", func() bool {
		r, err := h.g.engine.Get(t.Context(), callKey("runtime", "thread", "c1"))
		return err == nil && r.State == durable.Closed
	})
	if h.runs("c1") != 0 || len(h.runtime.results("c1")) != 0 {
		t.Errorf("%d runs, results %q", h.runs("c1"), h.runtime.results("c1"))
	}
}
