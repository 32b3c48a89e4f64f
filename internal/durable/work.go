package durable

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
)

// storeWithin bounds what one step may wait for the store and for
// people's side.
const storeWithin = 30 * time.Second

// session is the time in which Run runs.
type session struct {
	ctx   context.Context
	work  sync.WaitGroup // jobs
	tasks sync.WaitGroup // tasks, which jobs begin
}

// group is the share of the work that one caller has.
type group struct {
	turns chan struct{} // calls that are worked on
	runs  chan struct{}
	known int // calls that wait for their turn or are worked on, guarded by Engine.mu
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

// job is a call that this process works on now, in one goroutine.
type job struct {
	group *group
	again bool // something happened meanwhile
	news  bool // somebody who is watched may have an answer
}

// turn is the right to work on one call.
type turn struct {
	session *session
	group   *group
	handed  bool // somebody else gives it back
	release func()
	waits   func() // gives back what calls of all groups share, for one that waits for its peer
}

// handOn leaves the turn to whoever calls what is returned.
func (t *turn) handOn() (release func()) {
	t.handed = true
	t.waits()
	return t.release
}

// Wake has a call worked on, soon and by this process. It is for those
// who know that something happened outside of the record; changes do it
// by themselves.
func (e *Engine[P]) Wake(key string) { e.take(key, true) }

// wakeAt has a call worked on when its time comes, where the poll would
// come later.
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

// take has a goroutine of its own work on a call, unless one does
// already: that one looks again then. It reports whether there was
// room; a call without stays due in the store.
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
	if g.known >= e.cfg.Queue {
		return false
	}
	g.known++
	g.users++
	e.jobs[key] = &job{group: g}
	s.work.Go(func() { e.workOn(s, key, g, news) })
	return true
}

// Idle reports whether this process works on nothing at this moment.
func (e *Engine[P]) Idle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.jobs) == 0 && e.tasks.idle()
}

func (e *Engine[P]) groupOf(key string) *group {
	name := e.cfg.Group(key)
	g := e.groups[name]
	if g == nil {
		g = &group{turns: make(chan struct{}, e.cfg.Share), runs: make(chan struct{}, e.cfg.Runs)}
		e.groups[name] = g
	}
	return g
}

// leave drops a group that nobody uses.
func (e *Engine[P]) leave(key string, g *group) {
	g.users--
	if name := e.cfg.Group(key); g.users == 0 && e.groups[name] == g {
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

		news, more = e.rest(ctx, key, g)
	}
}

// turn waits for the right to work on a call of a group; nil when the
// work is to end.
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

// rest ends a job, unless something happened meanwhile.
func (e *Engine[P]) rest(ctx context.Context, key string, g *group) (news, more bool) {
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

// advance takes the steps that are due, one after another. Each is
// stored before the next, so a crash between any two loses nothing.
func (e *Engine[P]) advance(ctx context.Context, key string, news bool, t *turn) {
	const most = 32 // what is left is due
	c, err := e.Get(ctx, key)
	for range most {
		if err != nil {
			e.stays(ctx, key, err)
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

// step takes one step. The call is read again when somebody else
// changed it: then nothing was stored, and the same news is looked at
// again.
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

// stays logs why a call does not go on. It stays due.
func (e *Engine[P]) stays(ctx context.Context, key string, err error) {
	if ctx.Err() == nil && !errors.Is(err, approval.ErrNotFound) {
		e.cfg.Log.ErrorContext(ctx, "a call does not go on", "call", key, "error", err)
	}
}

// detach has a run or a message take its time, beside the work.
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
