package mcp

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestACrowdIsWaitedFor: wait returns when the last one has left, or when its time is over.
func TestACrowdIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c crowd
		began := time.Now()
		c.wait(time.Hour)
		one, two := c.enter(), c.enter()
		c.wait(time.Second)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it was waited for %s", took)
		}
		time.AfterFunc(time.Minute, one)
		time.AfterFunc(2*time.Minute, two)
		began = time.Now()
		c.wait(time.Hour)
		if took := time.Since(began); took != 2*time.Minute {
			t.Errorf("it was waited for %s", took)
		}
		c.wait(time.Hour)
	})
}
