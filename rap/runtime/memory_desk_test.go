package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
)

// rtDesk is a desk in memory.
type rtDesk struct {
	mu                 sync.Mutex
	keys               map[string]string // ref by key
	questions          map[string]hold.Question
	answers            map[string]hold.Answer
	verdicts           map[string]hold.Verdict
	held               map[string]hold.Held
	claimed            map[string]string // claim key by ref
	cancelled          map[string]int
	order              []string                  // refs
	askers, cancellers map[string]approval.Asker // by ref
	fail               error                     // of everything
	claim              error
	watchers           map[int]func(string)
	n                  int
}

func newRTDesk() *rtDesk {
	return &rtDesk{
		keys:       map[string]string{},
		questions:  map[string]hold.Question{},
		answers:    map[string]hold.Answer{},
		verdicts:   map[string]hold.Verdict{},
		held:       map[string]hold.Held{},
		claimed:    map[string]string{},
		cancelled:  map[string]int{},
		watchers:   map[int]func(string){},
		askers:     map[string]approval.Asker{},
		cancellers: map[string]approval.Asker{},
	}
}

// do changes the desk, and tells everybody.
func (d *rtDesk) do(ref string, change func()) {
	d.mu.Lock()
	change()
	var all []func(string)
	for _, w := range d.watchers {
		all = append(all, w)
	}
	d.mu.Unlock()
	for _, w := range all {
		w(ref)
	}
}

func (d *rtDesk) put(key string, keep func(ref string)) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return "", d.fail
	}
	if d.keys[key] == "" {
		d.keys[key] = fmt.Sprintf("ref-%d", len(d.keys)+1)
		d.order = append(d.order, d.keys[key])
		keep(d.keys[key])
	}
	return d.keys[key], nil
}

// As keeps who asks and who withdraws.
func (d *rtDesk) As(who approval.Asker) hold.Requests { return rtSeat{d, who} }

// rtSeat is the desk as one asker has it.
type rtSeat struct {
	*rtDesk
	who approval.Asker
}

func (s rtSeat) Ask(ctx context.Context, key string, q hold.Question) (string, error) {
	ref, err := s.rtDesk.Ask(ctx, key, q)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.askers[ref] = s.who
	return ref, err
}

func (s rtSeat) Open(ctx context.Context, key string, v hold.Verdict) (hold.Held, error) {
	held, err := s.rtDesk.Open(ctx, key, v)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.askers[held.Ref] = s.who
	return held, err
}

func (s rtSeat) Cancel(ctx context.Context, ref, reason string) error {
	s.mu.Lock()
	s.cancellers[ref] = s.who
	s.mu.Unlock()
	return s.rtDesk.Cancel(ctx, ref, reason)
}

func (d *rtDesk) Ask(_ context.Context, key string, q hold.Question) (string, error) {
	return d.put(key, func(ref string) {
		d.questions[ref], d.answers[ref] = q, hold.Answer{State: hold.Pending}
	})
}

func (d *rtDesk) Answer(_ context.Context, ref string) (hold.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a, ok := d.answers[ref]
	if d.fail == nil && !ok {
		return a, hold.ErrNoRequest
	}
	return a, d.fail
}

func (d *rtDesk) Open(ctx context.Context, key string, v hold.Verdict) (hold.Held, error) {
	ref, err := d.put(key, func(ref string) {
		d.verdicts[ref], d.held[ref] = v, hold.Held{Ref: ref, State: hold.Pending}
	})
	if err != nil {
		return hold.Held{}, err
	}
	return d.Look(ctx, ref)
}

func (d *rtDesk) Look(_ context.Context, ref string) (hold.Held, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h, ok := d.held[ref]
	if d.fail == nil && !ok {
		return h, hold.ErrNoRequest
	}
	return h, d.fail
}

func (d *rtDesk) Claim(_ context.Context, ref, key string, v hold.Verdict) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := errors.Join(d.fail, d.claim); err != nil {
		return err
	}
	if d.held[ref].State != hold.Approved || d.claimed[ref] != "" && d.claimed[ref] != key {
		return hold.ErrNotClaimed
	}
	d.claimed[ref], d.verdicts[ref] = key, v
	return nil
}

func (d *rtDesk) Cancel(_ context.Context, ref, _ string) error {
	var err error
	d.do(ref, func() {
		if err = d.fail; err != nil {
			return
		}
		d.cancelled[ref]++
		if d.answers[ref].State == hold.Pending {
			d.answers[ref] = hold.Answer{State: hold.Cancelled}
		}
		if d.held[ref].State == hold.Pending {
			d.held[ref] = hold.Held{Ref: ref, State: hold.Cancelled}
		}
	})
	return err
}

func (d *rtDesk) Watch(ctx context.Context, changed func(string)) error {
	d.mu.Lock()
	d.n++
	n := d.n
	d.watchers[n] = changed
	d.mu.Unlock()
	changed("")
	<-ctx.Done()
	d.mu.Lock()
	delete(d.watchers, n)
	d.mu.Unlock()
	return ctx.Err()
}

// says puts down how a question stands, if it is open still.
func (d *rtDesk) says(ref string, a hold.Answer) {
	d.do(ref, func() {
		if d.answers[ref].State == hold.Pending {
			d.answers[ref] = a
		}
	})
}

func (d *rtDesk) holds(h hold.Held) { d.do(h.Ref, func() { d.held[h.Ref] = h }) }

func (d *rtDesk) fails(err error) { d.do("", func() { d.fail = err }) }

func (d *rtDesk) refs() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.order)
}
