package notify

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/backoff"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/template"
)

// Target is a place that deliveries go to.
type Target struct {
	Name        string // as in approval.Delivery.Target
	Sender      Sender
	Concurrency int           // deliveries under way at once; 4
	Timeout     time.Duration // of one attempt; 15s
}

// WorkerConfig says what a Worker works on. Outbox and Targets are
// required, zero fields take the defaults named.
type WorkerConfig struct {
	Outbox  store.Outbox
	Targets []Target
	Owner   string           // distinguishes this process from other replicas; a random text
	Now     func() time.Time // time.Now
	// a channel that is closed when something may be due; nil: polling only
	Changed  func() <-chan struct{}
	Poll     time.Duration // how often to look when nothing wakes it; 2s
	Lease    time.Duration // of a claim; the longest timeout and a minute
	Drain    time.Duration // how long Run lets attempts under way finish after its end; 10s
	Attempts int           // before a delivery is buried; 12
	Backoff  time.Duration // upper bound of the first wait, doubled for each further one; 5s
	// hears of every attempt and of failures of the outbox (with a zero
	// job); nil: nobody
	Report func(job store.Job, r Result, e error)
}

// MaxBackoff bounds every wait between two attempts, also those that a
// target asks for.
const MaxBackoff = time.Hour

// Result is what became of an attempt.
type Result string

// The results.
const (
	Arrived Result = "delivered"
	Again   Result = "retry"
	Buried  Result = "dead"
	Lost    Result = "store" // the outbox could not be asked or told; the lease runs out and somebody sends it again
)

// Worker sends deliveries. Each target has its own lane, so that one
// that hangs holds up no other.
type Worker struct {
	cfg   WorkerConfig
	lanes []*lane
}

// NewWorker checks the configuration.
func NewWorker(cfg WorkerConfig) (*Worker, error) {
	if cfg.Outbox == nil {
		return nil, errors.New("notify: expected an outbox")
	}
	cfg.setDefaults()
	w := &Worker{cfg: cfg}
	var longest time.Duration
	for _, t := range cfg.Targets {
		t.Concurrency, t.Timeout = positive(t.Concurrency, 4), positive(t.Timeout, 15*time.Second)
		if t.Name == "" || t.Sender == nil {
			return nil, fmt.Errorf("notify: target %q: expected a name and a sender", t.Name)
		}
		if slices.ContainsFunc(w.lanes, func(l *lane) bool { return l.Name == t.Name }) {
			return nil, fmt.Errorf("notify: target %q: expected one target of this name", t.Name)
		}
		longest = max(longest, t.Timeout)
		w.lanes = append(w.lanes, &lane{
			Target: t,
			w:      w,
			slots:  make(chan struct{}, t.Concurrency),
		})
	}

	w.cfg.Lease = positive(cfg.Lease, longest+time.Minute)
	if w.cfg.Lease <= longest {
		return nil, fmt.Errorf(
			"notify: expected a lease longer than the longest timeout, %s: another process would send the same again",
			longest,
		)
	}

	return w, nil
}

