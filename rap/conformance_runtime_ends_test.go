package rap_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/runtime"
)

func testR5(t *testing.T) {
	w := newRuntimeWorld(t)
	var before func(c *raptest.Call)
	w.tools.On(raptest.Endpoint, func(_ http.ResponseWriter, r *http.Request, _ int) {
		before(w.tools.Reads(r))
	})
	before = func(c *raptest.Call) { c.Sends(c.Result("faster than the acknowledgement")) }
	c := w.invoke("t-1", "result")
	w.endedWith(c, "faster than the acknowledgement")

	before = func(c *raptest.Call) { c.Sends(c.Choice(c.AnswerAt(""))) }
	c = w.invoke("t-1", "question")
	w.desk.Picks(w.desk.Asked(c.Name(), 1).Ref, 0)
	w.answered(c, c.AnswerAt(""), 0)
	w.pending(c)
	w.completes(c)

	// The question, the answer and the result come before the acknowledgement.
	before = func(c *raptest.Call) {
		c.Sends(c.Choice(c.AnswerAt("")))
		w.desk.Picks(w.desk.Asked(c.Name(), 1).Ref, 1)
		w.answered(c, c.AnswerAt(""), 1)
		c.Sends(c.Result("all of it"))
	}
	c = w.invoke("t-1", "both")
	w.endedWith(c, "all of it")
	before = func(*raptest.Call) {}
	w.settles()
	for name := range w.distinctCalls() {
		if n := w.invocations(name); n != 1 {
			t.Errorf("%s was sent %d times", name, n)
		}
	}
	w.endedWith(c, "all of it")
}

// invocations counts how often a call was sent.
func (w *runtimeWorld) invocations(name string) (n int) {
	for _, r := range w.tools.Requests("invoke") {
		if w.tools.Read(r.Body).Name() == name {
			n++
		}
	}
	return n
}

func testR6(t *testing.T) {
	clock := &confClock{}
	w := newRuntimeWorld(t, func(w *runtimeWorld) { w.cfg.Now, w.cfg.CallWithin = clock.Now, 10*time.Minute })
	c, q, uri := w.asks("t-1", "call_1")
	silent := w.invoke("t-2", "call_1")
	answered, second, answeredAt := w.asks("t-3", "call_1")
	w.desk.Picks(second.Ref, 1)
	w.answered(answered, answeredAt, 1)
	if got := w.look(c); got.State == runtime.CallDone {
		t.Fatalf("ended at once: %+v", got)
	}
	clock.pass(11 * time.Minute)
	for _, late := range []*raptest.Call{c, silent, answered} {
		w.gaveUp(late.GroupID, late.ID, runtime.WhyTimeout)
	}
	w.desk.Withdrawn(q.Ref)
	before, said := w.look(c), w.refusals()
	for _, late := range []*raptest.Call{c, silent, answered} {
		gentlyRefused(t, "a late result", late.Send(late.Result("late")))
		gentlyRefused(t, "a late question", late.Send(late.Choice(late.AnswerAt("/late"))))
	}
	if w.refusals() == said {
		t.Error("the late results were not logged")
	}
	w.desk.Picks(q.Ref, 0)
	probe := w.invoke("t-4", "call_1")
	clock.pass(11 * time.Minute)
	w.gaveUp(probe.GroupID, probe.ID, runtime.WhyTimeout)
	w.tools.Exactly(uri, 0)
	w.tools.Exactly(answeredAt, 1)
	for _, late := range []*raptest.Call{c, silent, answered} {
		w.tools.Exactly(late.AnswerAt("/late"), 0)
		w.gaveUp(late.GroupID, late.ID, runtime.WhyTimeout)
	}
	if after := w.look(c); after.Outcome.Text != before.Outcome.Text {
		t.Errorf("%q became %q", before.Outcome.Text, after.Outcome.Text)
	}
	w.desk.Exactly(silent.Name(), 0)

	// The question has a time limit of its own.
	w = newRuntimeWorld(t, func(w *runtimeWorld) { w.cfg.ChoiceWithin = 9 * time.Minute })
	_, q, _ = w.asks("t-1", "call_1")
	if q.Question.Within <= 0 || q.Question.Within > 9*time.Minute {
		t.Errorf("the question is open for %s", q.Question.Within)
	}
}

