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
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/upstream"
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

func TestAnApprovalEndsTheWaitWithTheResult(t *testing.T) {
	w := newWorld(t, long)
	c := w.connect(t)
	c.sendCall(7, "write_file", write)
	w.Votes(w.pending(t).ID, "mara", approval.Approve, approval.VoteApproved, nil)
	c.expect(c.hear(), `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"done 1"}],"isError":false}}`)
}

func TestADenialIsToldAndTheCallCoolsDown(t *testing.T) {
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

func TestAnEditIsWhatRunsAndTheOriginalCallFindsIt(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect(t)
	c.expect(c.call("write_file", write), "Not run yet.")
	if err := w.Edit(w.pending(t).ID, "mara", `{"path":"/b"}`); err != nil {
		t.Fatal(err)
	}
	c.expect(c.call("write_file", write), "done 1")
	if got := w.files.seen(); len(got) != 1 || got[0] != `{"name":"write_file","arguments":{"path":"/b"}}` {
		t.Errorf("the server saw %q", got)
	}
}

func TestNothingRunsThatNobodyWaitsFor(t *testing.T) {
	w := newWorld(t, long)
	c := w.connect(t)
	c.sendCall(7, "write_file", write)
	r := w.pending(t)
	c.cancel(7)
	w.left(t)
	w.Votes(r.ID, "mara", approval.Approve, approval.VoteApproved, nil)
	c.expect(c.call("read_file", `{}`), "done 1")
	w.settle(t)
	if got := w.files.seen(); len(got) != 1 {
		t.Fatalf("the server saw %q", got)
	}
	c.expect(c.call("write_file", write), "done 2")
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
		named, err := w.gateway.Named(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return named
	})
	w.Clock.Add(time.Minute)
	return c.hear()
}

