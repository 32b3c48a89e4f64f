package rap_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap/runtime"
)

// The first question shows what it should, and the answer is one POST.
func testR1(t *testing.T) {
	w := newRuntimeWorld(t)
	args := `{ "path" : "/etc/motd", "text":"\u00e9", "n": 1.50 }`
	callID := "c-1"
	c := w.invokes(runtime.Invocation{
		Thread:    "t-1",
		ID:        "call_1",
		CallID:    &callID,
		Ancestors: []string{"root", "t-0"},
		User:      "ann",
		Operation: "write_file",
		Arguments: json.RawMessage(args),
	})
	got := w.tools.requests("invoke")[0]
	if got.Method != http.MethodPost || got.ContentType != "application/json" ||
		!strings.Contains(got.Body, args) {
		t.Errorf("the invocation was %+v", got)
	}
	if c.Operation != "write_file" || c.CallID == nil || *c.CallID != callID ||
		!slices.Equal(c.Ancestors, []string{confGroup("root"), confGroup("t-0")}) {
		t.Errorf("the invocation was %+v", c)
	}
	if !strings.HasPrefix(c.CallbackURL, w.cfg.CallbackURL+"/") || (c.UserID != nil && *c.UserID != "ann") {
		t.Errorf("the invocation was %+v", c)
	}

	uri := c.answerAt("")
	c.sends(c.choice(uri))
	s := w.desk.asked(c.name(), 1)
	q := s.Question
	if q.Server != "files" || q.Default != 2 ||
		!slices.Equal(q.Choices, []string{"Yes for session", "Yes once", "No"}) ||
		q.Call == nil {
		t.Errorf("people were shown %+v", q)
	} else if q.Call.Tool != "write_file" || string(q.Call.Args) != args || q.Call.Principal != "ann" {
		t.Errorf("people were shown the call %+v", q.Call)
	}

	if got := w.until(c, "asking", func(got runtime.Call) bool { return got.Question != "" }); got.Question != s.Ref {
		t.Errorf("the question is %q, want %q", got.Question, s.Ref)
	}
	w.settles()
	w.tools.exactly(uri, 0)
	// The asker reads its own names, whatever was sent.
	if text := string(confJSON(t, w.look(c))); !strings.Contains(text, `"t-1"`) || strings.Contains(text, c.SentGroup) {
		t.Errorf("the asker reads %s", text)
	}
	w.desk.picks(s.Ref, 1)
	w.answered(c, uri, 1)
	w.settles()
	w.tools.exactly(uri, 1)
	w.pending(c)
	w.completes(c)
}

func testR2(t *testing.T) {
	w := newRuntimeWorld(t)
	c, q, uri := w.asks("t-1", "call_1")
	w.desk.dismisses(q.Ref, 2)
	w.answered(c, uri, 2)
	w.settles()
	w.tools.exactly(uri, 1)
	w.pending(c)

	// It is the question's default that goes out, whatever the desk
	// says about the dismissal.
	c = w.invoke("t-1", "call_2")
	c.sends(c.choice(c.answerAt("")).with("default", 1))
	w.desk.dismisses(w.desk.asked(c.name(), 1).Ref, 0)
	w.answered(c, c.answerAt(""), 1)

	// An end without an answer is no dismissal: nothing is posted, the
	// call ends, and the tool is told.
	for thread, end := range map[string]hold.Answer{
		"unanswered":   {State: hold.Expired},
		"withdrawn":    {State: hold.Cancelled},
		"denied":       {State: hold.Denied},
		"out_of_range": {State: hold.Chosen, Selected: 3},
		"negative":     {State: hold.Chosen, Selected: -1},
		"unknown":      {State: "new"},
	} {
		_, q, uri = w.asks(thread, "call_1")
		w.desk.says(q.Ref, end)
		why := map[bool]runtime.Why{true: runtime.WhyDenied, false: runtime.WhyUnanswered}[end.State == hold.Denied]
		w.gaveUp(thread, "call_1", why)
		w.settles()
		w.tools.exactly(uri, 0)
		hears(w.tools, "cancel", confNotice(thread, "call_1"))
	}
}

func testR3(t *testing.T) {
	w := newRuntimeWorld(t)
	c, q, uri := w.asks("t-1", "call_1")
	w.desk.picks(q.Ref, 0)
	w.answered(c, uri, 0)
	w.completes(c)
	got := w.look(c)
	text, err := json.Marshal(got.Outcome)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != `{"text":"Done: t-1/call_1"}` {
		t.Errorf("the model would see %s", text)
	}
}

