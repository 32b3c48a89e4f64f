package quota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
)

func take(t *testing.T, p *Pool, tenant, caller string, units int64) *Hold {
	t.Helper()
	h, err := p.Take(t.Context(), Who{Tenant: tenant, Caller: caller}, units, 0)
	if err != nil {
		t.Fatalf("%s/%s got nothing: %v", tenant, caller, err)
	}
	return h
}

func refused(t *testing.T, p *Pool, tenant, caller string, units int64, whose string) {
	t.Helper()
	_, err := p.Take(t.Context(), Who{Tenant: tenant, Caller: caller}, units, 0)
	var full *FullError
	if !errors.As(err, &full) || full.Whose != whose {
		t.Fatalf("%s/%s: got %v, want the part of the %s to be used up", tenant, caller, err, whose)
	}
}

func pool(total, tenant, caller int64) *Pool {
	return NewPool(Parts{Total: total, Tenant: tenant, Caller: caller})
}

func TestEachPartHasAnEnd(t *testing.T) {
	p := pool(10, 6, 4)
	first := take(t, p, "acme", "a", 4)
	refused(t, p, "acme", "a", 1, "caller")
	take(t, p, "acme", "b", 2)
	refused(t, p, "acme", "c", 1, "tenant")
	take(t, p, "beta", "a", 4)
	refused(t, p, "gamma", "a", 1, "server")
	first.Return()
	first.Return()
	take(t, p, "gamma", "a", 4)
	refused(t, p, "gamma", "b", 1, "server")
}

func TestWhatIsLargerThanItsPartGetsInAlone(t *testing.T) {
	p := pool(10, 6, 4)
	large := take(t, p, "acme", "a", 9)
	refused(t, p, "acme", "a", 1, "caller")
	take(t, p, "beta", "a", 1)
	refused(t, p, "acme", "b", 1, "tenant")
	large.Return()
	take(t, p, "acme", "a", 1)
	refused(t, p, "acme", "a", 5, "caller")
}

func TestResize(t *testing.T) {
	p := pool(10, 10, 8)
	h := take(t, p, "acme", "a", 2)
	must.Do(t, h.Resize(8))
	if err := h.Resize(9); err != nil {
		t.Fatal("alone it may be larger than its part:", err)
	}
	take(t, p, "beta", "a", 1)
	if err := h.Resize(10); err == nil {
		t.Fatal("it outgrew the pool")
	}
	must.Do(t, h.Resize(1))
	take(t, p, "beta", "b", 8)
	h.Return()
	if len(p.tenants) != 1 || p.held != 9 {
		t.Errorf("%d tenants hold %d", len(p.tenants), p.held)
	}
}

// TestWhoHoldsLeastIsFirst checks that a caller with many early wishes does not delay
// others.
func TestWhoHoldsLeastIsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(4, 4, 4)
		var order []string
		var mu sync.Mutex
		var all sync.WaitGroup
		wait := func(tenant, caller string) {
			all.Go(func() {
				h, err := p.Take(t.Context(), Who{Tenant: tenant, Caller: caller}, 2, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, tenant+"/"+caller)
				mu.Unlock()
				<-time.After(time.Second)
				h.Return()
			})
			synctest.Wait()
		}
		for range 6 {
			wait("acme", "greedy")
		}
		wait("acme", "other")
		wait("beta", "one")
		all.Wait()
		slices.Sort(order[2:4]) // both are served at the same moment
		want := []string{"acme/greedy", "acme/greedy", "acme/other", "beta/one"}
		if len(order) != 8 || !slices.Equal(order[:4], want) {
			t.Errorf("served %q", order)
		}
	})
}

func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(1, 1, 1)
		h := take(t, p, "acme", "a", 1)
		began := time.Now()
		_, err := p.Take(t.Context(), Who{Tenant: "beta"}, 1, time.Second)
		var full *FullError
		if !errors.As(err, &full) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if _, err := p.Take(ctx, Who{Tenant: "beta"}, 1, time.Second); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		h.Return()
		if len(p.tenants) != 0 {
			t.Errorf("%d tenants are remembered who want nothing", len(p.tenants))
		}
	})
}

func TestOneCallerCanNotQueueForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(1, 1, 1)
		take(t, p, "acme", "a", 1)
		for range usualWaiting {
			go func() {
				_, _ = p.Take(t.Context(), Who{Tenant: "acme", Caller: "a"}, 1, time.Hour)
			}()
		}
		synctest.Wait()
		refused(t, p, "acme", "a", 1, "caller")
	})
}

// TestWishesAreCounted checks that a caller with the maximal number of waiting wishes is
// refused although its part has free units.
func TestWishesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Parts{Total: 1, Tenant: 9, Caller: 9, Waiting: 2})
		h := take(t, p, "acme", "a", 1)
		var all sync.WaitGroup
		for range 2 {
			refused(t, p, "beta", "b", 1, "server")
			all.Go(func() {
				w, err := p.Take(t.Context(), Who{Tenant: "beta", Caller: "b"}, 1, time.Hour)
				if err != nil {
					t.Error(err)
				}
				w.Return()
			})
			synctest.Wait()
		}
		refused(t, p, "beta", "b", 1, "caller")
		refused(t, p, "beta", "c", 1, "server")
		h.Return()
		all.Wait()
	})
}

// TestGrowingWaitsItsTurn checks that a hold can't grow into units for which a caller that
// would hold no more is waiting.
func TestGrowingWaitsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(10, 10, 10)
		h, other := take(t, p, "acme", "a", 5), take(t, p, "beta", "a", 4)
		var all sync.WaitGroup
		all.Go(func() {
			w, err := p.Take(t.Context(), Who{Tenant: "gamma"}, 5, time.Hour)
			if err != nil {
				t.Error(err)
			}
			w.Return()
		})
		synctest.Wait()
		if err := h.Resize(5); err != nil {
			t.Errorf("the same again: %v", err)
		}
		var full *FullError
		for hold, units := range map[*Hold]int64{h: 6, other: 5} {
			if err := hold.Resize(units); !errors.As(err, &full) || full.Whose != "server" || full.Most != 10 {
				t.Errorf("%d while somebody waits for 5: %v", units, err)
			}
		}
		if err := other.Resize(2); err != nil { // the wish still has no room
			t.Error(err)
		}
		if err := other.Resize(4); err != nil {
			t.Errorf("less than the wish: %v", err)
		}
		h.Return()
		all.Wait()
	})
}

// TestRefusedGrowthIsNotRemembered checks that a hold that was returned and fails to grow
// again leaves no entry behind.
func TestRefusedGrowthIsNotRemembered(t *testing.T) {
	p := pool(4, 4, 4)
	h := take(t, p, "acme", "a", 1)
	h.Return()
	take(t, p, "beta", "a", 4)
	if err := h.Resize(1); err == nil || len(p.tenants) != 1 {
		t.Errorf("%v, %d tenants", err, len(p.tenants))
	}
}

// TestWithdrawnWishMakesWay checks that after the first wish is withdrawn, the next one
// gets the units that were free all the time.
func TestWithdrawnWishMakesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(10, 10, 10)
		take(t, p, "acme", "a", 3)
		take(t, p, "beta", "a", 4)
		began := time.Now()
		go func() {
			_, err := p.Take(t.Context(), Who{Tenant: "gamma"}, 5, time.Second)
			var full *FullError
			if !errors.As(err, &full) || full.Whose != "server" {
				t.Errorf("got %v", err)
			}
		}()
		synctest.Wait()
		refused(t, p, "beta", "a", 2, "server") // there are free units, but another wish is first
		if _, err := p.Take(t.Context(), Who{Tenant: "beta", Caller: "a"}, 2, time.Hour); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("served after %v", waited)
		}
	})
}

// TestCanceledWishKeepsNothing covers a wish that is met at the moment in which its context
// ends. Units must be held exactly if there is no error.
func TestCanceledWishKeepsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // select chooses at random
		p := pool(1, 1, 1)
		h := take(t, p, "acme", "a", 1)
		who := Who{Tenant: "beta"}
		w, err := p.want(who, 1, true)
		if err != nil || w == nil {
			t.Fatalf("%v, %v", w, err)
		}
		h.Return()
		want := int64(1)
		if err := p.await(ctx, w, time.Hour); err != nil {
			want = 0
		}
		if p.held != want || len(p.tenants) != int(want) {
			t.Fatalf("%d units are held by %d tenants, expected %d", p.held, len(p.tenants), want)
		}
	}
}

