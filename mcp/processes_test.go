package mcp_test

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
)

func TestWhatAnotherProcessEndsWaitsNoMore(t *testing.T) {
	w := newWorld(t, func(cfg *mcp.Config) { cfg.MaxPending = 1 })
	c := w.connect(t)
	c.expect(c.call("write_file", write), "Not run yet.")
	c.expect(c.call("write_file", `{"path":"/b"}`), "Not run. Too many requests wait.")
	r := w.pending(t)
	w.restart(t) // the other process
	w.Votes(r.ID, "mara", approval.Deny, approval.VoteDenied, nil)
	other := w.connect(t)
	other.expect(other.call("write_file", write), "Not run. mara denied this call")
	testwait.Until(t, "the first process takes another call", func() bool {
		return strings.HasPrefix(c.call("write_file", `{"path":"/b"}`), "Not run yet.")
	})
}