func testR4(t *testing.T) {
	w := newRuntimeWorld(t)
	c, q, uri := w.asks("t-1", "call_1")
	w.completes(c)
	w.desk.withdrawn(q.Ref)
	w.desk.picks(q.Ref, 0)
	w.settles()
	w.tools.exactly(uri, 0)
	w.endedWith(c, "Done: t-1/call_1")

	for thread, end := range w.endings() {
		c, q, uri = w.asks(thread, "on_its_way")
		read, release := w.desk.slows(q.Ref, 1)
		w.desk.picks(q.Ref, 0)
		read()
		end(c)
		release()
		w.settles()
		w.tools.exactly(uri, 0)

		c, q, uri = w.asks(thread, "being_posted")
		w.tools.on(uri, func(rw http.ResponseWriter, _ *http.Request, nth int) {
			if nth == 1 {
				end(c)
			}
			rw.WriteHeader(http.StatusServiceUnavailable)
		})
		w.desk.picks(q.Ref, 0)
		w.tools.waits(uri, 1)
		w.settles()
		w.tools.exactly(uri, 1)
	}
}

// endings are the ways in which a call ends while an answer is on its way.
func (w *runtimeWorld) endings() map[string]func(c *toolCall) {
	return map[string]func(c *toolCall){
		"result": w.completes,
		"cancel": func(c *toolCall) {
			if err := w.mine.Cancel(w.t.Context(), c.GroupID, c.ID, "enough"); err != nil {
				w.t.Error(err)
			}
		},
	}
}

// A response URL that fails in every way that may pass.
func testR8(t *testing.T) {
	refused := closedAddress(t)
	w := newRuntimeWorld(t, func(w *runtimeWorld) {
		w.cfg.Servers[0].Peer.Timeout = time.Second
		w.cfg.Servers[0].Peer.Allow = []string{refused}
	})
	ways := map[string]func(uri string){
		"503":  func(uri string) { w.tools.answers(uri, http.StatusServiceUnavailable) },
		"500":  func(uri string) { w.tools.answers(uri, http.StatusInternalServerError) },
		"drop": w.tools.drops,
		"hang": w.tools.hangs,
	}
	for id, breaks := range ways {
		c, q, uri := w.asks("t-1", id)
		breaks(uri)
		w.desk.picks(q.Ref, 1)
		w.troubled(c)
		got := w.tools.requests(uri)
		if len(got) != 3 {
			t.Errorf("%s: %d attempts, want 3", id, len(got))
		}
		for _, r := range got {
			isAnswer(t, r, c.SentID, 1)
			if r.Body != got[0].Body {
				t.Errorf("%s: posted %s, then %s", id, got[0].Body, r.Body)
			}
		}

		w.pending(c)
		w.completes(c)
	}

	c, q, uri := w.asks("t-2", "recovers")
	w.tools.on(uri, func(rw http.ResponseWriter, _ *http.Request, nth int) {
		if nth == 1 {
			rw.WriteHeader(http.StatusBadGateway)
		}
	})
	w.desk.picks(q.Ref, 0)
	w.tools.waits(uri, 2)
	w.settles()
	w.tools.exactly(uri, 2)
	if got := w.pending(c); got.Trouble != "" {
		t.Errorf("an answer that was delivered troubles: %s", got.Trouble)
	}

	c = w.invoke("t-3", "refused")
	c.sends(c.choice("").with("response_url", refused+c.answerAt("")))
	w.desk.picks(w.desk.asked(c.name(), 1).Ref, 0)
	w.troubled(c)
	w.pending(c)
	if got, want := len(w.tools.requests("invoke")), len(w.distinctCalls()); got != want {
		t.Errorf("%d invocations of %d calls", got, want)
	}
	t.Run("killed", killedAnswering)
}

// distinctCalls are the ids of the calls that the first server got.
func (w *runtimeWorld) distinctCalls() map[string]bool {
	out := map[string]bool{}
	for _, r := range w.tools.requests("invoke") {
		out[w.tools.read(r.Body).name()] = true
	}
	return out
}

// closedAddress is an origin at which nobody listens.
func closedAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func testR9(t *testing.T) {
	w := newRuntimeWorld(t)
	for id, status := range map[string]int{"bad": 400, "hurried": 429} {
		c, q, uri := w.asks("t-1", id)
		w.tools.answers(uri, status)
		w.desk.picks(q.Ref, 0)
		w.troubled(c)
		w.settles()
		w.tools.exactly(uri, 1)
		w.pending(c)
		w.completes(c)
	}
}

