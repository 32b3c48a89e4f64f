package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/wait"
)

// Limits of one round of the background work.
const (
	tickBatch = 64   // requests; the same as in Service.Tick
	sealBatch = 1000 // entries
)

// The pauses of a worker that fails.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
	lastWork   = 5 * time.Second       // to finish the remaining work when the server shuts down
	sealWait   = 20 * time.Second      // while a client waits for sealing; shorter than answerTime
	sealRest   = 20 * time.Millisecond // between two sealings, so that under load one seals many entries
)

// Run does the background work until ctx ends: it expires and escalates requests that are
// due, seals the ledger, deletes expired values, and reads metrics. When ctx ends, Run also
// ends event streams and long polls, seals what is left, and returns. It may be called
// once.
func (s *Server) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, w := range s.workers() {
		all.Go(func() { w.run(ctx) })
	}
	all.Go(func() { s.listen(ctx) })
	<-ctx.Done()
	close(s.draining)
	all.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWork)
	defer cancel()
	if err := s.seal(last); err != nil {
		return fmt.Errorf("seal what was left: %w", err)
	}
	return nil
}

func (s *Server) workers() []*worker {
	all := []*worker{
		{name: "time", every: s.cfg.Timing.Tick, do: s.tick},
		{
			name:  "sealing",
			every: s.cfg.Timing.Seal,
			wake:  s.kick,
			rest:  sealRest,
			do:    s.seal,
		},
		{name: "sweeping", every: s.cfg.Timing.Sweep, do: s.sweep},
		{name: "figures", every: s.cfg.Timing.Gauges, do: s.measure},
	}
	for _, w := range all {
		w.log, w.report = s.cfg.Logger, s.health.report
	}
	return all
}

// clock returns an error if the clock of this process is wrong.
func (s *Server) clock(ctx context.Context) error {
	if s.cfg.Clock == nil {
		return nil
	}
	return s.cfg.Clock(ctx)
}

// tick processes everything that is due. It does nothing if the clock is wrong, because it
// would irrevocably end requests before their deadline.
func (s *Server) tick(ctx context.Context) error {
	if err := s.clock(ctx); err != nil {
		return err
	}
	for {
		n, err := s.cfg.Service.Tick(ctx)
		if err != nil || n < tickBatch {
			return err
		}
	}
}

// seal seals everything that has been recorded.
func (s *Server) seal(ctx context.Context) error {
	for {
		n, err := s.cfg.Store.Seal(ctx, sealBatch, s.cfg.Signer.Sign)
		s.metrics.sealed(n, s.cfg.Store.Integrity().SealedFirst, err, s.cfg.Now())
		if err != nil || n < sealBatch {
			return err
		}
	}
}

// sealTenant returns once everything that was recorded for a tenant before the call is
// sealed.
func (s *Server) sealTenant(ctx context.Context, tenant string) error {
	ctx, cancel := context.WithTimeout(ctx, sealWait)
	defer cancel()
	n, err := s.cfg.Store.SealTenant(ctx, tenant, s.cfg.Signer.Sign)
	if n > 0 {
		s.metrics.sealed(n, s.cfg.Store.Integrity().SealedFirst, err, s.cfg.Now())
	}
	return err
}

func (s *Server) sweep(ctx context.Context) error {
	if err := s.clock(ctx); err != nil { // everybody would be signed out
		return err
	}
	return errors.Join(s.cfg.Store.SweepValues(ctx, s.cfg.Now()), s.cfg.Store.SweepRecords(ctx, s.cfg.Now()),
		s.cfg.Store.Index(ctx))
}

// lookForTenants is the interval at which new tenants are looked for.
const lookForTenants = time.Second

// listen wakes the sealer after a change of any tenant, from any process.
func (s *Server) listen(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	known := map[string]bool{}
	for ctx.Err() == nil {
		// If this fails, entries are sealed at the sealer's next interval.
		tenants, err := s.cfg.Store.Tenants(ctx)
		for _, t := range tenants {
			if err == nil && !known[t] {
				known[t] = true
				all.Go(func() { s.listenTo(ctx, t) })
			}
		}

		_ = wait.Pause(ctx, lookForTenants)
	}
}

func (s *Server) listenTo(ctx context.Context, tenant string) {
	for ctx.Err() == nil {
		changed := s.cfg.Store.Changed(tenant)
		s.wake()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// worker repeats one task.
type worker struct {
	name   string
	every  time.Duration
	wake   <-chan struct{} // may be nil
	rest   time.Duration   // at least, between two rounds
	do     func(context.Context) error
	log    *slog.Logger
	report func(name string, err error)
}

// run repeats the task until ctx ends. A failure is logged when it begins and when it ends,
// and makes the pauses longer.
func (w *worker) run(ctx context.Context) {
	pause := time.Duration(0)
	for ctx.Err() == nil {
		err := w.once(ctx)
		if ctx.Err() != nil {
			return
		}
		w.report(w.name, err)
		switch {
		case err == nil && pause > 0:
			w.log.Info("the work in the background goes on", "worker", w.name)
			pause = 0
		case err != nil && pause == 0:
			w.log.Error("the work in the background fails", "worker", w.name, "error", err)
			pause = firstPause
		case err != nil:
			pause = min(2*pause, lastPause)
		}

		if pause > 0 {
			_ = wait.Pause(ctx, pause)
		} else {
			_ = wait.Pause(ctx, w.rest)
			_ = wait.For(ctx, w.wake, w.every)
		}
	}
}

var errBroken = errors.New("it broke")

// once turns a panic of one round into an error, so that it does not end the worker.
func (w *worker) once(ctx context.Context) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("%w: %v", errBroken, broken)
		}
	}()
	return w.do(ctx)
}
