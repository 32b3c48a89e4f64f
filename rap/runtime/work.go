package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/rap/internal/names"
)

// errMoved says that a call no longer stands where it stood when somebody began to change it: nothing was written.
var errMoved = errors.New("the call has moved on")

// storeWithin bounds what one step may wait for the store and the desk, when nobody else waits for it.
const storeWithin = 30 * time.Second

// change changes a document by compare-and-set: read, changed, written, and again when somebody else was faster. An error of change is
// returned and writes nothing.
func changeDoc[T any](ctx context.Context, v *kept.Vault[T], key string, change func(*kept.Doc[T]) error) (*kept.Doc[T], error) {
	const attempts = 100
	for range attempts {
		d, err := v.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		if err := change(d); err != nil {
			return d, err
		}
		if err := v.Put(ctx, d); !errors.Is(err, approval.ErrVersion) {
			return d, err
		}
	}
	return nil, fmt.Errorf("the record was changed %d times meanwhile: %w", attempts, approval.ErrVersion)
}

// update moves a call. The steps of one thread follow one another (C12): in this process by its lock, among processes by compare-and-set.
// Neither the desk nor the network is used in here.
func (r *Runtime) update(ctx context.Context, key string, change func(*outCall) error) (*outCall, error) {
	unlock, err := r.threads.lock(ctx, names.ThreadOf(key))
	if err != nil {
		return nil, err
	}
	defer unlock()
	return r.updateLocked(ctx, key, change)
}

func (r *Runtime) updateLocked(ctx context.Context, key string, change func(*outCall) error) (*outCall, error) {
	d, err := changeDoc(ctx, r.calls, key, func(d *kept.Doc[outCall]) error {
		if err := change(&d.Body); err != nil {
			return err
		}
		d.Due, d.Expires = d.Body.due(), d.Body.expires(r.now())
		return nil
	})
	if err != nil {
		if d != nil {
			return &d.Body, err
		}
		return nil, err
	}
	r.waiting.wake(key)
	if due := d.Body.due(); !due.IsZero() && !due.After(r.now()) {
		r.kick(key, false)
	}
	return &d.Body, nil
}

// locks are one lock for each key that somebody uses.
type locks struct {
	mu   sync.Mutex
	held map[string]*oneLock
}

type oneLock struct {
	users int
	free  chan struct{} // holds one value while nobody has the lock
}

func (l *locks) lock(ctx context.Context, key string) (unlock func(), err error) {
	l.mu.Lock()
	one := l.held[key]
	if one == nil {
		one = &oneLock{free: make(chan struct{}, 1)}
		one.free <- struct{}{}
		l.held[key] = one
	}
	one.users++
	l.mu.Unlock()
	select {
	case <-one.free:
		return func() { one.free <- struct{}{}; l.leave(key, one) }, nil
	case <-ctx.Done():
		l.leave(key, one)
		return nil, ctx.Err()
	}
}

func (l *locks) leave(key string, one *oneLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(l.held, key)
	}
}

// waiters are those who wait for news of a key.
type waiters struct {
	mu  sync.Mutex
	all map[string]*oneWait
}

type oneWait struct {
	users int
	news  chan struct{}
}

// on returns a channel that is closed with the next news.
func (w *waiters) on(key string) (news <-chan struct{}, leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.all[key]
	if one == nil {
		one = &oneWait{news: make(chan struct{})}
		w.all[key] = one
	}
	one.users++
	return one.news, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if one.users--; one.users == 0 && w.all[key] == one {
			delete(w.all, key)
		}
	}
}

func (w *waiters) wake(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.all[key]; one != nil {
		close(one.news)
		delete(w.all, key)
	}
}

// jobs are the calls that this process works on now, each by one goroutine.
type jobs struct {
	mu    sync.Mutex
	on    map[string]*job
	slots chan struct{} // bounds how many work at once
}

type job struct{ again, look bool }

// take tells whether the caller is to work on the key; otherwise whoever does will look once more.
func (j *jobs) take(key string, look bool) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if on := j.on[key]; on != nil {
		on.again, on.look = true, on.look || look
		return false
	}
	j.on[key] = &job{look: look}
	return true
}

