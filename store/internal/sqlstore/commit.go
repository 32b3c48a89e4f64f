package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/store"
)

const (
	groupSize    = 64               // updates in one transaction
	groupTimeout = 30 * time.Second // for one transaction; only a database that hangs takes so long
	// number of attempts that give way if a second lock is taken; later attempts wait for
	// it, one such transaction at a time
	polite = 2
)

var (
	errBusy    = errors.New("another transaction holds what this one needs")
	errAborted = errors.New("the update's function did not return")
	errClosed  = errors.New("the store is closed")
)

// job is a queued update, or a queued change of a record.
type job struct {
	what   string
	tenant string
	record string          // room and key; empty for an update
	run    func(*tx) error // the update's function; errAborted means that it must not be called again
	done   func(error)     // called once
	tries  int             // how often it gave way to another transaction
	err    error           // what run returned last
}

// queue holds the waiting updates, and counts the leaders that commit them.
type queue struct {
	mu      sync.Mutex
	idle    sync.Cond
	waiting []*job
	leaders int
	closed  bool
}

// add queues a job. lead reports whether the caller must start a leader.
func (q *queue) add(j *job, most int) (lead bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, errClosed
	}
	q.waiting = append(q.waiting, j)
	if q.leaders >= most {
		return false, nil
	}
	q.leaders++
	return true, nil
}

// take hands the next jobs to a leader: updates in the order of their arrival, then records
// in the order of their keys, so that no two groups can wait for each other's rows. If
// there are no jobs, take dismisses the leader and returns nil.
func (q *queue) take() []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), groupSize)
	if n == 0 {
		q.leaders--
		if q.idle.L != nil {
			q.idle.Broadcast()
		}
		return nil
	}

	jobs := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	slices.SortStableFunc(jobs, func(a, b *job) int { return strings.Compare(a.record, b.record) })
	return jobs
}

// again puts jobs that gave way to another transaction at the front of the queue.
func (q *queue) again(jobs []*job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.Concat(jobs, q.waiting)
}

// withdraw removes a job from the queue unless a leader has taken it.
func (q *queue) withdraw(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(q.waiting)
	q.waiting = slices.DeleteFunc(q.waiting, func(w *job) bool { return w == j })
	return len(q.waiting) < before
}

// close refuses new jobs. Leaders still finish the waiting ones.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.idle.L = &q.mu
	for q.leaders > 0 {
		q.idle.Wait()
	}
}

// caller runs a job's function on the goroutine that called run, whenever a leader hands it
// the turn. So a panic in the function, or a test that ends there, affects only that
// goroutine.
type caller struct {
	turn chan *tx
	back chan error
}

func (c *caller) run(t *tx) error {
	c.turn <- t
	return <-c.back
}

func (c *caller) serve(t *tx, fn func(*tx) error) {
	err := errAborted
	defer func() { c.back <- err }()
	err = fn(t)
}

// Update queues fn for the next group.
func (s *Store) Update(ctx context.Context, tenant string, fn func(approval.Tx) error) error {
	if err := s.stopped(tenant); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	return s.run(ctx, &job{what: "update", tenant: tenant}, func(t *tx) error { return fn(t) })
}

// run queues a job for a leader, and waits until it is done.
func (s *Store) run(ctx context.Context, j *job, fn func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", j.what, err)
	}
	c := &caller{make(chan *tx), make(chan error, 1)}
	done := make(chan error, 1)
	j.run, j.done = c.run, func(err error) { done <- err }
	lead, err := s.queue.add(j, s.d.Writers)
	if err != nil {
		return unavailable(j.what, err)
	}
	if lead {
		go s.lead()
	}
	cancelled := ctx.Done()
	for {
		select {
		case t := <-c.turn:
			c.serve(t, fn)
		case err := <-done:
			return err
		case <-cancelled:
			if s.queue.withdraw(j) {
				return fmt.Errorf("%s: %w", j.what, ctx.Err())
			}
			cancelled = nil // a leader has it: its outcome is known only after the commit
		}
	}
}

// lead commits groups until the queue is empty.
func (s *Store) lead() {
	for jobs := s.queue.take(); jobs != nil; jobs = s.queue.take() {
		s.queue.again(s.commit(jobs, s.answering.Go))
	}
}

// commit answers all jobs except those that it returns, which gave way to another
// transaction. Work that must be finished before jobs are answered is passed to later,
// which runs it at once or concurrently with the next group.
func (s *Store) commit(jobs []*job, later func(func())) (again []*job) {
	if len(jobs) == 1 {
		s.alone(jobs[0])
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), groupTimeout)
	defer cancel()
	b := &batch{s: s, ctx: ctx}
	if err := s.group(ctx, b, jobs); err != nil {
		s.oneByOne(jobs)
		return nil
	}
	var done, patient []*job
	for _, j := range jobs {
		switch {
		case j.err != errBusy:
			done = append(done, j)
		case j.tries < polite:
			j.tries++
			again = append(again, j)
		default:
			patient = append(patient, j)
		}
	}
	answer := func() {
		b.kept()
		for _, j := range done {
			j.done(j.err)
		}
	}
	if b.mark != nil {
		later(answer)
	} else {
		answer()
	}
	for _, j := range patient {
		s.alone(j)
	}
	return again
}

// oneByOne gives each job a transaction of its own, after a transaction for all of them
// failed. If a transaction can't be started, the remaining jobs fail with the same error
// instead of waiting for it again.
func (s *Store) oneByOne(jobs []*job) {
	for i, j := range jobs {
		err, begun := s.alone(j)
		if err != nil && !begun {
			for _, rest := range jobs[i+1:] {
				rest.done(err)
			}
			return
		}
	}
}

