package crashtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store/postgres/pgtest"
)

// capFile limits what the clerk spends in a day. mostCents is its bound.
const (
	capFile = `schema_version: "1.1.0"
policy_ref: crash.cap
description: Nobody spends more than two hundred a day.
applies: implicit
rules:
  - id: cap
    match: {targets: [buy, pay]}
    when: {history: [{of: {targets: [buy, pay]}, within: 24h, sum: {of: amount, gt: 200}}]}
    deny: Too much for a day.
`
	mostCents = 20_000
)

// TestKillCounting: two replicas are killed while workers spend through both. What ran never exceeds the cap, by
// a cent, and in the end the rest may run: nothing is counted twice after a lost answer.
func TestKillCounting(t *testing.T) {
	kills, workers, each := 2, 8, 4
	if n, err := strconv.Atoi(os.Getenv("ASSENT_KILLS")); err == nil {
		kills, workers, each = n/10, 64, 12
	}
	h := newHarness(t, testbin.Path(t, "cmd/assent"), pgtest.New(t))
	addresses := []string{h.address(), h.address()}
	servers := []*process{h.serve(addresses[0]), h.serve(addresses[1])}
	ctx := t.Context()
	var done, cents atomic.Int64
	var group sync.WaitGroup
	for w := range workers {
		bot, alice := h.client(addresses[w%2], h.bot), h.client(addresses[(w+1)%2], h.alice)
		group.Go(func() {
			for i := range each {
				n := w*each + i
				amount := int64(1 + n*7919%3000)
				spend := buy
				if n%2 == 0 {
					spend = pay
				}
				ran, err := spend(ctx, bot, alice, amount, n)
				if err != nil {
					t.Errorf("call %d: %v", n, err)
				}
				if ran {
					cents.Add(amount)
				}
				done.Add(1)
			}
		})
	}
	for k := range kills {
		testwait.Until(t, fmt.Sprintf("progress before kill %d", k), func() bool {
			return done.Load() >= int64(k*workers*each/kills)
		})
		servers[k%2].kill()
		servers[k%2] = h.serve(addresses[k%2])
	}
	group.Wait()
	sum := cents.Load()
	if t.Logf("%d kills, %d cents of %d ran", kills, sum, mostCents); sum > mostCents {
		t.Fatal("more ran than the rule allows")
	}

	bot := h.client(addresses[0], h.bot)
	for i, c := range []struct {
		amount int64
		want   bool
	}{{mostCents - sum + 1, false}, {mostCents - sum, true}, {1, false}} {
		if ran := must.Get(buy(ctx, bot, nil, c.amount, -1-i))(t); ran != c.want {
			t.Errorf("%d cents more: allowed %t, want %t", c.amount, ran, c.want)
		}
	}
	h.audit(ctx, bot, nil)
}

func spending(tool string, cents int64, n int) []byte {
	return fmt.Appendf(nil, `{"kind":"tool","tool":%q,"args":{"amount":%d.%02d,"n":%d}}`, tool, cents/100, cents%100, n)
}

// buy opens a call that no rule asks about.
func buy(ctx context.Context, bot, _ *client.Client, cents int64, n int) (ran bool, err error) {
	opened, err := bot.Open(ctx, "clerk", spending("buy", cents, n), client.OpenOptions{})
	return err == nil && opened.Outcome == resolve.Allow, err
}

// pay opens a call that people approve, and uses the approval. It may be refused because of what ran meanwhile.
func pay(ctx context.Context, bot, alice *client.Client, cents int64, n int) (ran bool, err error) {
	text := spending("pay", cents, n)
	opened, err := bot.Open(ctx, "clerk", text, client.OpenOptions{})
	if err != nil || opened.Outcome != resolve.Ask {
		return false, err
	}
	if _, err := vote(ctx, alice, opened.Request.ID); err != nil {
		return false, err
	}
	consumed, err := bot.Consume(ctx, opened.Request.ID, text, "")
	var p *client.Problem
	if errors.As(err, &p) && (p.Problem.Code == openapi.CodeStale || p.Problem.Code == openapi.CodeNotApproved) {
		return false, nil
	}
	return err == nil && consumed.State == approval.Consumed, err
}
