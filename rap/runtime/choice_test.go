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
	"github.com/assent-dev/assent/rap/wire"
)

// asking is a call whose question is open.
func (w *rtWorld) asking(id, path string) (ref string) {
	w.t.Helper()
	n := len(w.desk.refs())
	w.sent(id)
	w.accepts(id, w.choice(id, path))
	ref = w.asked(n + 1)
	w.shows(id, ref)
	return ref
}

func TestAnswersOnce(t *testing.T) {
	for name, c := range map[string]struct {
		answer hold.Answer
		posted string
		why    Why
	}{
		"chosen":       {hold.Answer{State: hold.Chosen, Selected: 0}, `{"id":"a","selected":0}`, ""},
		"dismissed":    {hold.Answer{State: hold.Dismissed, Selected: 0}, `{"id":"a","selected":1}`, ""},
		"expired":      {hold.Answer{State: hold.Expired}, "", WhyUnanswered},
		"cancelled":    {hold.Answer{State: hold.Cancelled}, "", WhyUnanswered},
		"denied":       {hold.Answer{State: hold.Denied}, "", WhyDenied},
		"out of range": {hold.Answer{State: hold.Chosen, Selected: 2}, "", WhyUnanswered},
		"negative":     {hold.Answer{State: hold.Chosen, Selected: -1}, "", WhyUnanswered},
		"unknown":      {hold.Answer{State: "new"}, "", WhyUnanswered},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRTWorld(t)
			w.desk.says(w.asking("a", "1"), c.answer)
			if c.posted == "" {
				w.ends("a", c.why)
				w.tool.waits("/cancel_tool_call", 1)
			} else if got := w.tool.waits("/answers/1", 1)[0]; got != c.posted {
				t.Errorf("posted %s", got)
			}

			w.settles()
			if n := len(w.tool.bodies("/answers/1")); n != map[bool]int{true: 1}[c.posted != ""] {
				t.Errorf("posted %d times", n)
			}
		})
	}
}

// answers has the answer of a call kept, with an attempt to post it
// that a process made which is gone.
func (w *rtWorld) answers(id string, post durable.Attempt) {
	w.t.Helper()
	c := w.kept(id)
	c.Ask = nil
	c.Part.Choice.State = choiceAnswered
	c.Errand = &post
	w.keeps(c)
}

func TestAfterACrashWhileAnswering(t *testing.T) {
	w := newRTWorld(t)
	ref := w.asking("a", "1")
	w.stop()
	w.desk.says(ref, hold.Answer{State: hold.Chosen, Selected: 0})
	w.answers("a", durable.Attempt{
		Name:  "dead",
		Tries: 1,
		Lease: w.now().Add(time.Minute),
	})
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
	w.answers("b", durable.Attempt{
		Name:  "dead",
		Tries: 3,
		Lease: w.now(),
	})
	w.start()
	w.until("given up", func() bool { return w.kept("b").Part.Told.Trouble != "" })
}

func TestWithdrawsQuestions(t *testing.T) {
	for name, end := range map[string]func(*rtWorld){
		"result": func(w *rtWorld) { w.accepts("a", rtResult("a", "done")) },
		"cancel": func(w *rtWorld) {
			if err := w.mine.Cancel(context.Background(), "t", "a", "never mind"); err != nil {
				w.t.Error(err)
			}
		},
		"close": func(w *rtWorld) {
			if err := w.mine.CloseThread(context.Background(), "t"); err != nil {
				w.t.Error(err)
			}
		},
		"deadline of the question": func(w *rtWorld) { w.pass(16 * time.Minute) },
		"deadline of the call":     func(w *rtWorld) { w.pass(2 * time.Hour) },
		"another question":         func(w *rtWorld) { w.accepts("a", w.choice("a", "2")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newRTWorld(t)
			ref := w.asking("a", "1")
			w.desk.fails(errors.New("the desk is away"))
			end(w)
			w.until("tried", func() bool { return w.logged("the desk is away") })
			w.desk.fails(nil)
			w.pass(5 * time.Second)
			w.until("withdrawn", func() bool {
				w.desk.mu.Lock()
				defer w.desk.mu.Unlock()
				return w.desk.cancelled[ref] == 1
			})
			w.settles()
			w.desk.do(ref, func() { w.desk.answers[ref] = hold.Answer{State: hold.Chosen} })
			w.settles()
			if n := len(w.tool.bodies("/answers/1")); n != 0 {
				t.Errorf("posted %d times", n)
			}
		})
	}
}

func TestGivesWithdrawingUp(t *testing.T) {
	w := newRTWorld(t)
	w.asking("a", "1")
	w.desk.fails(errors.New("the desk is away"))
	w.accepts("a", rtResult("a", "done"))
	for range 25 {
		w.settles()
		w.pass(time.Minute)
	}
	w.until("given up", func() bool { return len(w.kept("a").Withdraw) == 0 })
}