func testR10(t *testing.T) {
	w := newRuntimeWorld(t)
	for id, status := range map[string]int{
		"301": 301,
		"302": 302,
		"303": 303,
		"307": 307,
		"308": 308,
	} {
		c, q, uri := w.asks("t-1", id)
		w.tools.on(uri, func(rw http.ResponseWriter, _ *http.Request, nth int) {
			rw.Header().
				Set(
					"Location",
					map[bool]string{true: w.tools.URL + "/elsewhere", false: w.other.URL + "/elsewhere"}[status%2 == 0],
				)
			rw.WriteHeader(status)
		})
		w.desk.picks(q.Ref, 0)
		w.troubled(c)
		w.settles()
		w.tools.exactly(uri, 1)
		w.pending(c)
	}

	w.tools.exactly("/elsewhere", 0)
	w.other.exactly("/elsewhere", 0)
}

func testR13(t *testing.T) {
	w := newRuntimeWorld(t)
	for id, answers := range map[string]func(ref string){
		"picked":    func(ref string) { w.desk.picks(ref, 0) },
		"dismissed": func(ref string) { w.desk.dismisses(ref, 0) },
	} {
		c := w.invoke("t-1", id)
		c.sends(c.choice(c.answerAt("")).with("choices", []string{"Continue"}).with("default", 0))
		s := w.desk.asked(c.name(), 1)
		if !slices.Equal(s.Question.Choices, []string{"Continue"}) || s.Question.Default != 0 {
			t.Errorf("people were shown %+v", s.Question)
		}
		answers(s.Ref)
		w.answered(c, c.answerAt(""), 0)
	}
}

func testR14(t *testing.T) {
	w := newRuntimeWorld(t)
	labels := []string{"Yes", "Yes", "", ""}
	for k, id := range []string{"a", "b", "c", "d"} {
		c := w.invoke("t-1", id)
		c.sends(c.choice(c.answerAt("")).with("choices", labels).with("default", 3))
		s := w.desk.asked(c.name(), 1)
		if len(s.Question.Choices) != len(labels) {
			t.Errorf("people were shown %q", s.Question.Choices)
		}
		w.desk.picks(s.Ref, k)
		w.answered(c, c.answerAt(""), k)
	}
}

func testR16(t *testing.T) {
	w := newRuntimeWorld(t)
	for n, tail := range []string{
		"/a%2Fb/%7Ec/%2e%2e/d;x=1?token=a%20b+c&x=%E2%82%AC&&y=&z", "//double//./and/../dots/", "?",
	} {
		c := w.invoke("t-1", string(rune('a'+n)))
		uri := c.answerAt(tail)
		c.sends(c.choice(uri))
		w.desk.picks(w.desk.asked(c.name(), 1).Ref, 1)
		w.answered(c, uri, 1)
	}

	c := w.invoke("t-2", "a")
	c.refused("what a URL can't hold", c.choice(c.answerAt("/%zz")))
	w.nothingShown(c)
}

func testR19(t *testing.T) {
	w := newRuntimeWorld(t)
	second := httptest.NewServer(startRuntime(t, w.cfg)) // another process on the same store
	defer second.Close()
	c := w.invoke("t-1", "call_1")
	uri := c.answerAt("")
	var together sync.WaitGroup
	for range 8 {
		together.Go(func() { c.sends(c.choice(uri)) })
		together.Go(func() {
			there := second.URL + strings.TrimPrefix(c.CallbackURL, w.front.URL)
			if status := postTo(t, there, "application/json", c.choice(uri).text(t)); status != http.StatusOK {
				t.Errorf("the other process answered %d", status)
			}
		})
	}

	together.Wait()
	s := w.desk.asked(c.name(), 1)
	c.sends(c.choice(uri))
	w.settles()
	w.desk.exactly(c.name(), 1)
	w.desk.picks(s.Ref, 1)
	w.answered(c, uri, 1)
	c.sends(c.choice(uri))
	w.settles()
	w.desk.exactly(c.name(), 1)
	w.tools.exactly(uri, 1)
	w.completes(c)
	gentlyRefused(t, "a question of a finished call", c.send(c.choice(uri)))
	w.settles()
	w.desk.exactly(c.name(), 1)
	w.tools.exactly(uri, 1)
}

