package runtime

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/internal/raptest"
)

// asking sends a call and a question about it, and returns the reference of the question.
func (w *rtWorld) asking(id, path string) (ref string) {
	w.t.Helper()
	n := len(w.desk.Refs())
	w.sent(id)
	w.accepts(id, w.choice(id, path))
	ref = w.asked(n + 1)
	w.shows(id, ref)
	return ref
}

// answers stores an answer to a call's question, with an attempt to post it by a process that
// has died.
func (w *rtWorld) answers(id string, post durable.Attempt) {
	w.t.Helper()
	c := w.kept(id)
	c.Ask = nil
	c.Part.Choice.State = choiceAnswered
	c.Message = &post
	w.keeps(c)
}

func TestAfterACrashWhileAnswering(t *testing.T) {
	w := newRTWorld(t)
	ref := w.asking("a", "1")
	w.stop()
	w.desk.Says(ref, hold.Answer{State: hold.Chosen, Selected: 0})
	w.answers("a", durable.Attempt{Name: "dead", Tries: 1, Lease: w.now().Add(time.Minute)})
	w.start()
	w.settles()
	if n := len(w.tool.bodies("/answers/1")); n != 0 {
		t.Fatalf("posted %d times while another process may be at it", n)
	}
	w.pass(time.Minute)
	w.tool.waits("/answers/1", 1)
	w.until("delivered", func() bool { return w.kept("a").Part.Choice.State == choiceDelivered })

	w.asking("b", "2")
	w.stop()
	w.answers("b", durable.Attempt{Name: "dead", Tries: 3, Lease: w.now()})
	w.start()
	w.until("given up", func() bool { return w.kept("b").Part.Told.Trouble != "" })
}

func TestGivesWithdrawingUp(t *testing.T) {
	w := newRTWorld(t)
	w.asking("a", "1")
	w.desk.FailWith(errors.New("the desk is away"))
	w.accepts("a", rtResult("a", "done"))
	for range 25 {
		w.settles()
		w.pass(time.Minute)
	}
	w.until("given up", func() bool { return len(w.kept("a").Withdraw) == 0 })
}

// The number of replaced questions is limited. R20 covers the rest.
func TestBoundsReplacedQuestions(t *testing.T) {
	w := newRTWorld(t)
	w.sent("b")
	for n := range maxReplaced + 1 {
		w.accepts("b", w.choice("b", strings.Repeat("x", n+1)))
	}
	if code := w.calls("b", w.choice("b", "y")); code != http.StatusConflict {
		t.Errorf("one change too many is answered with %d", code)
	}
}

func TestTriesToAsk(t *testing.T) {
	w := newRTWorld(t)
	w.sent("a")
	w.desk.FailWith(errors.New("the desk is away"))
	w.accepts("a", w.choice("a", "1"))
	w.until("tried", func() bool { return w.logged("the desk is away") })
	w.desk.FailWith(nil)
	w.pass(time.Minute)
	w.shows("a", w.asked(1))

	w.sent("b")
	w.desk.FailWith(errors.New("the desk is away again"))
	w.accepts("b", w.choice("b", "2"))
	w.until("tried", func() bool { return w.logged("away again") })
	w.pass(16 * time.Minute)
	w.ends("a", WhyUnanswered)
	w.ends("b", WhyUnanswered)
}

func TestFindsAnswersAfterARestart(t *testing.T) {
	w := newRTWorld(t)
	ref := w.asking("a", "1")
	w.stop()
	w.desk.Says(ref, hold.Answer{State: hold.Chosen, Selected: 0})
	w.pass(16 * time.Minute) // answered in time, while no process was running
	w.start()
	w.tool.waits("/answers/1", 1)
	w.is("a", CallPending)
}

// rtDeaf is an approval service whose first Watch fails.
type rtDeaf struct {
	*raptest.Desk
	watched atomic.Int32
}

func (d *rtDeaf) Watch(ctx context.Context, changed func(string)) error {
	if d.watched.Add(1) == 1 {
		return errors.New("the stream broke")
	}
	return d.Desk.Watch(ctx, changed)
}

func TestWatchesAgain(t *testing.T) {
	w := newRTWorld(t)
	w.stop()
	w.cfg.People = &rtDeaf{Desk: w.desk}
	w.start()
	ref := w.asking("a", "1")
	w.desk.Says(ref, hold.Answer{State: hold.Chosen})
	w.tool.waits("/answers/1", 1)
	if !w.logged("the stream broke") {
		t.Error("nobody said why")
	}
}

func TestShownTexts(t *testing.T) {
	h := &callbackHandler{base: &base{cfg: Config{MaxPrompt: 40}}}
	for text, want := range map[string]string{
		"Write?\r\nReally?":       "Write?\nReally?",
		"\x1b[31mYes\u202e\x00":   `\u{1b}[31mYes\u{202e}\u{0}`,
		strings.Repeat("a", 41):   strings.Repeat("a", 40) + "… (cut: it has 41 bytes)",
		strings.Repeat("\x1b", 8): strings.Repeat(`\u{1b}`, 6) + `\u{1… (cut: it has 8 bytes)`,
	} {
		if got := h.shownPrompt(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}

	if got := h.shownPrompt(strings.Repeat("ü", 30)); !utf8.ValidString(got) || len(got) > 80 {
		t.Errorf("shown: %q", got)
	}
	got := shownLabels([]string{"", "No\n", strings.Repeat("y", 5000)})
	if len(got) != 3 || got[0] != "" || got[1] != `No\n` || len(got[2]) > maxLabel+40 {
		t.Errorf("labels: %q", got)
	}
}
