package crashtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store/postgres/pgtest"
)

// steps of the scripted run of one approval. The server may be killed at each step: before it,
// during it, or right after it.
const (
	stepOpen = iota
	stepFirstVote
	stepSecondVote
	stepConsume
	steps
)

const workers = 64

// TestKill kills the server at every step of an approval that 64
// workers want to use: 22 times over both stores, and 220 times in
// .ci/run (ASSENT_KILLS).
func TestKill(t *testing.T) {
	kills := 11
	if n, err := strconv.Atoi(os.Getenv("ASSENT_KILLS")); err == nil {
		kills = n / 2
	}
	bin := testbin.Path(t, "cmd/assent")
	for name, where := range map[string]func() string{"sqlite": func() string {
		return ""
	}, "postgres": func() string {
		return pgtest.New(t)
	}} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, bin, where())
			s := &script{harness: h, address: h.address(), random: rand.New(rand.NewPCG(11, 13))}
			s.server = h.serve(s.address)
			s.bot = h.client(s.address, h.bot)
			s.alice = h.client(s.address, h.alice)
			s.bob = h.client(s.address, h.bob)
			for s.kills < kills {
				s.run(t)
			}
			t.Logf(
				"%s: %d kills, %d approvals, %d runs, %d answers that were lost and asked for again",
				name,
				s.kills,
				s.rounds,
				s.ran.Load(),
				s.repeats,
			)
			if s.ran.Load() != int64(s.rounds) {
				t.Errorf("%d approvals ran %d times", s.rounds, s.ran.Load())
			}
		})
	}
}

// script runs approvals on one harness while the server is killed again and again.
type script struct {
	*harness
	address         string
	server          *process
	bot, alice, bob *client.Client
	random          *rand.Rand
	checkpoint      []byte
	kills, rounds   int
	repeats         int
	ran             atomic.Int64
}

// run takes one call through all steps, and kills the server in one of them.
func (s *script) run(t *testing.T) {
	ctx := t.Context()
	s.rounds++
	fatal := s.rounds % steps
	var id string
	s.step(t, fatal == stepOpen, func() error {
		opened, err := s.bot.Open(ctx, "clerk", call("transfer", s.rounds), client.OpenOptions{})
		if err != nil {
			return err
		}
		if opened.Outcome != resolve.Ask {
			return fmt.Errorf("opened: %s", opened.Outcome)
		}
		if opened.Shared {
			s.repeats++
		}
		id = opened.Request.ID
		return nil
	})
	s.step(t, fatal == stepFirstVote, func() error { return s.answer(ctx, s.alice, id, approval.VoteCounted) })
	s.step(t, fatal == stepSecondVote, func() error { return s.answer(ctx, s.bob, id, approval.VoteApproved) })
	s.step(t, fatal == stepConsume, func() error { return s.consume(ctx, id) })

	sealed(ctx, t, s.bot, id, approval.EventConsumed)
	var events map[string][]ledger.Leaf
	s.checkpoint, events = s.audit(ctx, s.bot, s.checkpoint)
	s.hold(t, ctx, id, events[id])
}

// step does one step. In a fatal one it kills the server before, during or after the step, and
// starts the next one.
func (s *script) step(t *testing.T, fatal bool, do func() error) {
	t.Helper()
	if !fatal {
		must.Do(t, do())
		return
	}

	s.kills++
	reborn := make(chan struct{})
	delay := time.Duration(s.random.IntN(4000)) * time.Microsecond
	time.AfterFunc(delay, func() {
		defer close(reborn)
		s.server.kill()
		s.server = s.serve(s.address)
	})
	err := do()
	<-reborn
	must.Do(t, err)
}

// answer votes. After a lost reply the repeated answer is a duplicate. After a lost reply to the
// deciding answer it is late.
func (s *script) answer(ctx context.Context, c *client.Client, id string, want approval.VoteOutcome) error {
	outcome, err := vote(ctx, c, id)
	switch {
	case err != nil:
		return err
	case outcome == approval.VoteDuplicate, outcome == approval.VoteLate && want == approval.VoteApproved:
		s.repeats++
	case outcome != want:
		return fmt.Errorf("voted: %s, want %s", outcome, want)
	}

	return nil
}

// consume makes 64 workers try to run the approved call, each with its own key.
func (s *script) consume(ctx context.Context, id string) error {
	var wg sync.WaitGroup
	var won, lost atomic.Int64
	errs := make(chan error, workers)
	for range workers {
		wg.Go(func() {
			_, err := s.bot.Consume(ctx, id, call("transfer", s.rounds), "")
			var p *client.Problem
			switch {
			case err == nil:
				won.Add(1)
			case errors.As(err, &p) && p.Problem.Code == openapi.CodeConsumed:
				lost.Add(1)
			default:
				errs <- err
			}
		})
	}

	wg.Wait()
	close(errs)
	for err := range errs {
		return err
	}
	if won.Load() != 1 || lost.Load() != workers-1 {
		return fmt.Errorf("%d of %d workers may run it", won.Load(), workers)
	}
	s.ran.Add(won.Load())
	return nil
}

// hold checks the record of this run: both votes and one permit, in the request and in the ledger.
func (s *script) hold(t *testing.T, ctx context.Context, id string, events []ledger.Leaf) {
	t.Helper()
	r := must.Get(s.bot.Request(ctx, id))(t)
	if r.State != approval.Consumed || len(r.Votes) < 2 {
		t.Fatalf("request %s is %s with votes %v", id, r.State, r.Votes)
	}
	count := map[string]int{}
	for _, e := range events {
		count[e.Type]++
	}
	if count["request_opened"] != 1 || count["vote_counted"] != 2 || count["request_approved"] != 1 ||
		count["permit_consumed"] != 1 {
		t.Fatalf("the ledger tells %v of %s", count, id)
	}
}
