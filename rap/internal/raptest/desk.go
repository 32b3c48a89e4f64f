package raptest

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

// Desk is an approval service whose answers the test gives. Unlike a real one it accepts
// answers to withdrawn questions, so that a test can check that they have no effect.
type Desk struct {
	t testing.TB

	mu       sync.Mutex
	Shown    []*Shown
	watchers []func(string)
	changed  chan struct{}
	slow     map[string]*slowAnswer // by ref
	Stuck    chan struct{}          // Open returns once it is closed; nil: at once
	Fails    error                  // returned by every method
	ClaimErr error
	Looks    int // calls of Look
}

// Shown is a request to people: a question, or the approval of a call (with a Verdict).
type Shown struct {
	Ref, Key  string
	Question  hold.Question
	Verdict   hold.Verdict
	Answer    hold.Answer
	Held      hold.Held
	Withdrawn int
	Taken     string // the key that claimed the run

	Asker, Canceller approval.Asker
}

func (s *Shown) IsCall() bool { return s.Verdict.Call != nil }

func NewDesk(t testing.TB) *Desk {
	return &Desk{t: t, changed: make(chan struct{}), slow: map[string]*slowAnswer{}}
}

// Set calls do with the lock held, and wakes waiting calls.
func (d *Desk) Set(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do()
	close(d.changed)
	d.changed = make(chan struct{})
}

// Tell notifies all watchers of a reference.
func (d *Desk) Tell(ref string) {
	d.mu.Lock()
	watchers := append([]func(string){}, d.watchers...)
	d.mu.Unlock()
	for _, w := range watchers {
		w(ref)
	}
}

// Put adds a request, or returns the existing one with the key.
func (d *Desk) Put(key string, s *Shown) (out Shown, err error) {
	d.Set(func() {
		if err = d.Fails; err != nil {
			return
		}
		for _, known := range d.Shown {
			if known.Key == key {
				out = *known
				return
			}
		}

		s.Key, s.Ref = key, fmt.Sprintf("ref-%d", len(d.Shown)+1)
		s.Held.Ref = s.Ref
		d.Shown = append(d.Shown, s)
		out = *s
	})
	return out, err
}

// Find returns the request with a reference, or nil. d.mu must be held.
func (d *Desk) Find(ref string) *Shown {
	for _, s := range d.Shown {
		if s.Ref == ref {
			return s
		}
	}
	return nil
}

// As returns an approval service that records who asks and who withdraws.
func (d *Desk) As(who approval.Asker) hold.Requests { return seat{d, who} }

type seat struct {
	*Desk
	who approval.Asker
}

func (s seat) Ask(ctx context.Context, key string, q hold.Question) (string, error) {
	ref, err := s.Desk.Ask(ctx, key, q)
	s.note(ref, func(shown *Shown) { shown.Asker = s.who })
	return ref, err
}

func (s seat) Open(ctx context.Context, key string, v hold.Verdict) (hold.Held, error) {
	held, err := s.Desk.Open(ctx, key, v)
	s.note(held.Ref, func(shown *Shown) { shown.Asker = s.who })
	return held, err
}

func (s seat) Cancel(ctx context.Context, ref, reason string) error {
	s.note(ref, func(shown *Shown) { shown.Canceller = s.who })
	return s.Desk.Cancel(ctx, ref, reason)
}

func (d *Desk) note(ref string, change func(*Shown)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.Find(ref); s != nil {
		change(s)
	}
}

// Of returns the request with a reference.
func (d *Desk) Of(ref string) (out Shown) {
	d.note(ref, func(s *Shown) { out = *s })
	return out
}

// Refs returns the references of all requests, in order.
func (d *Desk) Refs() (all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.Shown {
		all = append(all, s.Ref)
	}
	return all
}

// FailWith makes all methods fail until it is called with nil.
func (d *Desk) FailWith(err error) {
	d.Set(func() { d.Fails = err })
	d.Tell("")
}

// Hold sets the state of an approval, whatever it was.
func (d *Desk) Hold(h hold.Held) {
	d.note(h.Ref, func(s *Shown) { s.Held = h })
	d.Tell(h.Ref)
}

// Ask adds a question.
func (d *Desk) Ask(_ context.Context, key string, q hold.Question) (string, error) {
	s, err := d.Put(key, &Shown{Question: q, Answer: hold.Answer{State: hold.Pending}})
	return s.Ref, err
}

