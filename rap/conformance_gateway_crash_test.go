package rap_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/store"
)

func confT25(t *testing.T) {
	confSoon(t, map[string]func(*testing.T){
		"still answerable": func(t *testing.T) {
			p, r := newDoomed(t, life{})
			c, q := r.asked()
			denied, no := r.asked()
			p.kill()
			p.next()
			if !r.alive(c.in.GroupID, c.in.ID) {
				t.Error("the call was lost")
			}
			denied.picks(no, *no.Default)
			denied.fails()
			c.picks(q, 0)
			if got := c.result(); got != "done "+confMotd {
				t.Errorf("the result is %q", got)
			}
			if runs := p.runs(); len(runs) != 1 {
				t.Errorf("runs: %q", runs)
			}
			c.same("user_choice", 1)
		},
		"over meanwhile": func(t *testing.T) {
			p, r := newDoomed(t, life{})
			c, q := r.asked()
			p.kill()
			p.life.Ahead = time.Hour
			p.next()
			c.fails()
			c.refuses(q)
			if runs := p.runs(); len(runs) != 0 {
				t.Errorf("runs: %q", runs)
			}
		},
		"not received yet": func(t *testing.T) {
			p, r := newDoomed(t, life{})
			r.answers(func(*confCallback, int) int { return 503 })
			c := r.call("write_file", confMotd).invoke()
			c.choice()
			p.kill()
			r.answers(nil)
			before := c.count("user_choice")
			p.next()
			c.picks(c.same("user_choice", before+1), 0)
			c.result()
			if runs := p.runs(); len(runs) != 1 {
				t.Errorf("runs: %q", runs)
			}
		},
	})
}

func confT26(t *testing.T) {
	confSoon(t, map[string]func(*testing.T){
		"during the run": func(t *testing.T) {
			p, r := newDoomed(t, life{Block: true})
			c, q := r.asked()
			c.picks(q, 0)
			<-p.begun
			p.kill()
			p.next()
			if text := c.fails(); !strings.Contains(text, "unknown") {
				t.Errorf("the outcome is unknown, and the result says %q", text)
			}
			c.refusesOrRepeats(q)
			c.invoke()
			barrier := r.call("read_file", `{}`).invoke()
			barrier.result()
			if runs := p.runs(); len(runs) != 2 { // this one and the barrier
				t.Errorf("runs: %q", runs)
			}
			if len(c.bodies("tool_result")) != 1 {
				t.Errorf("sent:\n%s", r.heard())
			}
		},
		"at each write": func(t *testing.T) { // which write stores the answer depends on timing
			for range 5 {
				if confSweep(t, false) > 0 {
					return
				}
			}
			t.Error("no kill fell between the decision and the run")
		},
		"before each write": func(t *testing.T) { confSweep(t, true) },
	})
}

// refusesOrRepeats posts the accepted answer once more.
func (c *confCall) refusesOrRepeats(q *confCallback) {
	c.t.Helper()
	if status := c.answer(q, 0); status != http.StatusOK && !confGone(status) {
		c.t.Errorf("an old answer: %d", status)
	}
}

// doomed is a gateway in a process of its own, with a runtime that knows it.
type doomed struct {
	*process
	r *confRuntime
}

func newDoomed(t *testing.T, first life) (*doomed, *confRuntime) {
	t.Helper()
	r := newConfRuntime(t, "alpha")
	first.Gateway = true
	first.Other = r.server.URL
	first.Token = r.token
	p := &doomed{newProcess(t, first), r}
	p.start()
	p.insist(func() int {
		status, _ := r.send(http.MethodGet, p.life.Own+"/.well-known/rap-toolset", nil)
		return status
	})
	r.meet(p.life.Own)
	return p, r
}

func (p *doomed) next() {
	p.t.Helper()
	p.process.next(time.Minute)
	p.r.client.CloseIdleConnections()
}

// insist repeats a request of the runtime until some life of the gateway answers it.
func (p *doomed) insist(request func() int) int {
	p.t.Helper()
	for range 3 {
		if status := request(); status != 0 {
			return status
		}
		p.next()
	}

	p.t.Fatal("nobody answers")
	return 0
}

// await waits for a callback, restarting the gateway if it dies.
func (p *doomed) await(c *confCall, kind string) *confCallback {
	p.t.Helper()
	return testwait.Value(p.t, "a "+kind, func() (*confCallback, bool) {
		select {
		case <-p.dead:
			p.next()
		default:
		}
		found, _ := p.r.found(c.of(kind))
		if len(found) == 0 {
			return nil, false
		}
		return found[0], true
	})
}

