package rap_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/runtime"
)

func testR5(t *testing.T) {
	w := newRuntimeWorld(t)
	var before func(c *toolCall)
	w.tools.on(toolEndpoint, func(_ http.ResponseWriter, r *http.Request, _ int) {
		before(w.tools.reads(r))
	})
	before = func(c *toolCall) { c.sends(c.result("faster than the acknowledgement")) }
	c := w.invoke("t-1", "result")
	w.endedWith(c, "faster than the acknowledgement")

	before = func(c *toolCall) { c.sends(c.choice(c.answerAt(""))) }
	c = w.invoke("t-1", "question")
	w.desk.picks(w.desk.asked(c.name(), 1).Ref, 0)
	w.answered(c, c.answerAt(""), 0)
	w.pending(c)
	w.completes(c)

	// All of the detour fits in before the acknowledgement.
	before = func(c *toolCall) {
		c.sends(c.choice(c.answerAt("")))
		w.desk.picks(w.desk.asked(c.name(), 1).Ref, 1)
		w.answered(c, c.answerAt(""), 1)
		c.sends(c.result("all of it"))
	}
	c = w.invoke("t-1", "both")
	w.endedWith(c, "all of it")
	before = func(*toolCall) {}
	w.settles()
	for name := range w.distinctCalls() {
		if n := w.invocations(name); n != 1 {
			t.Errorf("%s was sent %d times", name, n)
		}
	}
	w.endedWith(c, "all of it")
}

// invocations is how often a call was sent.
func (w *runtimeWorld) invocations(name string) (n int) {
	for _, r := range w.tools.requests("invoke") {
		if w.tools.read(r.Body).name() == name {
			n++
		}
	}
	return n
}

func testR6(t *testing.T) {
	w := newRuntimeWorld(t, func(w *runtimeWorld) { w.cfg.CallWithin = 2 * time.Second })
	c, q, uri := w.asks("t-1", "call_1")
	silent := w.invoke("t-2", "call_1")
	answered, second, answeredAt := w.asks("t-3", "call_1")
	w.desk.picks(second.Ref, 1)
	w.answered(answered, answeredAt, 1)
	if got := w.look(c); got.State == runtime.CallDone {
		t.Fatalf("ended at once: %+v", got)
	}
	for _, late := range []*toolCall{c, silent, answered} {
		w.gaveUp(late.GroupID, late.ID, runtime.WhyTimeout)
	}
	w.desk.withdrawn(q.Ref)
	before, said := w.look(c), w.refusals()
	for _, late := range []*toolCall{c, silent, answered} {
		gentlyRefused(t, "a late result", late.send(late.result("late")))
		gentlyRefused(t, "a late question", late.send(late.choice(late.answerAt("/late"))))
	}
	if w.refusals() == said {
		t.Error("the late results were not logged")
	}
	w.desk.picks(q.Ref, 0)
	probe := w.invoke("t-4", "call_1")
	w.gaveUp(probe.GroupID, probe.ID, runtime.WhyTimeout)
	w.tools.exactly(uri, 0)
	w.tools.exactly(answeredAt, 1)
	for _, late := range []*toolCall{c, silent, answered} {
		w.tools.exactly(late.answerAt("/late"), 0)
		w.gaveUp(late.GroupID, late.ID, runtime.WhyTimeout)
	}
	if after := w.look(c); after.Outcome.Text != before.Outcome.Text {
		t.Errorf("%q became %q", before.Outcome.Text, after.Outcome.Text)
	}
	w.desk.exactly(silent.name(), 0)

	// The question has a time of its own.
	w = moreWorld(t, func(w *runtimeWorld) { w.cfg.ChoiceWithin = 9 * time.Minute })
	_, q, _ = w.asks("t-1", "call_1")
	if q.Question.Within <= 0 || q.Question.Within > 9*time.Minute {
		t.Errorf("the question is open for %s", q.Question.Within)
	}
}