// alone runs one job until it is committed or refused, or no attempt is left, and answers
// it. begun is false if no transaction could be started.
func (s *Store) alone(j *job) (err error, begun bool) {
	if j.err == errAborted {
		j.done(errAborted)
		return nil, true
	}
	for n := 1; ; n++ {
		b := &batch{s: s, patient: n+j.tries > polite}
		var cancel context.CancelFunc
		b.ctx, cancel = context.WithTimeout(context.Background(), groupTimeout)
		err = s.group(b.ctx, b, []*job{j})
		cancel()
		if err == nil && j.err != errBusy {
			b.kept()
			j.done(j.err)
			return nil, true
		}
		if err == nil {
			continue
		}
		class := s.classOf(err)
		again := class == Conflict || class == Lost && !b.committing && n < 3
		if !again || n >= attempts || j.err == errAborted {
			err = fmt.Errorf("%s: %w", j.what, s.refusal(err, b.committing && class == Lost))
			j.done(err)
			return err, b.begun
		}
	}
}

// classOf returns the engine's class of an error, and Broken for a verdict.
func (s *Store) classOf(err error) Class {
	if _, ours := errors.AsType[verdict](err); ours {
		return Broken
	}
	return s.eng.Class(err)
}

// refusal returns the error for the caller of a transaction that was not committed.
func (s *Store) refusal(err error, unknown bool) error {
	if v, ours := errors.AsType[verdict](err); ours {
		return v.error
	}
	switch {
	case errors.Is(err, ErrMoved):
		ctx, cancel := context.WithTimeout(context.Background(), groupTimeout)
		defer cancel()
		return cmp.Or(s.stillBound(ctx), approval.ErrVersion)
	case unknown:
		return fmt.Errorf("%w: it is not known whether it was committed: %w", store.ErrUnavailable, err)
	}

	return fmt.Errorf("%w: %w", store.ErrUnavailable, err) // a deadline is ours, not the caller's
}

// batch is one transaction of several updates.
type batch struct {
	s   *Store
	ctx context.Context
	tx  Tx
	// A patient batch waits for locks even if it holds some. Only one batch at a time is
	// patient, so no two wait for each other.
	patient    bool
	held       bool // it holds locks
	begun      bool
	committing bool
	err        error // of the engine, in a read: the transaction is lost
	freezes    map[string]frozen
	grantless  map[[3]string]bool // tenants, agents and targets without a live grant
	pasts      map[string]bool    // tenants whose lock of past calls it holds
	spending   []*job             // whose entries are sealed first
	mark       store.Reserved     // watermark marks to write before they are answered
	turn       bool               // it holds Store.turn
}

// group runs jobs in one transaction. If it fails, nothing was written. It sets j.err to
// the error for the job's caller, or to errBusy if the job gave way.
func (s *Store) group(ctx context.Context, b *batch, jobs []*job) (err error) {
	if b.tx, err = s.eng.Begin(ctx); err != nil {
		return err
	}
	defer b.tx.Rollback()
	b.begun = true
	b.tx.Queue(s.held()...)
	if b.patient && s.d.Patience != "" {
		b.tx.Queue(do(s.d.Patience))
	}
	changed := map[string]bool{}
	var written []*tx
	for _, j := range jobs {
		if j.err == errAborted {
			continue
		}
		t, err := s.perform(b, j)
		if err != nil {
			return err
		}
		if j.err == nil && (t.changes() || t.sealFirst) {
			b.note(t)
			changed[j.tenant], written = true, append(written, t)
			if t.sealFirst {
				b.spending = append(b.spending, j)
			}
		}
	}

	defer b.endTurn()
	sealed, err := b.sealGroup(ctx, written)
	if err == nil {
		b.committing = true
		err = b.commitOwn(ctx, written, sealed)
	}
	if err != nil {
		sealed.drop()
		return err
	}
	for _, t := range written {
		s.committed(t)
	}
	for tenant, done := range sealed.tenants {
		s.learn(ctx, tenant, done.at, done.seen)
		s.sealedFirst.Add(done.n)
	}
	b.mark = sealed.mark
	for tenant := range changed {
		s.changes.happened(tenant)
	}
	return nil
}

// commitOwn commits, and remembers which entries must appear among those that are sealed
// later.
func (b *batch) commitOwn(ctx context.Context, written []*tx, sealed sealing) error {
	later := slices.DeleteFunc(slices.Clone(written), func(t *tx) bool {
		_, now := sealed.tenants[t.tenant]
		return now
	})
	for _, t := range later {
		b.s.own.send(t.tenant, t.appended)
	}
	err := b.tx.Commit(ctx)
	for _, t := range later {
		b.s.own.commit(t.tenant, t.appended, err == nil)
	}
	if err != nil && len(later) < len(written) {
		return notSealed(err)
	}
	return err
}

// committed remembers the writes of an update after its commit.
func (s *Store) committed(t *tx) {
	now := time.Now()
	for subject, version := range t.told {
		s.versions.note(rowName{t.tenant, subject}, version, now)
	}
	if version, froze := t.told[""]; froze {
		s.advance(t.tenant, store.Mark{Freezes: version, Frozen: t.frozenThen})
	}
}

// perform runs a job's function in the batch. The returned error is a failure of the
// engine.
func (s *Store) perform(b *batch, j *job) (*tx, error) {
	t := &tx{b: b, tenant: j.tenant}
	j.err = t.settle(j.run(t))
	return t, b.err
}

// note queues the writes of a transaction, and remembers what later ones in the batch need
// to know about it.
func (b *batch) note(t *tx) {
	b.tx.Queue(t.writes...)
	b.held = true
	if t.wroteFreeze {
		delete(b.freezes, t.tenant)
	}
	if t.wroteGrant {
		b.grantless = nil
	}
}
