package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap/wire"
)

const idp = "https://idp.example"

// signsIn returns a world in which people sign in at idp, with the directory known.
func signsIn(t *testing.T) *rtWorld {
	return newRTWorld(t, known, func(c *Config) {
		c.Only = rtAsker()
		c.Servers[0].Peer.Allow = []string{idp}
	})
}

// link returns a sign-in message for a call.
func (w *rtWorld) link(id, url string) *wire.OAuth {
	return &wire.OAuth{GroupID: "t", ID: id, AuthURL: url}
}

// signIns returns a short description of a person's sign-ins.
func (w *rtWorld) signIns(person string) string {
	w.t.Helper()
	page := must.Get(w.r.SignInsOf(w.t.Context(), person))(w.t)
	var out []string
	for _, one := range page.SignIns {
		out = append(out, one.Operation+" "+one.Host+" "+one.Link)
	}

	return strings.Join(out, ", ")
}

// toldOver waits until n ends of sign-ins are in the ledger, and checks that no documents are
// left.
func (w *rtWorld) toldOver(n int) {
	w.t.Helper()
	w.until("told that it is over", func() bool { return w.recorded(signin.EventOver) == n })
	if left := leftOf(w.t, w.cfg.Records, "clerk")["sign_ins"]; left != 0 {
		w.t.Errorf("%d sign-ins are kept after their end", left)
	}
}

// Only the person whom the call is made for sees the sign-in, whichever asker made the call.
// The directory is asked again each time, and a call whose user it doesn't know is shown to no
// person.
func TestSignInIsForTheUserAlone(t *testing.T) {
	w := signsIn(t)
	w.sent("a")
	w.accepts("a", w.link("a", idp+"/authorize?state=1#x"))
	want := "read idp.example " + idp + "/authorize?state=1#x"
	if got := w.signIns("ann"); got != want {
		t.Errorf("ann: %q", got)
	}
	for _, other := range []string{"mara", "stranger", "broken", "ann@example.com", ""} {
		if got := w.signIns(other); got != "" {
			t.Errorf("%q sees %q", other, got)
		}
	}
	page := must.Get(w.r.SignInsOf(t.Context(), "ann"))(t)
	one, whose, err := w.r.SignIn(t.Context(), page.SignIns[0].ID)
	if err != nil || whose != "ann" || one != page.SignIns[0] || one.Until.IsZero() || one.Since.IsZero() {
		t.Errorf("%+v of %q, %v", one, whose, err)
	}

	w.stop() // ann is now another person's name
	w.cfg.Person = func(context.Context, string) (string, bool, error) { return "eve", true, nil }
	w.start()
	for _, who := range []string{"ann", "eve"} {
		if got := w.signIns(who); got != "" {
			t.Errorf("%s sees %q", who, got)
		}
	}
}

// If the directory fails, the tool has to send the sign-in again. If the user is unknown, the
// sign-in is not shown to any person, and not recorded.
func TestNoSignInWithoutTheDirectory(t *testing.T) {
	for user, status := range map[string]int{"broken": http.StatusServiceUnavailable, "stranger": http.StatusOK} {
		w := newRTWorld(t, known)
		w.mine = w.as(w.r, rtAsker())
		in := rtInvocation("a", "read", "{}")
		in.User = user
		must.Get(w.mine.Invoke(t.Context(), in))(t)
		w.is("a", CallPending)
		c := w.kept("a")
		m := w.link(c.Part.Wire.ID, idp)
		m.GroupID = c.Part.Wire.Group
		if got := w.posts(c.Part.Token, string(m.Append(nil))); got != status {
			t.Errorf("%s: %d", user, got)
		}
		if w.signIns(user) != "" || w.recorded(signin.EventAsked) != 0 {
			t.Errorf("%s: it is shown", user)
		}
	}
}

// A sign-in is over with a result, a cancellation, the end of its thread or its deadline, and
// each end is recorded once.
func TestSignInIsOverWithItsCall(t *testing.T) {
	for name, end := range map[string]func(w *rtWorld){
		"a result":       func(w *rtWorld) { w.accepts("a", rtResult("a", "done")) },
		"a cancellation": func(w *rtWorld) { _ = w.mine.Cancel(t.Context(), "t", "a", "") },
		"a closed thread": func(w *rtWorld) {
			if err := w.mine.CloseThread(t.Context(), "t"); err != nil {
				t.Error(err)
			}
		},
		"its deadline": func(w *rtWorld) { w.pass(2 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			w := signsIn(t)
			w.sent("a")
			w.accepts("a", w.link("a", idp))
			page, err := w.r.SignInsOf(t.Context(), "ann")
			if err != nil || len(page.SignIns) != 1 {
				t.Fatalf("%+v, %v", page, err)
			}
			end(w)
			if got := w.signIns("ann"); got != "" {
				t.Errorf("ann sees %q", got)
			}
			w.toldOver(1)
			if _, _, err := w.r.SignIn(t.Context(), page.SignIns[0].ID); !errors.Is(err, approval.ErrNotFound) {
				t.Errorf("it is found: %v", err)
			}
		})
	}
}