// A question says that the tool has the invocation, whatever becomes of
// the exchange that carried it.
func testR7(t *testing.T) {
	w := newRuntimeWorld(t, func(w *runtimeWorld) { w.cfg.Servers[0].Peer.Timeout = 2 * time.Second })
	ends := map[string]func(http.ResponseWriter){
		"lost":   func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"failed": func(rw http.ResponseWriter) { rw.WriteHeader(http.StatusInternalServerError) },
		"busy":   func(rw http.ResponseWriter) { rw.WriteHeader(http.StatusServiceUnavailable) },
		"silent": func(http.ResponseWriter) { <-w.tools.quit },
	}
	w.tools.on(toolEndpoint, func(rw http.ResponseWriter, r *http.Request, _ int) {
		c := w.tools.reads(r)
		if end := ends[c.ID]; end != nil {
			c.sends(c.choice(c.answerAt("")))
			end(rw)
		}
	})
	calls := map[string]*toolCall{}
	for id := range ends {
		calls[id] = w.invoke("t-1", id)
	}
	for _, c := range calls {
		w.desk.asked(c.name(), 1)
	}
	// Long after these have failed, another that never asked has been
	// tried as often as one may.
	ends["probe"] = nil
	w.other.answers(toolEndpoint, http.StatusServiceUnavailable)
	w.starts(runtime.Invocation{
		Thread:    "t-2",
		ID:        "probe",
		Operation: "list_files",
		Arguments: json.RawMessage(`{}`),
	})
	w.gaveUp("t-2", "probe", runtime.WhyNotAccepted)
	w.settles()
	for id, c := range calls {
		if id == "silent" {
			continue
		}
		w.until(c, "asking", func(got runtime.Call) bool { return got.State == runtime.CallPending })
	}

	for _, c := range calls {
		w.desk.picks(w.desk.asked(c.name(), 1).Ref, 1)
		w.answered(c, c.answerAt(""), 1)
		w.completes(c)
	}
	w.settles()
	for _, c := range calls {
		if n := w.invocations(c.name()); n != 1 {
			t.Errorf("%s was sent %d times", c.name(), n)
		}
		w.tools.exactly(c.answerAt(""), 1)
	}

	t.Run("killed", killedSending)
}

// hears waits for the notice that a server gets once, and checks it to
// the letter.
func hears(p *toolPeer, route string, want map[string]string) {
	p.t.Helper()
	for n := 1; ; n++ {
		r := p.waits(route, n)[n-1]
		var got map[string]string
		if err := json.Unmarshal([]byte(r.Body), &got); err != nil || r.Method != http.MethodPost ||
			r.ContentType != "application/json" {
			p.t.Fatalf("a notice that can't be read: %v: %+v", err, r)
		}
		if maps.Equal(got, want) {
			return
		}
	}
}

func testR24(t *testing.T) {
	w := newRuntimeWorld(t)
	w.other.hangs("/cancel_tool_call")
	c, q, uri := w.asks("t-1", "call_1")
	neighbour, _, _ := w.asks("t-1", "call_2")
	began := time.Now()
	if err := w.mine.Cancel(t.Context(), "t-1", "call_1", "the user went on"); err != nil {
		t.Fatal(err)
	}
	w.gaveUp("t-1", "call_1", runtime.WhyInterrupted)
	for id, want := range map[string]error{"call_1": runtime.ErrDone, "call_9": runtime.ErrNoCall} {
		if err := w.mine.Cancel(t.Context(), "t-1", id, ""); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}

	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %s", took)
	}
	w.desk.withdrawn(q.Ref)
	notice := confNotice("t-1", "call_1")
	hears(w.tools, "cancel", notice)
	hears(w.other, "cancel", notice)
	gentlyRefused(t, "a late result", c.send(c.result("late")))
	gentlyRefused(t, "a late question", c.send(c.choice(c.answerAt("/late"))))
	w.desk.picks(q.Ref, 0)
	w.settles()
	w.gaveUp("t-1", "call_1", runtime.WhyInterrupted)
	w.tools.exactly(uri, 0)
	w.tools.exactly(c.answerAt("/late"), 0)
	w.desk.exactly(c.name(), 1)
	w.tools.exactly("cancel", 1)
	w.other.exactly("cancel", 1)
	w.pending(neighbour)
	w.desk.picks(w.desk.asked(neighbour.name(), 1).Ref, 1)
	w.answered(neighbour, neighbour.answerAt(""), 1)
	w.completes(neighbour)
}

