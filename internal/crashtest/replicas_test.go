package crashtest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/store/postgres/pgtest"
)

// TestReplicas: two replicas on one PostgreSQL under load are killed again and again. Deadlines are
// handled once, no request is stuck, and nothing runs twice.
func TestReplicas(t *testing.T) {
	const kills, loaders, each = 12, 6, 15
	h := newHarness(t, testbin.Path(t, "cmd/assent"), pgtest.New(t))
	addresses := []string{h.address(), h.address()}
	servers := []*process{h.serve(addresses[0]), h.serve(addresses[1])}
	ctx := t.Context()

	var ran atomic.Int64
	var mu sync.Mutex
	var hurried, approved []string
	var wg sync.WaitGroup
	for n := range loaders {
		wg.Go(func() {
			bot := h.client(addresses[n%2], h.bot)
			alice := h.client(addresses[(n+1)%2], h.alice)
			bob := h.client(addresses[n%2], h.bob)
			for i := range each {
				hurry, err := bot.Open(ctx, "clerk", call("hurry", n*each+i), client.OpenOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				id, err := approve(ctx, bot, alice, bob, call("transfer", n*each+i))
				if err != nil {
					t.Error(err)
					return
				}
				ran.Add(1)
				mu.Lock()
				hurried, approved = append(hurried, hurry.Request.ID), append(approved, id)
				mu.Unlock()
			}
		})
	}

	loaded := make(chan struct{})
	go func() {
		wg.Wait()
		close(loaded)
	}()
	for k := range kills { // spread over the load
		testwait.Until(t, fmt.Sprintf("progress before kill %d", k), func() bool {
			select {
			case <-loaded:
				return true
			default:
				return ran.Load() >= int64(k*loaders*each/kills)
			}
		})
		servers[k%2].kill()
		servers[k%2] = h.serve(addresses[k%2])
	}

	<-loaded
	if t.Failed() {
		return
	}

	bot := h.client(addresses[0], h.bot)
	for _, id := range hurried {
		r := must.Get(bot.WaitDecided(ctx, id))(t)
		if r.State != approval.Expired || r.Cause != approval.ByDeadline {
			t.Errorf("%s is %s by %s", id, r.State, r.Cause)
		}
		sealed(ctx, t, bot, id, approval.EventExpired)
	}

	_, events := h.audit(ctx, bot, nil)
	for _, id := range hurried {
		expired := 0
		for _, e := range events[id] {
			if e.Type == approval.EventExpired {
				expired++
			}
		}
		if expired != 1 {
			t.Errorf("the deadline of %s fired %d times", id, expired)
		}
	}

	for _, id := range approved {
		if r, err := bot.Request(ctx, id); err != nil || r.State != approval.Consumed {
			t.Errorf("%s: %v, %v", id, r, err)
		}
	}
	page, err := bot.Requests(ctx, client.Query{State: "open"})
	if err != nil || page.Total != 0 {
		t.Errorf("%d requests are stuck: %v", page.Total, err)
	}
	t.Logf("%d kills, %d deadlines, %d runs", kills, len(hurried), ran.Load())
}

// approve brings one call from the request to the run.
func approve(ctx context.Context, bot, alice, bob *client.Client, text []byte) (string, error) {
	opened, err := bot.Open(ctx, "clerk", text, client.OpenOptions{})
	if err != nil {
		return "", err
	}
	id := opened.Request.ID
	for _, c := range []*client.Client{alice, bob} {
		if _, err := vote(ctx, c, id); err != nil {
			return id, err
		}
	}
	_, err = bot.Consume(ctx, id, text, "")
	return id, err
}