// R7: a question shows that the tool has the invocation, whatever happened to the request that
// carried it.
func testR7(t *testing.T) {
	w := newRuntimeWorld(t, func(w *runtimeWorld) { w.cfg.Servers[0].Peer.Timeout = 2 * time.Second })
	ends := map[string]func(http.ResponseWriter){
		"lost":   func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"failed": func(rw http.ResponseWriter) { rw.WriteHeader(http.StatusInternalServerError) },
		"busy":   func(rw http.ResponseWriter) { rw.WriteHeader(http.StatusServiceUnavailable) },
		"silent": func(http.ResponseWriter) { <-w.tools.Quit },
	}
	w.tools.On(raptest.Endpoint, func(rw http.ResponseWriter, r *http.Request, _ int) {
		c := w.tools.Reads(r)
		if end := ends[c.ID]; end != nil {
			c.Sends(c.Choice(c.AnswerAt("")))
			end(rw)
		}
	})
	calls := map[string]*raptest.Call{}
	for id := range ends {
		calls[id] = w.invoke("t-1", id)
	}
	for _, c := range calls {
		w.desk.Asked(c.Name(), 1)
	}
	// A probe that never gets a question uses up all its attempts. By then the calls above have
	// had time to be sent again.
	ends["probe"] = nil
	w.other.Answers(raptest.Endpoint, http.StatusServiceUnavailable)
	w.starts(runtime.Invocation{Thread: "t-2", ID: "probe", Operation: "list_files", Arguments: json.RawMessage(`{}`)})
	w.gaveUp("t-2", "probe", runtime.WhyNotAccepted)
	w.settles()
	for id, c := range calls {
		if id == "silent" {
			continue
		}
		w.until(c, "asking", func(got runtime.Call) bool { return got.State == runtime.CallPending })
	}

	for _, c := range calls {
		w.desk.Picks(w.desk.Asked(c.Name(), 1).Ref, 1)
		w.answered(c, c.AnswerAt(""), 1)
		w.completes(c)
	}
	w.settles()
	for _, c := range calls {
		if n := w.invocations(c.Name()); n != 1 {
			t.Errorf("%s was sent %d times", c.Name(), n)
		}
		w.tools.Exactly(c.AnswerAt(""), 1)
	}

	t.Run("killed", killedSending)
}

// hears waits for the notice that a server must get once, and checks it exactly.
func hears(p *raptest.Tool, route string, want map[string]string) {
	p.T.Helper()
	for n := 1; ; n++ {
		r := p.Waits(route, n)[n-1]
		var got map[string]string
		if err := json.Unmarshal([]byte(r.Body), &got); err != nil || r.Method != http.MethodPost ||
			r.ContentType != "application/json" {
			p.T.Fatalf("a notice that can't be read: %v: %+v", err, r)
		}
		if maps.Equal(got, want) {
			return
		}
	}
}

// neverTimesOut sets timeouts that are longer than the test.
func neverTimesOut(w *runtimeWorld) {
	for i := range w.cfg.Servers {
		w.cfg.Servers[i].Peer.Timeout = time.Hour
	}
}

func testR24(t *testing.T) {
	w := newRuntimeWorld(t, neverTimesOut)
	w.other.Hangs("/cancel_tool_call")
	c, q, uri := w.asks("t-1", "call_1")
	neighbour, _, _ := w.asks("t-1", "call_2")
	must.Do(t, w.mine.Cancel(t.Context(), "t-1", "call_1", "the user went on"))
	w.gaveUp("t-1", "call_1", runtime.WhyInterrupted)
	for id, want := range map[string]error{"call_1": runtime.ErrDone, "call_9": runtime.ErrNoCall} {
		if err := w.mine.Cancel(t.Context(), "t-1", id, ""); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}

	w.desk.Withdrawn(q.Ref)
	notice := raptest.Notice("t-1", "call_1")
	hears(w.tools, "cancel", notice)
	hears(w.other, "cancel", notice)
	gentlyRefused(t, "a late result", c.Send(c.Result("late")))
	gentlyRefused(t, "a late question", c.Send(c.Choice(c.AnswerAt("/late"))))
	w.desk.Picks(q.Ref, 0)
	w.settles()
	w.gaveUp("t-1", "call_1", runtime.WhyInterrupted)
	w.tools.Exactly(uri, 0)
	w.tools.Exactly(c.AnswerAt("/late"), 0)
	w.desk.Exactly(c.Name(), 1)
	w.tools.Exactly("cancel", 1)
	w.other.Exactly("cancel", 1)
	w.pending(neighbour)
	w.desk.Picks(w.desk.Asked(neighbour.Name(), 1).Ref, 1)
	w.answered(neighbour, neighbour.AnswerAt(""), 1)
	w.completes(neighbour)
}

