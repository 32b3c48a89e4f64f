package rap_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/wire"
)

// A result that can't be sent unchanged is repaired, or replaced by an error that says so.
func TestGatewaySendsOddResults(t *testing.T) {
	h, r := confGateway(t)
	for want, out := range map[string]rap.Outcome{
		"a\uFFFDb": {Text: "a\xffb"},
		"fine":     {Text: "fine", DisplayAs: []byte(`{`)},
		"Error: the operation ran, but its result is too large to be sent": {Text: strings.Repeat("x", 3<<20)},
		"Error: the operation ran, but its result can't be written as a tool_result": {
			Content: []wire.Content{{Image: "%", MediaType: "x"}},
		},
	} {
		h.ops["list_files"].does(func(context.Context, rap.Job) (rap.Outcome, error) { return out, nil })
		if got := r.call("list_files", `{}`).invoke().result(); got != want {
			t.Errorf("%.200q, want %q", got, want)
		}
	}
}

// A call whose run can't be recorded does not run.
func TestGatewayRunsNothingUnrecorded(t *testing.T) {
	h, r := confGateway(t, confOffer)
	for _, choice := range []string{"once", "session"} {
		c, q := r.asked()
		h.deaf.Store(true)
		c.picks(q, q.index(t, choice))
		if got := c.fails(); !strings.Contains(got, "could not be recorded") {
			t.Errorf("%s: %q", choice, got)
		}
		h.deaf.Store(false)
	}

	h.ran("write_file", 0)
}

// If another process accepts a cancellation, the run here stops because of the record.
func TestGatewayStopsForOthers(t *testing.T) {
	t.Parallel()
	h, r := confGateway(t)
	h.ops["list_files"].block()
	c := r.call("list_files", `{}`).invoke()
	h.ops["list_files"].begun(t, 1)
	second := must.Get(gateway.New(h.cfg))(t)
	own := r.base
	other := httptest.NewServer(second)
	defer other.Close()
	r.base = other.URL
	status, body := r.cancel(c.in.GroupID, c.in.ID)
	r.base = own
	confAcknowledged(t, "cancel", status, body)
	if got := c.fails(); !strings.Contains(got, "cancelled") {
		t.Errorf("result %q", got)
	}
}

