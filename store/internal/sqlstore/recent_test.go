package sqlstore

import (
	"testing"

	"github.com/assent-dev/assent/approval"
)

// TestLargeRequestsAreNotKept: callers choose how large arguments are, so a few thousand of the largest must not stay in memory.
func TestLargeRequestsAreNotKept(t *testing.T) {
	var c recent
	r := &approval.Request{ID: "apr_1", Version: 3, State: approval.Pending, Revisions: []approval.Revision{{}}}
	c.put("t", r, revisions{n: 1, text: make([]byte, 1000)})
	if got := c.get("t", r.ID); got.r == nil || got.version != 3 {
		t.Errorf("a small one is not kept: %+v", got)
	}
	r.Version = 4
	c.put("t", r, revisions{n: 2, text: make([]byte, keptBytes+1)})
	if got := c.get("t", r.ID); got.r != nil || got.texts.text != nil || got.version != 4 {
		t.Errorf("a large one is kept, or its version isn't: version %d", got.version)
	}
}