// left waits until the gateway knows that nobody waits for a call, and
// works on none as if somebody did.
func (w *world) left(t *testing.T) {
	t.Helper()
	testwait.Until(t, "whoever waited has left", func() bool {
		wanted, err := w.gateway.Wanted(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return !wanted && w.gateway.Idle()
	})
}

// givesUp has a client give up while its approved call runs, which ends
// when the gate is closed.
func (w *world) givesUp(t *testing.T) (c *client, gate chan struct{}) {
	t.Helper()
	gate = make(chan struct{})
	w.files.hold = gate
	c = w.connect(t)
	c.sendCall(7, "write_file", write)
	w.Votes(w.pending(t).ID, "mara", approval.Approve, approval.VoteApproved, nil)
	testwait.Until(t, "it runs", func() bool { return len(w.files.seen()) == 1 })
	c.cancel(7)
	return c, gate
}

func TestAResultIsKeptForACallerThatGaveUp(t *testing.T) {
	w := newWorld(t, long)
	c, gate := w.givesUp(t)
	c.expect(c.say(`{"jsonrpc":"2.0","id":8,"method":"ping"}`), `"id":8`)
	close(gate)
	c.expect(c.call("write_file", write), "done 1")
	if got := w.files.seen(); len(got) != 1 {
		t.Errorf("the server saw %q", got)
	}
}

func TestAResultIsNotKeptForEver(t *testing.T) {
	w := newWorld(t, long)
	c, gate := w.givesUp(t)
	close(gate)
	w.settle(t)
	w.Clock.Add(11 * time.Minute)
	c.expect(c.call("write_file", write), "This call may have run (apr_")
}

func TestWhatMayHaveRunIsNeverSentAgain(t *testing.T) {
	w := newWorld(t, long)
	w.files.fails = []error{fmt.Errorf("%w: the pipe broke", upstream.ErrUnknown)}
	c := w.connect(t)
	c.sendCall(7, "write_file", write)
	w.Votes(w.pending(t).ID, "mara", approval.Approve, approval.VoteApproved, nil)
	c.expect(c.text(c.hear()), "This call may have run (apr_")
	w.settle(t)
	if got := w.files.seen(); len(got) != 0 {
		t.Errorf("the server saw %q", got)
	}
}

func TestWhatWasNotSentIsTriedAgain(t *testing.T) {
	w := newWorld(t, long)
	w.files.fails = []error{fmt.Errorf("%w: refused", upstream.ErrNotSent)}
	c := w.connect(t)
	c.sendCall(7, "write_file", write)
	w.Votes(w.pending(t).ID, "mara", approval.Approve, approval.VoteApproved, nil)
	c.expect(c.text(c.hear()), "done 1")
}

func TestAnAllowedCallSaysWhetherItRan(t *testing.T) {
	w := newWorld(t, nil)
	w.files.fails = []error{
		fmt.Errorf("%w: refused", upstream.ErrNotSent),
		fmt.Errorf("%w: the pipe broke", upstream.ErrUnknown),
	}
	c := w.connect(t)
	c.expect(c.call("read_file", `{}`), "Not run. The server files can't be reached.")
	c.expect(c.call("read_file", `{}`), "This call may have run")
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

func TestManyCallsOfOneKindRunOnce(t *testing.T) {
	w := newWorld(t, long)
	const many = 30
	told := w.atOnce(t, many, func() {
		w.Votes(w.pending(t).ID, "mara", approval.Approve, approval.VoteApproved, nil)
	})
	if len(w.files.seen()) != 1 || told["done 1"] != 1 || len(told) != 2 {
		t.Errorf("the server saw %q, told %v", w.files.seen(), told)
	}
}

func TestArgumentsThatReadersDisagreeAboutDoNotRun(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect(t)
	for _, args := range []string{`{"a":1,"a":2}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}"} {
		for _, name := range []string{"read_file", "write_file"} {
			c.expect(c.call(name, args), "Not run.")
		}
	}
	if got := w.files.seen(); len(got) != 0 {
		t.Errorf("the server saw %q", got)
	}
}

func TestTooManyWaitingCallsAreRefused(t *testing.T) {
	w := newWorld(t, func(cfg *mcp.Config) {
		cfg.MaxPending = 2
		cfg.Callers[0].Hold = time.Millisecond
	})
	c := w.connect(t)
	c.expect(c.call("write_file", `{"n":1}`), "Not run yet.")
	c.expect(c.call("write_file", `{"n":2}`), "Not run yet.")
	c.expect(c.call("write_file", `{"n":3}`), "Not run. Too many requests wait.")
	c.expect(c.call("write_file", `{"n":2}`), "Not run yet.")
}

func TestAChangedDefinitionEndsWhatWasAsked(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect(t)
	c.expect(c.call("write_file", write), "Not run yet.")
	r := w.pending(t)
	w.files.change(1, "Writes.", "Writes anywhere.")
	if err := w.gateway.Refresh(t.Context(), "files"); err != nil {
		t.Fatal(err)
	}
	w.ended(t, r.ID)
	c.expect(c.call("write_file", write), "Not run. The tool's definition has changed since it was accepted")
	if strings.Contains(c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), "write_file") {
		t.Error("a changed tool is listed")
	}
}

func TestRulesThatCannotBeReadLetNothingRun(t *testing.T) {
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
	w := newWorld(t, nil)
	c := w.connect(t)
	c.expect(c.call("write_file", write), "Not run yet.")
	r := w.pending(t)
	w.restart(t)
	w.Votes(r.ID, "mara", approval.Approve, approval.VoteApproved, nil)
	again := w.connect(t)
	again.expect(again.call("write_file", write), "done 1")
}

func TestAServerThatAsksInTheMiddleOfACallIsNotPassedOn(t *testing.T) {
	w := newWorld(t, nil)
	w.files.says = `{"resultType":"input_required","inputRequests":{},"requestState":"theirs"}`
	c := w.connect(t)
	c.expect(c.call("read_file", `{}`), "This call may have run in part.")
}
