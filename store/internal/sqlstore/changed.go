package sqlstore

import (
	"context"
	"sync"
	"time"
)

const (
	// overlap is the number of sequence numbers before the last one that each poll reads
	// again, because transactions may commit in a different order than they took their
	// numbers.
	overlap = 512
	// patience is the number of polls without a change after which all waiters are woken,
	// so that polling stops if the waiters have gone away.
	patience = 400
)

// changes wakes goroutines that wait for a change of a tenant. A commit of this process
// wakes them at once. Commits of other processes are polled for while there are waiters.
type changes struct {
	s       *Store
	every   time.Duration
	mu      sync.Mutex
	waiters map[string]chan struct{}
	polling bool
	stop    chan struct{}
	stopped sync.WaitGroup
}

func (c *changes) init(s *Store, every time.Duration) {
	c.s = s
	c.every = every
	c.waiters = map[string]chan struct{}{}
	c.stop = make(chan struct{})
}

func (c *changes) wait(tenant string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch, ok := c.waiters[tenant]
	if !ok {
		ch = make(chan struct{})
		c.waiters[tenant] = ch
	}
	if !c.polling && !c.over() {
		c.polling = true
		c.stopped.Go(c.poll)
	}
	return ch
}

func (c *changes) over() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

func (c *changes) happened(tenant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch, ok := c.waiters[tenant]; ok {
		close(ch)
		delete(c.waiters, tenant)
	}
}

func (c *changes) everything() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range c.waiters {
		close(ch)
	}
	clear(c.waiters)
}

// close wakes all waiters and ends the polling.
func (c *changes) close() {
	c.mu.Lock()
	if !c.over() {
		close(c.stop)
	}
	c.mu.Unlock()
	c.stopped.Wait()
	c.everything()
}

// done ends the polling and returns true if there are no waiters.
func (c *changes) done() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.polling = len(c.waiters) > 0; !c.polling {
		return true
	}
	return false
}

func (c *changes) poll() {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var seen *seen
	for n := 0; !c.done(); n++ {
		next, err := c.look(ctx, seen)
		switch {
		case err != nil: // the waiters see the failure when they read
		case seen == nil || n >= patience:
			// Changes between the call of wait and the first poll are unknown.
			n, seen = 0, next
			c.everything()
		default:
			for tenant := range next.news(seen) {
				c.happened(tenant)
			}
			seen = next
		}

		select {
		case <-tick.C:
		case <-c.stop:
			return
		}
	}
}

// seen is the result of one poll: the last entries, and the size of each tenant's tree.
type seen struct {
	last    int64
	entries map[int64]string
	sizes   map[string]int64
}

func (c *changes) look(ctx context.Context, before *seen) (*seen, error) {
	type row struct {
		n      int64
		tenant string
	}
	scan := func(r Rows) (x row, err error) { return x, r.Scan(&x.n, &x.tenant) }
	now := &seen{entries: map[int64]string{}, sizes: map[string]int64{}}
	if before != nil {
		now.last = before.last
	} else if last, _, err := first(ctx, c.s.eng, scanInt, "SELECT coalesce(max(seq), 0) FROM entries"); err == nil {
		now.last = last
	} else {
		return nil, err
	}

	entries, err := collect(
		ctx,
		c.s.eng,
		scan,
		"SELECT seq, tenant FROM entries WHERE seq > $1",
		now.last-overlap,
	)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		now.last = max(now.last, e.n)
		now.entries[e.n] = e.tenant
	}
	sizes, err := collect(ctx, c.s.eng, scan, "SELECT size, tenant FROM trees")
	for _, t := range sizes {
		now.sizes[t.tenant] = t.n
	}
	return now, err
}

// news returns the tenants that changed since the poll before.
func (n *seen) news(before *seen) map[string]bool {
	out := map[string]bool{}
	for seq, tenant := range n.entries {
		if _, known := before.entries[seq]; !known {
			out[tenant] = true
		}
	}
	for tenant, size := range n.sizes {
		if before.sizes[tenant] != size {
			out[tenant] = true
		}
	}
	return out
}
