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

// Desk is a desk at which the test is the people. Unlike a real
// one it takes answers to questions that were withdrawn, so that a test
// can see that nobody acts on them.
type Desk struct {
	t testing.TB

	mu       sync.Mutex
	Shown    []*Shown
	watchers []func(string)
	changed  chan struct{}
	slow     map[string]*slowAnswer // by ref
	Stuck    chan struct{}          // Open answers once it is closed; nil: at once
	Fails    error                  // of everything
	ClaimErr error
	Looks    int // at approvals
}

// Shown is one thing that was put to people: a question, or a whole
// call (then Verdict has it).
type Shown struct {
	Ref, Key  string
	Question  hold.Question
	Verdict   hold.Verdict
	Answer    hold.Answer
	Held      hold.Held
	Withdrawn int
	Taken     string // by this key

	Asker, Canceller approval.Asker
}

func (s *Shown) IsCall() bool { return s.Verdict.Call != nil }

func NewDesk(t testing.TB) *Desk {
	return &Desk{t: t, changed: make(chan struct{}), slow: map[string]*slowAnswer{}}
}

// Set does something to the desk, and wakes those who wait at it.
func (d *Desk) Set(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do()
	close(d.changed)
	d.changed = make(chan struct{})
}

// Tell has everybody who watches look.
func (d *Desk) Tell(ref string) {
	d.mu.Lock()
	watchers := append([]func(string){}, d.watchers...)
	d.mu.Unlock()
	for _, w := range watchers {
		w(ref)
	}
}

// Put shows something once for each key.
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

// Find returns what is shown under a ref. d.mu is held.
func (d *Desk) Find(ref string) *Shown {
	for _, s := range d.Shown {
		if s.Ref == ref {
			return s
		}
	}
	return nil
}

// As returns the desk, which remembers who asks and who withdraws.
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

// Of returns what is shown under a ref.
func (d *Desk) Of(ref string) (out Shown) {
	d.note(ref, func(s *Shown) { out = *s })
	return out
}

// Refs are those of all that was shown, in order.
func (d *Desk) Refs() (all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.Shown {
		all = append(all, s.Ref)
	}
	return all
}

// FailWith has everything fail that is asked of the desk; nil ends it.
func (d *Desk) FailWith(err error) {
	d.Set(func() { d.Fails = err })
	d.Tell("")
}

// Hold has a whole call stand so, whatever became of its request.
func (d *Desk) Hold(h hold.Held) {
	d.note(h.Ref, func(s *Shown) { s.Held = h })
	d.Tell(h.Ref)
}

// Ask shows a question.
func (d *Desk) Ask(_ context.Context, key string, q hold.Question) (string, error) {
	s, err := d.Put(key, &Shown{Question: q, Answer: hold.Answer{State: hold.Pending}})
	return s.Ref, err
}

// Answer tells what the test has answered.
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

// slowAnswer is an answer that takes its time from the desk to some of
// its readers.
type slowAnswer struct {
	readers          int
	reading, release chan struct{}
}

// Slows answers, and returns a function that waits until so many
// readers are on their way with the answer, and one that lets them
// arrive.
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

// Watch tells about every change.
func (d *Desk) Watch(ctx context.Context, changed func(string)) error {
	d.Set(func() { d.watchers = append(d.watchers, changed) })
	changed("")
	<-ctx.Done()
	return ctx.Err()
}

// Open shows a whole call.
func (d *Desk) Open(_ context.Context, key string, v hold.Verdict) (hold.Held, error) {
	s, err := d.Put(key, &Shown{Verdict: v, Held: hold.Held{State: hold.Pending}})
	if d.Stuck != nil {
		<-d.Stuck
	}
	return s.Held, err
}

// Look tells how a call's approval stands.
func (d *Desk) Look(_ context.Context, ref string) (hold.Held, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Looks++
	if s := d.Find(ref); s != nil {
		return s.Held, d.Fails
	}
	return hold.Held{}, cmp.Or(d.Fails, hold.ErrNoRequest)
}

// Claim takes the run of an approved call.
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

// Cancel withdraws.
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

// Says gives an answer, whatever became of the question.
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

// Waits for n things that match, and returns the nth.
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

// Asked is the nth question whose prompt holds a text.
func (d *Desk) Asked(prompt string, n int) Shown {
	d.t.Helper()
	return d.Waits("asked: "+prompt, n, prompting(prompt))
}

// Exactly wants n questions whose prompt holds a text.
func (d *Desk) Exactly(prompt string, n int) {
	d.t.Helper()
	if got, _ := d.Matching(prompting(prompt)); len(got) != n {
		d.t.Errorf("%d questions with %q were shown, want %d: %+v", len(got), prompt, n, got)
	}
}

func prompting(text string) func(*Shown) bool {
	return func(s *Shown) bool { return !s.IsCall() && strings.Contains(s.Question.Prompt, text) }
}

// Withdrawn waits until what was shown under a ref is withdrawn.
func (d *Desk) Withdrawn(ref string) {
	d.t.Helper()
	d.Waits("withdrawn: "+ref, 1, func(s *Shown) bool { return s.Ref == ref && s.Withdrawn > 0 })
}

// Request waits for the nth call to be approved.
func (d *Desk) Request(nth int) Shown {
	d.t.Helper()
	return d.Waits("put before approvers", nth, (*Shown).IsCall)
}

// Decide has a person decide on the nth request.
func (d *Desk) Decide(nth int, state hold.State, reason string) {
	d.t.Helper()
	d.Holds(nth, hold.Held{State: state, Reason: reason})
}

// Holds has the nth request stand so, if it is open.
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

// Dropped waits until the nth request is withdrawn.
func (d *Desk) Dropped(nth int) {
	d.t.Helper()
	d.Withdrawn(d.Request(nth).Ref)
}