// confSweep kills a gateway at the first write to its records, at the second, and so on, until
// a call ends without a kill. It returns how often the next process ran a call whose answer the
// first process had accepted.
func confSweep(t *testing.T, before bool) (taken int) {
	for at := 1; ; at++ {
		p, r := newDoomed(t, life{KillAt: at, Before: before})
		c := r.call("write_file", confMotd)
		if status := p.insist(func() int { return c.post() }); status != http.StatusOK {
			t.Fatalf("write %d: the invocation got %d", at, status)
		}
		q := p.await(c, "user_choice")
		first := fmt.Sprint(p.cmd.Process.Pid)
		lost := c.answer(q, 0) == 0
		if lost { // whether the answer was accepted is shown by a different one
			p.next()
			c.answer(q, *q.Default)
		}
		text := *p.await(c, "tool_result").Text
		runs := p.runs()
		switch {
		case len(runs) > 1:
			t.Errorf("write %d: ran again: %q", at, runs)
		case text == "done "+confMotd && len(runs) == 1:
			if p.kills > 0 && runs[0][0] != first {
				taken++
			}
		case lost && confDenies(text) && len(runs) == 0:
		case !strings.HasPrefix(text, "Error: ") || !strings.Contains(text, "unknown"):
			t.Errorf("write %d: %d runs, and the result %q", at, len(runs), text)
		}

		if len(c.bodies("user_choice")) != 1 || len(c.bodies("tool_result")) != 1 {
			t.Errorf("write %d, sent:\n%s", at, r.heard())
		}
		over := p.kills == 0
		p.kill()
		if t.Failed() {
			t.Fatalf("killed at write %d", at)
		}
		if over {
			t.Logf(
				"%d kills; after %d of them the next process ran what the first had taken the answer to",
				at-1,
				taken,
			)
			if at < 5 {
				t.Errorf("only %d writes", at-1)
			}
			return taken
		}
	}
}

// confResultAcrossCrash kills the gateway after a result that the runtime could not accept.
func confResultAcrossCrash(t *testing.T) {
	p, r := newDoomed(t, life{})
	c, q := r.asked()
	r.answers(func(*confCallback, int) int { return 503 })
	c.picks(q, 0)
	c.same("tool_result", 1)
	p.kill()
	r.answers(nil)
	before := c.count("tool_result")
	p.next()
	if got := c.result(); got != "done "+confMotd {
		t.Errorf("the result is %q", got)
	}
	c.same("tool_result", before+1)
	if runs := p.runs(); len(runs) != 1 {
		t.Errorf("runs: %q", runs)
	}
}

// confDisk gives a gateway access to its records. It can be cut off, at once or after some more
// writes, which has the effect of a crash.
type confDisk struct {
	store.Records
	mu     sync.Mutex
	left   int                                // writes before it is cut off; negative: never
	writes func(namespace string)             // called before each write
	lists  func(context.Context) (fail error) // called before each list
}

var errDead = errors.New("the process is dead")

func (d *confDisk) die(after int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = after
}

func (d *confDisk) alive(write bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left == 0 {
		return errDead
	}
	if write && d.left > 0 {
		d.left--
	}
	return nil
}

func (d *confDisk) PutRecord(ctx context.Context, r store.Record) (int64, error) {
	if d.writes != nil {
		d.writes(r.Namespace)
	}
	if err := d.alive(true); err != nil {
		return 0, err
	}
	return d.Records.PutRecord(ctx, r)
}

func (d *confDisk) Record(ctx context.Context, room, key string) (store.Record, error) {
	if err := d.alive(false); err != nil {
		return store.Record{}, err
	}
	return d.Records.Record(ctx, room, key)
}

func (d *confDisk) RecordByAlias(ctx context.Context, room, alias string) (store.Record, error) {
	if err := d.alive(false); err != nil {
		return store.Record{}, err
	}
	return d.Records.RecordByAlias(ctx, room, alias)
}

func (d *confDisk) ListRecords(ctx context.Context, room, prefix, after string, limit int) ([]store.Record, error) {
	err := d.alive(false)
	if d.lists != nil {
		err = errors.Join(err, d.lists(ctx))
	}
	if err != nil {
		return nil, err
	}
	return d.Records.ListRecords(ctx, room, prefix, after, limit)
}

func (d *confDisk) DueRecords(ctx context.Context, room string, now time.Time, limit int) ([]store.Record, error) {
	if err := d.alive(false); err != nil {
		return nil, err
	}
	return d.Records.DueRecords(ctx, room, now, limit)
}
