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
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/runtime"
)

// R1: the question shows what it should, and the answer is one POST.
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
	got := w.tools.Requests("invoke")[0]
	if got.Method != http.MethodPost || got.ContentType != "application/json" || !strings.Contains(got.Body, args) {
		t.Errorf("the invocation was %+v", got)
	}
	if c.Operation != "write_file" || c.CallID == nil || *c.CallID != callID ||
		!slices.Equal(c.Ancestors, []string{raptest.Group("root"), raptest.Group("t-0")}) {
		t.Errorf("the invocation was %+v", c)
	}
	if !strings.HasPrefix(c.CallbackURL, w.cfg.CallbackURL+"/") || (c.UserID != nil && *c.UserID != "ann") {
		t.Errorf("the invocation was %+v", c)
	}

	uri := c.AnswerAt("")
	c.Sends(c.Choice(uri))
	s := w.desk.Asked(c.Name(), 1)
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
	w.tools.Exactly(uri, 0)
	// The asker reads its own ids, whatever was sent.
	if text := string(confJSON(t, w.look(c))); !strings.Contains(text, `"t-1"`) || strings.Contains(text, c.SentGroup) {
		t.Errorf("the asker reads %s", text)
	}
	w.desk.Picks(s.Ref, 1)
	w.answered(c, uri, 1)
	w.settles()
	w.tools.Exactly(uri, 1)
	w.pending(c)
	w.completes(c)
}

func testR2(t *testing.T) {
	w := newRuntimeWorld(t)
	c, q, uri := w.asks("t-1", "call_1")
	w.desk.Dismisses(q.Ref, 2)
	w.answered(c, uri, 2)
	w.settles()
	w.tools.Exactly(uri, 1)
	w.pending(c)

	// For a dismissal, the question's default is sent, whatever the approval service reports.
	c = w.invoke("t-1", "call_2")
	c.Sends(c.Choice(c.AnswerAt("")).With("default", 1))
	w.desk.Dismisses(w.desk.Asked(c.Name(), 1).Ref, 0)
	w.answered(c, c.AnswerAt(""), 1)

	// An end without an answer is not a dismissal: nothing is posted, the call ends, and the
	// tool is notified.
	for thread, end := range map[string]hold.Answer{
		"unanswered":   {State: hold.Expired},
		"withdrawn":    {State: hold.Cancelled},
		"denied":       {State: hold.Denied},
		"out_of_range": {State: hold.Chosen, Selected: 3},
		"negative":     {State: hold.Chosen, Selected: -1},
		"unknown":      {State: "new"},
	} {
		_, q, uri = w.asks(thread, "call_1")
		w.desk.Says(q.Ref, end)
		why := map[bool]runtime.Why{true: runtime.WhyDenied, false: runtime.WhyUnanswered}[end.State == hold.Denied]
		w.gaveUp(thread, "call_1", why)
		w.settles()
		w.tools.Exactly(uri, 0)
		hears(w.tools, "cancel", raptest.Notice(thread, "call_1"))
	}
}

func testR3(t *testing.T) {
	w := newRuntimeWorld(t)
	c, q, uri := w.asks("t-1", "call_1")
	w.desk.Picks(q.Ref, 0)
	w.answered(c, uri, 0)
	w.completes(c)
	got := w.look(c)
	text := must.Get(json.Marshal(got.Outcome))(t)
	if string(text) != `{"text":"Done: t-1/call_1"}` {
		t.Errorf("the model would see %s", text)
	}
}

func testR4(t *testing.T) {
	w := newRuntimeWorld(t)
	c, q, uri := w.asks("t-1", "call_1")
	w.completes(c)
	w.desk.Withdrawn(q.Ref)
	w.desk.Picks(q.Ref, 0)
	w.settles()
	w.tools.Exactly(uri, 0)
	w.endedWith(c, "Done: t-1/call_1")

	for thread, end := range w.endings() {
		c, q, uri = w.asks(thread, "on_its_way")
		read, release := w.desk.Slows(q.Ref, 1)
		w.desk.Picks(q.Ref, 0)
		read()
		end(c)
		release()
		w.settles()
		w.tools.Exactly(uri, 0)

		c, q, uri = w.asks(thread, "being_posted")
		w.tools.On(uri, func(rw http.ResponseWriter, _ *http.Request, nth int) {
			if nth == 1 {
				end(c)
			}
			rw.WriteHeader(http.StatusServiceUnavailable)
		})
		w.desk.Picks(q.Ref, 0)
		w.tools.Waits(uri, 1)
		w.settles()
		w.tools.Exactly(uri, 1)
	}
}