func testR25(t *testing.T) {
	w := newRuntimeWorld(t)
	w.tools.hangs("/close_thread")
	c, q, uri := w.asks("t-1", "call_1")
	silent := w.invoke("t-1", "call_2")
	neighbour, _, _ := w.asks("t-2", "call_1")
	silent.sends(silent.view("diff", map[string]any{"n": 1}))
	neighbour.sends(neighbour.view("diff", map[string]any{"n": 2}))
	began := time.Now()
	if err := w.mine.CloseThread(t.Context(), "t-1"); err != nil {
		t.Fatal(err)
	}
	w.gaveUp("t-1", "call_1", runtime.WhyClosed)
	w.gaveUp("t-1", "call_2", runtime.WhyClosed)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %s", took)
	}
	w.desk.withdrawn(q.Ref)
	for _, p := range []*toolPeer{w.tools, w.other} {
		hears(p, "close", confNotice("t-1"))
	}
	gentlyRefused(t, "a late result", c.send(c.result("late")))
	gentlyRefused(t, "a late view", c.send(c.view("diff", map[string]any{"late": true})))
	gentlyRefused(t, "a late question", silent.send(silent.choice(silent.answerAt("/late"))))
	w.desk.picks(q.Ref, 0)
	w.settles()
	w.tools.exactly(uri, 0)
	w.tools.exactly(silent.answerAt("/late"), 0)
	w.nothingShown(silent)
	w.tools.exactly("close", 1)
	w.other.exactly("close", 1)
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
	c.sends(c.result("Done: t-1/call_1"))
	c.sends(c.result("something else"))
	w.settles()
	w.endedWith(c, "Done: t-1/call_1")
}

func testR31(t *testing.T) {
	w := newRuntimeWorld(t)
	c := w.invoke("t-1", "call_1")
	m := c.result("the text")
	neither := m.without("text")
	c.refused("neither", neither)
	c.refused("both null", neither.with("text", nil).with("content", nil))
	c.refused("content of text", neither.with("content", []string{"x"}))
	c.refused("text that is a number", neither.with("text", 1))
	w.pending(c)
	content := []any{map[string]any{"type": "text", "text": "the content"}, map[string]any{
		"type":      "image",
		"data":      "AAEC",
		"mediaType": "image/png",
	}}
	c.sends(
		m.with("content", content).
			with("display_as", []any{map[string]any{"type": "text", "content": "cosmetic"}}),
	)
	got := w.ends("t-1", "call_1")
	want := `{"content":[{"Text":"the content","Image":"","MediaType":""},{"Text":"","Image":"AAEC",` +
		`"MediaType":"image/png"}]}`
	got.Outcome.DisplayAs = nil // cosmetic
	if text, err := json.Marshal(got.Outcome); err != nil || !sameJSON(text, []byte(want)) || got.Failed ||
		got.Synthetic {
		t.Errorf("the outcome is %s, %v: %+v", text, err, got)
	}

	c = w.invoke("t-1", "call_2")
	c.sends(c.result(""))
	w.endedWith(c, "")
	c = w.invoke("t-1", "call_3")
	c.sends(c.result("Error: no such file"))
	if got := w.ends("t-1", "call_3"); !got.Failed || got.Synthetic || got.Outcome.Text != "Error: no such file" {
		t.Errorf("got %+v (%+v)", got, got.Outcome)
	}
}

