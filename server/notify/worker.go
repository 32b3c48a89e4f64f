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

// Target is a destination of deliveries.
type Target struct {
	Name        string // as in approval.Delivery.Target
	Sender      Sender
	Concurrency int           // deliveries in progress at the same time; 4 by default
	Timeout     time.Duration // of one attempt; 15s by default
}

// WorkerConfig configures a Worker. Outbox and Targets are required. Zero fields have the given
// defaults.
type WorkerConfig struct {
	Outbox  store.Outbox
	Targets []Target
	Owner   string           // distinguishes this process from other replicas; random by default
	Now     func() time.Time // clock; time.Now by default
	// Changed returns a channel that is closed when something may be due. If it is nil, the
	// worker only polls.
	Changed  func() <-chan struct{}
	Poll     time.Duration // how often to check without a change; 2s by default
	Lease    time.Duration // duration of a claim; by default the longest timeout plus a minute
	Drain    time.Duration // how long attempts in progress may continue after Run's context ends; 10s by default
	Attempts int           // attempts before a delivery is marked as dead; 12 by default
	Backoff  time.Duration // upper bound of the first wait, doubled for each further one; 5s by default
	// Report is called for every attempt, and for failures of the outbox with a zero job. It
	// may be nil.
	Report func(job store.Job, r Result, e error)
}

// MaxBackoff limits every wait between two attempts, including waits that a target requests.
const MaxBackoff = time.Hour

// Result is the result of an attempt.
type Result string

// The results.
const (
	Arrived Result = "delivered"
	Again   Result = "retry"
	Buried  Result = "dead"
	Lost    Result = "store" // the outbox failed; another worker sends the delivery again after the lease
)

// Worker sends deliveries. Each target has its own lane, so that a target that hangs doesn't
// delay others.
type Worker struct {
	cfg   WorkerConfig
	lanes []*lane
}

// NewWorker checks the configuration and returns a worker.
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

// Run sends deliveries until ctx is done. Attempts in progress may then continue for the Drain
// duration. Those that don't finish are due again immediately.
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

// Once sends the deliveries that are due now, for each target at most its Concurrency, and
// returns the number of attempts.
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

// lane sends the deliveries of one target.
type lane struct {
	Target
	w     *Worker
	slots chan struct{} // one element for each attempt in progress
	busy  sync.WaitGroup
}

// run claims and sends deliveries. sending lasts for the Drain duration longer than ctx.
func (l *lane) run(ctx, sending context.Context) {
	defer l.busy.Wait()
	for l.take(ctx) {
		changed := l.w.cfg.Changed() // before looking, so that no change is missed
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

// take waits for a free slot. It returns false if ctx ends.
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

// takeMore takes all other free slots and returns their number.
func (l *lane) takeMore() int {
	for n := 0; ; n++ {
		select {
		case l.slots <- struct{}{}:
		default:
			return n
		}
	}
}

// start claims as many deliveries as there are slots and begins to send them.
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
	// End the claim even if this process is stopping. Otherwise the delivery would wait until
	// its lease expires.
	ctx, cancel = context.WithTimeout(context.WithoutCancel(sending), endTimeout)
	defer cancel()
	result, told := l.end(ctx, job, err, sending.Err() != nil)
	if told != nil {
		result, err = Lost, fmt.Errorf("end delivery %d to %s: %w", job.ID, l.Name, errors.Join(told, err))
	}
	l.w.cfg.Report(job, result, err)
}

const endTimeout = 10 * time.Second

// end records the result of an attempt in the outbox. An attempt that was interrupted because
// this process is stopping is due again immediately.
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

// problem formats an error for operators: one line without control characters, of limited
// length.
func problem(err error) string {
	const most = 500
	text := []rune(template.Escape(err.Error()))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}
