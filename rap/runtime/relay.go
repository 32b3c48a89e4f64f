package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
)

// relay keeps questions of an upstream server until the run of the call takes them. It is in
// memory, as runs are: after a restart a question ends without an answer.
type relay struct {
	hold.Requests // approvals, of which there are none: a runtime for an upstream server has no rules

	watching watchers

	mu    sync.Mutex
	asked map[string]*relayed // by ref
}

type relayed struct {
	hold.Question
	answer hold.Answer
	taken  bool
	until  time.Time
}

func newRelay() *relay {
	return &relay{Requests: hold.Nobody(errors.New("nobody approves here")), asked: map[string]*relayed{}}
}

// As returns the relay itself for every asker: questions have secret keys.
func (d *relay) As(approval.Asker) hold.Requests { return d }

// relayKept is the time for which an answer is kept after the question has expired.
const relayKept = time.Minute

// Ask stores a question.
func (d *relay) Ask(_ context.Context, key string, q hold.Question) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	ref := "relayed " + durable.Hash(key)
	if d.asked[ref] == nil {
		d.asked[ref] = &relayed{
			Question: q,
			answer:   hold.Answer{State: hold.Pending},
			until:    time.Now().Add(q.Within + relayKept),
		}
	}

	return ref, nil
}

func (d *relay) sweep() {
	now := time.Now()
	maps.DeleteFunc(d.asked, func(_ string, q *relayed) bool { return now.After(q.until) })
}

// Answer returns the current answer to a question.
func (d *relay) Answer(_ context.Context, ref string) (hold.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.asked[ref]
	if q == nil {
		return hold.Answer{}, fmt.Errorf("look at a relayed question: %w", hold.ErrNoRequest)
	}
	return q.answer, nil
}

// take returns a question to the run of its call. It returns false if the question was taken
// before or is no longer open.
func (d *relay) take(ref string) (hold.Question, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.asked[ref]
	if q == nil || q.taken {
		return hold.Question{}, false
	}
	q.taken = true
	return q.Question, q.answer.State == hold.Pending
}

// settle stores the answer to a question and notifies watchers.
func (d *relay) settle(ref string, a hold.Answer) {
	d.mu.Lock()
	if q := d.asked[ref]; q != nil && q.answer.State == hold.Pending {
		q.answer = a
	}
	d.mu.Unlock()
	d.watching.tell(ref)
}

// Cancel withdraws a question.
func (d *relay) Cancel(_ context.Context, ref, reason string) error {
	d.settle(ref, hold.Answer{State: hold.Cancelled, Reason: reason})
	return nil
}

// Watch calls changed for each answer, until ctx ends.
func (d *relay) Watch(ctx context.Context, changed func(ref string)) error {
	defer d.watching.add(changed)()
	changed("")
	<-ctx.Done()

	return ctx.Err()
}

// watchers are functions to be called with the name of something that changed.
type watchers struct {
	mu  sync.Mutex
	all map[int]func(string)
	n   int
}

// add registers a function until leave is called.
func (w *watchers) add(changed func(string)) (leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[int]func(string){}
	}
	w.n++
	me := w.n
	w.all[me] = changed

	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, me)
	}
}

func (w *watchers) tell(name string) {
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.all))
	w.mu.Unlock()
	for _, changed := range all {
		changed(name)
	}
}