// endings returns the ways in which a call can end while an answer is being delivered.
func (w *runtimeWorld) endings() map[string]func(c *raptest.Call) {
	return map[string]func(c *raptest.Call){
		"result": w.completes,
		"cancel": func(c *raptest.Call) {
			if err := w.mine.Cancel(w.t.Context(), c.GroupID, c.ID, "enough"); err != nil {
				w.t.Error(err)
			}
		},
	}
}

// R8: the response URL fails in every way that may be temporary.
func testR8(t *testing.T) {
	refused := closedAddress(t)
	w := newRuntimeWorld(t, func(w *runtimeWorld) {
		w.cfg.Servers[0].Peer.Timeout = time.Second
		w.cfg.Servers[0].Peer.Allow = []string{refused}
	})
	ways := map[string]func(uri string){
		"503":  func(uri string) { w.tools.Answers(uri, http.StatusServiceUnavailable) },
		"500":  func(uri string) { w.tools.Answers(uri, http.StatusInternalServerError) },
		"drop": w.tools.Drops,
		"hang": w.tools.Hangs,
	}
	for id, breaks := range ways {
		c, q, uri := w.asks("t-1", id)
		breaks(uri)
		w.desk.Picks(q.Ref, 1)
		w.troubled(c)
		got := w.tools.Requests(uri)
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
	w.tools.On(uri, func(rw http.ResponseWriter, _ *http.Request, nth int) {
		if nth == 1 {
			rw.WriteHeader(http.StatusBadGateway)
		}
	})
	w.desk.Picks(q.Ref, 0)
	w.tools.Waits(uri, 2)
	w.settles()
	w.tools.Exactly(uri, 2)
	if got := w.pending(c); got.Trouble != "" {
		t.Errorf("an answer that was delivered troubles: %s", got.Trouble)
	}

	c = w.invoke("t-3", "refused")
	c.Sends(c.Choice("").With("response_url", refused+c.AnswerAt("")))
	w.desk.Picks(w.desk.Asked(c.Name(), 1).Ref, 0)
	w.troubled(c)
	w.pending(c)
	if got, want := len(w.tools.Requests("invoke")), len(w.distinctCalls()); got != want {
		t.Errorf("%d invocations of %d calls", got, want)
	}
	t.Run("killed", killedAnswering)
}

// distinctCalls returns the ids of the calls that the first server got.
func (w *runtimeWorld) distinctCalls() map[string]bool {
	out := map[string]bool{}
	for _, r := range w.tools.Requests("invoke") {
		out[w.tools.Read(r.Body).Name()] = true
	}
	return out
}

// closedAddress returns an origin without a listener.
func closedAddress(t *testing.T) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return "http://" + l.Addr().String()
}

func testR9(t *testing.T) {
	w := newRuntimeWorld(t)
	for id, status := range map[string]int{"bad": 400, "hurried": 429} {
		c, q, uri := w.asks("t-1", id)
		w.tools.Answers(uri, status)
		w.desk.Picks(q.Ref, 0)
		w.troubled(c)
		w.settles()
		w.tools.Exactly(uri, 1)
		w.pending(c)
		w.completes(c)
	}
}

func testR10(t *testing.T) {
	w := newRuntimeWorld(t)
	for id, status := range map[string]int{"301": 301, "302": 302, "303": 303, "307": 307, "308": 308} {
		c, q, uri := w.asks("t-1", id)
		w.tools.On(uri, func(rw http.ResponseWriter, _ *http.Request, nth int) {
			rw.Header().Set(
				"Location",
				map[bool]string{true: w.tools.URL + "/elsewhere", false: w.other.URL + "/elsewhere"}[status%2 == 0],
			)
			rw.WriteHeader(status)
		})
		w.desk.Picks(q.Ref, 0)
		w.troubled(c)
		w.settles()
		w.tools.Exactly(uri, 1)
		w.pending(c)
	}

	w.tools.Exactly("/elsewhere", 0)
	w.other.Exactly("/elsewhere", 0)
}