func TestReplacesQuestions(t *testing.T) {
	w := newRTWorld(t)
	old := w.asking("a", "1")
	w.accepts("a", w.choice("a", "2"))
	ref := w.asked(2)
	w.shows("a", ref)
	w.accepts("a", w.choice("a", "1")) // late, and void
	w.accepts("a", w.choice("a", "2"))
	w.settles()
	if n := len(w.desk.refs()); n != 2 {
		t.Fatalf("asked %d times", n)
	}
	w.desk.do(old, func() { w.desk.answers[old] = hold.Answer{State: hold.Chosen} })
	w.settles()
	if n := len(w.tool.bodies("/answers/1")) + len(w.tool.bodies("/answers/2")); n != 0 {
		t.Fatalf("an answer to the old question was posted")
	}
	w.desk.says(ref, hold.Answer{State: hold.Chosen, Selected: 0})
	w.tool.waits("/answers/2", 1)
	w.settles()
	if code := w.calls("a", w.choice("a", "3")); code != http.StatusConflict {
		t.Errorf("a question after the answer is answered with %d", code)
	}
	w.accepts("a", w.choice("a", "2"))
	if got := w.recorded("rap_choice_refused"); got != 1 {
		t.Errorf("%d refusals were recorded", got)
	}
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
	w.desk.fails(errors.New("the desk is away"))
	w.accepts("a", w.choice("a", "1"))
	w.until("tried", func() bool { return w.logged("the desk is away") })
	w.desk.fails(nil)
	w.pass(time.Minute)
	w.shows("a", w.asked(1))

	w.sent("b")
	w.desk.fails(errors.New("the desk is away again"))
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
	w.desk.says(ref, hold.Answer{State: hold.Chosen, Selected: 0})
	w.pass(16 * time.Minute) // answered in time, and nobody was there
	w.start()
	w.tool.waits("/answers/1", 1)
	w.is("a", CallPending)
}

// rtDeaf is a desk that can't be watched for once.
type rtDeaf struct {
	*rtDesk
	watched atomic.Int32
}

func (d *rtDeaf) Watch(ctx context.Context, changed func(string)) error {
	if d.watched.Add(1) == 1 {
		return errors.New("the stream broke")
	}
	return d.rtDesk.Watch(ctx, changed)
}

func TestWatchesAgain(t *testing.T) {
	w := newRTWorld(t)
	w.stop()
	w.cfg.People = &rtDeaf{rtDesk: w.desk}
	w.start()
	ref := w.asking("a", "1")
	w.desk.says(ref, hold.Answer{State: hold.Chosen})
	w.tool.waits("/answers/1", 1)
	if !w.logged("the stream broke") {
		t.Error("nobody said why")
	}
}

func TestRefusesQuestions(t *testing.T) {
	w := newRTWorld(t)
	w.sent("a")
	many := w.choice("a", "1")
	many.Choices = make([]string, 51)
	elsewhere := w.choice("a", "1")
	elsewhere.ResponseURL = "http://127.0.0.1:1/answers/1"
	for name, m := range map[string]*wire.Choice{"too many": many, "elsewhere": elsewhere} {
		if code := w.calls("a", m); code != http.StatusBadRequest {
			t.Errorf("%s: answered with %d", name, code)
		}
	}
	w.settles()
	if n := len(w.desk.refs()); n != 0 {
		t.Errorf("asked %d times", n)
	}
	w.is("a", CallPending)
	w.accepts("a", rtResult("a", "done"))
	if code := w.calls("a", w.choice("a", "1")); code != http.StatusGone {
		t.Errorf("a question of a call that has ended is answered with %d", code)
	}
}

func TestShownTexts(t *testing.T) {
	r := &Runtime{cfg: Config{MaxPrompt: 40}}
	for text, want := range map[string]string{
		"Write?\r\nReally?":       "Write?\nReally?",
		"\x1b[31mYes\u202e\x00":   `\u{1b}[31mYes\u{202e}\u{0}`,
		strings.Repeat("a", 41):   strings.Repeat("a", 40) + "… (cut: it has 41 bytes)",
		strings.Repeat("\x1b", 8): strings.Repeat(`\u{1b}`, 6) + `\u{1… (cut: it has 8 bytes)`,
	} {
		if got := r.shownPrompt(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}

	if got := r.shownPrompt(strings.Repeat("ü", 30)); !utf8.ValidString(got) || len(got) > 80 {
		t.Errorf("shown: %q", got)
	}
	got := shownLabels([]string{"", "No\n", strings.Repeat("y", 5000)})
	if len(got) != 3 || got[0] != "" || got[1] != `No\n` || len(got[2]) > maxLabel+40 {
		t.Errorf("labels: %q", got)
	}
}
