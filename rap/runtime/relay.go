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

// relay holds what an upstream server asks until the run of the call
// takes it. It is in memory, as runs are: what outlives the process is
// an end without an answer.
type relay struct {
	hold.Requests // approvals, of which there are none: the rules of the runtime in front ask about nothing

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

// As returns the relay itself: the questions of a call are found by a
// key that nobody else knows.
func (d *relay) As(approval.Asker) hold.Requests { return d }

// relayKept is how long an answer is known after its question would
// have expired.
const relayKept = time.Minute

// Ask keeps a question.
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

// Answer returns what is known of a question.
func (d *relay) Answer(_ context.Context, ref string) (hold.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.asked[ref]
	if q == nil {
		return hold.Answer{}, fmt.Errorf("look at a relayed question: %w", hold.ErrNoRequest)
	}
	return q.answer, nil
}

// take gives the run of a call its question, once.
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

// settle ends a question and tells who watches.
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

// Watch tells of answers.
func (d *relay) Watch(ctx context.Context, changed func(ref string)) error {
	defer d.watching.add(changed)()
	changed("")
	<-ctx.Done()

	return ctx.Err()
}

// watchers are those who are told of something by its name.
type watchers struct {
	mu  sync.Mutex
	all map[int]func(string)
	n   int
}

// add has somebody told until leave is called.
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