// next tells whether there is anything to do, and gives the key back when there is not.
func (j *jobs) next(key string, first bool) (look, more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	on := j.on[key]
	if !first && !on.again {
		delete(j.on, key)
		return false, false
	}
	look = on.look
	on.again, on.look = false, false
	return look, true
}

func (j *jobs) idle() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.on) == 0
}

// kick has a call worked on, soon and by this process. look says that the desk has news of it.
func (r *Runtime) kick(key string, look bool) {
	if r.jobs.take(key, look) {
		go func() {
			r.jobs.slots <- struct{}{}
			defer func() { <-r.jobs.slots }()
			r.work(key)
		}()
	}
}

func (r *Runtime) work(key string) {
	for first := true; ; first = false {
		look, more := r.jobs.next(key, first)
		if !more {
			return
		}
		r.advance(key, look)
	}
}

// advance takes the steps that are due, one after another. Each is written down before the next, so that a crash between any two loses nothing.
func (r *Runtime) advance(key string, look bool) {
	const steps = 30 // more follow when the record is due again
	for range steps {
		ctx, done := context.WithTimeout(context.Background(), storeWithin)
		more, err := r.step(ctx, key, look)
		done()
		if err != nil && !errors.Is(err, errMoved) {
			r.log.Warn("a step of a call failed", "call", callName(key), "error", plainError(err))
			return
		}
		if !more {
			return
		}
		look = false
	}
}

func (r *Runtime) step(ctx context.Context, key string, look bool) (more bool, err error) {
	d, err := r.calls.Get(ctx, key)
	if errors.Is(err, approval.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if next := r.nextStep(&d.Body, look); next != nil {
		return true, next(ctx, &d.Body)
	}
	return false, nil
}

// nextStep is the state machine: what is to be done for a call now, nil for nothing.
func (r *Runtime) nextStep(c *outCall, look bool) func(context.Context, *outCall) error {
	now := r.now()
	come := func(t time.Time) bool { return !now.Before(t) }
	switch {
	case c.State == CallDone:
	case !c.owned():
		return r.disown
	case come(c.Deadline):
		return r.timeOut
	case c.State == CallAsking && (look || come(c.Consent.Next)):
		return r.seekConsent
	case c.State == CallSending && c.Send.ready(now):
		return r.send
	case c.asking() && (look || come(c.Choice.Next) || come(c.Choice.Deadline)):
		return r.seekAnswer
	case c.answering() && c.Choice.Post.ready(now):
		return r.deliver
	}
	if len(c.Withdraw) > 0 && come(c.Later) {
		return r.withdraw
	}
	return nil
}

// ending is how a call ends without a result of its tool.
type ending struct {
	why  Why
	text string
	tell bool // the servers, that nobody waits any more (L7)
}

// end ends a call with an outcome of our own. An error of guard says that it is not to end after all.
func (r *Runtime) end(ctx context.Context, c *outCall, how ending, guard func(*outCall) error) error {
	now, err := r.update(ctx, c.Key, func(c *outCall) error {
		if c.State == CallDone {
			return errMoved
		}
		if err := guard(c); err != nil {
			return err
		}
		c.finish(r.now(), rap.Outcome{Text: "Error: " + how.text}, how.why)
		return nil
	})
	if err != nil {
		return err
	}
	r.ended(ctx, now)
	if how.tell {
		r.tellCancelled(now)
	}
	return nil
}

// ended records how a call ended.
func (r *Runtime) ended(ctx context.Context, c *outCall) {
	event := "rap_result"
	switch c.Told.Why {
	case WhyInterrupted, WhyClosed:
		event = "rap_cancelled"
	}
	r.note(ctx, event, c, map[string]any{"failed": c.Told.Failed, "why": string(c.Told.Why)})
}

func (r *Runtime) timeOut(ctx context.Context, c *outCall) error {
	return r.end(ctx, c, ending{WhyTimeout, "no result came in time", c.left()}, func(c *outCall) error {
		if r.now().Before(c.Deadline) {
			return errMoved
		}
		return nil
	})
}

// pause is how long to wait after so many attempts at the desk or the plan that failed in a row.
func pause(tries int) time.Duration {
	return min(time.Second<<min(tries, 6), time.Minute)
}
