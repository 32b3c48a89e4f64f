package rap_test

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
)

// confDesk is a desk whose people are the row itself.
type confDesk struct {
	mu      sync.Mutex
	held    []*confHeld
	asked   []*confAsked
	arrived chan struct{}
	watch   []func(string)
	slow    chan struct{} // Open answers once it is closed; nil: at once
	fails   error         // of everything that is asked of it
	claim   error
	looks   int
}

type confHeld struct {
	hold.Held
	key, taken string
	verdict    hold.Verdict
}

// confAsked is a question of a tool.
type confAsked struct {
	ref, key string
	question hold.Question
	answer   hold.Answer
}

func newConfDesk() *confDesk { return &confDesk{arrived: make(chan struct{})} }

func (d *confDesk) find(match func(*confHeld) bool) *confHeld {
	for _, h := range d.held {
		if match(h) {
			return h
		}
	}
	return nil
}

func (d *confDesk) ref(ref string) *confHeld {
	return d.find(func(h *confHeld) bool { return h.Ref == ref })
}

func (d *confDesk) As(approval.Asker) hold.Requests { return d }

func (d *confDesk) Open(_ context.Context, key string, v hold.Verdict) (hold.Held, error) {
	held, slow, err := d.opened(key, v)
	if slow != nil {
		<-slow
	}
	return held, err
}

func (d *confDesk) opened(key string, v hold.Verdict) (hold.Held, chan struct{}, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.find(func(h *confHeld) bool { return h.key == key })
	if d.fails != nil {
		return hold.Held{}, nil, d.fails
	}
	if h == nil {
		h = &confHeld{
			Held:    hold.Held{Ref: fmt.Sprintf("req_%d", len(d.held)+1), State: hold.Pending},
			key:     key,
			verdict: v,
		}
		d.held = append(d.held, h)
		d.news()
	}

	return h.Held, d.slow, nil
}

func (d *confDesk) Look(_ context.Context, ref string) (hold.Held, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	if h := d.ref(ref); h != nil {
		return h.Held, d.fails
	}
	return hold.Held{}, cmp.Or(d.fails, hold.ErrNoRequest)
}

func (d *confDesk) Claim(_ context.Context, ref, key string, v hold.Verdict) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.ref(ref)
	if h == nil || h.State != hold.Approved || h.taken != "" && h.taken != key ||
		cmp.Or(string(h.Arguments), string(h.verdict.Call.Args)) != string(v.Call.Args) {
		return hold.ErrNotClaimed
	}
	if d.claim == nil {
		h.taken = key
	}
	return d.claim
}

func (d *confDesk) Cancel(_ context.Context, ref, reason string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.ref(ref); h != nil && (h.State == hold.Pending || h.State == hold.Approved && h.taken == "") {
		h.State, h.Reason = hold.Cancelled, reason
		d.news()
	}
	for _, a := range d.asked {
		if a.ref == ref && a.answer.State == hold.Pending {
			a.answer = hold.Answer{State: hold.Cancelled, Reason: reason}
			d.news()
		}
	}

	return nil
}

func (d *confDesk) Ask(_ context.Context, key string, q hold.Question) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.asked {
		if a.key == key {
			return a.ref, nil
		}
	}
	a := &confAsked{
		ref:      fmt.Sprintf("q_%d", len(d.asked)+1),
		key:      key,
		question: q,
		answer:   hold.Answer{State: hold.Pending},
	}
	d.asked = append(d.asked, a)
	d.news()
	return a.ref, nil
}

func (d *confDesk) Answer(_ context.Context, ref string) (hold.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.asked {
		if a.ref == ref {
			return a.answer, nil
		}
	}
	return hold.Answer{}, hold.ErrNoRequest
}

// news wakes those who wait for something new. d.mu is held.
func (d *confDesk) news() {
	close(d.arrived)
	d.arrived = make(chan struct{})
}

func (d *confDesk) Watch(ctx context.Context, changed func(string)) error {
	d.mu.Lock()
	d.watch = append(d.watch, changed)
	d.mu.Unlock()
	changed("")
	<-ctx.Done()
	return ctx.Err()
}

// until waits until something holds of what came to the desk.
func (d *confDesk) until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	late := time.NewTimer(15 * time.Second)
	defer late.Stop()
	for {
		d.mu.Lock()
		ok, arrived := holds(), d.arrived
		d.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-arrived:
		case <-late.C:
			t.Fatalf("the desk never had %s", what)
		}
	}
}

// request waits for the nth request.
func (d *confDesk) request(t testing.TB, nth int) hold.Verdict {
	t.Helper()
	d.until(t, fmt.Sprint("request ", nth), func() bool { return len(d.held) >= nth })
	return d.held[nth-1].verdict
}

// question waits for the nth question.
func (d *confDesk) question(t testing.TB, nth int) hold.Question {
	t.Helper()
	d.until(t, fmt.Sprint("question ", nth), func() bool { return len(d.asked) >= nth })
	return d.asked[nth-1].question
}

// withdrawn waits until the nth question is.
func (d *confDesk) withdrawn(t testing.TB, nth int) {
	t.Helper()
	d.until(t, "a withdrawn question", func() bool {
		return len(d.asked) >= nth && d.asked[nth-1].answer.State == hold.Cancelled
	})
}

// answers has a person answer the nth question, or let it end.
func (d *confDesk) answers(t testing.TB, nth int, a hold.Answer) {
	t.Helper()
	d.question(t, nth)
	d.mu.Lock()
	q := d.asked[nth-1]
	if q.answer.State == hold.Pending {
		q.answer = a
	}
	d.mu.Unlock()
	d.tell(q.ref)
}

// tell has everybody who watches look.
func (d *confDesk) tell(ref string) {
	d.mu.Lock()
	watch := append([]func(string){}, d.watch...)
	d.mu.Unlock()
	for _, changed := range watch {
		changed(ref)
	}
}

// decide has a person decide on the nth request.
func (d *confDesk) decide(t testing.TB, nth int, state hold.State, reason string) {
	t.Helper()
	d.holds(t, nth, hold.Held{State: state, Reason: reason})
}

// holds has the nth request stand so, if it is open.
func (d *confDesk) holds(t testing.TB, nth int, now hold.Held) {
	t.Helper()
	d.request(t, nth)
	d.mu.Lock()
	h := d.held[nth-1]
	if h.State == hold.Pending {
		now.Ref, now.By = h.Ref, "mara"
		h.Held = now
	}
	d.mu.Unlock()
	d.tell(now.Ref)
}

// set changes the desk.
func (d *confDesk) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// dropped waits until the nth request is withdrawn.
func (d *confDesk) dropped(t testing.TB, nth int) {
	t.Helper()
	d.until(t, "a withdrawn request", func() bool {
		return len(d.held) >= nth && d.held[nth-1].State == hold.Cancelled
	})
}
