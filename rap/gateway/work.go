package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/store"
)

const (
	executionLease = 5 * time.Second  // how long an executing call is its process's own without a sign of life
	rememberEnded  = 24 * time.Hour   // how long repetitions of a call that ended are known
	countEvery     = 30 * time.Second // how often to count what is open, and to sweep
	stopGrace      = 10 * time.Second // how long Run waits for operations when it is to end
)

// gateDue is a call that something is to be done about.
type dueCall struct {
	key    string
	caller string
	d      *kept.Doc[call] // as it was stored last, or nil: it has to be read, and may not be due
	look   bool            // the desk has news of it
}

// light leaves large documents in the store until their turn comes.
func (due dueCall) light() dueCall {
	const most = 16 << 10
	if due.d != nil && len(due.d.Body.Args)+len(due.d.Body.Result) > most {
		due.d = nil
	}
	return due
}

// gateJob is a call that this process works on now.
type activeCall struct {
	again bool // somebody moved it meanwhile
	look  bool // the desk has news of it
	stop  context.CancelCauseFunc
	run   *operationRun // while it runs
}

// Run works until ctx ends on what a request alone can't do: calls after their acknowledgement, deadlines, answers at the desk, attempts to try
// again, and what an earlier process left. Any number of processes may run on one store and room.
func (g *Gateway) Run(ctx context.Context) error {
	var jobs sync.WaitGroup
	defer waitFor(&jobs)
	jobs.Go(func() { g.tidy(ctx) })
	g.watch(ctx, &jobs)
	full := make(chan struct{}, 1)
	jobs.Go(func() { eachTime(ctx, full, func() { g.share(ctx, &jobs) }) })
	poll := time.NewTicker(g.cfg.Poll)
	defer poll.Stop()
	g.poll(ctx, &jobs, full)
	for {
		select {
		case <-ctx.Done():
			return nil
		case due := <-g.made:
			g.begin(ctx, &jobs, due)
		case <-poll.C:
			g.poll(ctx, &jobs, full)
		}
	}
}

// tidy counts what is open and sweeps, now and then. Both read much of what is kept: the longer that takes, the longer it rests.
func (g *Gateway) tidy(ctx context.Context) {
	for ctx.Err() == nil {
		start := time.Now()
		if err := errors.Join(g.count(ctx), g.cfg.Records.SweepRecords(ctx, g.now())); err != nil && ctx.Err() == nil {
			g.cfg.Log.ErrorContext(ctx, "open calls can't be counted, or records swept", "error", err)
		}
		kept.Sleep(ctx, max(countEvery, 20*time.Since(start)))
	}
}

// gateWait lets operations end that were told to. What does not is found executing, without a sign of life, by whoever comes next.
func waitFor(jobs *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() { jobs.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(stopGrace):
	}
}

// gateDuePage is how many due calls are read at once. They may be large.
const duePage = 256

// poll begins what is due in the store, the earliest first. Where there is more than a page of it, or something that can't be read, calls of one caller
// could hide those of all others: then full has it shared out.
func (g *Gateway) poll(ctx context.Context, jobs *sync.WaitGroup, full chan<- struct{}) {
	due, err := g.calls.Due(ctx, g.now(), duePage)
	if err != nil || len(due) == duePage {
		select {
		case full <- struct{}{}:
		default:
		}
	}
	if err != nil && ctx.Err() == nil {
		g.cfg.Log.ErrorContext(ctx, "due calls can't be read", "error", err)
	}
	for _, d := range due {
		g.begin(ctx, jobs, dueCall{key: d.Key, caller: d.Body.Caller, d: d})
	}
}

// share begins what is due of each caller, as much as each may have.
func (g *Gateway) share(ctx context.Context, jobs *sync.WaitGroup) {
	for _, c := range g.callers {
		err := g.calls.Each(ctx, c.key, func(r store.Record) {
			if !r.Due.IsZero() && !r.Due.After(g.now()) {
				g.begin(ctx, jobs, dueCall{key: r.Key, caller: c.Name})
			}
		})
		if err != nil && ctx.Err() == nil {
			g.cfg.Log.ErrorContext(ctx, "due calls can't be read", "error", err)
		}
	}
	kept.Sleep(ctx, 5*g.cfg.Poll)
}

// wake tells Run of a call that this process made due. When there is no room it is found by the next poll.
func (g *Gateway) wake(due dueCall) {
	select {
	case g.made <- due.light():
	default:
	}
}

// moved wakes a call that its caller has stored and is done with.
func (g *Gateway) moved(d *kept.Doc[call]) { g.wake(dueCall{key: d.Key, caller: d.Body.Caller, d: d}) }