// Answer returns the answer that the test gave.
func (d *Desk) Answer(ctx context.Context, ref string) (hold.Answer, error) {
	d.mu.Lock()
	s := d.Find(ref)
	if s == nil || d.Fails != nil {
		defer d.mu.Unlock()
		return hold.Answer{}, cmp.Or(d.Fails, hold.ErrNoRequest)
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

// slowAnswer delays an answer for some readers.
type slowAnswer struct {
	readers          int
	reading, release chan struct{}
}

// Slows delays the answer for a number of readers. read waits until all of them have read it,
// and release lets them return.
func (d *Desk) Slows(ref string, readers int) (read, release func()) {
	s := &slowAnswer{readers, make(chan struct{}, readers), make(chan struct{})}
	d.Set(func() { d.slow[ref] = s })
	return func() {
		ctx, stop := Patience(d.t)
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

// Watch calls changed for every change until ctx ends.
func (d *Desk) Watch(ctx context.Context, changed func(string)) error {
	d.Set(func() { d.watchers = append(d.watchers, changed) })
	changed("")
	<-ctx.Done()
	return ctx.Err()
}

// Open adds an approval request.
func (d *Desk) Open(_ context.Context, key string, v hold.Verdict) (hold.Held, error) {
	s, err := d.Put(key, &Shown{Verdict: v, Held: hold.Held{State: hold.Pending}})
	if d.Stuck != nil {
		<-d.Stuck
	}
	return s.Held, err
}

// Look returns the state of an approval request.
func (d *Desk) Look(_ context.Context, ref string) (hold.Held, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Looks++
	if s := d.Find(ref); s != nil {
		return s.Held, d.Fails
	}
	return hold.Held{}, cmp.Or(d.Fails, hold.ErrNoRequest)
}

// Claim claims the run of an approved call.
func (d *Desk) Claim(_ context.Context, ref, key string, v hold.Verdict) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Fails != nil {
		return d.Fails
	}
	s := d.Find(ref)
	if s == nil || s.Held.State != hold.Approved || s.Taken != "" && s.Taken != key ||
		cmp.Or(string(s.Held.Arguments), string(s.Verdict.Call.Args)) != string(v.Call.Args) {
		return hold.ErrNotClaimed
	}
	if d.ClaimErr == nil {
		s.Taken, s.Verdict = key, v
	}
	return d.ClaimErr
}

// Cancel withdraws a request.
func (d *Desk) Cancel(_ context.Context, ref, reason string) (err error) {
	d.Set(func() {
		s := d.Find(ref)
		if err = d.Fails; s == nil || err != nil {
			return
		}
		s.Withdrawn++
		if s.Answer.State == hold.Pending {
			s.Answer = hold.Answer{State: hold.Cancelled, Reason: reason}
		}
		if s.Held.State == hold.Pending || s.Held.State == hold.Approved && s.Taken == "" {
			s.Held.State, s.Held.Reason = hold.Cancelled, reason
		}
	})
	return err
}

// Says answers a question, whatever its state is.
func (d *Desk) Says(ref string, a hold.Answer) {
	d.Set(func() { d.Find(ref).Answer = a })
	d.Tell(ref)
}

func (d *Desk) Picks(ref string, k int) {
	d.Says(ref, hold.Answer{State: hold.Chosen, Selected: k, By: "ann"})
}

func (d *Desk) Dismisses(ref string, standard int) {
	d.Says(ref, hold.Answer{State: hold.Dismissed, Selected: standard, By: "ann"})
}

// Waits waits for n matching requests, and returns the nth.
func (d *Desk) Waits(what string, n int, match func(*Shown) bool) Shown {
	d.t.Helper()
	ctx, stop := Patience(d.t)
	defer stop()
	for {
		got, changed := d.Matching(match)
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

func (d *Desk) Matching(match func(*Shown) bool) ([]Shown, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Shown
	for _, s := range d.Shown {
		if match(s) {
			out = append(out, *s)
		}
	}
	return out, d.changed
}

// Asked waits for the nth question whose prompt contains a text.
func (d *Desk) Asked(prompt string, n int) Shown {
	d.t.Helper()
	return d.Waits("asked: "+prompt, n, prompting(prompt))
}

// Exactly checks that there are n questions whose prompt contains a text.
func (d *Desk) Exactly(prompt string, n int) {
	d.t.Helper()
	if got, _ := d.Matching(prompting(prompt)); len(got) != n {
		d.t.Errorf("%d questions with %q were shown, want %d: %+v", len(got), prompt, n, got)
	}
}

func prompting(text string) func(*Shown) bool {
	return func(s *Shown) bool { return !s.IsCall() && strings.Contains(s.Question.Prompt, text) }
}

// Withdrawn waits until a request is withdrawn.
func (d *Desk) Withdrawn(ref string) {
	d.t.Helper()
	d.Waits("withdrawn: "+ref, 1, func(s *Shown) bool { return s.Ref == ref && s.Withdrawn > 0 })
}

// Request waits for the nth approval request.
func (d *Desk) Request(nth int) Shown {
	d.t.Helper()
	return d.Waits("put before approvers", nth, (*Shown).IsCall)
}

// Decide sets the decision on the nth approval request.
func (d *Desk) Decide(nth int, state hold.State, reason string) {
	d.t.Helper()
	d.Holds(nth, hold.Held{State: state, Reason: reason})
}

// Holds sets the state of the nth approval request, if it is pending.
func (d *Desk) Holds(nth int, now hold.Held) {
	d.t.Helper()
	now.Ref, now.By = d.Request(nth).Ref, "mara"
	d.Set(func() {
		if s := d.Find(now.Ref); s.Held.State == hold.Pending {
			s.Held = now
		}
	})
	d.Tell(now.Ref)
}

// Dropped waits until the nth approval request is withdrawn.
func (d *Desk) Dropped(nth int) {
	d.t.Helper()
	d.Withdrawn(d.Request(nth).Ref)
}
