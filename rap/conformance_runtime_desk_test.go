package rap_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
)

// scriptedDesk is a desk at which the test is the person. Unlike a real
// one it takes answers to what was withdrawn, so that a test can see
// that nobody acts on them.
type scriptedDesk struct {
	t *testing.T

	mu       sync.Mutex
	shown    []*shown
	watchers []func(string)
	changed  chan struct{}
	slow     map[string]*slowAnswer // by ref
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
}

func newScriptedDesk(t *testing.T) *scriptedDesk {
	return &scriptedDesk{
		t:       t,
		changed: make(chan struct{}),
		slow:    map[string]*slowAnswer{},
	}
}

// change does something to what is shown and tells everybody.
func (d *scriptedDesk) change(do func()) {
	d.mu.Lock()
	do()
	close(d.changed)
	d.changed = make(chan struct{})
	d.mu.Unlock()
}

func (d *scriptedDesk) tell(ref string) {
	d.mu.Lock()
	watchers := append([]func(string){}, d.watchers...)
	d.mu.Unlock()
	for _, w := range watchers {
		w(ref)
	}
}

// put shows something once for each key.
func (d *scriptedDesk) put(key string, s *shown) (out shown) {
	d.change(func() {
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
	return out
}

func (d *scriptedDesk) find(ref string) (shown, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.shown {
		if s.Ref == ref {
			return *s, nil
		}
	}
	return shown{}, hold.ErrNoRequest
}

// Ask shows a question.
func (d *scriptedDesk) Ask(_ context.Context, key string, q hold.Question) (string, error) {
	return d.put(key, &shown{Question: q, Answer: hold.Answer{State: hold.Pending}}).Ref, nil
}

// Answer tells what the test has answered.
func (d *scriptedDesk) Answer(ctx context.Context, ref string) (hold.Answer, error) {
	s, err := d.find(ref)
	d.mu.Lock()
	slow := d.slow[ref]
	if slow == nil || slow.readers == 0 || s.Answer.State == hold.Pending {
		d.mu.Unlock()
		return s.Answer, err
	}
	slow.readers--
	d.mu.Unlock()
	slow.reading <- struct{}{}
	select {
	case <-slow.release:
	case <-ctx.Done():
	}
	return s.Answer, err
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
	d.mu.Lock()
	d.slow[ref] = s
	d.mu.Unlock()
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
	d.change(func() { d.watchers = append(d.watchers, changed) })
	changed("")
	<-ctx.Done()
	return ctx.Err()
}

// Open shows a whole call.
func (d *scriptedDesk) As(approval.Asker) hold.Requests { return d }

func (d *scriptedDesk) Open(_ context.Context, key string, v hold.Verdict) (hold.Held, error) {
	return d.put(key, &shown{Verdict: v, Held: hold.Held{State: hold.Pending}}).Held, nil
}

// Look tells how a call's approval stands.
func (d *scriptedDesk) Look(_ context.Context, ref string) (hold.Held, error) {
	s, err := d.find(ref)
	return s.Held, err
}

// Claim takes the run of an approved call.
func (d *scriptedDesk) Claim(_ context.Context, ref, _ string, _ hold.Verdict) error {
	if s, err := d.find(ref); err != nil || s.Held.State != hold.Approved {
		return hold.ErrNotClaimed
	}
	return nil
}

// Cancel withdraws.
func (d *scriptedDesk) Cancel(_ context.Context, ref, _ string) error {
	d.change(func() {
		for _, s := range d.shown {
			if s.Ref != ref {
				continue
			}
			s.Withdrawn++
			if s.Answer.State == hold.Pending {
				s.Answer = hold.Answer{State: hold.Cancelled}
			}
		}
	})
	return nil
}

// says gives an answer, whatever became of the question.
func (d *scriptedDesk) says(ref string, a hold.Answer) {
	d.change(func() {
		for _, s := range d.shown {
			if s.Ref == ref {
				s.Answer = a
			}
		}
	})
	d.tell(ref)
}

func (d *scriptedDesk) picks(ref string, k int) {
	d.says(ref, hold.Answer{
		State:    hold.Chosen,
		Selected: k,
		By:       "ann",
	})
}

func (d *scriptedDesk) dismisses(ref string, standard int) {
	d.says(ref, hold.Answer{
		State:    hold.Dismissed,
		Selected: standard,
		By:       "ann",
	})
}

func (d *scriptedDesk) look(match func(shown) bool) ([]shown, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []shown
	for _, s := range d.shown {
		if match(*s) {
			out = append(out, *s)
		}
	}
	return out, d.changed
}

// waits for n things that match, and returns the nth.
func (d *scriptedDesk) waits(what string, n int, match func(shown) bool) shown {
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

// asked is the nth question whose prompt holds a text.
func (d *scriptedDesk) asked(prompt string, n int) shown {
	d.t.Helper()
	return d.waits("asked: "+prompt, n, prompting(prompt))
}

// withdrawn waits until what was shown under a ref is withdrawn.
func (d *scriptedDesk) withdrawn(ref string) {
	d.t.Helper()
	d.waits("withdrawn: "+ref, 1, func(s shown) bool { return s.Ref == ref && s.Withdrawn > 0 })
}

// exactly wants n questions whose prompt holds a text.
func (d *scriptedDesk) exactly(prompt string, n int) {
	d.t.Helper()
	if got, _ := d.look(prompting(prompt)); len(got) != n {
		d.t.Errorf("%d questions with %q were shown, want %d: %+v", len(got), prompt, n, got)
	}
}

func prompting(text string) func(shown) bool {
	return func(s shown) bool {
		return s.Question.Server != "" && strings.Contains(s.Question.Prompt, text)
	}
}
