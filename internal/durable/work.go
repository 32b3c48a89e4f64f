package durable

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
)

// storeWithin limits how long one step may wait for the store and the approval service.
const storeWithin = 30 * time.Second

// session is one execution of Run.
type session struct {
	ctx   context.Context
	work  sync.WaitGroup // jobs
	tasks sync.WaitGroup // tasks, which are started by jobs
}

// group is one caller's share of the work.
type group struct {
	turns chan struct{} // one slot per call that is worked on
	runs  chan struct{}
	known int // calls that wait for a turn or are worked on, guarded by Engine.mu
	users int // jobs and tasks, guarded by Engine.mu
}

func (g *group) beginRun() bool {
	select {
	case g.runs <- struct{}{}:
		return true
	default:
		return false
	}
}

func (g *group) endRun() { <-g.runs }

// job is a call that one goroutine of this process works on.
type job struct {
	group *group
	again bool // work on it again: something changed meanwhile
	news  bool // a watched source may have an answer
}

// turn is the right to work on one call.
type turn struct {
	session *session
	group   *group
	handed  bool // a task releases it
	release func()
	waits   func() // gives back the slot shared by all groups, before waiting for a peer
}

// handOn leaves the turn to the task that calls release. It gives back the shared slot.
func (t *turn) handOn() (release func()) {
	t.handed = true
	t.waits()
	return t.release
}

// wakeAt schedules work on a call if it is due before the next poll.
func (e *Engine[P]) wakeAt(c *Call[P]) {
	due := c.due()
	wait := due.Sub(e.now())
	switch {
	case due.IsZero():
	case wait <= 0:
		e.take(c.Key, false)
	case wait < e.cfg.Poll:
		time.AfterFunc(wait, func() { e.take(c.Key, false) })
	}
}

// take starts a goroutine that works on a call. If one is running, it will check the call
// again. take returns false if there is no room; the call then stays due in the store.
func (e *Engine[P]) take(key string, news bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.session
	if s == nil || s.ctx.Err() != nil {
		return false
	}
	if j := e.jobs[key]; j != nil {
		j.again = true
		j.news = j.news || news
		return true
	}

	g := e.groupOf(key)
	if g.known >= queued {
		return false
	}
	g.known++
	g.users++
	e.jobs[key] = &job{group: g}
	s.work.Go(func() { e.workOn(s, key, g, news) })
	return true
}

// Idle reports whether this process is working on nothing at the moment.
func (e *Engine[P]) Idle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.jobs) == 0 && e.tasks.idle()
}

func (e *Engine[P]) groupOf(key string) *group {
	name := callerOf(key)
	g := e.groups[name]
	if g == nil {
		g = &group{turns: make(chan struct{}, e.cfg.Share), runs: make(chan struct{}, e.cfg.Runs)}
		e.groups[name] = g
	}
	return g
}

// leave removes the caller's use of a group, and deletes the group after the last.
func (e *Engine[P]) leave(key string, g *group) {
	g.users--
	if name := callerOf(key); g.users == 0 && e.groups[name] == g {
		delete(e.groups, name)
	}
}

func (e *Engine[P]) workOn(s *session, key string, g *group, news bool) {
	ctx := s.ctx
	for more := true; more; {
		if t := e.turn(s, g); t != nil {
			e.advance(ctx, key, news, t)
			if !t.handed {
				t.release()
			}
		}

		news, more = e.finishJob(ctx, key, g)
	}
}

// turn waits for the right to work on a call of a group. It returns nil if the work is to end.
func (e *Engine[P]) turn(s *session, g *group) *turn {
	ctx := s.ctx
	select {
	case g.turns <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	select {
	case e.total <- struct{}{}:
	case <-ctx.Done():
		<-g.turns
		return nil
	}

	waits := sync.OnceFunc(func() { <-e.total })
	return &turn{
		session: s,
		group:   g,
		waits:   waits,
		release: func() {
			waits()
			<-g.turns
		},
	}
}

// finishJob ends a job, unless something changed meanwhile: then it returns more.
func (e *Engine[P]) finishJob(ctx context.Context, key string, g *group) (news, more bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if j := e.jobs[key]; j.again && ctx.Err() == nil {
		news = j.news
		j.again = false
		j.news = false
		return news, true
	}

	delete(e.jobs, key)
	g.known--
	e.leave(key, g)
	return false, false
}

// advance takes due steps one after another. Each is stored before the next, so a crash between
// two steps loses nothing.
func (e *Engine[P]) advance(ctx context.Context, key string, news bool, t *turn) {
	const most = 32 // the rest stays due
	c, err := e.Get(ctx, key)
	for range most {
		if err != nil {
			e.logStuck(ctx, key, err)
			return
		}
		do := e.next(c, news)
		if do == nil || ctx.Err() != nil {
			return
		}
		var stored bool
		if c, stored, err = e.step(ctx, c, do, t); t.handed {
			return
		}
		news = news && !stored
	}
}

// step takes one step. If another process changed the call, nothing was stored: step reads it
// again, and the same news is handled again.
func (e *Engine[P]) step(ctx context.Context, c *Call[P], do step[P], t *turn) (_ *Call[P], stored bool, err error) {
	ctx, done := context.WithTimeout(ctx, storeWithin)
	defer done()
	err = do(ctx, c, t)
	if errors.Is(err, errConflict) {
		c, err = e.Get(ctx, c.Key)
		return c, false, err
	}
	return c, true, err
}

// logStuck logs why a call makes no progress. It stays due.
func (e *Engine[P]) logStuck(ctx context.Context, key string, err error) {
	if ctx.Err() == nil && !errors.Is(err, approval.ErrNotFound) {
		e.cfg.Log.ErrorContext(ctx, "a call does not go on", "call", key, "error", err)
	}
}

// detach starts a run or message in its own goroutine, so that it does not hold up the turn.
func (e *Engine[P]) detach(f *task, t *turn, do func(ctx context.Context)) {
	g := t.group
	e.mu.Lock()
	g.users++
	e.mu.Unlock()
	t.session.tasks.Go(func() {
		defer func() {
			e.tasks.done(f)
			e.mu.Lock()
			defer e.mu.Unlock()
			e.leave(f.key, g)
		}()
		do(f.ctx)
	})
}
