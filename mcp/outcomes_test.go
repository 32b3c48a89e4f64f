package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/resolve"
)

const write = `{"path":"/a"}`

// long makes callers wait so long that only the test ends the wait.
func long(cfg *mcp.Config) { cfg.Callers[0].Hold = 30 * time.Second }

// sendCall makes a call without waiting for its answer.
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

// settle waits until the gateway has handled all notifications.
func (w *world) settle(t *testing.T) {
	t.Helper()
	testwait.Until(t, "the gateway rests", w.gateway.Idle)
}

// outlast makes a client's call wait longer than the gateway holds it, and returns the answer.
func (w *world) outlast(t *testing.T, c *client, message string) string {
	t.Helper()
	c.send(message)
	testwait.Until(t, "the call waits for people", func() bool {
		return must.Get(w.gateway.Named(t.Context()))(t)
	})
	w.Clock.Add(time.Minute)
	return c.hear()
}

// left waits until the gateway has noticed that no client waits for a call, and no longer works on
// any call for a client.
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

// atOnce lets many clients wait for the same call, lets people decide, and returns how many clients
// got each answer.
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

// lister is a server whose lists a test controls.
type lister struct {
	files
	begun chan struct{} // gets one for each list

	mu   sync.Mutex
	list func(context.Context) error // before the list; nil: at once
}

func newLister(list func(context.Context) error) *lister {
	l := &lister{begun: make(chan struct{}, 100), list: list}
	l.tools = upstreamTools()
	return l
}

func (l *lister) List(ctx context.Context, method string) ([]json.RawMessage, error) {
	l.begun <- struct{}{}
	l.mu.Lock()
	before := l.list
	l.mu.Unlock()
	if before != nil {
		if err := before(ctx); err != nil {
			return nil, err
		}
	}
	return l.files.List(ctx, method)
}

// from makes the following lists begin differently.
func (l *lister) from(list func(context.Context) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = list
}

// silent never lists anything.
func silent(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestAClientThatGivesUpTakesNoToolsAway(t *testing.T) {
	t.Parallel()
	ready := make(chan struct{})
	l := newLister(func(context.Context) error { <-ready; return nil })
	w := newWorld(t, func(cfg *mcp.Config) { cfg.Servers[0].Upstream = l })
	c := w.connect(t)
	c.send(`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`)
	<-l.begun
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	c.say(`{"jsonrpc":"2.0","id":6,"method":"ping"}`) // the client's wait has ended by then
	close(ready)
	c.expect(c.call("read_file", `{}`), "done 1")
}

// TestASlowServerHoldsUpNoList: clients get the lists that are available, and are notified when
// there is more.
func TestASlowServerHoldsUpNoList(t *testing.T) {
	t.Parallel()
	ready, announced := make(chan struct{}), make(chan string, 10)
	slow := newLister(func(context.Context) error { <-ready; return nil })
	w := newWorld(t, func(cfg *mcp.Config) {
		cfg.Servers[0].Upstream = slow
		cfg.ListPatience = time.Millisecond
		cfg.Announce = func(_ context.Context, method string) { announced <- method }
	})
	c := w.connect(t)
	const list = `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`
	c.no(c.say(list), "read_file")
	c.expect(c.call("read_file", `{}`), "Not run. The server files has not listed its tools yet.")
	close(ready)
	if got := <-announced; got != server.ToolsChanged {
		t.Errorf("announced %s", got)
	}
	if got := c.say(list); !strings.Contains(got, "read_file") {
		t.Error(got)
	}
}

func TestServerThatWantsASignInIsNotSaidToBeGone(t *testing.T) {
	t.Parallel()
	l := newLister(func(context.Context) error { return fmt.Errorf("%w: 401", upstream.ErrSignIn) })
	w := newWorld(t, func(cfg *mcp.Config) { cfg.Servers[0].Upstream = l })
	w.connect(t).expect(w.connect(t).call("read_file", `{}`), "Not run. The server files requires a sign-in")
}

func TestAServerThatCouldNotBeListedIsAskedAgain(t *testing.T) {
	t.Parallel()
	l := newLister(func(context.Context) error { return errors.New("503 Service Unavailable") })
	w := newWorld(t, func(cfg *mcp.Config) { cfg.Servers[0].Upstream = l })
	c := w.connect(t)
	c.expect(c.call("read_file", `{}`), "Not run. The server files can't be reached.")
	<-l.begun
	l.from(nil)
	w.Clock.Add(2 * time.Minute)
	<-l.begun
	testwait.Until(t, "its tools are offered", func() bool { return c.call("read_file", `{}`) == "done 1" })
}

func TestAServerThatNeverListsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	mute := newLister(silent)
	mute.changed = make(chan string)
	w := newWorld(t, func(cfg *mcp.Config) {
		cfg.ListWithin = time.Second
		cfg.Servers = append(cfg.Servers, mcp.Server{
			Alias:    "mute",
			Upstream: mute,
			Identity: catalog.Server{Command: "mute"},
		})
	})
	c := w.connect(t)
	c.expect(c.call("files__write_file", write), "Not run yet.") // its first list took a second
	<-mute.begun
	stuck := make(chan struct{})
	mute.from(func(context.Context) error {
		<-stuck
		return errors.New("too late")
	})
	defer close(stuck)
	mute.changed <- "tools/list"
	<-mute.begun
	w.Votes(w.pending(t).ID, "mara", approval.Approve, approval.VoteApproved, nil)
	w.Clock.Add(2 * time.Minute) // the list of the other is old
	c.expect(c.call("files__write_file", write), "done 1")
}