func testR25(t *testing.T) {
	w := newRuntimeWorld(t, neverTimesOut)
	w.tools.Hangs("/close_thread")
	c, q, uri := w.asks("t-1", "call_1")
	silent := w.invoke("t-1", "call_2")
	neighbour, _, _ := w.asks("t-2", "call_1")
	silent.Sends(silent.View("diff", map[string]any{"n": 1}))
	neighbour.Sends(neighbour.View("diff", map[string]any{"n": 2}))
	must.Do(t, w.mine.CloseThread(t.Context(), "t-1"))
	w.gaveUp("t-1", "call_1", runtime.WhyClosed)
	w.gaveUp("t-1", "call_2", runtime.WhyClosed)
	w.desk.Withdrawn(q.Ref)
	for _, p := range []*raptest.Tool{w.tools, w.other} {
		hears(p, "close", raptest.Notice("t-1"))
	}
	gentlyRefused(t, "a late result", c.Send(c.Result("late")))
	gentlyRefused(t, "a late view", c.Send(c.View("diff", map[string]any{"late": true})))
	gentlyRefused(t, "a late question", silent.Send(silent.Choice(silent.AnswerAt("/late"))))
	w.desk.Picks(q.Ref, 0)
	w.settles()
	w.tools.Exactly(uri, 0)
	w.tools.Exactly(silent.AnswerAt("/late"), 0)
	w.nothingShown(silent)
	w.tools.Exactly("close", 1)
	w.other.Exactly("close", 1)
	if views, err := w.mine.Views(t.Context(), "t-1"); err != nil || len(views) != 0 {
		t.Errorf("the closed thread shows %s, %v", views, err)
	}
	if views, err := w.mine.Views(t.Context(), "t-2"); err != nil || !sameJSON(views["diff"], []byte(`{"n":2}`)) {
		t.Errorf("the other thread shows %s, %v", views, err)
	}
	w.pending(neighbour)
	w.completes(neighbour)
	w.simply("t-1", "call_3")
	w.gaveUp("t-1", "call_3", runtime.WhyClosed)
}

func testR30(t *testing.T) {
	w := newRuntimeWorld(t)
	c, _, _ := w.asks("t-1", "call_1")
	w.completes(c)
	c.Sends(c.Result("Done: t-1/call_1"))
	c.Sends(c.Result("something else"))
	w.settles()
	w.endedWith(c, "Done: t-1/call_1")
}

func testR31(t *testing.T) {
	w := newRuntimeWorld(t)
	c := w.invoke("t-1", "call_1")
	m := c.Result("the text")
	neither := m.Without("text")
	c.Refused("neither", neither)
	c.Refused("both null", neither.With("text", nil).With("content", nil))
	c.Refused("content of text", neither.With("content", []string{"x"}))
	c.Refused("text that is a number", neither.With("text", 1))
	w.pending(c)
	content := []any{map[string]any{"type": "text", "text": "the content"}, map[string]any{
		"type":      "image",
		"data":      "AAEC",
		"mediaType": "image/png",
	}}
	c.Sends(m.With("content", content).With("display_as", []any{map[string]any{"type": "text", "content": "cosmetic"}}))
	got := w.ends("t-1", "call_1")
	want := `{"content":[{"Text":"the content","Image":"","MediaType":""},{"Text":"","Image":"AAEC",` +
		`"MediaType":"image/png"}]}`
	got.Outcome.DisplayAs = nil // not compared
	if text, err := json.Marshal(got.Outcome); err != nil || !sameJSON(text, []byte(want)) || got.Failed ||
		got.Synthetic {
		t.Errorf("the outcome is %s, %v: %+v", text, err, got)
	}

	c = w.invoke("t-1", "call_2")
	c.Sends(c.Result(""))
	w.endedWith(c, "")
	c = w.invoke("t-1", "call_3")
	c.Sends(c.Result("Error: no such file"))
	if got := w.ends("t-1", "call_3"); !got.Failed || got.Synthetic || got.Outcome.Text != "Error: no such file" {
		t.Errorf("got %+v (%+v)", got, got.Outcome)
	}
}