func testR32(t *testing.T) {
	w := newRuntimeWorld(t)
	followed := w.invoke("t-1", "call_0")
	followed.sends(followed.result("follow me").with("subscription", true))
	if got := w.ends("t-1", "call_0"); !got.Subscription {
		t.Errorf("got %+v", got)
	}
	c, q, uri := w.asks("t-1", "call_1")
	c.sends(c.view("diff", map[string]any{"n": 1}))
	c.sends(c.view("diff", map[string]any{"n": 2}))
	gentlyRefused(
		t,
		"a view of an unknown thread",
		c.send(c.view("diff", map[string]any{"n": 3}).with("group_id", "t-9")),
	)
	followed.sends(followed.event("first"))
	followed.sends(followed.event("first"))
	followed.sends(followed.event("last").with("final", true).with("associative", true))
	gentlyRefused(t, "an event after the last", followed.send(followed.event("too late")))
	gentlyRefused(t, "an event of a call that nobody follows", c.send(c.event("injected")))
	gentlyRefused(
		t,
		"an event of an unknown call",
		followed.send(followed.event("injected").with("tool_call_id", "call_9")),
	)
	for _, address := range []string{"http://signin.example/", "signin", "javascript:alert(1)", ""} {
		c.refused("a sign-in at "+address, c.oauth(address))
	}
	c.sends(c.oauth("https://signin.example/?state=1"))
	got := w.until(c, "to be signed in", func(got runtime.Call) bool { return got.SignIn != "" })
	if got.SignIn != "https://signin.example/?state=1" || got.State != runtime.CallPending {
		t.Errorf("got %+v", got)
	}
	w.settles()
	if got := w.pending(c); got.Question != q.Ref {
		t.Errorf("the question became %q", got.Question)
	}
	w.desk.exactly(c.name(), 1)
	views, err := w.mine.Views(t.Context(), "t-1")
	if err != nil || len(views) != 1 || !sameJSON(views["diff"], []byte(`{"n":2}`)) {
		t.Errorf("the views are %s, %v", views, err)
	}
	if views, err := w.mine.Views(t.Context(), "t-9"); err != nil || len(views) != 0 {
		t.Errorf("an unknown thread shows %s, %v", views, err)
	}
	events, err := w.mine.Events(t.Context(), "t-1", 0)
	if err != nil || !slices.Equal(events, []rap.Event{
		{ID: "call_0", Text: "first"}, {
			Index: 1,
			ID:    "call_0",
			Text:  "first",
		}, {
			Index:       2,
			ID:          "call_0",
			Text:        "last",
			Associative: true,
			Final:       true,
		},
	}) {
		t.Errorf("the events are %+v, %v", events, err)
	}

	w.desk.picks(q.Ref, 1)
	w.answered(c, uri, 1)
	w.tools.exactly(uri, 1)
	w.completes(c)
	w.endedWith(followed, "follow me")
}

func testR38(t *testing.T) {
	ways := map[string]func(p *toolPeer, uri string){
		"fails": func(p *toolPeer, uri string) { p.answers(uri, http.StatusInternalServerError) },
		"hangs": (*toolPeer).hangs,
		"drops": (*toolPeer).drops,
		"moves": func(p *toolPeer, uri string) {
			p.on(uri, func(rw http.ResponseWriter, _ *http.Request, _ int) {
				rw.Header().Set("Location", p.URL+"/elsewhere")
				rw.WriteHeader(http.StatusTemporaryRedirect)
			})
		},
	}
	w := newRuntimeWorld(t)
	n := 0
	for name, breaks := range ways {
		for _, uri := range []string{"/close_thread", "/cancel_tool_call"} {
			breaks(w.tools, uri)
		}
		n++
		w.asks("cancel-"+name, "call_1")
		w.asks("close-"+name, "call_1")
		began := time.Now()
		if err := w.mine.Cancel(t.Context(), "cancel-"+name, "call_1", "enough"); err != nil {
			t.Error(err)
		}
		if err := w.mine.CloseThread(t.Context(), "close-"+name); err != nil {
			t.Error(err)
		}
		w.gaveUp("cancel-"+name, "call_1", runtime.WhyInterrupted)
		w.gaveUp("close-"+name, "call_1", runtime.WhyClosed)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
		for _, p := range []*toolPeer{w.tools, w.other} {
			hears(p, "cancel", confNotice("cancel-"+name, "call_1"))
			hears(p, "close", confNotice("close-"+name))
		}
		w.settles()
		for _, p := range []*toolPeer{w.tools, w.other} {
			p.exactly("cancel", n)
			p.exactly("close", n)
			p.exactly("/elsewhere", 0)
		}
	}
}
