package mcp_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/wire"
)

// impatience is the limit of a request, for which clients of TypeScript
// have 60 seconds; internal/peers/mcp waits as long with the real one.
const (
	impatience = 6 * time.Second
	beat       = 50 * time.Millisecond
)

// impatient is a client with a limit: it gives up a call of which it
// hears nothing for so long.
type impatient struct {
	*client
	lines  chan string
	resets bool         // progress sets the limit back
	heard  atomic.Int32 // how much of it came
}

func (r *row) impatient(t *testing.T, resets bool) *impatient {
	t.Helper()
	c := &impatient{client: r.connect(t), lines: make(chan string, 1000), resets: resets}
	go func() {
		defer close(c.lines)
		for c.client.lines.Scan() {
			c.lines <- c.client.lines.Text()
		}
	}()
	return c
}

// write makes the call that asks.
func (c *impatient) write(id string) {
	c.t.Helper()
	c.send(request(id, wire.MethodCall, `"name":"write_file","arguments":`+write+`,"_meta":{"progressToken":`+id+`}`))
}

// answer is that of a call, "" when the client gave it up.
func (c *impatient) answer(id string) string {
	limit := time.NewTimer(impatience)
	defer limit.Stop()
	for {
		select {
		case line := <-c.lines:
			if !strings.Contains(line, `"notifications/progress"`) {
				return line
			}
			c.heard.Add(1)
			if c.resets {
				limit.Reset(impatience)
			}
		case <-limit.C:
			c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
			return ""
		}
	}
}

func testM67(t *testing.T) {
	t.Run("with progress", func(t *testing.T) {
		t.Parallel()
		r := impatientRow(t)
		c := r.impatient(t, true)
		c.write("7")
		answers := make(chan string)
		go func() { answers <- c.answer("7") }()
		testwait.Until(t, "it waits longer than its limit", func() bool {
			return c.heard.Load() > int32(impatience/beat)
		})
		r.approve()
		c.expect(<-answers, "done")
		r.ran(1)
	})
	t.Run("without", func(t *testing.T) {
		t.Parallel()
		r := impatientRow(t)
		c := r.impatient(t, false)
		c.write("7")
		if answer := c.answer("7"); answer != "" {
			t.Fatalf("nobody approved it, and it got %s", answer)
		}
		r.left(t)
		r.approve()
		r.settle(t)
		r.ran(0) // nobody waits for it
		c.write("8")
		answer := c.answer("8")
		c.expect(answer, `"id":8`)
		c.expect(answer, "done")
		r.ran(1)
	})
}

func impatientRow(t *testing.T) *row {
	t.Helper()
	return newRow(t, script("legacy"), func(cfg *mcp.Config) {
		long(cfg)
		cfg.Heartbeat = beat
	})
}
