package runtime

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/wire"
)

func rtEvent(id, text string) *wire.Event {
	return &wire.Event{
		GroupID:    "t",
		ToolCallID: id,
		Text:       text,
	}
}

// subscribes ends a call with a subscription.
func (w *rtWorld) subscribes(id string) {
	w.t.Helper()
	w.sent(id)
	m := rtResult(id, "begun")
	m.Subscription = true
	w.accepts(id, m)
	if c := w.ends(id, ""); !c.Subscription {
		w.t.Fatalf("%+v", c)
	}
}

func (w *rtWorld) events(from int) []rap.Event {
	w.t.Helper()
	got, err := w.mine.Events(w.t.Context(), "t", from)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

func TestEventsOfSubscriptions(t *testing.T) {
	w := newRTWorld(t)
	w.sent("plain")
	if code := w.calls("plain", rtEvent("plain", "early")); code != http.StatusConflict {
		t.Errorf("an event before the result is answered with %d", code)
	}
	w.accepts("plain", rtResult("plain", "done"))
	if code := w.calls("plain", rtEvent("plain", "none")); code != http.StatusConflict {
		t.Errorf("an event of no subscription is answered with %d", code)
	}
	w.subscribes("a")
	w.subscribes("b")
	w.accepts("a", rtEvent("a", "one"))
	w.accepts("b", rtEvent("b", "two"))
	w.accepts("a", rtEvent("a", "one")) // repetitions are legal
	w.accepts("a", &wire.Event{
		GroupID:     "t",
		ToolCallID:  "a",
		Text:        "three",
		Associative: true,
		Final:       true,
	})
	if code := w.calls("a", rtEvent("a", "four")); code != http.StatusConflict {
		t.Errorf("an event after the final one is answered with %d", code)
	}
	want := []rap.Event{
		{
			Index: 0,
			ID:    "a",
			Text:  "one",
		},
		{
			Index: 1,
			ID:    "b",
			Text:  "two",
		},
		{
			Index: 2,
			ID:    "a",
			Text:  "one",
		},
		{
			Index:       3,
			ID:          "a",
			Text:        "three",
			Associative: true,
			Final:       true,
		},
	}
	if got := w.events(0); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v", got)
	}
	if got := w.events(3); len(got) != 1 || got[0].Text != "three" {
		t.Errorf("got %v", got)
	}
	if err := w.mine.Cancel(t.Context(), "t", "b", ""); err != nil {
		t.Fatal(err)
	}
	w.tool.waits("/cancel_tool_call", 1)
	if code := w.calls("b", rtEvent("b", "five")); code != http.StatusConflict {
		t.Errorf("an event of a cancelled subscription is answered with %d", code)
	}
	if c := w.ends("b", ""); c.Outcome.Text != "begun" {
		t.Errorf("%+v", c)
	}
	w.pass(keepLive + time.Hour)
	if got := w.events(0); len(got) != 0 {
		t.Errorf("kept for ever: %v", got)
	}
}

func TestEventsAreBounded(t *testing.T) {
	w := newRTWorld(t)
	w.subscribes("a")
	for n := range maxEvents + 10 {
		w.accepts("a", rtEvent("a", fmt.Sprint(n)))
	}
	if got := w.events(0); len(got) != maxEvents || got[0].Text != "10" || got[len(got)-1].Index != maxEvents+9 {
		t.Errorf("kept %d, from %+v", len(got), got[0])
	}
	for range 3 {
		w.accepts("a", rtEvent("a", strings.Repeat("x", 3<<20)))
	}
	if got := w.events(0); len(got) != 2 {
		t.Errorf("kept %d", len(got))
	}
}

func TestViews(t *testing.T) {
	w := newRTWorld(t)
	w.sent("a")
	view := func(kind, content string) *wire.View {
		return &wire.View{
			GroupID:  "t",
			ViewType: kind,
			Content:  []byte(content),
		}
	}
	w.accepts("a", view("diff", `{"n": 1}`))
	w.accepts("a", rtResult("a", "done"))
	w.accepts("a", view("diff", `{"n": 2, "<": "&"}`))
	got, err := w.mine.Views(t.Context(), "t")
	if err != nil || len(got) != 1 || string(got["diff"]) != `{"n": 2, "<": "&"}` {
		t.Errorf("got %s, %v", got, err)
	}
	for n := range maxViews - 1 {
		w.accepts("a", view(fmt.Sprint(n), "{}"))
	}
	if code := w.calls("a", view("more", "{}")); code != http.StatusConflict {
		t.Errorf("one view too many is answered with %d", code)
	}
	w.accepts("a", view("diff", `{}`))
	if code := w.calls("a", &wire.View{
		GroupID:  "u",
		ViewType: "diff",
		Content:  []byte("{}"),
	}); code != http.StatusNotFound {
		t.Errorf("a view of another thread is answered with %d", code)
	}

	w.pass(23 * time.Hour)
	if got, _ := w.mine.Views(t.Context(), "t"); len(got) != maxViews {
		t.Errorf("%d views", len(got))
	}
}

func TestCloseThread(t *testing.T) {
	w := newRTWorld(t)
	w.subscribes("sub")
	w.accepts("sub", rtEvent("sub", "news"))
	w.accepts("sub", &wire.View{
		GroupID:  "t",
		ViewType: "diff",
		Content:  []byte("{}"),
	})
	w.asking("a", "1")
	w.invoke("b", "send", `{"to":"bob"}`)
	w.asked(2)
	if err := w.mine.CloseThread(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	w.ends("a", WhyClosed)
	w.ends("b", WhyClosed)
	if got, _ := w.mine.Views(t.Context(), "t"); len(w.events(0))+len(got) != 0 {
		t.Errorf("kept %v", got)
	}
	for name, m := range map[string]wire.Callback{
		"event": rtEvent("sub", "x"),
		"view": &wire.View{
			GroupID:  "t",
			ViewType: "x",
			Content:  []byte("{}"),
		},
		"question": w.choice("sub", "3"),
	} {
		if code := w.calls("sub", m); code != http.StatusNotFound && code != http.StatusGone {
			t.Errorf("%s: answered with %d", name, code)
		}
	}

	w.accepts("a", rtResult("a", "late"))
	if c := w.invoke("c", "read", `{}`); c.Why != WhyClosed {
		t.Errorf("a call of a closed thread is %+v", c)
	}
	if err := w.mine.CloseThread(t.Context(), "t"); err != nil {
		t.Error(err)
	}
	w.settles()
	w.tool.waits("/close_thread", 1)
	if got := w.tool.bodies("/close_thread"); len(got) != 1 || got[0] != `{"thread_id":"t"}` {
		t.Errorf("told %q", got)
	}
	if n := len(w.tool.bodies("/cancel_tool_call")); n != 0 {
		t.Errorf("cancelled %d times", n)
	}
}
