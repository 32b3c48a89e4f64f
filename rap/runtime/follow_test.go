package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/wire"
)

func rtView(kind, content string) *wire.View {
	return &wire.View{GroupID: "t", ViewType: kind, Content: []byte(content)}
}

// follows starts to follow a call.
func (w *rtWorld) follows(id string, from Place) *Follower {
	w.t.Helper()
	return must.Get(w.mine.Follow(w.t.Context(), "t", id, from))(w.t)
}

// told returns a short description of a follower's next change.
func (w *rtWorld) told(f *Follower) string {
	w.t.Helper()
	ctx, done := raptest.Patience(w.t)
	defer done()
	for {
		p, err := f.Next(ctx)
		if errors.Is(err, io.EOF) {
			return "end"
		}
		if err != nil {
			w.t.Fatal(err)
		}
		n, ok, err := p.Read(ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		if ok {
			return wordsOf(n)
		}
	}
}

func wordsOf(n News) string {
	switch {
	case n.Call != nil && n.Call.Question != "":
		return n.At.String() + " " + string(n.Call.State) + " asks"
	case n.Call != nil:
		return n.At.String() + " " + string(n.Call.State)
	case n.Event != nil:
		return n.At.String() + " event " + n.Event.Text
	case n.View != nil:
		return fmt.Sprintf("%s view %s %s", n.At, n.View.Type, n.View.Content)
	}

	return fmt.Sprint(n.At, " lost ", n.Lost)
}

// tells checks the next changes of a follower, in order.
func (w *rtWorld) tells(f *Follower, want ...string) {
	w.t.Helper()
	for _, one := range want {
		if got := w.told(f); got != one {
			w.t.Fatalf("told %q, want %q", got, one)
		}
	}
}

// A follower gets the state of a call, questions, views and events, and its end. Another one
// can continue in the middle, also after a restart.
func TestFollow(t *testing.T) {
	w := newRTWorld(t)
	w.sent("a")
	w.is("a", CallPending)
	f := w.follows("a", Place{})
	w.tells(f, "0.0 pending")
	w.accepts("a", w.choice("a", "1"))
	ref := w.asked(1)
	w.tells(f, "0.0 pending asks")
	w.desk.Says(ref, hold.Answer{State: hold.Chosen, By: "ann"})
	w.tells(f, "0.0 pending")
	w.accepts("a", rtView("diff", `{"n":1}`))
	w.tells(f, `0.1 view diff {"n":1}`)
	m := rtResult("a", "begun")
	m.Subscription = true
	w.accepts("a", m)
	w.tells(f, "0.1 done")
	w.accepts("a", rtEvent("a", "one"))
	w.tells(f, "1.1 event one")

	middle := w.follows("a", Place{Events: 1, Views: 1})
	w.tells(middle, "1.1 done")
	w.stop()
	w.start()
	f = w.follows("a", Place{Events: 1, Views: 1})
	w.tells(f, "1.1 done")
	w.accepts("a", rtView("diff", `{"n":2}`))
	w.accepts("a", rtView("log", `{}`))
	last := rtEvent("a", "two")
	last.Final = true
	w.accepts("a", last)
	w.tells(f, `1.2 view diff {"n":2}`, `1.3 view log {}`, "2.3 event two", "end", "end")
	w.tells(
		w.follows("a", Place{}),
		"0.0 done",
		`0.2 view diff {"n":2}`,
		`0.3 view log {}`,
		"1.3 event one",
		"2.3 event two",
		"end",
	)
}

// Dropped events are reported with their number, and a place beyond the end is treated as the
// end.
func TestFollowersMeetTheirLimits(t *testing.T) {
	w := newRTWorld(t)
	w.subscribes("a")
	f := w.follows("a", Place{})
	w.tells(f, "0.0 done")
	for n := range maxEvents + 10 {
		w.accepts("a", rtEvent("a", fmt.Sprint(n)))
	}
	w.tells(f, "10.0 lost 10", "11.0 event 10")
	far := w.follows("a", Place{Events: 1 << 20, Views: 1 << 20})
	w.tells(far, "510.0 done")
	w.accepts("a", rtEvent("a", strings.Repeat("x", 3<<20)))
	p, err := far.Next(t.Context())
	if err != nil || p.Bytes != 3<<20 {
		t.Errorf("%+v, %v: want what it takes to read", p, err)
	}
	must.Do(t, w.mine.CloseThread(t.Context(), "t"))
	if _, ok, err := p.Read(t.Context()); ok || err != nil {
		t.Errorf("an event of a closed thread: %v, %v", ok, err)
	}
	w.tells(far, "end")
}

// The calls of other askers can't be followed, nor deleted calls.
func TestFollowIsForTheAsker(t *testing.T) {
	w := newRTWorld(t, anybody)
	w.invoke("a", "read", "{}")
	f := w.follows("a", Place{})
	w.told(f)
	other := rtAsker()
	other.Person = "bob"
	if _, err := w.as(w.r, other).Follow(t.Context(), "t", "a", Place{}); !errors.Is(err, ErrNoCall) {
		t.Errorf("another asker: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, state := range []string{"waiting", "again"} {
		if _, err := f.Next(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", state, err)
		}
	}

	must.Do(t, w.mine.Cancel(t.Context(), "t", "a", ""))
	w.pass(keepEnded + time.Hour)
	if _, err := w.mine.Follow(t.Context(), "t", "a", Place{}); !errors.Is(err, ErrNoCall) {
		t.Errorf("a forgotten call: %v", err)
	}
}

func TestParsePlace(t *testing.T) {
	if p, err := ParsePlace("12.3"); err != nil || p != (Place{Events: 12, Views: 3}) || p.String() != "12.3" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, text := range []string{"", "1", "1.", ".1", "-1.0", "01.0", "1.1.1", "1e3.0", "9999999999.0", "1.0\n"} {
		if p, err := ParsePlace(text); !errors.Is(err, ErrPlace) {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
	}
}

// A view that a tool sent over several lines is written on one line.
func TestViewsAreSentAsOneLine(t *testing.T) {
	text, err := json.Marshal(View{Type: "diff", Content: []byte("{\n\"n\": 12345678901234567890.10}")})
	if err != nil || string(text) != `{"type":"diff","content":{"n":12345678901234567890.10}}` {
		t.Errorf("%s, %v", text, err)
	}
}

func FuzzParsePlace(f *testing.F) {
	for _, text := range []string{"0.0", "3.1", "999999999.999999999", "01.2", "1.", "-1.2", "1.2.3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		place, err := ParsePlace(text)
		if err == nil && (place.String() != text || place.Events < 0 || place.Views < 0) {
			t.Fatalf("%q was read as %q", text, place)
		}
	})
}

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