// begin works on a call in a goroutine of its own, unless one does already.
func (g *Gateway) begin(ctx context.Context, jobs *sync.WaitGroup, due dueCall) {
	c := g.caller(due.caller)
	if c == nil {
		if due.d != nil {
			g.orphan(ctx, due.d)
		}
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if j := g.inFlight[due.key]; j != nil {
		j.again, j.look = true, j.look || due.look
		return
	}
	if c.known >= maxKnown {
		return // it stays due
	}
	c.known++
	g.inFlight[due.key] = &activeCall{}
	due = due.light()
	jobs.Go(func() { g.job(ctx, c, due) })
}

func (g *Gateway) job(ctx context.Context, c *caller, due dueCall) {
	for over := false; !over; {
		g.workOn(ctx, c, due)
		due.d = nil
		due.look, over = g.rest(ctx, c, due.key)
	}
}

// reread returns a call that is due, or that waits for the desk or for events while there is news of it.
func (g *Gateway) reread(ctx context.Context, key string, look bool) *kept.Doc[call] {
	d, err := g.calls.Get(ctx, key)
	waits := err == nil && (d.Body.Phase == phaseHeld || d.Body.Phase == phaseFollowing)
	if err != nil || !g.isDue(d) && !(look && waits) {
		return nil
	}
	return d
}

func (g *Gateway) isDue(d *kept.Doc[call]) bool { return !d.Due.IsZero() && !d.Due.After(g.now()) }

// rest ends a job, unless somebody moved the call meanwhile, or the desk has news of it.
func (g *Gateway) rest(ctx context.Context, c *caller, key string) (look, over bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if j := g.inFlight[key]; j.again && ctx.Err() == nil {
		look = j.look
		j.again, j.look = false, false
		return look, false
	}
	delete(g.inFlight, key)
	c.known--
	return false, true
}

// workOn takes a call as far as it goes now. It is read when its turn has come, where that was not done before.
func (g *Gateway) workOn(ctx context.Context, c *caller, due dueCall) {
	select {
	case c.turns <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-c.turns }()
	d := due.d
	if d == nil {
		if d = g.reread(ctx, due.key, due.look); d == nil {
			return
		}
	}
	mine := false // this process moved it here
	for range maxChanges {
		more, err := g.step(ctx, c, d, mine)
		switch {
		case errors.Is(err, approval.ErrVersion):
			if d, err = g.calls.Get(ctx, d.Key); err != nil {
				return
			}
			more, mine = g.isDue(d), false
		case err != nil:
			if ctx.Err() == nil {
				g.cfg.Log.ErrorContext(ctx, "a call does not go on", "call", subjectOf(&d.Body), "error", err)
			}
			return
		default:
			mine = true
		}
		if !more {
			return
		}
	}
}

// step takes a call one phase on. It returns false when nothing more is to be done now. An error leaves the call due.
func (g *Gateway) step(ctx context.Context, c *caller, d *kept.Doc[call], mine bool) (bool, error) {
	if !d.Body.owned() && !d.Body.over() && d.Body.Phase != phaseExecuting {
		return true, g.disown(ctx, d)
	}
	switch d.Body.Phase {
	case phaseReceived:
		return g.decide(ctx, d)
	case phaseHeld:
		return g.look(ctx, d)
	case phaseAwaiting:
		return g.askUser(ctx, c, d, mine)
	case phaseDecided:
		return g.run(ctx, c, d)
	case phaseExecuting:
		return g.lost(ctx, d)
	case phaseDone:
		return g.deliver(ctx, c, d, mine)
	case phaseFollowing:
		return g.pass(ctx, c, d)
	}
	return false, nil
}

// claim takes what is to be posted for this process, for as long as posting may take.
func (g *Gateway) claim(ctx context.Context, c *caller, d *kept.Doc[call], mine bool) error {
	if mine && d.Due.After(g.now()) {
		return nil
	}
	d.Due = g.now().Add(c.lease)
	return g.calls.Put(ctx, d)
}

// askUser posts the user_choice, again and again the same while that can help, and ends the call when nobody answers in time or nobody can be asked
// (U22, T10, T15).
func (g *Gateway) askUser(ctx context.Context, c *caller, d *kept.Doc[call], mine bool) (bool, error) {
	q := d.Body.Question
	if !g.now().Before(d.Body.Until) {
		return true, g.settle(ctx, d, verdictExpired, "nobody answered the question in time; nothing was run")
	}
	if q.Posted {
		d.Due = d.Body.Until
		return false, g.calls.Put(ctx, d)
	}
	if err := g.claim(ctx, c, d, mine); err != nil {
		return false, err
	}
	err := c.peer.Post(ctx, d.Body.Callback, q.Body)
	if ctx.Err() != nil {
		return false, nil // the next process posts it again
	}
	d.Body.Tries++
	wait, more := c.peer.Pause(d.Body.Tries)
	switch {
	case err == nil:
		q.Posted, d.Body.Tries, d.Due = true, 0, d.Body.Until
	case more && peer.Again(err):
		d.Due = earlier(g.now().Add(wait), d.Body.Until)
	default:
		g.refuse(ctx, "a question could not be posted", err, &d.Body)
		return true, g.settle(ctx, d, verdictFailed, "the question could not be put to the user; nothing was run")
	}
	return g.later(d), g.calls.Put(ctx, d)
}

// later wakes a call when its time comes, where the poll would come late.
func (g *Gateway) later(d *kept.Doc[call]) bool {
	if wait := d.Due.Sub(g.now()); wait < g.cfg.Poll {
		due := dueCall{key: d.Key, caller: d.Body.Caller}
		time.AfterFunc(max(wait, 0), func() { g.wake(due) })
	}
	return false
}

// settle ends a call that did not run, and records it.
func (g *Gateway) settle(ctx context.Context, d *kept.Doc[call], verdict, text string) error {
	d.Body.settle(verdict, text)
	d.Due = g.now()
	return g.calls.Put(ctx, d)
}

// deliver posts the result, while that can help (C2, T16). What can't be delivered stays known until it is forgotten with all others. It returns true
// when events may follow.
func (g *Gateway) deliver(ctx context.Context, c *caller, d *kept.Doc[call], mine bool) (bool, error) {
	if err := g.claim(ctx, c, d, mine); err != nil {
		return false, err
	}
	if err := g.cleanUp(ctx, d); err != nil {
		return false, err
	}
	err := c.peer.Post(ctx, d.Body.Callback, d.Body.Result)
	if ctx.Err() != nil {
		return false, nil
	}
	d.Body.Tries++
	wait, more := c.peer.Pause(d.Body.Tries)
	if err != nil && more && peer.Again(err) {
		d.Due = g.now().Add(wait)
		g.later(d)
		return false, g.calls.Put(ctx, d)
	}
	return true, g.delivered(ctx, d, err)
}

func (g *Gateway) delivered(ctx context.Context, d *kept.Doc[call], failed error) (err error) {
	facts := map[string]any{"verdict": d.Body.Verdict, "delivered": failed == nil, "subscription": d.Body.Follows != ""}
	if d.Body.Follows != "" && failed == nil {
		err = g.follows(ctx, d)
	} else if err = g.endFeed(ctx, &d.Body); err == nil {
		err = g.leave(ctx, d)
	}
	if err != nil {
		return err
	}
	if failed != nil {
		g.refuse(ctx, "a result could not be posted", failed, &d.Body)
	}
	_ = g.record(ctx, "rap_call_ended", &d.Body, facts) // it has ended; the failure is logged
	return nil
}

// leave is done with a call: it is remembered for a while, and counts no more.
func (g *Gateway) leave(ctx context.Context, d *kept.Doc[call]) error {
	d.Body.Phase, d.Body.Until, d.Due, d.Expires = phaseDelivered, time.Time{}, time.Time{}, g.now().Add(rememberEnded)
	if err := g.calls.Put(ctx, d); err != nil {
		return err
	}
	g.limits.leave(d.Key)

	return nil
}

// cleanUp withdraws what a call that ended left behind. What fails is logged: the result does not wait for it.
func (g *Gateway) cleanUp(ctx context.Context, d *kept.Doc[call]) error {
	c := &d.Body
	if c.Withdraw && c.Held != "" && g.cfg.People != nil {
		if err := g.cfg.People.As(g.asker(&d.Body)).Cancel(ctx, c.Held, "nobody waits for the call any more"); err != nil {
			g.refuse(ctx, "a request at the desk was not withdrawn", err, c)
		}
		c.Withdraw = false
	}
	if c.Closed && c.Makes {
		return g.endGrant(ctx, c.Grant, "closed")
	}
	return nil
}

// orphan ends the work on a call whose caller is configured no more: nobody may be reached, and nothing runs.
func (g *Gateway) orphan(ctx context.Context, d *kept.Doc[call]) {
	g.refuse(ctx, "a call was dropped", "its caller is configured no more", &d.Body)
	if !d.Body.over() {
		d.Body.settle(verdictFailed, "the caller is known no more")
	}
	if err := g.delivered(ctx, d, errors.New("the caller is configured no more")); err != nil && !errors.Is(err, approval.ErrVersion) {
		g.cfg.Log.ErrorContext(ctx, "a call does not go on", "call", subjectOf(&d.Body), "error", err)
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
