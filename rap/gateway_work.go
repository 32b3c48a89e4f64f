package rap

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/store"
)

const (
	gateLease  = 5 * time.Second  // how long an executing call is its process's own without a sign of life
	gateRemain = 24 * time.Hour   // how long repetitions of a call that ended are known
	gateCount  = 30 * time.Second // how often to count what is open, and to sweep
	gateGrace  = 10 * time.Second // how long Run waits for operations when it is to end
)

// gateDue is a call that something is to be done about.
type gateDue struct {
	key    string
	caller string
	d      *doc[gateCall] // as it was stored last, or nil: it has to be read, and may not be due
	look   bool           // the desk has news of it
}

// light leaves large documents in the store until their turn comes.
func (due gateDue) light() gateDue {
	const most = 16 << 10
	if due.d != nil && len(due.d.body.Args)+len(due.d.body.Result) > most {
		due.d = nil
	}
	return due
}

// gateJob is a call that this process works on now.
type gateJob struct {
	again bool // somebody moved it meanwhile
	look  bool // the desk has news of it
	stop  context.CancelCauseFunc
	run   *gateRun // while it runs
}

// Run works until ctx ends on what a request alone can't do: calls after their acknowledgement, deadlines, answers at the desk, attempts to try
// again, and what an earlier process left. Any number of processes may run on one store and room.
func (g *Gateway) Run(ctx context.Context) error {
	var jobs sync.WaitGroup
	defer gateWait(&jobs)
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
		sleep(ctx, max(gateCount, 20*time.Since(start)))
	}
}

// gateWait lets operations end that were told to. What does not is found executing, without a sign of life, by whoever comes next.
func gateWait(jobs *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() { jobs.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(gateGrace):
	}
}

// gateDuePage is how many due calls are read at once. They may be large.
const gateDuePage = 256

// poll begins what is due in the store, the earliest first. Where there is more than a page of it, or something that can't be read, calls of one caller
// could hide those of all others: then full has it shared out.
func (g *Gateway) poll(ctx context.Context, jobs *sync.WaitGroup, full chan<- struct{}) {
	due, err := g.calls.due(ctx, g.now(), gateDuePage)
	if err != nil || len(due) == gateDuePage {
		select {
		case full <- struct{}{}:
		default:
		}
	}
	if err != nil && ctx.Err() == nil {
		g.cfg.Log.ErrorContext(ctx, "due calls can't be read", "error", err)
	}
	for _, d := range due {
		g.begin(ctx, jobs, gateDue{key: d.key, caller: d.body.Caller, d: d})
	}
}

// share begins what is due of each caller, as much as each may have.
func (g *Gateway) share(ctx context.Context, jobs *sync.WaitGroup) {
	for _, c := range g.callers {
		err := g.calls.each(ctx, c.key, func(r store.Record) {
			if !r.Due.IsZero() && !r.Due.After(g.now()) {
				g.begin(ctx, jobs, gateDue{key: r.Key, caller: c.Name})
			}
		})
		if err != nil && ctx.Err() == nil {
			g.cfg.Log.ErrorContext(ctx, "due calls can't be read", "error", err)
		}
	}
	sleep(ctx, 5*g.cfg.Poll)
}

// wake tells Run of a call that this process made due. When there is no room it is found by the next poll.
func (g *Gateway) wake(due gateDue) {
	select {
	case g.made <- due.light():
	default:
	}
}

// moved wakes a call that its caller has stored and is done with.
func (g *Gateway) moved(d *doc[gateCall]) { g.wake(gateDue{key: d.key, caller: d.body.Caller, d: d}) }

// begin works on a call in a goroutine of its own, unless one does already.
func (g *Gateway) begin(ctx context.Context, jobs *sync.WaitGroup, due gateDue) {
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
	if c.known >= gateKnown {
		return // it stays due
	}
	c.known++
	g.inFlight[due.key] = &gateJob{}
	due = due.light()
	jobs.Go(func() { g.job(ctx, c, due) })
}

func (g *Gateway) job(ctx context.Context, c *gateCaller, due gateDue) {
	for over := false; !over; {
		g.workOn(ctx, c, due)
		due.d = nil
		due.look, over = g.rest(ctx, c, due.key)
	}
}

// reread returns a call that is due, or that waits for the desk or for events while there is news of it.
func (g *Gateway) reread(ctx context.Context, key string, look bool) *doc[gateCall] {
	d, err := g.calls.get(ctx, key)
	waits := err == nil && (d.body.Phase == gateHeld || d.body.Phase == gateFollowing)
	if err != nil || !g.isDue(d) && !(look && waits) {
		return nil
	}
	return d
}

func (g *Gateway) isDue(d *doc[gateCall]) bool { return !d.due.IsZero() && !d.due.After(g.now()) }

