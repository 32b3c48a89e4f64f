package mcp

import (
	"sync"
	"time"
)

// crowd counts what goes on, so that somebody can wait for its end while
// more may begin.
type crowd struct {
	mu   sync.Mutex
	in   int
	none chan struct{} // closed when nobody is in; nil: nobody waits for it
}

// enter counts one more until leave is called.
func (c *crowd) enter() (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in++
	return c.leave
}

func (c *crowd) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.in--; c.in == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// wait waits until nobody is in, for so long at most.
func (c *crowd) wait(most time.Duration) {
	c.mu.Lock()
	if c.in == 0 {
		c.mu.Unlock()
		return
	}
	if c.none == nil {
		c.none = make(chan struct{})
	}
	none := c.none
	c.mu.Unlock()
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-none:
	case <-late.C:
	}
}
