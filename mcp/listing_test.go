package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/server"
)

// lister is a server whose lists are up to a test.
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

// from has the lists that follow begin otherwise.
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

// TestASlowServerHoldsUpNoList: clients get what is there, and hear when
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