// TestTheLedgerBindsWhatRan: the ledger has the binding of the approver's edit, which is what ran.
func TestTheLedgerBindsWhatRan(t *testing.T) {
	t.Parallel()
	var book ledger
	w := newWorld(t, func(cfg *mcp.Config) {
		short(cfg)
		book.keep(cfg)
	})
	c := w.connect(t)
	bindings := map[any]bool{}
	for i, edit := range []string{"", `{"path":"/b"}`} {
		c.expect(c.call("write_file", write), "Not run yet.")
		id := w.pending(t).ID
		if edit == "" {
			w.Votes(id, "mara", approval.Approve, approval.VoteApproved, nil)
		} else if err := w.Edit(id, "mara", edit); err != nil {
			t.Fatal(err)
		}

		c.until("write_file", write, "done")
		ran := book.all("mcp_call_ran")[i]
		if ran.facts["request"] != id {
			t.Errorf("the run has %v, expected the request %s", ran.facts, id)
		}

		bindings[ran.facts["binding"]] = true
	}

	if len(bindings) != 2 {
		t.Errorf("the runs have the bindings %v", bindings)
	}
}

// TestACallThatEndsLateIsRecorded: a call that is under way while the gateway shuts down is in the
// ledger after it has ended.
func TestACallThatEndsLateIsRecorded(t *testing.T) {
	t.Parallel()
	var book ledger
	w := newWorld(t, book.keep)
	w.files.hold = make(chan struct{})
	c := w.connect(t)
	c.sendCall(1, "read_file", `{}`)
	testwait.Until(t, "the server has it", func() bool { return len(w.files.seen()) == 1 })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.stop()
	}()
	testwait.Until(t, "the gateway waits for the call", w.gateway.Leaving)
	select {
	case <-ended:
		t.Error("the gateway ended before the call did")
	default:
	}
	close(w.files.hold)
	<-ended
	if n := len(book.all("mcp_call_ran")); n != 1 {
		t.Errorf("the ledger has %d runs", n)
	}
	c.expect(c.hear(), "done")
}

// TestTheLedgerNamesAStandingApproval: the ledger names the standing approval if people were not
// asked about a run.
func TestTheLedgerNamesAStandingApproval(t *testing.T) {
	t.Parallel()
	var book ledger
	w := newWorld(t, func(cfg *mcp.Config) {
		long(cfg)
		book.keep(cfg)
	})
	c := w.connect(t)
	c.sendCall(1, "write_file", write)
	w.Votes(w.pending(t).ID, "mara", approval.Approve, approval.VoteApproved, func(in *approval.VoteInput) {
		in.Grant = &approval.GrantOffer{MaxUses: 5}
	})
	c.expect(c.text(c.hear()), "done")
	c.expect(c.call("write_file", write), "done")
	testwait.Until(t, "the ledger has both", func() bool { return book.count("mcp_call_ran") == 2 })
	facts := book.all("mcp_call_ran")[1].facts
	if grant, _ := facts["grant"].(string); grant == "" ||
		facts["request"] != nil {
		t.Errorf("the run has %v", facts)
	}
}

// TestALostResultIsNoCallThatNeverRan: a client that lost an answer learns that the same call ran
// before.
func TestALostResultIsNoCallThatNeverRan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, short)
	c := w.connect(t)
	c.expect(c.call("write_file", write), "Not run yet.")
	w.Votes(w.pending(t).ID, "mara", approval.Deny, approval.VoteDenied, nil)
	c.until("write_file", write, "denied this call")
	text := c.call("write_file", `{"path":"/b"}`)
	c.no(text, "another call than the same one before")
	w.Votes(w.pending(t).ID, "mara", approval.Approve, approval.VoteApproved, nil)
	c.until("write_file", `{"path":"/b"}`, "done")
	c.expect(c.call("write_file", `{"path":"/b"}`), "another call than the same one before, which ran")
}

// TestCallIsDecidedThreeTimes: each decision of the gateway looks up the caller once. The decisions are
// made when the call arrives, before people are asked, and when they have approved it.
func TestCallIsDecidedThreeTimes(t *testing.T) {
	var lookups atomic.Int64
	w := newWorld(t, func(cfg *mcp.Config) {
		caller := cfg.Callers[0]
		caller.Hold = time.Hour
		cfg.Callers = nil
		cfg.CallerOf = func(context.Context, string) (mcp.Caller, error) {
			lookups.Add(1)
			return caller, nil
		}
	})
	c := w.connect(t)
	before := lookups.Load()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file","arguments":{"path":"a"}}}`)
	w.Votes(w.pending(t).ID, "mara", approval.Approve, approval.VoteApproved, nil)
	c.expect(c.hear(), "done 1")
	if n := lookups.Load() - before; n != 3 {
		t.Errorf("decided %d times, expected 3", n)
	}
}