// relays makes an operation ask its user a question.
func (h *confHarness) relays() {
	h.ops["read_file"].does(func(ctx context.Context, job rap.Job) (rap.Outcome, error) {
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
}

func TestGatewayRelaysOneQuestion(t *testing.T) {
	t.Parallel()
	h, r := confGateway(t, func(cfg *gateway.Config) { cfg.RunWithin = 300 * time.Millisecond })
	h.relays()
	c := r.call("read_file", confMotd).invoke()
	q := c.choice()
	if strings.ContainsAny(q.Prompt+q.Choices[2], "\x1b\u202e") || *q.Default != 1 || len(q.Choices) != 3 ||
		!strings.Contains(q.Prompt, "Really?") {
		t.Errorf("%s", q.body)
	}
	<-time.After(600 * time.Millisecond) // the time limit of a run is paused while people are asked
	for i, want := range []int{200, 200, 404} {
		if status := c.answer(q, []int{2, 2, 0}[i]); status != want {
			t.Errorf("answer %d: %d", i, status)
		}
	}
	if got := c.result(); got != "chose 2" {
		t.Errorf("result %q", got)
	}

	c = r.call("read_file", confMotd).invoke()
	if status := c.answer(c.choice(), 7); status != http.StatusBadRequest {
		t.Errorf("out of range: %d", status)
	}
	if got := c.fails(); !strings.Contains(got, "not valid") && !strings.Contains(got, "not asked") {
		t.Errorf("result %q", got)
	}

	c = r.call("read_file", confMotd).invoke()
	c.choice()
	h.clock.pass(time.Hour)
	c.fails()

	h.rules(strings.Replace(confToolsFile, "Reads a file.", "Reads a file., approval: true", 1), confToolsPolicy)
	c = r.call("read_file", confMotd).invoke()
	c.picks(c.choice(), 0)
	if c.fails(); c.count("user_choice") != 1 {
		t.Errorf("asked after the rules had:\n%s", r.heard())
	}
}

// After a run was told to stop, its relayed question can't be answered any more, like the
// rules' own questions.
func TestAnswersAfterACancellationAreNotThere(t *testing.T) {
	h, r := confGateway(t)
	stuck := make(chan struct{})
	h.ops["read_file"].does(func(ctx context.Context, job rap.Job) (rap.Outcome, error) {
		_, err := job.Ask(ctx, "Really?", []string{"Yes", "No"}, 1)
		<-stuck // slow to stop
		return rap.Outcome{}, err
	})
	c := r.call("read_file", confMotd).invoke()
	q := c.choice()
	r.cancel(c.in.GroupID, c.in.ID)
	for range 2 {
		if status := c.answer(q, 0); status != http.StatusNotFound {
			t.Errorf("an answer after the cancellation: %d", status)
		}
		select {
		case <-stuck:
		default:
			close(stuck)
		}
		c.fails()
	}
}

// asksBehind makes a call about which the upstream tool server asks.
func (w *eventsWorld) asksBehind() (*confCall, *raptest.Call) {
	w.t.Helper()
	c, sent := w.passes("thread-1")
	sent.Sends(sent.Choice("/answers/" + sent.SentID))
	return c, sent
}

func TestUpstreamRelays(t *testing.T) {
	w := newEventsWorld(t)
	for _, pick := range []int{1, 2} {
		c, sent := w.asksBehind()
		q := c.choice()
		if !strings.Contains(q.Prompt, "/etc/motd") || *q.Default != 2 || len(q.Choices) != 3 {
			t.Errorf("%s", q.body)
		}
		c.picks(q, pick)
		isAnswer(t, w.tool.Waits("/answers/"+sent.SentID, 1)[0], sent.SentID, pick)
		sent.Sends(sent.Result("done"))
		if got := c.result(); got != "done" {
			t.Errorf("result %q", got)
		}
	}
}

// If the gateway has asked its user about a call, a question of the upstream server ends the
// call.
func TestUpstreamAsksOnce(t *testing.T) {
	w := newEventsWorld(t)
	w.rules(strings.Replace(confToolsFile, "Reads a file.", "Reads a file., approval: true", 1), confToolsPolicy)
	c := w.runtime.call("read_file", confMotd).invoke()
	c.picks(c.choice(), 0)
	sent := w.tool.Read(w.tool.Waits("invoke", 1)[0].Body)
	sent.Sends(sent.Choice("/answers/1"))
	if got := c.fails(); !strings.Contains(got, "asked") || c.count("user_choice") != 1 {
		t.Errorf("result %q\n%s", got, c.heard())
	}
	hears(w.tool, "cancel", map[string]string{"thread_id": sent.SentGroup, "tool_call_id": sent.SentID})
	w.tool.Exactly("/answers/1", 0)
}

// Cancellations and closures are passed on to the upstream server.
func TestUpstreamEnds(t *testing.T) {
	w := newEventsWorld(t)
	c, sent := w.asksBehind()
	c.choice()
	w.runtime.cancel(c.in.GroupID, c.in.ID)
	if got := c.fails(); !strings.Contains(got, "cancelled") {
		t.Errorf("result %q", got)
	}
	hears(w.tool, "cancel", map[string]string{"thread_id": sent.SentGroup, "tool_call_id": sent.SentID})

	c, sent = w.asksBehind()
	c.choice()
	w.runtime.closeThread(c.in.GroupID)
	if got := c.fails(); !strings.Contains(got, "closed") {
		t.Errorf("result %q", got)
	}
	hears(w.tool, "close", map[string]string{"thread_id": sent.SentGroup})
}

// An upstream tool that changed after the rules decided is not called.
func TestUpstreamChanges(t *testing.T) {
	w := newEventsWorld(t)
	w.tool.Offers(strings.Replace(raptest.Manifest(w.tool.URL+raptest.Endpoint, "read_file"), "Does",
		"Does more than", 1))
	_, err := w.now.Operations()[0].Run(t.Context(), rap.Job{
		Asker:     raptest.Asker(),
		Caller:    "c",
		Thread:    "child",
		Ancestors: []string{"another root"},
		ID:        "c1",
		Operation: "read_file",
		Arguments: []byte(`{}`),
	})
	if public, ok := errors.AsType[*rap.PublicError](err); !ok || !strings.Contains(public.Text, "nothing was run") {
		t.Errorf("a tool that changed: %v", err)
	}
	w.tool.Exactly("invoke", 0)
}

// A caller with many calls that hang does not delay the deadlines of others.
func TestGatewaySharesItsWork(t *testing.T) {
	t.Parallel()
	r, slow := newConfRuntime(t, "alpha"), newConfRuntime(t, "slow")
	h := confGatewayOf(t, []*confRuntime{r, slow}, func(cfg *gateway.Config) {
		cfg.Rate, cfg.MaxThread = 100_000, 100_000
		cfg.Callers[1].Callbacks.Timeout = time.Hour
	})
	slow.answers(func(*confCallback, int) int { return confHang })
	for range 1200 {
		slow.call("drop_table", `{}`).invoke()
	}
	c, _ := r.asked()
	h.through(r)
	h.clock.pass(11 * time.Minute)
	if got := c.fails(); !strings.Contains(got, "in time") {
		t.Errorf("%q", got)
	}
}

// Listing all calls, of which there may be very many, does not delay any of them.
func TestGatewayGoesOnWhileItLists(t *testing.T) {
	var stuck atomic.Bool
	desk := raptest.NewDesk(t)
	h, r := confGateway(t, confAsk(gateway.AskApprovers, desk), func(cfg *gateway.Config) {
		cfg.Records = &confDisk{Records: cfg.Records, left: -1, lists: func(ctx context.Context) error {
			if stuck.Load() {
				<-ctx.Done()
			}
			return ctx.Err()
		}}
	})
	h.through(r)
	stuck.Store(true)
	desk.Tell("")
	for range 20 {
		h.through(r)
	}
}

// The number of a caller's invocations in memory is limited, and other callers are not
// affected.
func TestGatewayHoldsFewBodies(t *testing.T) {
	const most = 64
	r, flood := newConfRuntime(t, "alpha"), newConfRuntime(t, "flood")
	h := confGatewayOf(t, []*confRuntime{r, flood})
	reads, end := raptest.Floods(t, h.gateway, "/invoke", flood.token)
	testwait.Until(t, "bodies are read", func() bool { return reads.Load() >= most })
	h.through(r)
	if n := reads.Load(); n > most {
		t.Errorf("%d bodies at once", n)
	}
	end()
}

func TestGatewayBoundsWhatIsOpen(t *testing.T) {
	h, r := confGateway(t, func(cfg *gateway.Config) { cfg.MaxOpen, cfg.MaxThread = 3, 2 })
	named := func(id, thread string) *confCall {
		return r.call("write_file", confMotd).with(func(in *confInvocation) { in.ID, in.GroupID = id, thread })
	}
	first := named("a", "1")
	for _, tt := range []struct {
		c    *confCall
		want int
	}{
		{first, 200},
		{named("b", "1"), 200},
		{named("c", "1"), 503},
		{named("c", "2"), 200},
		{named("d", "2"), 503},
		{named("d", "3"), 503},
		{first, 200}, // it is open already
	} {
		if status := tt.c.post(); status != tt.want {
			t.Errorf("%s in %s: %d", tt.c.in.ID, tt.c.in.GroupID, status)
		}
	}

	h.crash()
	if status := named("e", "4").post(); status != 503 {
		t.Errorf("a restart is a way around the limits: %d", status)
	}
	r.cancel("1", "a")
	testwait.Until(t, "room", func() bool { return named("f", "1").post() == 200 })
}

func TestGatewayBoundsTheRate(t *testing.T) {
	_, r := confGateway(t, func(cfg *gateway.Config) {
		cfg.Rate = 5
		at := time.Now()
		cfg.Now = func() time.Time { return at }
	})
	statuses := map[int]int{}
	for range 12 {
		statuses[r.call("list_files", `{}`).post()]++
	}
	if statuses[200] != 5 || statuses[503] != 7 {
		t.Errorf("%v", statuses)
	}
}

// Without records nothing is acknowledged, asked, or accepted as an answer.
func TestGatewayWithoutRecords(t *testing.T) {
	h, r := confGateway(t)
	c, q := r.asked()
	h.disk.die(0)
	if status := r.call("list_files", `{}`).post(); status != http.StatusServiceUnavailable {
		t.Errorf("invoke: %d", status)
	}
	if status := c.answer(q, 0); status != http.StatusServiceUnavailable {
		t.Errorf("answer: %d", status)
	}
	status, body := r.cancel(c.in.GroupID, c.in.ID)
	confAcknowledged(t, "cancel", status, body)
	if status, _ := r.tell("/tool_call_status", map[string]any{
		"thread_id":    c.in.GroupID,
		"tool_call_id": c.in.ID,
	}); status != http.StatusServiceUnavailable {
		t.Errorf("status: %d", status)
	}

	h.restart()
	c.picks(q, 0)
	c.result()
}

// A grant ends if its thread is closed between the answer and the run.
func TestGatewayGrantsOfClosingThreads(t *testing.T) {
	var r *confRuntime
	var closing atomic.Bool
	disk := &confDisk{Records: rap.NewMemory(), left: -1}
	disk.writes = func(room string) {
		if strings.HasSuffix(room, "/grants") && closing.CompareAndSwap(false, true) {
			r.closeThread("thread-1")
		}
	}
	r = newConfRuntime(t, "alpha")
	h := confGatewayOf(t, []*confRuntime{r}, confOffer, func(cfg *gateway.Config) { cfg.Records = disk })
	c, q := r.asked()
	c.picks(q, q.index(t, "session"))
	c.fails()
	testwait.Until(t, "the end of the grant", func() bool {
		grants, err := h.gateway.Grants(t.Context())
		return err == nil && len(grants) == 0
	})
	if !closing.Load() {
		t.Error("no grant was made")
	}
	h.ran("write_file", 0)
}
