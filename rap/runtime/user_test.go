package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
)

// known is a directory in which ann has two names, and nobody is a
// stranger's.
func known(c *Config) {
	c.Only = approval.Asker{}
	c.Person = func(_ context.Context, name string) (string, bool, error) {
		switch name {
		case "ann", "ann@example.com":
			return "ann", true, nil
		case "broken":
			return "", false, errors.New("the directory is away")
		}

		return "", false, nil
	}
}

// callsOf are the calls of a person, in short.
func (w *rtWorld) callsOf(person string) string {
	w.t.Helper()
	calls, more, err := w.r.CallsOf(w.t.Context(), person)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, c := range calls {
		out = append(out, c.ID)
	}
	if more {
		out = append(out, "…")
	}

	return strings.Join(out, " ")
}

// TestCallsAreListedForTheirUser: whom a call is made for finds it by
// whatever name the agent gave, and where nobody is named the person
// whose token made it; nobody else finds it.
func TestCallsAreListedForTheirUser(t *testing.T) {
	w := newRTWorld(t, known)
	mara := w.as(w.r, approval.Asker{Token: "clerk-token", Person: "mara"})
	for i, user := range []string{"ann", "ann@example.com", "stranger", "broken", ""} {
		in := rtInvocation(fmt.Sprint("c", i), "read", "{}")
		in.User = user
		must.Get(mara.Invoke(t.Context(), in))(t)
		w.pass(time.Second)
	}

	for person, want := range map[string]string{"ann": "c1 c0", "mara": "c4", "stranger": "", "broken": "", "": ""} {
		if got := w.callsOf(person); got != want {
			t.Errorf("%q finds %q, want %q", person, got, want)
		}
	}

	w.stop() // another directory: ann's second name is nobody's any more
	w.cfg.Person = func(_ context.Context, name string) (string, bool, error) { return name, name == "ann", nil }
	w.start()
	if got := w.callsOf("ann"); got != "c0" {
		t.Errorf("ann finds %q", got)
	}
}

// TestCallsOfAPersonEnd: a call is listed while it goes on, events
// after its result included, and for an hour after its end.
func TestCallsOfAPersonEnd(t *testing.T) {
	w := newRTWorld(t, known, func(c *Config) { c.Only = rtAsker() })
	w.sent("a")
	w.pass(time.Second)
	w.subscribes("b")
	for n := range 15 {
		w.accepts("b", rtEvent("b", fmt.Sprint(n)))
	}
	w.accepts("b", rtEvent("b", strings.Repeat("é", maxShownText)))
	for n := range 10 {
		w.accepts("b", rtView(fmt.Sprint("v", n), `{"n": "`+strings.Repeat("1", maxShownText)+`"}`))
	}

	calls, _, err := w.r.CallsOf(t.Context(), "ann")
	if err != nil ||
		len(calls) != 2 ||
		!calls[0].Ended.IsZero() ||
		calls[0].State != string(CallDone) ||
		calls[0].Result != "begun" {
		t.Fatalf("%+v, %v", calls, err)
	}

	b := calls[0]
	last := len(b.Events) - 1
	if len(b.Events) != maxShownEvents || b.Lost != 6 ||
		b.Events[0].Text != "6" ||
		!strings.HasSuffix(b.Events[last].Text, "(cut: it has 8192 bytes)") {
		t.Errorf("%d events, %d more: %.99v", len(b.Events), b.Lost, b.Events[0])
	}

	if len(b.Views) != maxShownViews || b.Views[0].Type != "v9" ||
		len(b.Views[0].Text) > maxShownText+100 {
		t.Errorf("%d views, the first is %.99v", len(b.Views), b.Views[0])
	}

	final := rtEvent("b", "bye")
	final.Final = true
	w.accepts("b", final)
	must.Do(t, w.mine.Cancel(t.Context(), "t", "a", ""))
	w.pass(listEnded - time.Minute)
	if got := w.callsOf("ann"); got != "b a" {
		t.Errorf("soon after their end: %q", got)
	}
	w.pass(2 * time.Minute)
	if got := w.callsOf("ann"); got != "" {
		t.Errorf("an hour after their end: %q", got)
	}
}

// TestCallsThatWaitForPeopleStayListed: for as long as people may take.
func TestCallsThatWaitForPeopleStayListed(t *testing.T) {
	w := newRTWorld(t, known)
	w.mine = w.as(w.r, rtAsker())
	w.invoke("a", "send", `{"to":"x"}`)
	ref := w.asked(1)
	w.until("the reference", func() bool {
		c, err := w.mine.Call(t.Context(), "t", "a")
		return err == nil && c.Question == ref
	})
	w.pass(5 * time.Hour)
	must.Do(t, w.store.SweepRecords(t.Context(), w.now()))

	calls, _, err := w.r.CallsOf(t.Context(), "ann")
	if err != nil || len(calls) != 1 || calls[0].Question != ref || !calls[0].Ended.IsZero() {
		t.Errorf("%+v, %v", calls, err)
	}
}

// TestCallsOfAPersonAreBounded: however many there are, the newest are
// shown.
func TestCallsOfAPersonAreBounded(t *testing.T) {
	w := newRTWorld(t, known)
	w.mine = w.as(w.r, rtAsker())
	for n := range maxShownCalls + 2 {
		w.invoke(fmt.Sprint("c", n), "read", "{}")
		w.pass(time.Second)
	}
	if got := w.callsOf("ann"); !strings.HasPrefix(got, "c21 c20 ") ||
		!strings.HasSuffix(got, " c2 …") {
		t.Errorf("%q", got)
	}
}

// TestChangesAreTold: whoever waits for news of any call has them.
func TestChangesAreTold(t *testing.T) {
	w := newRTWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan struct{}, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.r.Watch(ctx, func() {
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}()
	n := 0
	w.until("something is told", func() bool { // once it watches
		n++
		w.invoke(fmt.Sprint("c", n), "read", "{}")
		return len(told) > 0
	})
	cancel()
	<-ended
}
