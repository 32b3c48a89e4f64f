package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/resolve"
)

const write = `{"path":"/a"}`

// long has callers wait so long that a test decides what ends it.
func long(cfg *mcp.Config) { cfg.Callers[0].Hold = 30 * time.Second }

// sent makes a call without waiting for its answer.
func (c *client) sendCall(id int, name, args string) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, args))
}

func (c *client) cancel(id int) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
}

func TestADenialIsToldAndTheCallCoolsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, long)
	c := w.connect(t)
	c.sendCall(7, "write_file", write)
	w.Votes(w.pending(t).ID, "mara", approval.Deny, approval.VoteDenied, nil)
	c.expect(c.text(c.hear()), "Not run. mara denied this call: not like this. Do not try it again.")
	c.expect(c.call("write_file", write), "Not run. ")
	if got := w.files.seen(); len(got) != 0 {
		t.Errorf("the server saw %q", got)
	}
}

// settle waits until the gateway has looked at all news.
func (w *world) settle(t *testing.T) {
	t.Helper()
	testwait.Until(t, "the gateway rests", w.gateway.Idle)
}

// outlast makes the one call of a client wait longer than the gateway
// holds it, and returns its answer.
func (w *world) outlast(t *testing.T, c *client, message string) string {
	t.Helper()
	c.send(message)
	testwait.Until(t, "the call waits for people", func() bool {
		return must.Get(w.gateway.Named(t.Context()))(t)
	})
	w.Clock.Add(time.Minute)
	return c.hear()
}

// left waits until the gateway knows that nobody waits for a call, and
// works on none as if somebody did.
func (w *world) left(t *testing.T) {
	t.Helper()
	testwait.Until(t, "whoever waited has left", func() bool {
		wanted := must.Get(w.gateway.Wanted(t.Context()))(t)
		return !wanted && w.gateway.Idle()
	})
}

func TestAResultIsNotKeptForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, long)
	w.files.hold = make(chan struct{})
	c := w.connect(t)
	c.sendCall(7, "write_file", write)
	w.Votes(w.pending(t).ID, "mara", approval.Approve, approval.VoteApproved, nil)
	testwait.Until(t, "it runs", func() bool { return len(w.files.seen()) == 1 })
	c.cancel(7)
	close(w.files.hold)
	w.settle(t)
	w.Clock.Add(11 * time.Minute)
	c.expect(c.call("write_file", write), "This call may have run (apr_")
}

// atOnce has many clients wait for the same call, lets people decide, and
// returns how many were told what.
func (w *world) atOnce(t *testing.T, many int, decide func()) map[string]int {
	t.Helper()
	var clients []*client
	for range many {
		c := w.connect(t)
		c.sendCall(7, "write_file", write)
		clients = append(clients, c)
	}
	testwait.Until(t, "all wait", func() bool { return w.gateway.Waiters() == many })

	decide()
	told := map[string]int{}
	for _, c := range clients {
		told[c.text(c.hear())]++
	}
	return told
}

func TestRulesThatCannotBeReadLetNothingRun(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	w := newWorld(t, func(cfg *mcp.Config) {
		plan := cfg.Plan
		cfg.Plan = func(ctx context.Context) (*resolve.Plan, error) {
			if down.Load() {
				return nil, errors.New("no rules")
			}
			return plan(ctx)
		}
	})
	c := w.connect(t)
	c.expect(c.call("read_file", `{}`), "done 1")
	down.Store(true)
	c.expect(c.call("read_file", `{}`), "Not run. The rules could not be read.")
}

func TestANewProcessFindsWhatIsPending(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.connect(t)
	c.expect(c.call("write_file", write), "Not run yet.")
	r := w.pending(t)
	w.restart(t)
	w.Votes(r.ID, "mara", approval.Approve, approval.VoteApproved, nil)
	w.connect(t).until("write_file", write, "done 1")
}

func TestWhatAnotherProcessEndsWaitsNoMore(t *testing.T) {
	t.Parallel()
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