func testR32(t *testing.T) {
	w := newRuntimeWorld(t)
	followed := w.invoke("t-1", "call_0")
	followed.Sends(followed.Result("follow me").With("subscription", true))
	if got := w.ends("t-1", "call_0"); !got.Subscription {
		t.Errorf("got %+v", got)
	}
	c, q, uri := w.asks("t-1", "call_1")
	c.Sends(c.View("diff", map[string]any{"n": 1}))
	c.Sends(c.View("diff", map[string]any{"n": 2}))
	gentlyRefused(
		t,
		"a view of an unknown thread",
		c.Send(c.View("diff", map[string]any{"n": 3}).With("group_id", "t-9")),
	)
	followed.Sends(followed.Event("first"))
	followed.Sends(followed.Event("first"))
	followed.Sends(followed.Event("last").With("final", true).With("associative", true))
	gentlyRefused(t, "an event after the last", followed.Send(followed.Event("too late")))
	gentlyRefused(t, "an event of a call that nobody follows", c.Send(c.Event("injected")))
	gentlyRefused(
		t,
		"an event of an unknown call",
		followed.Send(followed.Event("injected").With("tool_call_id", "call_9")),
	)
	for _, address := range []string{"http://signin.example/", "signin", "javascript:alert(1)", ""} {
		c.Refused("a sign-in at "+address, c.Oauth(address))
	}
	c.Sends(c.Oauth("https://signin.example/?state=1"))
	got := w.until(c, "to be signed in", func(got runtime.Call) bool { return got.SignIn != "" })
	if got.SignIn != "https://signin.example/?state=1" || got.State != runtime.CallPending {
		t.Errorf("got %+v", got)
	}
	w.settles()
	if got := w.pending(c); got.Question != q.Ref {
		t.Errorf("the question became %q", got.Question)
	}
	w.desk.Exactly(c.Name(), 1)
	views, err := w.mine.Views(t.Context(), "t-1")
	if err != nil || len(views) != 1 || !sameJSON(views["diff"], []byte(`{"n":2}`)) {
		t.Errorf("the views are %s, %v", views, err)
	}
	if views, err := w.mine.Views(t.Context(), "t-9"); err != nil || len(views) != 0 {
		t.Errorf("an unknown thread shows %s, %v", views, err)
	}
	events, err := w.mine.Events(t.Context(), "t-1", 0)
	if err != nil || !slices.Equal(events, []rap.Event{
		{ID: "call_0", Text: "first"}, {Index: 1, ID: "call_0", Text: "first"}, {
			Index:       2,
			ID:          "call_0",
			Text:        "last",
			Associative: true,
			Final:       true,
		},
	}) {
		t.Errorf("the events are %+v, %v", events, err)
	}

	w.desk.Picks(q.Ref, 1)
	w.answered(c, uri, 1)
	w.tools.Exactly(uri, 1)
	w.completes(c)
	w.endedWith(followed, "follow me")
}

func testR38(t *testing.T) {
	ways := map[string]func(p *raptest.Tool, uri string){
		"fails": func(p *raptest.Tool, uri string) { p.Answers(uri, http.StatusInternalServerError) },
		"hangs": (*raptest.Tool).Hangs,
		"drops": (*raptest.Tool).Drops,
		"moves": func(p *raptest.Tool, uri string) {
			p.On(uri, func(rw http.ResponseWriter, _ *http.Request, _ int) {
				rw.Header().Set("Location", p.URL+"/elsewhere")
				rw.WriteHeader(http.StatusTemporaryRedirect)
			})
		},
	}
	w := newRuntimeWorld(t, neverTimesOut)
	n := 0
	for name, breaks := range ways {
		for _, uri := range []string{"/close_thread", "/cancel_tool_call"} {
			breaks(w.tools, uri)
		}
		n++
		w.asks("cancel-"+name, "call_1")
		w.asks("close-"+name, "call_1")
		if err := w.mine.Cancel(t.Context(), "cancel-"+name, "call_1", "enough"); err != nil {
			t.Error(err)
		}
		if err := w.mine.CloseThread(t.Context(), "close-"+name); err != nil {
			t.Error(err)
		}
		w.gaveUp("cancel-"+name, "call_1", runtime.WhyInterrupted)
		w.gaveUp("close-"+name, "call_1", runtime.WhyClosed)
		for _, p := range []*raptest.Tool{w.tools, w.other} {
			hears(p, "cancel", raptest.Notice("cancel-"+name, "call_1"))
			hears(p, "close", raptest.Notice("close-"+name))
		}
		w.settles()
		for _, p := range []*raptest.Tool{w.tools, w.other} {
			p.Exactly("cancel", n)
			p.Exactly("close", n)
			p.Exactly("/elsewhere", 0)
		}
	}
}
