package runtime

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/wire"
)

func rtEvent(id, text string) *wire.Event {
	return &wire.Event{GroupID: "t", ToolCallID: id, Text: text}
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
	return must.Get(w.mine.Events(w.t.Context(), "t", from))(w.t)
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
	must.Do(t, w.mine.Cancel(t.Context(), "t", "a", ""))
	if code := w.calls("a", rtEvent("a", "late")); code != http.StatusConflict {
		t.Errorf("an event of a cancelled subscription is answered with %d", code)
	}
	w.pass(keepLive + time.Hour)
	if got := w.events(0); len(got) != 0 {
		t.Errorf("kept for ever: %v", got)
	}
}

func TestViews(t *testing.T) {
	w := newRTWorld(t)
	w.sent("a")
	view := func(kind, content string) *wire.View {
		return &wire.View{GroupID: "t", ViewType: kind, Content: []byte(content)}
	}
	w.accepts("a", rtResult("a", "done"))
	w.accepts("a", view("diff", `{"n": 2, "<": "&"}`))
	if got, err := w.mine.Views(t.Context(), "t"); err != nil || string(got["diff"]) != `{"n": 2, "<": "&"}` {
		t.Errorf("got %s, %v", got, err)
	}
	for n := range maxViews - 1 {
		w.accepts("a", view(fmt.Sprint(n), "{}"))
	}
	if code := w.calls("a", view("more", "{}")); code != http.StatusConflict {
		t.Errorf("one view too many is answered with %d", code)
	}
	w.accepts("a", view("diff", `{}`))
	w.pass(23 * time.Hour)
	if got, _ := w.mine.Views(t.Context(), "t"); len(got) != maxViews {
		t.Errorf("%d views", len(got))
	}
}
