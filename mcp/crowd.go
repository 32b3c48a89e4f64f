package mcp

import (
	"sync"
	"time"
)

// crowd counts activities that are under way, and lets a caller wait until none is left while new
// ones may begin.
type crowd struct {
	mu   sync.Mutex
	in   int
	none chan struct{} // closed when the count is zero; nil: no caller waits for it
}

// enter adds one to the count until leave is called.
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

// wait returns when the count is zero, or after the given time.
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