// rest ends a job, unless somebody moved the call meanwhile, or the desk has news of it.
func (g *Gateway) rest(ctx context.Context, c *gateCaller, key string) (look, over bool) {
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
func (g *Gateway) workOn(ctx context.Context, c *gateCaller, due gateDue) {
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
	for range gateChanges {
		more, err := g.step(ctx, c, d, mine)
		switch {
		case errors.Is(err, approval.ErrVersion):
			if d, err = g.calls.get(ctx, d.key); err != nil {
				return
			}
			more, mine = g.isDue(d), false
		case err != nil:
			if ctx.Err() == nil {
				g.cfg.Log.ErrorContext(ctx, "a call does not go on", "call", gateSubject(&d.body), "error", err)
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
func (g *Gateway) step(ctx context.Context, c *gateCaller, d *doc[gateCall], mine bool) (bool, error) {
	if !d.body.owned() && !d.body.over() && d.body.Phase != gateExecuting {
		return true, g.disown(ctx, d)
	}
	switch d.body.Phase {
	case gateReceived:
		return g.decide(ctx, d)
	case gateHeld:
		return g.look(ctx, d)
	case gateAwaiting:
		return g.askUser(ctx, c, d, mine)
	case gateDecided:
		return g.run(ctx, c, d)
	case gateExecuting:
		return g.lost(ctx, d)
	case gateDone:
		return g.deliver(ctx, c, d, mine)
	case gateFollowing:
		return g.pass(ctx, c, d)
	}
	return false, nil
}

// claim takes what is to be posted for this process, for as long as posting may take.
func (g *Gateway) claim(ctx context.Context, c *gateCaller, d *doc[gateCall], mine bool) error {
	if mine && d.due.After(g.now()) {
		return nil
	}
	d.due = g.now().Add(c.lease)
	return g.calls.put(ctx, d)
}

// askUser posts the user_choice, again and again the same while that can help, and ends the call when nobody answers in time or nobody can be asked
// (U22, T10, T15).
func (g *Gateway) askUser(ctx context.Context, c *gateCaller, d *doc[gateCall], mine bool) (bool, error) {
	q := d.body.Question
	if !g.now().Before(d.body.Until) {
		return true, g.settle(ctx, d, gateExpired, "nobody answered the question in time; nothing was run")
	}
	if q.Posted {
		d.due = d.body.Until
		return false, g.calls.put(ctx, d)
	}
	if err := g.claim(ctx, c, d, mine); err != nil {
		return false, err
	}
	err := c.peer.Post(ctx, d.body.Callback, q.Body)
	if ctx.Err() != nil {
		return false, nil // the next process posts it again
	}
	d.body.Tries++
	wait, more := c.peer.Pause(d.body.Tries)
	switch {
	case err == nil:
		q.Posted, d.body.Tries, d.due = true, 0, d.body.Until
	case more && peer.Again(err):
		d.due = earlier(g.now().Add(wait), d.body.Until)
	default:
		g.refuse(ctx, "a question could not be posted", err, &d.body)
		return true, g.settle(ctx, d, gateFailed, "the question could not be put to the user; nothing was run")
	}
	return g.later(d), g.calls.put(ctx, d)
}

// later wakes a call when its time comes, where the poll would come late.
func (g *Gateway) later(d *doc[gateCall]) bool {
	if wait := d.due.Sub(g.now()); wait < g.cfg.Poll {
		due := gateDue{key: d.key, caller: d.body.Caller}
		time.AfterFunc(max(wait, 0), func() { g.wake(due) })
	}
	return false
}

// settle ends a call that did not run, and records it.
func (g *Gateway) settle(ctx context.Context, d *doc[gateCall], verdict, text string) error {
	d.body.settle(verdict, text)
	d.due = g.now()
	return g.calls.put(ctx, d)
}

// deliver posts the result, while that can help (C2, T16). What can't be delivered stays known until it is forgotten with all others. It returns true
// when events may follow.
func (g *Gateway) deliver(ctx context.Context, c *gateCaller, d *doc[gateCall], mine bool) (bool, error) {
	if err := g.claim(ctx, c, d, mine); err != nil {
		return false, err
	}
	if err := g.cleanUp(ctx, d); err != nil {
		return false, err
	}
	err := c.peer.Post(ctx, d.body.Callback, d.body.Result)
	if ctx.Err() != nil {
		return false, nil
	}
	d.body.Tries++
	wait, more := c.peer.Pause(d.body.Tries)
	if err != nil && more && peer.Again(err) {
		d.due = g.now().Add(wait)
		g.later(d)
		return false, g.calls.put(ctx, d)
	}
	return true, g.delivered(ctx, d, err)
}

func (g *Gateway) delivered(ctx context.Context, d *doc[gateCall], failed error) (err error) {
	facts := map[string]any{"verdict": d.body.Verdict, "delivered": failed == nil, "subscription": d.body.Follows != ""}
	if d.body.Follows != "" && failed == nil {
		err = g.follows(ctx, d)
	} else if err = g.endFeed(ctx, &d.body); err == nil {
		err = g.leave(ctx, d)
	}
	if err != nil {
		return err
	}
	if failed != nil {
		g.refuse(ctx, "a result could not be posted", failed, &d.body)
	}
	_ = g.record(ctx, "rap_call_ended", &d.body, facts) // it has ended; the failure is logged
	return nil
}

// leave is done with a call: it is remembered for a while, and counts no more.
func (g *Gateway) leave(ctx context.Context, d *doc[gateCall]) error {
	d.body.Phase, d.body.Until, d.due, d.expires = gateDelivered, time.Time{}, time.Time{}, g.now().Add(gateRemain)
	if err := g.calls.put(ctx, d); err != nil {
		return err
	}
	g.limits.leave(d.key)

	return nil
}

// cleanUp withdraws what a call that ended left behind. What fails is logged: the result does not wait for it.
func (g *Gateway) cleanUp(ctx context.Context, d *doc[gateCall]) error {
	c := &d.body
	if c.Withdraw && c.Held != "" && g.cfg.People != nil {
		if err := g.cfg.People.As(g.asker(&d.body)).Cancel(ctx, c.Held, "nobody waits for the call any more"); err != nil {
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
func (g *Gateway) orphan(ctx context.Context, d *doc[gateCall]) {
	g.refuse(ctx, "a call was dropped", "its caller is configured no more", &d.body)
	if !d.body.over() {
		d.body.settle(gateFailed, "the caller is known no more")
	}
	if err := g.delivered(ctx, d, errors.New("the caller is configured no more")); err != nil && !errors.Is(err, approval.ErrVersion) {
		g.cfg.Log.ErrorContext(ctx, "a call does not go on", "call", gateSubject(&d.body), "error", err)
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
