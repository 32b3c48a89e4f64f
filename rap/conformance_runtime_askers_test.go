package rap_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/runtime"
)

func testR39(t *testing.T) {
	w := newRuntimeWorld(t)
	in := runtime.Invocation{
		Thread:    "t-1",
		ID:        "call_1",
		Ancestors: []string{"root"},
		Operation: "write_file",
		Arguments: json.RawMessage(`{}`),
	}
	var threads []*runtime.Threads
	var sent []*raptest.Call
	for i, who := range []approval.Asker{{Token: "rt"}, {Token: "rt", Person: "mara"}, {Token: "rt2"}} {
		mine := must.Get(w.rt.As(who))(t)
		if _, err := mine.Call(t.Context(), "t-1", "call_1"); !errors.Is(err, runtime.ErrNoCall) {
			t.Errorf("%+v finds another one's call: %v", who, err)
		}
		must.Get(mine.Invoke(t.Context(), in))(t)
		threads, sent = append(threads, mine), append(sent, w.tools.Read(w.tools.Waits("invoke", i+1)[i].Body))
	}

	for i, c := range sent {
		for _, other := range sent[:i] {
			if c.SentGroup == other.SentGroup || c.SentID == other.SentID || c.Ancestors[0] == other.Ancestors[0] {
				t.Errorf("the tool server can't tell %+v and %+v apart", c, other)
			}
			other.Refused("a result of another one's call", c.Result("forged"))
		}
	}

	// Events, views and results of a call are visible only to its own asker.
	sent[0].Sends(sent[0].View("diff", map[string]any{"n": 1}))
	sent[0].Sends(sent[0].Result("first").With("subscription", true))
	sent[0].Sends(sent[0].Event("news"))
	for _, other := range threads[1:] {
		if events, err := other.Events(t.Context(), "t-1", 0); err != nil || len(events) != 0 {
			t.Errorf("another one's events: %+v, %v", events, err)
		}
		if views, err := other.Views(t.Context(), "t-1"); err != nil || len(views) != 0 {
			t.Errorf("another one's views: %s, %v", views, err)
		}
		if c, err := other.Call(t.Context(), "t-1", "call_1"); err != nil || c.State == runtime.CallDone {
			t.Errorf("another one's result: %+v, %v", c, err)
		}
	}

	must.Do(t, threads[1].CloseThread(t.Context(), "t-1"))
	hears(w.tools, "close", map[string]string{"thread_id": sent[1].SentGroup})
	sent[2].Sends(sent[2].Result("third"))
	for i, want := range map[int]string{0: "first", 1: "Error: the thread was closed", 2: "third"} {
		if c, err := threads[i].Wait(t.Context(), "t-1", "call_1"); err != nil || c.Outcome.Text != want {
			t.Errorf("%d: %+v, %v, want %q", i, c.Outcome, err, want)
		}
	}

	if events, err := threads[0].Events(t.Context(), "t-1", 0); err != nil || len(events) != 1 {
		t.Errorf("its own events: %+v, %v", events, err)
	}
	w.tools.Exactly("close", 1)
}

// R40: only the tool server of a call is asked for its status. A clear no and an answer that
// makes no sense count as no; silence does not. Whatever the answer is, the call does not
// change, and nothing is migrated.
func testR40(t *testing.T) {
	w := newRuntimeWorld(t)
	w.asks("t-1", "call_1")
	says := func(status int, text string) func(http.ResponseWriter, *http.Request, int) {
		return func(rw http.ResponseWriter, _ *http.Request, _ int) {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, text)
		}
	}
	for name, c := range map[string]struct {
		answer       func(http.ResponseWriter, *http.Request, int)
		alive, fails bool
	}{
		"yes":      {answer: says(200, `{"alive":true}`), alive: true},
		"no":       {answer: says(200, `{"alive":false}`)},
		"nonsense": {answer: says(200, `{"alive":"yes"}`)},
		"capital":  {answer: says(200, `{"Alive":true}`)},
		"no JSON":  {answer: says(200, `{`)},
		"a list":   {answer: says(200, `[]`)},
		"unknown":  {answer: says(404, ``)},
		"broken":   {answer: says(500, `{"alive":false}`), fails: true},
	} {
		w.tools.On("/tool_call_status", c.answer)
		alive, err := w.mine.Alive(t.Context(), "t-1", "call_1")
		if alive != c.alive || (err != nil) != c.fails {
			t.Errorf("%s: %t, %v", name, alive, err)
		}
	}

	w.tools.Drops("/tool_call_status")
	if alive, err := w.mine.Alive(t.Context(), "t-1", "call_1"); alive || err == nil {
		t.Errorf("no connection: %t, %v", alive, err)
	}
	if _, err := w.mine.Alive(t.Context(), "t-1", "call_2"); !errors.Is(err, runtime.ErrNoCall) {
		t.Errorf("a call that is not there: %v", err)
	}
	w.other.Exactly("status", 0)
	if got := w.tools.Requests("/migrate"); len(got) != 0 {
		t.Errorf("told to migrate: %v", got)
	}
	if call, err := w.mine.Call(t.Context(), "t-1", "call_1"); err != nil || call.Question == "" {
		t.Errorf("the call became %+v, %v", call, err)
	}
}
