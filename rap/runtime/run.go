package runtime

import (
	"context"
	"time"

	"github.com/assent-dev/assent/rap/internal/kept"
)

const (
	sweepEvery = 10 * time.Minute
	// leaveWithin is how long Run waits at its end for requests that are under way.
	leaveWithin = 2 * time.Second
)

// Run works until ctx ends on what a call alone can't do: deadlines, answers of people, attempts to try again, and what an earlier process left.
// Any number of processes may run on one store and room.
func (r *Runtime) Run(ctx context.Context) error {
	n := &kept.News{Refs: map[string]struct{}{}, Some: make(chan struct{}, 1)}
	parts := make(chan struct{}, 3)
	start := func(part func()) {
		go func() {
			defer func() { parts <- struct{}{} }()
			part()
		}()
	}
	running := 2
	start(func() { r.poll(ctx) })
	start(func() { r.sweep(ctx) })
	if r.cfg.People != nil {
		running += 2
		start(func() { r.watch(ctx, n) })
		start(func() { r.hear(ctx, n) })
	}
	for range running {
		<-parts
	}
	r.rest(leaveWithin)
	return ctx.Err()
}

// poll looks after the calls whose time has come.
func (r *Runtime) poll(ctx context.Context) {
	const page = 200
	for ctx.Err() == nil {
		ds, err := r.calls.Due(ctx, r.now(), page)
		if err != nil && ctx.Err() == nil {
			r.log.Warn("what is due could not be read whole", "error", plainError(err))
		}
		for _, d := range ds {
			r.kickWait(ctx, d.Key)
		}
		kept.Sleep(ctx, r.cfg.Poll)
	}
}

func (r *Runtime) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.cfg.Records.SweepRecords(ctx, r.now()); err != nil && ctx.Err() == nil {
			r.log.Warn("what expired could not be swept", "error", plainError(err))
		}
		kept.Sleep(ctx, sweepEvery)
	}
}

// kickWait is kick for those who go through many calls: it waits for a place, so that no more than so many are in memory.
func (r *Runtime) kickWait(ctx context.Context, key string) {
	select {
	case r.jobs.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	if !r.jobs.take(key, true) {
		<-r.jobs.slots
		return
	}
	go func() {
		defer func() { <-r.jobs.slots }()
		r.work(key)
	}()
}

// rest waits for what is under way, for a while.
func (r *Runtime) rest(most time.Duration) {
	for end := time.Now().Add(most); time.Now().Before(end) && !(r.jobs.idle() && r.flights.idle() && len(r.notices) == 0); {
		kept.Sleep(context.Background(), 5*time.Millisecond)
	}
}