func testR13(t *testing.T) {
	w := newRuntimeWorld(t)
	for id, answers := range map[string]func(ref string){
		"picked":    func(ref string) { w.desk.Picks(ref, 0) },
		"dismissed": func(ref string) { w.desk.Dismisses(ref, 0) },
	} {
		c := w.invoke("t-1", id)
		c.Sends(c.Choice(c.AnswerAt("")).With("choices", []string{"Continue"}).With("default", 0))
		s := w.desk.Asked(c.Name(), 1)
		if !slices.Equal(s.Question.Choices, []string{"Continue"}) || s.Question.Default != 0 {
			t.Errorf("people were shown %+v", s.Question)
		}
		answers(s.Ref)
		w.answered(c, c.AnswerAt(""), 0)
	}
}

func testR14(t *testing.T) {
	w := newRuntimeWorld(t)
	labels := []string{"Yes", "Yes", "", ""}
	for k, id := range []string{"a", "b", "c", "d"} {
		c := w.invoke("t-1", id)
		c.Sends(c.Choice(c.AnswerAt("")).With("choices", labels).With("default", 3))
		s := w.desk.Asked(c.Name(), 1)
		if len(s.Question.Choices) != len(labels) {
			t.Errorf("people were shown %q", s.Question.Choices)
		}
		w.desk.Picks(s.Ref, k)
		w.answered(c, c.AnswerAt(""), k)
	}
}

func testR16(t *testing.T) {
	w := newRuntimeWorld(t)
	for n, tail := range []string{
		"/a%2Fb/%7Ec/%2e%2e/d;x=1?token=a%20b+c&x=%E2%82%AC&&y=&z", "//double//./and/../dots/", "?",
	} {
		c := w.invoke("t-1", string(rune('a'+n)))
		uri := c.AnswerAt(tail)
		c.Sends(c.Choice(uri))
		w.desk.Picks(w.desk.Asked(c.Name(), 1).Ref, 1)
		w.answered(c, uri, 1)
	}

	c := w.invoke("t-2", "a")
	c.Refused("what a URL can't hold", c.Choice(c.AnswerAt("/%zz")))
	w.nothingShown(c)
}

func testR19(t *testing.T) {
	w := newRuntimeWorld(t)
	second := httptest.NewServer(startRuntime(t, w.cfg)) // another process on the same store
	defer second.Close()
	c := w.invoke("t-1", "call_1")
	uri := c.AnswerAt("")
	var together sync.WaitGroup
	for range 8 {
		together.Go(func() { c.Sends(c.Choice(uri)) })
		together.Go(func() {
			there := second.URL + strings.TrimPrefix(c.CallbackURL, w.front.URL)
			if status := raptest.PostTo(t, there, "application/json", c.Choice(uri).Text(t)); status != http.StatusOK {
				t.Errorf("the other process answered %d", status)
			}
		})
	}

	together.Wait()
	s := w.desk.Asked(c.Name(), 1)
	c.Sends(c.Choice(uri))
	w.settles()
	w.desk.Exactly(c.Name(), 1)
	w.desk.Picks(s.Ref, 1)
	w.answered(c, uri, 1)
	c.Sends(c.Choice(uri))
	w.settles()
	w.desk.Exactly(c.Name(), 1)
	w.tools.Exactly(uri, 1)
	w.completes(c)
	gentlyRefused(t, "a question of a finished call", c.Send(c.Choice(uri)))
	w.settles()
	w.desk.Exactly(c.Name(), 1)
	w.tools.Exactly(uri, 1)
}

func testR20(t *testing.T) {
	w := newRuntimeWorld(t)
	changes := map[string]func(m raptest.Message, uri string) raptest.Message{
		"prompt": func(m raptest.Message, _ string) raptest.Message {
			return m.With("prompt", m["prompt"].(string)+" Really?")
		},
		"labels": func(m raptest.Message, _ string) raptest.Message {
			return m.With("choices", []string{"No", "Yes once", "Yes for session"})
		},
		"fewer": func(m raptest.Message, _ string) raptest.Message {
			return m.With("choices", []string{"Yes", "No"}).With("default", 1)
		},
		"default": func(m raptest.Message, _ string) raptest.Message { return m.With("default", 0) },
		"address": func(m raptest.Message, uri string) raptest.Message {
			return m.With("response_url", w.tools.URL+uri)
		},
	}
	for id, change := range changes {
		c, old, uri := w.asks("t-1", id)
		to := uri
		if id == "address" {
			to = c.AnswerAt("/2")
		}
		c.Sends(change(c.Choice(uri), to))
		fresh := w.desk.Asked(c.Name(), 2)
		if fresh.Key == old.Key {
			t.Errorf("%s: both questions have the key %s", id, old.Key)
		}
		w.desk.Withdrawn(old.Ref)
		w.desk.Picks(old.Ref, 0)
		w.settles()
		w.tools.Exactly(uri, 0)
		w.tools.Exactly(to, 0)
		w.desk.Picks(fresh.Ref, 1)
		w.answered(c, to, 1)
		w.settles()
		w.tools.Exactly(to, 1)
		if to != uri {
			w.tools.Exactly(uri, 0)
		}
		w.completes(c)
	}

	changedMeanwhile(t, w)
}

