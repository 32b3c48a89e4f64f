package approval_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/store"
)

// countedReads counts the reads of a store by waiting callers.
type countedReads struct {
	store.Store
	requests, heads atomic.Int64
}

func (c *countedReads) Request(ctx context.Context, tenant, id string) (*approval.Request, error) {
	c.requests.Add(1)
	return c.Store.Request(ctx, tenant, id)
}

func (c *countedReads) Heads(ctx context.Context, tenant string, ids []string) (map[string]approval.Head, error) {
	c.heads.Add(1)
	return c.Store.Heads(ctx, tenant, ids)
}

// TestOnlyWhoIsConcernedIsWoken: many callers wait for one request while other requests of the
// tenant change all the time. They read no documents, share the queries to the store, and all wake
// when their request changes here or on another replica.
func TestOnlyWhoIsConcernedIsWoken(t *testing.T) {
	const waiters, changes = 200, 40
	for name, here := range map[string]bool{"changed here": true, "changed by another replica": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t)
				reads := &countedReads{Store: h.store}
				waiting := approval.New(reads, h.plans, h.people, h.now, rand.Reader, h.cfg)
				changing := h.s
				if here {
					changing = waiting
				}
				r := h.asked(tool("pay", `{"n":1}`))
				var all sync.WaitGroup
				var moved atomic.Int64
				for range waiters {
					all.Go(func() {
						if err := waiting.Await(t.Context(), "t", r.ID, r.Version, time.Minute); err != nil {
							t.Error(err)
						}
						moved.Add(1)
					})
				}

				synctest.Wait()
				before, began := reads.heads.Load(), time.Now()
				for n := range changes {
					other := h.asked(tool("pay", fmt.Sprintf(`{"other":%d}`, n)))
					works(changing.Cancel(t.Context(), "t", other.ID, "runner", ""))(t)
				}

				<-time.After(300 * time.Millisecond)
				synctest.Wait()
				most := int64(time.Since(began)/(200*time.Millisecond)) + 3
				looks, documents := reads.heads.Load()-before, reads.requests.Load()
				if looks > most || documents != 0 || moved.Load() != 0 {
					t.Errorf("%d looks (at most %d), %d documents read, %d woken", looks, most, documents, moved.Load())
				}

				works(changing.Cancel(t.Context(), "t", r.ID, "runner", ""))(t)
				all.Wait()
				if n := reads.requests.Load(); n != 0 {
					t.Errorf("%d documents were read", n)
				}
			})
		})
	}
}
