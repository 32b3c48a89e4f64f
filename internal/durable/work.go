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

// workers are the goroutines of this process that work on calls: at most one for each call, and a
// share of them for each caller.
type workers struct {
	cfg   Config
	tasks tasks
	work  func(ctx context.Context, key string, news bool, t *turn) // takes the due steps of a call
	total chan struct{}

	mu      sync.Mutex
	session *session // nil: no work may begin
	running bool
	jobs    map[string]*job
	groups  map[string]*group
}

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
	known int // calls that wait for a turn or are worked on, guarded by workers.mu
	users int // jobs and tasks, guarded by workers.mu
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
func (b *book[P]) wakeAt(c *Call[P]) {
	due := c.due()
	wait := due.Sub(b.now())
	switch {
	case due.IsZero():
	case wait <= 0:
		b.take(c.Key, false)
	case wait < b.cfg.Poll:
		time.AfterFunc(wait, func() { b.take(c.Key, false) })
	}
}

// take starts a goroutine that works on a call. If one is running, it will check the call
// again. take returns false if there is no room; the call then stays due in the store.
func (w *workers) take(key string, news bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.session
	if s == nil || s.ctx.Err() != nil {
		return false
	}
	if j := w.jobs[key]; j != nil {
		j.again = true
		j.news = j.news || news
		return true
	}

	g := w.groupOf(key)
	if g.known >= queued {
		return false
	}
	g.known++
	g.users++
	w.jobs[key] = &job{group: g}
	s.work.Go(func() { w.workOn(s, key, g, news) })
	return true
}

// Idle reports whether this process is working on nothing at the moment.
func (w *workers) Idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.jobs) == 0 && w.tasks.idle()
}

func (w *workers) groupOf(key string) *group {
	name := callerOf(key)
	g := w.groups[name]
	if g == nil {
		g = &group{turns: make(chan struct{}, w.cfg.Share), runs: make(chan struct{}, w.cfg.Runs)}
		w.groups[name] = g
	}
	return g
}

// leave removes the caller's use of a group, and deletes the group after the last.
func (w *workers) leave(key string, g *group) {
	g.users--
	if name := callerOf(key); g.users == 0 && w.groups[name] == g {
		delete(w.groups, name)
	}
}

func (w *workers) workOn(s *session, key string, g *group, news bool) {
	ctx := s.ctx
	for more := true; more; {
		if t := w.turn(s, g); t != nil {
			w.work(ctx, key, news, t)
			if !t.handed {
				t.release()
			}
		}

		news, more = w.finishJob(ctx, key, g)
	}
}

// turn waits for the right to work on a call of a group. It returns nil if the work is to end.
func (w *workers) turn(s *session, g *group) *turn {
	ctx := s.ctx
	select {
	case g.turns <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	select {
	case w.total <- struct{}{}:
	case <-ctx.Done():
		<-g.turns
		return nil
	}

	waits := sync.OnceFunc(func() { <-w.total })
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
func (w *workers) finishJob(ctx context.Context, key string, g *group) (news, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[key]; j.again && ctx.Err() == nil {
		news = j.news
		j.again = false
		j.news = false
		return news, true
	}

	delete(w.jobs, key)
	g.known--
	w.leave(key, g)
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
		e.cfg.Log.ErrorContext(ctx, "a call makes no progress", "call", key, "error", err)
	}
}

// detach starts a run or message in its own goroutine, so that it does not hold up the turn.
func (w *workers) detach(f *task, t *turn, do func(ctx context.Context)) {
	g := t.group
	w.mu.Lock()
	g.users++
	w.mu.Unlock()
	t.session.tasks.Go(func() {
		defer func() {
			w.tasks.done(f)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.leave(f.key, g)
		}()
		do(f.ctx)
	})
}

func (w *workers) enter(ctx context.Context) (*session, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running {
		return nil, errors.New("durable: the engine runs already")
	}
	w.running = true
	w.session = &session{ctx: ctx}
	return w.session, nil
}

// exit ends the work. Runs and messages may continue for Config.Finish, then their contexts are
// cancelled. The leases of those that still don't stop run out, so that other processes notice.
func (w *workers) exit(s *session) {
	// A job that saw the session registered itself before this point, so no job can begin while
	// we wait.
	w.mu.Lock()
	w.session = nil
	w.mu.Unlock()

	ended := make(chan struct{})
	go func() {
		s.work.Wait()
		s.tasks.Wait()
		close(ended)
	}()

	if !within(ended, w.cfg.Finish) {
		for _, f := range w.tasks.everything() {
			f.stop(ErrShutdown)
		}
		within(ended, grace)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = false
	if w.cfg.Always {
		w.session = &session{ctx: context.Background()}
	}
}

// within reports whether ended is closed before the duration most has passed.
func within(ended <-chan struct{}, most time.Duration) bool {
	select {
	case <-ended:
		return true
	case <-time.After(most):
		return false
	}
}