// A sign-in is over when a question that came after it is answered. A question that came before
// does not end it.
func TestSignInIsOverOnceTheCallGoesOn(t *testing.T) {
	w := signsIn(t)
	w.sent("a")
	w.accepts("a", w.link("a", idp))
	w.accepts("a", w.choice("a", "1"))
	if w.signIns("ann") == "" {
		t.Error("it is gone while the question is open")
	}
	w.desk.Says(w.asked(1), hold.Answer{State: hold.Chosen, Selected: 0})
	w.toldOver(1)
	if got := w.is("a", CallPending); w.signIns("ann") != "" || got.SignIn != "" || got.SignInHost != "" {
		t.Errorf("after the answer: %+v", got)
	}

	w.sent("b")
	w.accepts("b", w.choice("b", "1"))
	w.accepts("b", w.link("b", idp))
	w.desk.Says(w.asked(2), hold.Answer{State: hold.Chosen, Selected: 0})
	w.settles()
	if w.signIns("ann") == "" {
		t.Error("a sign-in that came after the question is gone with its answer")
	}
}

// A repeated link is recorded once, another link replaces it, and the number of links is
// limited.
func TestSignInAgain(t *testing.T) {
	w := signsIn(t)
	w.sent("a")
	for range 3 {
		w.accepts("a", w.link("a", idp))
	}
	if n := w.recorded(signin.EventAsked); n != 1 {
		t.Errorf("told %d times", n)
	}
	for n := range maxSignIns - 1 {
		w.accepts("a", w.link("a", fmt.Sprint(idp, "/", n)))
	}
	if got := w.calls("a", w.link("a", idp+"/more")); got != http.StatusConflict {
		t.Errorf("too many links: %d", got)
	}
	if got, want := w.signIns("ann"), fmt.Sprint("read idp.example ", idp, "/", maxSignIns-2); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := w.recorded(signin.EventAsked); n != maxSignIns {
		t.Errorf("told %d times", n)
	}
}

// If a link leads elsewhere, its host is shown but not the link. The current registration counts.
func TestSignInElsewhereIsNoLink(t *testing.T) {
	w := signsIn(t)
	for id, url := range map[string]string{
		"a": "https://idp.example.evil.org/",
		"b": "https://xn--dp-fla.example/",
		"c": "https://idp.example:8443/",
	} {
		w.sent(id)
		w.accepts(id, w.link(id, url))
		if c := w.is(id, CallPending); c.SignInHost != "" {
			t.Errorf("%s has the host %q", url, c.SignInHost)
		}
	}

	got := w.signIns("ann")
	for _, host := range []string{"idp.example.evil.org", "xn--dp-fla.example", "idp.example:8443"} {
		if !strings.Contains(got, "read "+host+" ") || strings.Contains(got, "https:") {
			t.Errorf("ann sees %q", got)
		}
	}

	w.sent("d")
	w.accepts("d", w.link("d", idp))
	w.stop()
	w.cfg.Servers[0].Peer.Allow = nil
	w.start()
	if got := w.signIns("ann"); strings.Contains(got, "https:") || !strings.Contains(got, "read idp.example ") {
		t.Errorf("after its origin was taken back: %q", got)
	}
}

// If a process died between a call's end and the ledger event, the next process records it.
func TestEndOfASignInIsToldAfterACrash(t *testing.T) {
	w := signsIn(t)
	w.sent("a")
	w.accepts("a", w.link("a", idp))
	w.stop()
	w.sets(func() { w.deaf = errors.New("the ledger is away") })
	w.start()
	w.accepts("a", rtResult("a", "done"))
	w.stop()
	if n := w.recorded(signin.EventOver); n != 0 || leftOf(t, w.cfg.Records, "clerk")["sign_ins"] != 1 {
		t.Fatalf("told %d times", n)
	}
	w.sets(func() { w.deaf = nil })
	w.start()
	w.toldOver(1)
}

// The tool gets 200 only after the ledger has the sign-in.
func TestASignInThatTheLedgerLacksIsSentAgain(t *testing.T) {
	w := signsIn(t)
	w.sent("a")
	w.sets(func() { w.deaf = errors.New("the ledger is away") })
	if got := w.calls("a", w.link("a", idp)); got != http.StatusServiceUnavailable {
		t.Errorf("got %d", got)
	}
	w.sets(func() { w.deaf = nil })
	w.accepts("a", w.link("a", idp))
	w.accepts("a", w.link("a", idp))
	if n := w.recorded(signin.EventAsked); n != 1 {
		t.Errorf("told %d times", n)
	}
}
