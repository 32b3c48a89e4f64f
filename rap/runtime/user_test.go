package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
)

// known is a directory in which ann has two names and stranger is unknown.
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

// callsOf returns a short description of a person's calls.
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

// A call is listed for the person whom it is made for, by any name the agent used. If no user
// is named, it is listed for the owner of the token, and for no other person.
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

	w.stop() // another directory, without ann's second name
	w.cfg.Person = func(_ context.Context, name string) (string, bool, error) { return name, name == "ann", nil }
	w.start()
	if got := w.callsOf("ann"); got != "c0" {
		t.Errorf("ann finds %q", got)
	}
}

// A call is listed while it is in progress, including events after its result, and for an hour
// after its end.
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
	if err != nil || len(calls) != 2 || !calls[0].Ended.IsZero() || calls[0].State != string(CallDone) ||
		calls[0].Result != "begun" {
		t.Fatalf("%+v, %v", calls, err)
	}

	b := calls[0]
	last := len(b.Events) - 1
	if len(b.Events) != maxShownEvents || b.Lost != 6 || b.Events[0].Text != "6" ||
		!strings.HasSuffix(b.Events[last].Text, "(cut: it has 8192 bytes)") {
		t.Errorf("%d events, %d more: %.99v", len(b.Events), b.Lost, b.Events[0])
	}

	if len(b.Views) != maxShownViews || b.Views[0].Type != "v9" || len(b.Views[0].Text) > maxShownText+100 {
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

// A call that waits for people is listed as long as they may take.
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

// The number of listed calls is limited; the newest are shown.
func TestCallsOfAPersonAreBounded(t *testing.T) {
	w := newRTWorld(t, known)
	w.mine = w.as(w.r, rtAsker())
	for n := range maxShownCalls + 2 {
		w.invoke(fmt.Sprint("c", n), "read", "{}")
		w.pass(time.Second)
	}
	if got := w.callsOf("ann"); !strings.HasPrefix(got, "c21 c20 ") || !strings.HasSuffix(got, " c2 …") {
		t.Errorf("%q", got)
	}
}

// Watch reports changes of any call.
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
	w.until("something is told", func() bool { // once Watch is running
		n++
		w.invoke(fmt.Sprint("c", n), "read", "{}")
		return len(told) > 0
	})
	cancel()
	<-ended
}

// anybody allows any asker, as in the runtimes of a service.
func anybody(c *Config) { c.Only = approval.Asker{} }

func TestNobodyCallsWithoutAName(t *testing.T) {
	w := newRTWorld(t, anybody)
	for name, who := range map[string]approval.Asker{
		"nobody":        {},
		"a person only": {Person: "mara"},
		"for somebody":  {Token: "rt", Principal: "mara"},
		"no name":       {Token: "r\x00t"},
		"no text":       {Token: "r\xfft"},
	} {
		if threads, err := w.r.As(who); err == nil || threads != nil {
			t.Errorf("%s may call", name)
		}
	}

	only := newRTWorld(t)
	if _, err := only.r.As(approval.Asker{Token: "another"}); err == nil {
		t.Error("another one calls through the runtime of somebody")
	}
	in := rtInvocation("a", "read", `{}`)
	in.User = "mara\u200b"
	if _, err := w.mine.Invoke(t.Context(), in); err == nil {
		t.Error("a call is made for somebody whom nobody could be called")
	}
}

func TestTheDeskIsAskedInTheNameOfWhoCalls(t *testing.T) {
	w := newRTWorld(t, anybody)
	all := []approval.Asker{{Token: "rt", Person: "mara"}, {Token: "rt", Person: "ben"}, {Token: "rt2"}}
	for i, who := range all {
		threads := w.as(w.r, who)
		for k, call := range []Invocation{rtInvocation("approval", "send", `{}`), rtInvocation("own", "wipe", `{}`)} {
			must.Get(threads.Invoke(t.Context(), call))(t)
			if got := w.desk.Of(w.asked(2*i + k + 1)).Asker; got != who { // although all of them used the same id
				t.Errorf("asked as %+v, want %+v", got, who)
			}
		}
	}

	w.settles()
	w.stop()
	w.start() // the asker is stored in the record
	for i, ref := range w.desk.Refs() {
		if i%2 == 1 {
			w.desk.Says(ref, hold.Answer{State: hold.Chosen, Selected: 0, By: "zoe"})
		}
	}

	w.tool.waits("/run", len(all))
	for i, who := range all {
		threads := w.as(w.r, who)
		if c, err := threads.Call(t.Context(), "t", "own"); err != nil || c.State == CallAsking {
			t.Errorf("%+v, %v", c, err)
		}
		if err := threads.Cancel(t.Context(), "t", "approval", ""); err != nil {
			t.Error(err)
		}
		ref := w.desk.Refs()[2*i]
		w.until("its withdrawal", func() bool { return w.desk.Of(ref).Canceller == who })
	}
}

func TestCallsAreNamedForTheirThreadAndAsker(t *testing.T) {
	w := newRTWorld(t, anybody)
	long := strings.Repeat("x", 8000)
	sent := map[string]string{} // by wire name
	for _, who := range []approval.Asker{
		{Token: "rt"},
		{Token: "rt", Person: "mara"},
		{Token: "rt2"},
		{Token: "rt2", Person: "m"},
	} {
		for _, thread := range []string{"t", "t2", "2:rt0:t", long, long + "y"} {
			for _, id := range []string{"w1", "w2", long} {
				names := w.r.names.Sent(who, thread, id, []string{"root"})
				if other, taken := sent[names.ID]; taken {
					t.Errorf("%+v %.8s %.8s is sent as %s is", who, thread, id, other)
				}
				sent[names.ID] = who.Token + who.Person + thread + id
				if len(names.ID) > 40 || len(names.Group) > 40 || len(names.Ancestors) != 1 ||
					names.Ancestors[0] == names.Group ||
					names.Ancestors[0] == "root" {
					t.Errorf("sent as %+v", names)
				}
			}
		}
	}

	same := must.Get(New(w.cfg))(t)
	cfg := w.cfg
	cfg.Namespace = "another"
	other := must.Get(New(cfg))(t)
	in := &Invocation{Thread: "t", ID: "w1"}
	before := w.r.names.Sent(rtAsker(), in.Thread, in.ID, in.Ancestors)
	again := same.names.Sent(rtAsker(), in.Thread, in.ID, in.Ancestors)
	elsewhere := other.names.Sent(rtAsker(), in.Thread, in.ID, in.Ancestors)
	if before.ID != again.ID || before.Group != again.Group || before.ID == elsewhere.ID ||
		before.Group == elsewhere.Group {
		t.Errorf("sent as %+v, after a restart %+v, by another runtime %+v", before, again, elsewhere)
	}
}