func (c *WorkerConfig) setDefaults() {
	if c.Owner == "" {
		c.Owner = rand.Text()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Changed == nil {
		c.Changed = func() <-chan struct{} { return nil }
	}
	if c.Report == nil {
		c.Report = func(store.Job, Result, error) {}
	}
	c.Poll = positive(c.Poll, 2*time.Second)
	c.Drain = positive(c.Drain, 10*time.Second)
	c.Attempts = positive(c.Attempts, 12)
	c.Backoff = positive(c.Backoff, 5*time.Second)
}

func positive[T int | time.Duration](v, def T) T {
	if v > 0 {
		return v
	}
	return def
}

// Run sends until ctx is done, then lets attempts under way finish for
// the time of Drain; those that don't are due again at once.
func (w *Worker) Run(ctx context.Context) {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var lanes sync.WaitGroup
	for _, l := range w.lanes {
		lanes.Go(func() { l.run(ctx, sending) })
	}
	<-ctx.Done()
	drained := time.AfterFunc(w.cfg.Drain, stop)
	defer drained.Stop()
	lanes.Wait()
}

// Once sends what is due now, at most as many per target as it takes at
// once, and returns how many attempts it made.
func (w *Worker) Once(ctx context.Context) int {
	counts := make([]int, len(w.lanes))
	var lanes sync.WaitGroup
	for i, l := range w.lanes {
		lanes.Go(func() { counts[i] = l.once(ctx) })
	}
	lanes.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

// lane is one target's work.
type lane struct {
	Target
	w     *Worker
	slots chan struct{} // one element for each attempt under way
	busy  sync.WaitGroup
}

// run claims and sends. sending outlives ctx by the time of Drain.
func (l *lane) run(ctx, sending context.Context) {
	defer l.busy.Wait()
	for l.take(ctx) {
		changed := l.w.cfg.Changed() // asked before looking, so that no change is missed
		if l.start(ctx, sending, 1+l.takeMore()) == 0 {
			l.rest(ctx, changed)
		}
	}
}

func (l *lane) once(ctx context.Context) int {
	if !l.take(ctx) {
		return 0
	}
	n := l.start(ctx, ctx, 1+l.takeMore())
	l.busy.Wait()
	return n
}

// take waits for a free slot; false when ctx ends.
func (l *lane) take(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case l.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// takeMore takes the slots that are free besides.
func (l *lane) takeMore() int {
	for n := 0; ; n++ {
		select {
		case l.slots <- struct{}{}:
		default:
			return n
		}
	}
}

// start claims as many deliveries as slots were taken and begins to
// send them.
func (l *lane) start(ctx, sending context.Context, slots int) int {
	cfg := &l.w.cfg
	jobs, err := cfg.Outbox.Claim(ctx, cfg.Owner, []string{l.Name}, cfg.Now(), cfg.Lease, slots)
	if err != nil {
		jobs = nil
		if ctx.Err() == nil {
			cfg.Report(store.Job{}, Lost, fmt.Errorf("claim deliveries of %s: %w", l.Name, err))
		}
	}

	for range slots - len(jobs) {
		<-l.slots
	}
	for _, job := range jobs {
		l.busy.Go(func() {
			defer func() { <-l.slots }()
			l.attempt(sending, job)
		})
	}

	return len(jobs)
}

func (l *lane) rest(ctx context.Context, changed <-chan struct{}) {
	poll := time.NewTimer(l.w.cfg.Poll)
	defer poll.Stop()
	select {
	case <-changed:
	case <-poll.C:
	case <-ctx.Done():
	}
}

// attempt sends one delivery and ends the claim.
func (l *lane) attempt(sending context.Context, job store.Job) {
	ctx, cancel := context.WithTimeout(sending, l.Timeout)
	defer cancel()
	err := l.Sender.Send(ctx, job)
	// The end of a claim is told even when this process is ending:
	// otherwise the delivery waits for its lease.
	ctx, cancel = context.WithTimeout(context.WithoutCancel(sending), endTimeout)
	defer cancel()
	result, told := l.end(ctx, job, err, sending.Err() != nil)
	if told != nil {
		result, err = Lost, fmt.Errorf("end delivery %d to %s: %w", job.ID, l.Name, errors.Join(told, err))
	}
	l.w.cfg.Report(job, result, err)
}

const endTimeout = 10 * time.Second

// end tells the outbox what became of an attempt. An attempt that our
// own end cut short is due again at once.
func (l *lane) end(ctx context.Context, job store.Job, err error, cutShort bool) (Result, error) {
	cfg := &l.w.cfg
	now := cfg.Now()
	failure, typed := errors.AsType[*Failure](err)
	_, refused := errors.AsType[*guard.Refusal](err)
	switch {
	case err == nil:
		return Arrived, cfg.Outbox.Delivered(ctx, cfg.Owner, job.ID, now)
	case refused, typed && failure.Permanent:
		return Buried, cfg.Outbox.Bury(ctx, cfg.Owner, job.ID, problem(err), now)
	case cutShort:
		return Again, cfg.Outbox.Retry(ctx, cfg.Owner, job.ID, "cut short: the server was stopping", now)
	case job.Attempt >= cfg.Attempts:
		return Buried, cfg.Outbox.Bury(
			ctx,
			cfg.Owner,
			job.ID,
			fmt.Sprintf("gave up after %d attempts: %s", job.Attempt, problem(err)),
			now,
		)
	}

	wait := backoff.Jitter(cfg.Backoff, MaxBackoff, job.Attempt)
	if typed {
		wait = min(max(wait, failure.After), MaxBackoff)
	}
	return Again, cfg.Outbox.Retry(ctx, cfg.Owner, job.ID, problem(err), now.Add(wait))
}

// problem is an error as operators see it: one line, no control
// characters, bounded.
func problem(err error) string {
	const most = 500
	text := []rune(template.Escape(err.Error()))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}
