package mcp_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
)

// stream reads server-sent events as they come.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
}

// stream reads the response as an event stream. The test fails if it is not one.
func (w *web) stream(resp *http.Response) *stream {
	w.t.Helper()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		w.t.Fatalf("got %d %s, expected a stream", resp.StatusCode, kind)
	}
	return &stream{t: w.t, lines: bufio.NewScanner(resp.Body)}
}

// line returns the next line with a prefix, without that.
func (s *stream) line(prefix string) string {
	s.t.Helper()
	for s.lines.Scan() {
		if text, is := strings.CutPrefix(s.lines.Text(), prefix); is {
			return text
		}
	}
	s.t.Fatalf("the stream ended without %q: %v", prefix, s.lines.Err())
	return ""
}

func testM28(t *testing.T) {
	r := newRow(t, script("legacy"), long)
	w := r.web()
	session := w.open(wire.V20251125)
	general, stop := context.WithCancel(t.Context())
	other := w.ask(general, http.MethodGet, "", session...)
	ctx, drop := context.WithCancel(t.Context())
	answer := w.stream(w.ask(ctx, http.MethodPost, request("1", wire.MethodCall, `"name":"write_file"`), session...))
	last := answer.line("id: ")
	id := r.pending(t).ID
	drop()
	r.waits(id)
	r.approve()

	rest := append([]string{"Last-Event-Id", last}, session...)
	w.expect(200, `"text":"done"`, w.ask(t.Context(), http.MethodGet, "", rest...))
	w.expect(404, "", w.ask(t.Context(), http.MethodGet, "", rest...))
	r.ran(1)
	stop()
	if got, _ := io.ReadAll(other.Body); strings.Contains(string(got), "done") {
		t.Errorf("another stream has %s", got)
	}
}

func testM30(t *testing.T) {
	r := newRow(t, script("legacy"), long)
	w := r.web(func(cfg *server.HTTPConfig) { cfg.KeepAlive = 20 * time.Millisecond })
	for text, headers := range map[string][]string{
		request("1", wire.MethodCall, `"name":"write_file"`): w.open(wire.V20251125),
		modernCall("1", "write_file", "{}", ""):              modernHeaders(wire.MethodCall, "write_file"),
	} {
		waits := w.stream(w.post(text, headers...))
		for range 3 {
			waits.line(":")
		}
		r.approve()
		if got := waits.line("data: {"); !strings.Contains(got, `"text":"done"`) {
			t.Errorf("got %s", got)
		}
	}
}

// reports reads progress reports and counts those of the server. Each must have a token and a
// rising number.
func (c *client) reports(lines []string, token string) (theirs int) {
	c.t.Helper()
	last := 0.0
	for _, line := range lines {
		m, bad := wire.Parse([]byte(line), wire.Limits())
		if bad != nil || m.Method != "notifications/progress" {
			c.t.Fatalf("got %s, expected progress", line)
		}
		p, bad := wire.ReadProgress(m.Params)
		if bad != nil || p.Token.Text() != token || p.Progress <= last || p.Total != 0 {
			c.t.Errorf("got %s behind %v", line, last)
		}
		last = p.Progress
		if p.Message == "" {
			theirs++
		}
	}

	return theirs
}

func testM66(t *testing.T) {
	s := script("legacy")
	s.Does = map[string]string{"write_file": mcptest.Progress}
	r := newRow(t, s, func(cfg *mcp.Config) {
		long(cfg)
		cfg.Heartbeat = 10 * time.Millisecond
	})
	c := r.connect(t)
	for id, token := range map[string]string{"1": `"p"`, "2": `7`} {
		c.send(request(id, wire.MethodCall, `"name":"write_file","arguments":{"n":`+id+`},"_meta":{"progressToken":`+
			token+`}`))
		waits := []string{c.hear(), c.hear(), c.hear()}
		waiting := r.pending(t).ID
		before, _ := c.hearUntil(waiting)
		r.approve()
		after, answer := c.hearUntil(`"id":` + id)
		c.expect(answer, `"text":"done"`)
		all := append(append(waits, before...), after...)
		if theirs := c.reports(all, token); theirs != 3 {
			t.Errorf("%d reports of the server among %q", theirs, all)
		}

		c.send(request(`"later"`, "ping", ""))
		if more, _ := c.hearUntil(`"id":"later"`); len(more) > 0 {
			t.Errorf("behind the answer came %q", more)
		}
	}
}

// testM67: internal/peers/mcp waits with the real client of TypeScript, whose
// limit is 60 seconds.
func testM67(t *testing.T) {
	for name, test := range map[string]func(*row, *client){
		"with progress": func(r *row, c *client) {
			c.send(request("7", wire.MethodCall,
				`"name":"write_file","arguments":`+write+`,"_meta":{"progressToken":7}`))
			for range 50 { // each of them sets the limit of the client back
				c.expect(c.hear(), `"notifications/progress"`)
			}
			r.approve()
			_, answer := c.hearUntil(`"id":7`)
			c.expect(answer, "done")
			r.ran(1)
		},
		"gives up": func(r *row, c *client) {
			c.sendCall(7, "write_file", write)
			r.pending(t)
			c.cancel(7)
			r.left(t)
			r.approve()
			r.settle(t)
			r.ran(0) // no client waits for it
			c.sendCall(8, "write_file", write)
			answer := c.hear()
			c.expect(answer, `"id":8`)
			c.expect(answer, "done")
			r.ran(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
				long(cfg)
				cfg.Heartbeat = 10 * time.Millisecond
			})
			test(r, r.connect(t))
		})
	}
}