// changedMeanwhile changes the question while the answer to the old one is being read from the
// approval service.
func changedMeanwhile(t *testing.T, w *runtimeWorld) {
	c, old, uri := w.asks("t-1", "meanwhile")
	read, release := w.desk.Slows(old.Ref, 1)
	w.desk.Picks(old.Ref, 0)
	read()
	c.Sends(c.Choice(uri).With("prompt", "Allow "+c.Name()+" to delete it?"))
	release()
	fresh := w.desk.Asked(c.Name(), 2)
	w.settles()
	w.tools.Exactly(uri, 0)
	w.desk.Picks(fresh.Ref, 1)
	w.answered(c, uri, 1)
	w.settles()
	w.tools.Exactly(uri, 1)
	w.completes(c)
}

func testR21(t *testing.T) {
	w := newRuntimeWorld(t)
	c, q, uri := w.asks("t-1", "call_1")
	w.desk.Picks(q.Ref, 0)
	w.answered(c, uri, 0)
	w.settles()
	second := c.AnswerAt("/second")
	status := c.Send(c.Choice(second).With("prompt", "Allow "+c.Name()+" to delete it?"))
	w.settles()
	w.tools.Exactly(second, 0)
	w.tools.Exactly(uri, 1)
	switch status {
	case http.StatusOK:
		w.desk.Exactly(c.Name(), 2)
	default:
		w.desk.Exactly(c.Name(), 1)
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
		c.Sends(c.Choice(c.AnswerAt("")).With("prompt", prompt))
		s := w.desk.Asked(prompt, n)
		w.settles()
		w.tools.Exactly(c.AnswerAt(""), 0)
		w.desk.Picks(s.Ref, n%3)
		w.answered(c, c.AnswerAt(""), n%3)
		w.completes(c)
	}
	same(1, "t-1", "call_1")
	same(2, "t-1", "call_2")
	same(3, "t-2", "call_1")
	w.desk.Exactly(prompt, 3)
}

func testR29(t *testing.T) {
	w := newRuntimeWorld(t)
	a, b := w.invoke("t-1", "call_1"), w.invoke("t-2", "call_1")
	if a.CallbackURL == b.CallbackURL {
		t.Error("two calls share a callback URL")
	}
	b.Sends(b.Choice(b.AnswerAt("")))
	a.Sends(a.Choice(a.AnswerAt("")))
	w.desk.Picks(w.desk.Asked(a.Name(), 1).Ref, 0)
	w.answered(a, a.AnswerAt(""), 0)
	w.settles()
	w.tools.Exactly(b.AnswerAt(""), 0)
	w.completes(a)
	w.pending(b)
	w.desk.Picks(w.desk.Asked(b.Name(), 1).Ref, 1)
	w.answered(b, b.AnswerAt(""), 1)
	w.completes(b)
	w.tools.Exactly(a.AnswerAt(""), 1)
	w.tools.Exactly(b.AnswerAt(""), 1)

	var together sync.WaitGroup
	for n := range 30 {
		together.Go(func() { w.detour(fmt.Sprint("many-", n, "-"), n%3) })
	}
	together.Wait()
	w.settles()
	for n := range 30 {
		c := w.tools.Call(fmt.Sprint("many-", n, "-"), "call_1")
		w.tools.Exactly(c.AnswerAt(""), 1)
		w.answered(c, c.AnswerAt(""), n%3)
	}
}

// detour makes a call with a question, its answer and its result.
func (w *runtimeWorld) detour(thread string, pick int) {
	c, q, uri := w.asks(thread, "call_1")
	w.desk.Picks(q.Ref, pick)
	w.answered(c, uri, pick)
	w.completes(c)
}
