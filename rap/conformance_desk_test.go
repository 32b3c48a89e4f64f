package rap_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
)

// scriptedDesk is a desk at which the test is the people. Unlike a real
// one it takes answers to questions that were withdrawn, so that a test
// can see that nobody acts on them.
type scriptedDesk struct {
	t testing.TB

	mu       sync.Mutex
	shown    []*shown
	watchers []func(string)
	changed  chan struct{}
	slow     map[string]*slowAnswer // by ref
	stuck    chan struct{}          // Open answers once it is closed; nil: at once
	fails    error                  // of everything that is asked about approvals
	claim    error
	looks    int // at approvals
}

// shown is one thing that was put to people: a question, or a whole
// call (then Verdict has it).
type shown struct {
	Ref, Key  string
	Question  hold.Question
	Verdict   hold.Verdict
	Answer    hold.Answer
	Held      hold.Held
	Withdrawn int
	taken     string // by this key
}

func (s *shown) isCall() bool { return s.Verdict.Call != nil }

func newScriptedDesk(t testing.TB) *scriptedDesk {
	return &scriptedDesk{
		t:       t,
		changed: make(chan struct{}),
		slow:    map[string]*slowAnswer{},
	}
}

// set does something to the desk, and wakes those who wait at it.
func (d *scriptedDesk) set(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do()
	close(d.changed)
	d.changed = make(chan struct{})
}

// tell has everybody who watches look.
func (d *scriptedDesk) tell(ref string) {
	d.mu.Lock()
	watchers := append([]func(string){}, d.watchers...)
	d.mu.Unlock()
	for _, w := range watchers {
		w(ref)
	}
}

// put shows something once for each key.
func (d *scriptedDesk) put(key string, s *shown) (out shown, err error) {
	d.set(func() {
		if err = d.fails; err != nil {
			return
		}
		for _, known := range d.shown {
			if known.Key == key {
				out = *known
				return
			}
		}

		s.Key, s.Ref = key, fmt.Sprintf("ref-%d", len(d.shown)+1)
		s.Held.Ref = s.Ref
		d.shown = append(d.shown, s)
		out = *s
	})
	return out, err
}

// find returns what is shown under a ref. d.mu is held.
func (d *scriptedDesk) find(ref string) *shown {
	for _, s := range d.shown {
		if s.Ref == ref {
			return s
		}
	}
	return nil
}

// As returns the desk itself.
func (d *scriptedDesk) As(approval.Asker) hold.Requests { return d }

// Ask shows a question.
func (d *scriptedDesk) Ask(_ context.Context, key string, q hold.Question) (string, error) {
	s, err := d.put(key, &shown{Question: q, Answer: hold.Answer{State: hold.Pending}})
	return s.Ref, err
}

// Answer tells what the test has answered.
func (d *scriptedDesk) Answer(ctx context.Context, ref string) (hold.Answer, error) {
	d.mu.Lock()
	s := d.find(ref)
	if s == nil {
		d.mu.Unlock()
		return hold.Answer{}, hold.ErrNoRequest
	}
	answer, slow := s.Answer, d.slow[ref]
	if slow == nil || slow.readers == 0 || answer.State == hold.Pending {
		d.mu.Unlock()
		return answer, nil
	}
	slow.readers--
	d.mu.Unlock()
	slow.reading <- struct{}{}
	select {
	case <-slow.release:
	case <-ctx.Done():
	}
	return answer, nil
}

// slowAnswer is an answer that takes its time from the desk to some of
// its readers.
type slowAnswer struct {
	readers          int
	reading, release chan struct{}
}

// slows answers, and returns a function that waits until so many
// readers are on their way with the answer, and one that lets them
// arrive.
func (d *scriptedDesk) slows(ref string, readers int) (read, release func()) {
	s := &slowAnswer{readers, make(chan struct{}, readers), make(chan struct{})}
	d.set(func() { d.slow[ref] = s })
	return func() {
		ctx, stop := patience(d.t)
		defer stop()
		for range readers {
			select {
			case <-s.reading:
			case <-ctx.Done():
				d.t.Fatal("nobody looks for the answer")
			}
		}
	}, func() { close(s.release) }
}

// Watch tells about every change.
func (d *scriptedDesk) Watch(ctx context.Context, changed func(string)) error {
	d.set(func() { d.watchers = append(d.watchers, changed) })
	changed("")
	<-ctx.Done()
	return ctx.Err()
}

// Open shows a whole call.
func (d *scriptedDesk) Open(_ context.Context, key string, v hold.Verdict) (hold.Held, error) {
	s, err := d.put(key, &shown{Verdict: v, Held: hold.Held{State: hold.Pending}})
	if d.stuck != nil {
		<-d.stuck
	}
	return s.Held, err
}

