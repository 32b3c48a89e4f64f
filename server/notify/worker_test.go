package notify_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/notify"
	"github.com/assent-dev/assent/store"
)

// sender is a function that implements notify.Sender.
type sender func(context.Context, store.Job) error

func (s sender) Send(ctx context.Context, job store.Job) error { return s(ctx, job) }

func hang(ctx context.Context, _ store.Job) error {
	<-ctx.Done()
	return ctx.Err()
}

func arrive(context.Context, store.Job) error { return nil }

func newWorker(
	t *testing.T, o store.Outbox, change func(*notify.WorkerConfig), targets ...notify.Target,
) *notify.Worker {
	t.Helper()
	cfg := notify.WorkerConfig{Outbox: o, Targets: targets}
	if change != nil {
		change(&cfg)
	}
	w, err := notify.NewWorker(cfg)
	must.Do(t, err)
	return w
}

// running runs a worker in the bubble until stop is called.
func running(w *notify.Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func TestDeliveryEnds(t *testing.T) {
	for name, test := range map[string]struct {
		err     error
		state   store.JobState
		problem string
		earlier time.Duration // earliest time of the next attempt
		later   time.Duration // latest time of the next attempt
	}{
		"arrived":   {nil, store.Sent, "", 0, 0},
		"failed":    {errors.New("no route"), store.Waiting, "no route", 0, 5 * time.Second},
		"permanent": {notify.Permanent(errors.New("gone")), store.DeadEnd, "gone", 0, 0},
		"asked for time": {
			&notify.Failure{Err: errors.New("busy"), After: 10 * time.Minute},
			store.Waiting,
			"busy",
			10 * time.Minute,
			10 * time.Minute,
		},
		"asked for much time": {
			&notify.Failure{Err: errors.New("busy"), After: 90 * time.Hour},
			store.Waiting,
			"busy",
			time.Hour,
			time.Hour,
		},
		"control bytes": {errors.New("a\x1b[2J\nb"), store.Waiting, `a\u{1b}[2J\u{a}b`, 0, 5 * time.Second},
		"a very long problem": {
			errors.New(strings.Repeat("ab", 5000)),
			store.Waiting,
			strings.Repeat("ab", 250) + "…",
			0,
			5 * time.Second,
		},
		"never sent": {&guard.Refusal{Err: guard.ErrBlocked}, store.DeadEnd, "the address may not be reached", 0, 0},
		"permanent by wrapped": {
			errors.Join(errors.New("outer"), notify.Permanent(errors.New("inner"))),
			store.DeadEnd,
			`outer\u{a}inner`,
			0,
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &outbox{}
				id := o.add("a", "{}", time.Now())
				w := newWorker(t, o, nil, notify.Target{
					Name: "a",
					Sender: sender(func(context.Context, store.Job) error {
						return test.err
					}),
				})
				if n := w.Once(t.Context()); n != 1 {
					t.Fatalf("made %d attempts, want 1", n)
				}
				job := o.get(id)
				if job.State != test.state || job.Problem != test.problem {
					t.Errorf("got %s %q, want %s %q", job.State, job.Problem, test.state, test.problem)
				}
				if wait := time.Until(job.RunAt); job.State == store.Waiting &&
					(wait < test.earlier || wait > test.later) {
					t.Errorf("tries again in %s, want %s to %s", wait, test.earlier, test.later)
				}
			})
		})
	}
}

func TestDeliveryIsBuriedAfterItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{}
		id := o.add("a", "{}", time.Now())
		var starts []time.Time
		fail := sender(func(context.Context, store.Job) error {
			starts = append(starts, time.Now())
			return errors.New("refused")
		})
		began := time.Now()
		stop := running(newWorker(t, o, nil, notify.Target{Name: "a", Sender: fail}))
		<-time.After(14 * time.Hour) // of the bubble's clock
		stop()
		job := o.get(id)
		if job.State != store.DeadEnd || job.Problem != "gave up after 12 attempts: refused" || len(starts) != 12 {
			t.Fatalf("after %d attempts: %s %q", len(starts), job.State, job.Problem)
		}
		for i := 1; i < len(starts); i++ {
			if most := 5*time.Second<<(i-1) +
				3*time.Second; starts[i].Sub(starts[i-1]) > min(most, time.Hour+3*time.Second) {
				t.Errorf("attempt %d came %s after the one before", i+1, starts[i].Sub(starts[i-1]))
			}
		}

		if starts[0].Sub(began) > 3*time.Second {
			t.Errorf("the first attempt came after %s", starts[0].Sub(began))
		}
	})
}

func TestHangingTargetHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{}
		for range 10 {
			o.add("hanging", "{}", time.Now())
			o.add("fine", "{}", time.Now())
		}
		var arrived atomic.Int32
		w := newWorker(t, o, nil, notify.Target{Name: "hanging", Sender: sender(hang)},
			notify.Target{
				Name: "fine",
				Sender: sender(func(context.Context, store.Job) error {
					arrived.Add(1)
					return nil
				}),
			})
		stop := running(w)
		<-time.After(time.Second)
		if arrived.Load() != 10 {
			t.Errorf("%d of 10 arrived within a second", arrived.Load())
		}
		<-time.After(15 * time.Second)
		if job := o.get(1); job.Problem != context.DeadlineExceeded.Error() {
			t.Errorf("the hanging attempt ended with %q", job.Problem)
		}
		stop()
	})
}

func TestConcurrencyOfOneTargetIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{}
		for range 20 {
			o.add("a", "{}", time.Now())
		}
		var now, most atomic.Int32
		slow := sender(func(context.Context, store.Job) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			<-time.After(time.Second)
			now.Add(-1)
			return nil
		})
		stop := running(newWorker(t, o, nil, notify.Target{Name: "a", Sender: slow, Concurrency: 3}))
		<-time.After(7 * time.Second)
		stop()
		if most.Load() != 3 || o.get(20).State != store.Sent {
			t.Errorf("%d at once, the last is %s", most.Load(), o.get(20).State)
		}
	})
}

// A process that dies in the middle of an attempt leaves its lease behind.
func TestAnotherWorkerTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{}
		id := o.add("a", "{}", time.Now())
		dead, kill := context.WithCancel(t.Context())
		first := newWorker(t, o, nil, notify.Target{
			Name: "a",
			Sender: sender(func(context.Context, store.Job) error {
				o.breakWith(errors.New("the process is gone"))
				kill()
				return nil
			}),
		})
		first.Once(dead)
		o.breakWith(nil)

		sent := make(chan store.Job, 2)
		second := newWorker(t, o, nil, notify.Target{
			Name: "a",
			Sender: sender(func(_ context.Context, job store.Job) error {
				sent <- job
				return nil
			}),
		})
		if n := second.Once(t.Context()); n != 0 {
			t.Fatal("the lease was not respected")
		}
		stop := running(second)
		defer stop()
		began := time.Now()
		if job := <-sent; job.ID != id || job.Attempt != 2 {
			t.Errorf("got %+v", job)
		}
		if waited := time.Since(began); waited < 75*time.Second || waited > 78*time.Second {
			t.Errorf("took over after %s, want the lease of 75s", waited)
		}
	})
}

func TestWorkerWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{}
		var mu sync.Mutex
		changed := make(chan struct{})
		arrived := make(chan struct{}, 1)
		w := newWorker(t, o, func(c *notify.WorkerConfig) {
			c.Poll = time.Hour
			c.Changed = func() <-chan struct{} {
				mu.Lock()
				defer mu.Unlock()
				return changed
			}
		}, notify.Target{
			Name: "a",
			Sender: sender(func(context.Context, store.Job) error {
				arrived <- struct{}{}
				return nil
			}),
		})
		stop := running(w)
		defer stop()
		synctest.Wait()
		o.add("a", "{}", time.Now())
		mu.Lock()
		close(changed)
		changed = make(chan struct{})
		mu.Unlock()
		began := time.Now()
		<-arrived
		if time.Since(began) != 0 {
			t.Errorf("woke after %s", time.Since(began))
		}
	})
}

func TestEndLetsAttemptsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{}
		id := o.add("a", "{}", time.Now())
		stop := running(newWorker(t, o, nil, notify.Target{
			Name: "a",
			Sender: sender(func(context.Context, store.Job) error {
				<-time.After(5 * time.Second)
				return nil
			}),
		}))
		synctest.Wait()
		began := time.Now()
		stop()
		if job := o.get(id); job.State != store.Sent || time.Since(began) != 5*time.Second {
			t.Errorf("%s after %s", job.State, time.Since(began))
		}
	})
}

func TestEndCutsHangingAttemptsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{}
		id := o.add("a", "{}", time.Now())
		stop := running(newWorker(t, o, nil, notify.Target{
			Name:    "a",
			Sender:  sender(hang),
			Timeout: 50 * time.Second,
		}))
		synctest.Wait()
		began := time.Now()
		stop()
		if job := o.get(id); job.State != store.Waiting || !job.RunAt.Equal(time.Now()) ||
			time.Since(began) != 10*time.Second {
			t.Errorf("%+v after %s: want it due at once, after 10s", job, time.Since(began))
		}
	})
}

func TestLostOutboxIsReportedAndSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{}
		id := o.add("a", "{}", time.Now())
		o.breakWith(errors.New("disk full"))
		var lost atomic.Int32
		stop := running(newWorker(t, o, func(c *notify.WorkerConfig) {
			c.Report = func(_ store.Job, r notify.Result, err error) {
				if r == notify.Lost && strings.Contains(err.Error(), "disk full") {
					lost.Add(1)
				}
			}
		}, notify.Target{Name: "a", Sender: sender(arrive)}))
		<-time.After(5 * time.Second)
		o.breakWith(nil)
		<-time.After(5 * time.Second)
		stop()
		if job := o.get(id); job.State != store.Sent || lost.Load() == 0 || lost.Load() > 5 {
			t.Errorf("%s, reported %d times", job.State, lost.Load())
		}
	})
}

func TestWorkerConfigIsChecked(t *testing.T) {
	ok := notify.Target{Name: "a", Sender: sender(arrive)}
	for want, cfg := range map[string]notify.WorkerConfig{
		"expected an outbox":               {},
		"expected a name and a sender":     {Outbox: &outbox{}, Targets: []notify.Target{{Name: "a"}}},
		"expected one target of this name": {Outbox: &outbox{}, Targets: []notify.Target{ok, ok}},
		"expected a lease longer":          {Outbox: &outbox{}, Targets: []notify.Target{ok}, Lease: time.Second},
	} {
		if _, err := notify.NewWorker(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
