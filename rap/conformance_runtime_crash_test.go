package rap_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/runtime"
)

// newMortal returns a runtime in a process of its own, which the test kills. The store, the
// people, the tool server and the address outlive it.
func newMortal(t *testing.T) *runtimeWorld {
	t.Helper()
	w := &runtimeWorld{t: t, tools: raptest.NewTool(t, "write_file")}
	w.other = w.tools
	w.process = newProcess(t, life{Other: w.tools.URL})
	w.house = must.Get(openClerk(w.process.life.database()))(t)
	t.Cleanup(func() { _ = w.house.store.Close() })
	w.process.start()
	return w
}

// put makes a call about which the tool asks, and returns the question's reference.
func (w *runtimeWorld) put(thread, id string) (*raptest.Call, string) {
	w.t.Helper()
	c := w.invoke(thread, id)
	c.Sends(c.Choice(c.AnswerAt("")))
	return c, w.open(c)
}

// once checks that a call was sent once.
func (w *runtimeWorld) once(c *raptest.Call) {
	w.t.Helper()
	if n := w.invocations(c.Name()); n != 1 {
		w.t.Errorf("%s was sent %d times", c.Name(), n)
	}
}

func testR26(t *testing.T) {
	w := newMortal(t)
	while, whileRef := w.put("t-1", "answered_while_alive")
	dead, deadRef := w.put("t-1", "answered_while_dead")
	late, lateRef := w.put("t-1", "result_first")
	w.process.kill()
	for _, ref := range []string{whileRef, deadRef, lateRef} {
		if r, err := w.house.service.Request(t.Context(), "acme", ref); err != nil || r.State != approval.Pending {
			t.Fatalf("the question became %+v, %v", r, err)
		}
	}

	w.house.picks(t, deadRef, "ann", 0)
	w.process.start()
	w.answered(dead, dead.AnswerAt(""), 0)
	if got := w.look(while); got.State != runtime.CallPending || got.Question != whileRef {
		t.Errorf("the question is not restored: %+v", got)
	}
	w.completes(late)
	while.Sends(while.Choice(while.AnswerAt(""))) // the tool repeats the same question
	w.settlesIn(w.house, "ann")
	if got := w.look(while); got.Question != whileRef {
		t.Errorf("a repeated question became %q", got.Question)
	}
	w.house.picks(t, whileRef, "ann", 1)
	w.answered(while, while.AnswerAt(""), 1)
	w.house.tooLate(t, lateRef, "ann", 0)
	w.process.reborn(0)
	w.settlesIn(w.house, "ann")
	w.completes(while)
	w.completes(dead)
	w.tools.Exactly(while.AnswerAt(""), 1)
	w.tools.Exactly(dead.AnswerAt(""), 1)
	w.tools.Exactly(late.AnswerAt(""), 0)
	for _, c := range []*raptest.Call{while, dead, late} {
		w.once(c)
	}
}

// killedSending is R7 with a process that dies before it reads the acknowledgement, while the
// tool asks its question.
func killedSending(t *testing.T) {
	w := newMortal(t)
	w.tools.On(raptest.Endpoint, func(_ http.ResponseWriter, r *http.Request, nth int) {
		if nth == 1 {
			c := w.tools.Reads(r)
			c.Sends(c.Choice(c.AnswerAt("")))
			<-w.tools.Quit
		}
	})
	c := w.invoke("t-1", "call_1")
	ref := w.open(c)
	w.process.reborn(time.Minute)
	w.settlesIn(w.house, "ann")
	w.once(c)
	w.house.picks(t, ref, "ann", 1)
	w.answered(c, c.AnswerAt(""), 1)
	w.completes(c)
	w.settlesIn(w.house, "ann")
	w.once(c)
	w.tools.Exactly(c.AnswerAt(""), 1)
}

// killedAnswering is R8 with a process that dies while it delivers the answer. The answer was
// stored before, so the same answer is posted again.
func killedAnswering(t *testing.T) {
	w := newMortal(t)
	c, ref := w.put("t-1", "call_1")
	w.tools.On(c.AnswerAt(""), func(_ http.ResponseWriter, r *http.Request, nth int) {
		if nth == 1 {
			select {
			case <-w.tools.Quit:
			case <-r.Context().Done():
			}
		}
	})
	w.house.picks(t, ref, "ann", 1)
	w.tools.Waits(c.AnswerAt(""), 1)
	w.process.reborn(time.Minute)
	got := w.tools.Waits(c.AnswerAt(""), 2)
	w.settlesIn(w.house, "ann")
	w.tools.Exactly(c.AnswerAt(""), 2)
	for _, r := range got {
		isAnswer(t, r, c.SentID, 1)
		if r.Body != got[0].Body {
			t.Errorf("posted %s, then %s", got[0].Body, r.Body)
		}
	}

	w.completes(c)
	w.once(c)
}