func testR20(t *testing.T) {
	w := newRuntimeWorld(t)
	changes := map[string]func(m toolMessage, uri string) toolMessage{
		"prompt": func(m toolMessage, _ string) toolMessage {
			return m.with("prompt", m["prompt"].(string)+" Really?")
		},
		"labels": func(m toolMessage, _ string) toolMessage {
			return m.with("choices", []string{"No", "Yes once", "Yes for session"})
		},
		"fewer": func(m toolMessage, _ string) toolMessage {
			return m.with("choices", []string{"Yes", "No"}).with("default", 1)
		},
		"default": func(m toolMessage, _ string) toolMessage { return m.with("default", 0) },
		"address": func(m toolMessage, uri string) toolMessage { return m.with("response_url", w.tools.URL+uri) },
	}
	for id, change := range changes {
		c, old, uri := w.asks("t-1", id)
		to := uri
		if id == "address" {
			to = c.answerAt("/2")
		}
		c.sends(change(c.choice(uri), to))
		fresh := w.desk.asked(c.name(), 2)
		if fresh.Key == old.Key {
			t.Errorf("%s: both questions have the key %s", id, old.Key)
		}
		w.desk.withdrawn(old.Ref)
		w.desk.picks(old.Ref, 0)
		w.settles()
		w.tools.exactly(uri, 0)
		w.tools.exactly(to, 0)
		w.desk.picks(fresh.Ref, 1)
		w.answered(c, to, 1)
		w.settles()
		w.tools.exactly(to, 1)
		if to != uri {
			w.tools.exactly(uri, 0)
		}
		w.completes(c)
	}

	changedMeanwhile(t, w)
}

// changedMeanwhile: the question changes while the answer to the old
// one is on its way from the desk.
func changedMeanwhile(t *testing.T, w *runtimeWorld) {
	c, old, uri := w.asks("t-1", "meanwhile")
	read, release := w.desk.slows(old.Ref, 1)
	w.desk.picks(old.Ref, 0)
	read()
	c.sends(c.choice(uri).with("prompt", "Allow "+c.name()+" to delete it?"))
	release()
	fresh := w.desk.asked(c.name(), 2)
	w.settles()
	w.tools.exactly(uri, 0)
	w.desk.picks(fresh.Ref, 1)
	w.answered(c, uri, 1)
	w.settles()
	w.tools.exactly(uri, 1)
	w.completes(c)
}

func testR21(t *testing.T) {
	w := newRuntimeWorld(t)
	c, q, uri := w.asks("t-1", "call_1")
	w.desk.picks(q.Ref, 0)
	w.answered(c, uri, 0)
	w.settles()
	second := c.answerAt("/second")
	status := c.send(c.choice(second).with("prompt", "Allow "+c.name()+" to delete it?"))
	w.settles()
	w.tools.exactly(second, 0)
	w.tools.exactly(uri, 1)
	switch status {
	case http.StatusOK:
		w.desk.exactly(c.name(), 2)
	default:
		w.desk.exactly(c.name(), 1)
		if status/100 != 4 {
			t.Errorf("answered with %d, want 4xx or a fresh question", status)
		}
	}

	w.completes(c)
}

func testR22(t *testing.T) {
	w := newRuntimeWorld(t)
	prompt := "Allow the very same thing?"
	same := func(n int, thread, id string) {
		c := w.invoke(thread, id)
		c.sends(c.choice(c.answerAt("")).with("prompt", prompt))
		s := w.desk.asked(prompt, n)
		w.settles()
		w.tools.exactly(c.answerAt(""), 0)
		w.desk.picks(s.Ref, n%3)
		w.answered(c, c.answerAt(""), n%3)
		w.completes(c)
	}
	same(1, "t-1", "call_1")
	same(2, "t-1", "call_2")
	same(3, "t-2", "call_1")
	w.desk.exactly(prompt, 3)
}

func testR29(t *testing.T) {
	w := newRuntimeWorld(t)
	a, b := w.invoke("t-1", "call_1"), w.invoke("t-2", "call_1")
	if a.CallbackURL == b.CallbackURL {
		t.Error("two calls share a callback URL")
	}
	b.sends(b.choice(b.answerAt("")))
	a.sends(a.choice(a.answerAt("")))
	w.desk.picks(w.desk.asked(a.name(), 1).Ref, 0)
	w.answered(a, a.answerAt(""), 0)
	w.settles()
	w.tools.exactly(b.answerAt(""), 0)
	w.completes(a)
	w.pending(b)
	w.desk.picks(w.desk.asked(b.name(), 1).Ref, 1)
	w.answered(b, b.answerAt(""), 1)
	w.completes(b)
	w.tools.exactly(a.answerAt(""), 1)
	w.tools.exactly(b.answerAt(""), 1)

	var together sync.WaitGroup
	for n := range 30 {
		together.Go(func() { w.detour(fmt.Sprint("many-", n, "-"), n%3) })
	}
	together.Wait()
	w.settles()
	for n := range 30 {
		c := w.tools.call(fmt.Sprint("many-", n, "-"), "call_1")
		w.tools.exactly(c.answerAt(""), 1)
		w.answered(c, c.answerAt(""), n%3)
	}
}

// detour is a call with a question, its answer and its result.
func (w *runtimeWorld) detour(thread string, pick int) {
	c, q, uri := w.asks(thread, "call_1")
	w.desk.picks(q.Ref, pick)
	w.answered(c, uri, pick)
	w.completes(c)
}