// TestDefault checks that the limits grow with the machine, and that one tenant's heavy
// work leaves half of the processors to others.
func TestDefault(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		memory            int64
		processors        int
		inMemory, inTurns Parts
		exchanges         Parts
	}{
		{
			1600 * mib, 1,
			Parts{Total: 600 * mib, Tenant: 400 * mib, Caller: 300 * mib},
			Parts{Total: 2, Tenant: 1, Caller: 1},
			Parts{Total: 64, Tenant: 16, Caller: 16, Waiting: 1000},
		},
		{
			16 * mib, 12,
			Parts{Total: 6 * mib, Tenant: 4 * mib, Caller: 3 * mib},
			Parts{Total: 12, Tenant: 6, Caller: 3},
			Parts{Total: 384, Tenant: 96, Caller: 96, Waiting: 1000},
		},
	} {
		want := Limits{
			Memory:    tt.inMemory,
			Turns:     tt.inTurns,
			Streams:   Parts{Total: 1000, Tenant: 500, Caller: 100},
			Polls:     Parts{Total: 2000, Tenant: 1000, Caller: 500},
			Exchanges: tt.exchanges,
		}
		if got := Default(tt.memory, tt.processors); got != want {
			t.Errorf("%d bytes, %d processors: %+v, expected %+v", tt.memory, tt.processors, got, want)
		}
	}
}

// TestNeverTooMuch takes, resizes and returns holds in any order. Only a single hold may
// exceed a part, free units must not stay unused while a wish waits that may have them, and
// at the end all units must be free.
func TestNeverTooMuch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := Parts{
			Total:  rapid.Int64Range(1, 20).Draw(t, "total"),
			Tenant: rapid.Int64Range(1, 20).Draw(t, "tenant"),
			Caller: rapid.Int64Range(1, 20).Draw(t, "caller"),
		}
		p := NewPool(parts)
		var holds []*Hold
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			units := rapid.Int64Range(0, 12).Draw(t, "units")
			switch what := rapid.IntRange(0, 2).Draw(t, "what"); {
			case what == 0 || len(holds) == 0:
				who := Who{Tenant: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "of"),
					Caller: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "who")}
				if h, err := p.Take(context.Background(), who, units, 0); err == nil {
					holds = append(holds, h)
				}
			case what == 1:
				_ = rapid.SampledFrom(holds).Draw(t, "hold").Resize(units)
			default:
				rapid.SampledFrom(holds).Draw(t, "hold").Return()
			}

			check(t, p, holds)
		}

		for _, h := range holds {
			h.Return()
		}
		if p.held != 0 || len(p.tenants) != 0 {
			t.Fatalf("%d units are held, %d tenants remembered", p.held, len(p.tenants))
		}
	})
}

func check(t *rapid.T, p *Pool, holds []*Hold) {
	sums, counts := map[string]int64{}, map[string]int{}
	for _, h := range holds {
		for _, part := range []string{"", h.who.Tenant, h.who.Tenant + "/" + h.who.Caller} {
			if sums[part] += h.units; h.units > 0 {
				counts[part]++
			}
		}
	}

	if sums[""] != p.held {
		t.Fatalf("%d units are held, and the pool counts %d", sums[""], p.held)
	}
	for part, sum := range sums {
		most := p.parts.Caller
		switch len(part) {
		case 0:
			most = p.parts.Total
		case 1:
			most = p.parts.Tenant
		}

		if sum > most && counts[part] > 1 {
			t.Fatalf("%q holds %d of %d with %d holds", part, sum, most, counts[part])
		}
	}
}

// TestManyAtOnce checks that with real concurrency all waiting wishes are met and no units
// are lost.
func TestManyAtOnce(t *testing.T) {
	p := pool(7, 5, 3)
	var all sync.WaitGroup
	for i := range 48 {
		all.Go(func() {
			who := Who{Tenant: fmt.Sprint(i % 3), Caller: fmt.Sprint(i % 8)}
			for range 50 {
				h, err := p.Take(t.Context(), who, 1+rand.Int64N(4), time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				_ = h.Resize(1)
				h.Return()
			}
		})
	}

	all.Wait()
	if p.held != 0 || len(p.tenants) != 0 {
		t.Errorf("%d units are held, %d tenants remembered", p.held, len(p.tenants))
	}
}
