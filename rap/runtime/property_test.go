package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
)

// rtModel is the expected state of a random history.
type rtModel struct {
	*rtWorld
	rt     *rapid.T
	ended  map[string]Call // the first observed ending of each call
	after  map[string]int  // posts for a call when it was cancelled or its thread closed
	shut   bool            // the thread is closed
	n      int             // number of questions
	others []*Runtime      // further processes
}

// any returns one of the processes.
func (m *rtModel) any() *Runtime {
	return append([]*Runtime{m.r}, m.others...)[rapid.IntRange(0, len(m.others)).Draw(m.rt, "process")]
}

var rtIDs = []string{"a", "b", "c"}

func (m *rtModel) id() string { return rapid.SampledFrom(rtIDs).Draw(m.rt, "id") }

func (m *rtModel) invoke() {
	op := rapid.SampledFrom([]string{"read", "send", "wipe"}).Draw(m.rt, "operation")
	// A different call with the same id is refused.
	_, _ = m.as(m.any(), rtAsker()).Invoke(context.Background(), rtInvocation(m.id(), op, `{}`))
}

// known reports whether a call exists; no callbacks are sent for others.
func (m *rtModel) known(id string) bool {
	_, err := m.mine.Call(context.Background(), "t", id)
	return err == nil
}

func (m *rtModel) asks() {
	if id := m.id(); m.known(id) {
		m.n++
		m.calls(id, m.choice(id, fmt.Sprintf("%s-%d", id, m.n)))
	}
}

func (m *rtModel) asksAgain() {
	if id := m.id(); m.known(id) && m.n > 0 {
		m.calls(id, m.choice(id, fmt.Sprintf("%s-%d", id, rapid.IntRange(1, m.n).Draw(m.rt, "question"))))
	}
}

func (m *rtModel) ends() {
	if id := m.id(); m.known(id) {
		m.calls(id, rtResult(id, fmt.Sprint("result ", m.n)))
	}
}

// answers has a person answer a request, which may be an old one.
func (m *rtModel) answers() {
	refs := m.desk.Refs()
	if len(refs) == 0 {
		return
	}
	ref := rapid.SampledFrom(refs).Draw(m.rt, "ref")
	state := rapid.SampledFrom([]hold.State{
		hold.Chosen,
		hold.Chosen,
		hold.Chosen,
		hold.Dismissed,
		hold.Expired,
		hold.Denied,
	}).Draw(m.rt, "answer")
	held := m.desk.Of(ref).Held
	if held.Ref == "" {
		m.desk.Says(ref, hold.Answer{State: state, Selected: rapid.IntRange(0, 1).Draw(m.rt, "selected"), By: "ann"})
		return
	}

	if held.State == hold.Pending {
		held.State = map[bool]hold.State{true: hold.Approved, false: hold.Denied}[state == hold.Chosen]
		m.desk.Hold(held)
	}
}

func (m *rtModel) cancels() {
	id := m.id()
	if err := m.as(m.any(), rtAsker()).Cancel(context.Background(), "t", id, ""); err == nil {
		m.quiet(id)
	}
}

// quiet records that nothing may be sent for a call from now on. Requests that another process
// has begun have to end before.
func (m *rtModel) quiet(id string) {
	if len(m.others) > 0 {
		m.settles(m.others...)
	}
	m.after[id] = m.posts(id)
}

// posts counts what was sent for a call, by the ledger, which is written right before.
func (m *rtModel) posts(id string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.facts {
		if strings.Contains(f, callName(m.key(id))) &&
			(strings.HasPrefix(f, "rap_invoked ") || strings.HasPrefix(f, "rap_choice_answered ")) {
			n++
		}
	}

	return n
}

func (m *rtModel) closes() {
	if rapid.IntRange(0, 5).Draw(m.rt, "really") > 0 {
		return
	}
	must.Do(m.rt, m.as(m.any(), rtAsker()).CloseThread(context.Background(), "t"))
	m.shut = true
	for _, id := range rtIDs {
		m.quiet(id)
	}
}

func (m *rtModel) restarts() {
	m.stop()
	m.start()
}

func (m *rtModel) passes() { m.pass(20 * time.Second) } // longer than a pause, shorter than a question stays open

// check checks the invariants.
func (m *rtModel) check(*rapid.T) {
	if rapid.Bool().Draw(m.rt, "settle") {
		m.settles(m.others...)
	}
	for path, bodies := range m.paths() {
		if len(bodies) > 1 {
			m.rt.Fatalf("%s was posted to %d times: %q", path, len(bodies), bodies)
		}
	}
	for _, id := range rtIDs {
		m.checkCall(id)
	}
}

func (m *rtModel) checkCall(id string) {
	if n, quiet := m.after[id]; quiet && m.posts(id) != n {
		m.rt.Fatalf("%s: sent something after its end", id)
	}
	c, err := m.mine.Call(context.Background(), "t", id)
	if err != nil {
		return
	}
	was, ended := m.ended[id]
	switch {
	case ended && (c.State != CallDone || c.Why != was.Why || c.Outcome.Text != was.Outcome.Text):
		m.rt.Fatalf("%s ended twice: %+v, then %+v", id, was, c)
	case c.State == CallDone:
		m.ended[id] = c
	case m.shut:
		m.rt.Fatalf("%s goes on in a closed thread: %+v", id, c)
	}
}

// paths returns the requests that may be made only once, by path: the posts of answers.
func (m *rtModel) paths() map[string][]string {
	out := map[string][]string{}
	for _, r := range m.tool.Requests("answer") {
		if strings.HasPrefix(r.URI, "/answers/") {
			out[r.URI] = append(out[r.URI], r.Body)
		}
	}
	return out
}

// Whatever tools, people, agents and crashes do in any order: an answer is posted at most once
// to each URL, nothing is sent twice or after a cancellation or a closure, and a call ends
// once. In the end no request is open for a call that is done.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newRTWorld(t)
		defer w.stop()
		m := &rtModel{rtWorld: w, rt: rt, ended: map[string]Call{}, after: map[string]int{}}
		if rapid.Bool().Draw(rt, "two processes") {
			other, stop := w.process()
			defer stop()
			m.others = append(m.others, other)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"":        m.check,
			"invoke":  func(*rapid.T) { m.invoke() },
			"asks":    func(*rapid.T) { m.asks() },
			"again":   func(*rapid.T) { m.asksAgain() },
			"answer":  func(*rapid.T) { m.answers() },
			"answer2": func(*rapid.T) { m.answers() },
			"both": func(*rapid.T) {
				m.asks()
				m.answers()
			},
			"result":  func(*rapid.T) { m.ends() },
			"cancel":  func(*rapid.T) { m.cancels() },
			"close":   func(*rapid.T) { m.closes() },
			"restart": func(*rapid.T) { m.restarts() },
			"time":    func(*rapid.T) { m.passes() },
		})
		m.settles(m.others...)
		for _, id := range rtIDs {
			m.checkEnd(id)
		}
	})
}

func (m *rtModel) checkEnd(id string) {
	c, err := m.mine.Call(context.Background(), "t", id)
	if err != nil {
		return
	}
	if n := len(m.sentFor(id)); n > 1 {
		m.rt.Fatalf("%s was sent %d times", id, n)
	}
	open := m.openOf(id)
	if c.State == CallDone && open > 0 || open > 1 {
		m.rt.Fatalf("%s is %s, and %d things are asked about it", id, c.State, open)
	}
}

func (m *rtModel) sentFor(id string) []string {
	return slices.DeleteFunc(m.tool.bodies("/run"), func(b string) bool {
		return !strings.Contains(b, `"id":"`+id+`"`)
	})
}
