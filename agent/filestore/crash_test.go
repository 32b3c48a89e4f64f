package filestore

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// kinds are the agents that are killed, with the minimum number of gates that one passes.
var kinds = map[string]int{
	"chat":        30,
	"nested":      20,
	"flow":        14,
	"nested flow": 14,
	"held":        20,
	"let":         14,
	"questions":   20,
}

// TestKilledAtEveryGate kills a process before and after each save, and before and after each
// action of a tool: once in each scene, each time some gates later, until a scene reaches its
// end without a kill. It tries every gate if ASSENT_KILLS is set, as in make long, and
// otherwise every fourth.
func TestKilledAtEveryGate(t *testing.T) {
	stride := 4
	if os.Getenv("ASSENT_KILLS") != "" {
		stride = 1
	}
	for kind, least := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for at := 1; ; at += stride {
				s := newScene(t, life{
					Kind:       kind,
					Stream:     at%2 == 0,
					Concurrent: at%4 > 1,
				}, func(gate int, _ string) time.Duration {
					if gate == at {
						return now
					}
					return never
				})
				s.again = at%3 == 0
				s.play()
				if t.Failed() {
					t.Fatalf("killed at gate %d", at)
				}
				if s.kills == 0 {
					t.Logf("%d gates", at-1)
					if at < least {
						t.Errorf("only %d gates", at-1)
					}
					return
				}
			}
		})
	}
}

// TestKilledAnywhere kills processes repeatedly, at a gate or at a random moment after it, such
// as during a write of a tool or a save of the thread.
func TestKilledAnywhere(t *testing.T) {
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			kills := 0
			for seed := range uint64(4) {
				random := rand.New(rand.NewPCG(seed, 3))
				s := newScene(t, life{Kind: kind, Stream: seed%2 == 0, Concurrent: seed > 1}, nil)
				s.strike = func(_ int, point string) time.Duration {
					switch {
					case s.kills > 8 || random.IntN(4) > 0:
						return never
					case random.IntN(4) == 0:
						return now
					case strings.HasPrefix(point, "act "):
						return time.Duration(1+random.IntN(300)) * time.Microsecond
					}

					return time.Duration(1+random.IntN(1500)) * time.Microsecond
				}
				s.again = random.IntN(2) == 0
				s.play()
				if kills += s.kills; t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}

			t.Logf("%d kills", kills)
			if kills == 0 {
				t.Error("nobody was killed")
			}
		})
	}
}

// TestTwoAtOnce gives the same answers to two processes that have loaded the same thread. One
// of them continues. Sometimes one is killed.
func TestTwoAtOnce(t *testing.T) {
	for _, kind := range []string{"chat", "nested", "flow", "held"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for round := range 3 {
				s := newScene(t, life{Kind: kind, Stream: round == 1},
					func(int, string) time.Duration { return never })
				s.race(round)
				s.play()
				if t.Failed() {
					t.Fatalf("round %d", round)
				}
			}
		})
	}
}

// race runs the thread to its first question and answers it twice at the same time.
func (s *scene) race(round int) {
	s.t.Helper()
	first, _ := s.next()
	if end := s.drive(s.begin(first)); end != "end" {
		s.t.Fatal(end)
	}
	message, _ := s.next()
	both := []*process{s.begin(message), s.begin(message)}
	for _, p := range both { // each waits before its first save
		if point, end := p.next(s.t); point != "save" {
			s.t.Fatalf("%q, %q", point, end)
		}
	}
	var all sync.WaitGroup
	ends := make([]string, 2)
	for i, p := range both {
		all.Go(func() {
			p.letOn()
			if round == 2 && i == 0 {
				defer time.AfterFunc(500*time.Microsecond, p.kill).Stop()
			}
			for point := "save"; point != ""; p.letOn() {
				point, ends[i] = p.next(s.t)
			}
		})
	}

	all.Wait()
	if ended := strings.Count(strings.Join(ends, " "), "end"); ended > 1 || round < 2 && ended == 0 {
		s.t.Errorf("two processes with one thread came to %v", ends)
	}
	s.checkLines()
}

// TestStepOutlivesItsRun checks that a step that has ended is stored, even if the caller of the
// run has gone.
func TestStepOutlivesItsRun(t *testing.T) {
	store := newStore(t)
	ctx, leave := context.WithCancel(t.Context())
	done := 0
	flow := agent.NewFlow("flow", agent.FlowConfig{Store: store}, func(ctx context.Context, f *agent.Flow) error {
		err := f.Step(ctx, "pay", func(context.Context) (any, error) {
			done++
			leave()
			return nil, nil
		}, nil)
		if state := string(mustLoad(t, store, "a").State["flow/flow"]); !strings.Contains(state, `"ended":true`) {
			t.Errorf("a process that died now would leave %s", state)
		}
		return err
	})
	if _, err := flow.Run(ctx, agent.NewThread("a"), content.UserText("go")); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits, and the run came to %v", err)
	}
	if _, err := flow.Run(t.Context(), mustLoad(t, store, "a")); err != nil || done != 1 {
		t.Errorf("done %d times: %v", done, err)
	}
}