// Look tells how a call's approval stands.
func (d *scriptedDesk) Look(_ context.Context, ref string) (hold.Held, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	if s := d.find(ref); s != nil {
		return s.Held, d.fails
	}
	return hold.Held{}, cmp.Or(d.fails, hold.ErrNoRequest)
}

// Claim takes the run of an approved call.
func (d *scriptedDesk) Claim(_ context.Context, ref, key string, v hold.Verdict) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.find(ref)
	if s == nil || s.Held.State != hold.Approved || s.taken != "" && s.taken != key ||
		cmp.Or(string(s.Held.Arguments), string(s.Verdict.Call.Args)) != string(v.Call.Args) {
		return hold.ErrNotClaimed
	}
	if d.claim == nil {
		s.taken = key
	}
	return d.claim
}

// Cancel withdraws.
func (d *scriptedDesk) Cancel(_ context.Context, ref, reason string) error {
	d.set(func() {
		s := d.find(ref)
		if s == nil {
			return
		}
		s.Withdrawn++
		if s.Answer.State == hold.Pending {
			s.Answer = hold.Answer{State: hold.Cancelled, Reason: reason}
		}
		if s.Held.State == hold.Pending || s.Held.State == hold.Approved && s.taken == "" {
			s.Held.State, s.Held.Reason = hold.Cancelled, reason
		}
	})
	return nil
}

// says gives an answer, whatever became of the question.
func (d *scriptedDesk) says(ref string, a hold.Answer) {
	d.set(func() { d.find(ref).Answer = a })
	d.tell(ref)
}

func (d *scriptedDesk) picks(ref string, k int) {
	d.says(ref, hold.Answer{State: hold.Chosen, Selected: k, By: "ann"})
}

func (d *scriptedDesk) dismisses(ref string, standard int) {
	d.says(ref, hold.Answer{State: hold.Dismissed, Selected: standard, By: "ann"})
}

// waits for n things that match, and returns the nth.
func (d *scriptedDesk) waits(what string, n int, match func(*shown) bool) shown {
	d.t.Helper()
	ctx, stop := patience(d.t)
	defer stop()
	for {
		got, changed := d.look(match)
		if len(got) >= n {
			return got[n-1]
		}
		select {
		case <-changed:
		case <-ctx.Done():
			d.t.Fatalf("%d of %d were %s", len(got), n, what)
		}
	}
}

func (d *scriptedDesk) look(match func(*shown) bool) ([]shown, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []shown
	for _, s := range d.shown {
		if match(s) {
			out = append(out, *s)
		}
	}
	return out, d.changed
}

// asked is the nth question whose prompt holds a text.
func (d *scriptedDesk) asked(prompt string, n int) shown {
	d.t.Helper()
	return d.waits("asked: "+prompt, n, prompting(prompt))
}

// exactly wants n questions whose prompt holds a text.
func (d *scriptedDesk) exactly(prompt string, n int) {
	d.t.Helper()
	if got, _ := d.look(prompting(prompt)); len(got) != n {
		d.t.Errorf("%d questions with %q were shown, want %d: %+v", len(got), prompt, n, got)
	}
}

func prompting(text string) func(*shown) bool {
	return func(s *shown) bool { return !s.isCall() && strings.Contains(s.Question.Prompt, text) }
}

// withdrawn waits until what was shown under a ref is withdrawn.
func (d *scriptedDesk) withdrawn(ref string) {
	d.t.Helper()
	d.waits("withdrawn: "+ref, 1, func(s *shown) bool { return s.Ref == ref && s.Withdrawn > 0 })
}

// request waits for the nth call to be approved.
func (d *scriptedDesk) request(nth int) shown {
	d.t.Helper()
	return d.waits("put before approvers", nth, (*shown).isCall)
}

// decide has a person decide on the nth request.
func (d *scriptedDesk) decide(nth int, state hold.State, reason string) {
	d.t.Helper()
	d.holds(nth, hold.Held{State: state, Reason: reason})
}

// holds has the nth request stand so, if it is open.
func (d *scriptedDesk) holds(nth int, now hold.Held) {
	d.t.Helper()
	now.Ref, now.By = d.request(nth).Ref, "mara"
	d.set(func() {
		if s := d.find(now.Ref); s.Held.State == hold.Pending {
			s.Held = now
		}
	})
	d.tell(now.Ref)
}

// dropped waits until the nth request is withdrawn.
func (d *scriptedDesk) dropped(nth int) {
	d.t.Helper()
	d.withdrawn(d.request(nth).Ref)
}
