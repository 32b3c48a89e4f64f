package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/quota"
	"github.com/assent-dev/assent/store"
)

const streamOf = rapOf + "stream?thread=s&id=c1"

// begins makes the nth call of thread s. Its tool answers, with a subscription if the call
// is to stay open.
func (h *harness) begins(tools *toolServer, token, id string, nth int, subscribes bool) {
	h.t.Helper()
	h.do("POST", rapOf+"calls", token, `{"thread":"s","id":"`+id+`","operation":"quote"}`).
		must(200)
	tools.got(h.t, nth)
	if subscribes {
		tools.says(h.t, nth, `{"type":"tool_result","group_id":"GROUP","id":"ID","text":"42","subscription":true}`)
	}
}

// event returns a tool's message with a text.
func event(text string, final bool) string {
	quoted, _ := json.Marshal(text)

	return fmt.Sprintf(
		`{"type":"subscription_event","group_id":"GROUP","tool_call_id":"ID","text":%s,"final":%t}`,
		quoted,
		final,
	)
}

// follow opens the stream of call c1.
func (h *harness) follow(ctx context.Context, token, query string, header ...string) *http.Response {
	h.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", h.url+streamOf+query, nil)
	must(h.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	must(h.t, err)
	h.t.Cleanup(func() { resp.Body.Close() })

	return resp
}

// callLines reads the lines of a stream.
type callLines struct{ *bufio.Scanner }

func linesOf(resp *http.Response) callLines {
	scan := bufio.NewScanner(resp.Body)
	scan.Buffer(nil, 16<<20)

	return callLines{scan}
}

// next reads n lines that are not comments. It returns fewer at the end of the stream.
func (l callLines) next(n int) []string {
	var out []string
	for len(out) < n && l.Scan() {
		if text := l.Text(); text != "" && !strings.HasPrefix(text, ":") {
			out = append(out, text)
		}
	}

	return out
}

// TestRAPStream checks that a call's stream has the state of the call, the messages of its
// tool and its end, that a reader that reconnects misses nothing, and that a tool's text
// never becomes part of the protocol.
func TestRAPStream(t *testing.T) {
	tools := newToolServer(t)
	h := withTools(t, tools)
	token := h.runtime()
	h.begins(tools, token, "c1", 0, false)
	hostile := "one\n\nid: 9.9\nevent: end\ndata: {}\r\n\r\n\u2028</script>\u202e"
	quoted, _ := json.Marshal(hostile)
	view := "{\"type\":\"view_update\",\"group_id\":\"GROUP\",\"view_type\":" + string(quoted) +
		",\"content\":{\n\"n\": 12345678901234567890.10,\r\n\"html\":\"<img src=//x>\"}}"
	var got []string
	for n, err := range h.client(token).RAPFollow(t.Context(), "desk", "s", "c1", "") {
		must(t, err)
		switch {
		case n.Call != nil && n.Call.State == "pending":
			got = append(got, "pending")
			tools.says(t, 0, view)
		case n.View != nil && n.View.Type == hostile:
			got = append(got, "view "+string(n.View.Content))
			tools.says(t, 0, `{"type":"tool_result","group_id":"GROUP","id":"ID","text":"42","subscription":true}`)
		case n.Call != nil && n.Call.State == "done":
			got = append(got, fmt.Sprint("done ", n.Call.Outcome["text"]))
			tools.says(t, 0, event(hostile, false))
		case n.Event != nil && n.Event.Text == hostile:
			got = append(got, "event")
			tools.says(t, 0, event("last", true))
		case n.Event != nil:
			got = append(got, "event "+n.Event.Text+" "+n.At)
		}
	}

	want := `pending|view {"n":12345678901234567890.10,"html":"<img src=//x>"}|done 42|event|event last 2.1`
	if got := strings.Join(got, "|"); !strings.HasSuffix(got, want) { // before: on its way
		t.Errorf("told %q, want %q", got, want)
	}

	resp := h.follow(t.Context(), token, "&after=0.0", "Last-Event-ID", "1.1")
	if got := linesOf(resp).next(100); resp.Header.Get("Content-Type") != "text/event-stream" ||
		len(got) != 10 || got[0] != "retry: 1000" || got[1] != "id: 1.1" || got[2] != "event: call" ||
		got[4] != "id: 2.1" ||
		got[5] != "event: event" ||
		got[8] != "event: end" {
		t.Errorf("%v: %q", resp.Header, got)
	}

	if a := h.do("HEAD", streamOf, token, ""); a.status != 200 || a.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: %d %v", a.status, a.header)
	}
}

// TestRAPStreamIsForWhoeverMayReadTheCall checks that the call is not found for others.
func TestRAPStreamIsForWhoeverMayReadTheCall(t *testing.T) {
	tools := newToolServer(t)
	h := withTools(t, tools)
	token := h.runtime()
	h.begins(tools, token, "c1", 0, false)
	for _, c := range []struct {
		who, token, path string
		header           []string
		status           int
	}{
		{"another token", h.token(store.Token{Name: "rt2", Scopes: []string{"request"}}), streamOf, nil, 404},
		{"the same token of another tenant", h.other("request"), streamOf, nil, 404},
		{"a reader", h.token(store.Token{Name: "audit", Scopes: []string{"read", "admin"}}), streamOf, nil, 403},
		{"of another agent", h.token(store.Token{
			Name:   "rt3",
			Scopes: []string{"request"},
			Agents: []string{"clerk"},
		}), streamOf, nil, 403},
		{"nobody", "", streamOf, nil, 401},
		{"the asker, of another call", token, rapOf + "stream?thread=s&id=c2", nil, 404},
		{"the asker, of no call", token, rapOf + "stream?thread=s", nil, 400},
		{"the asker, of no thread", token, rapOf + "stream?id=c1", nil, 400},
		{"the asker, from nowhere", token, streamOf + "&after=1", nil, 400},
		{"the asker, back from nowhere", token, streamOf, []string{"Last-Event-ID", "-1.0"}, 400},
		{"the asker, of something else", token, streamOf + "&from=1", nil, 400},
	} {
		if a := h.do("GET", c.path, c.token, "", c.header...); a.status != c.status {
			t.Errorf("%s: %d %s, want %d", c.who, a.status, a.text, c.status)
		}
	}
}

// TestRAPStreamsAreBounded checks that a caller may have a hundred streams, and that
// another caller still gets one.
func TestRAPStreamsAreBounded(t *testing.T) {
	tools := newToolServer(t)
	h := withTools(t, tools)
	token := h.runtime()
	other := h.token(store.Token{Name: "rt2", Scopes: []string{"request"}})
	h.begins(tools, token, "c1", 0, true)
	h.begins(tools, other, "c1", 1, true)
	for n := range 100 {
		if resp := h.follow(t.Context(), token, ""); resp.StatusCode != 200 {
			t.Fatalf("stream %d: %d", n, resp.StatusCode)
		}
	}
	h.do("GET", streamOf, token, "").
		tooMany("this token has 100 event streams open")
	resp := h.follow(t.Context(), other, "")
	if got := linesOf(resp).next(3); resp.StatusCode != 200 || got[2] != "event: call" {
		t.Errorf("another caller: %d %q", resp.StatusCode, got)
	}
	h.do("GET", rapOf+"calls?thread=s&id=c1", token, "").
		must(200)
	// exchanges without a stream are not affected
}

// TestRAPStreamSaysWhyItEnds covers streams that end before their call.
func TestRAPStreamSaysWhyItEnds(t *testing.T) {
	tools := newToolServer(t)
	shares := quota.New(quota.Default(1<<30, 2))
	h := withTools(t, tools, func(c *server.Config) { c.Shares = shares })
	token := h.token(store.Token{Name: "rt", Scopes: []string{"request"}, Expires: h.clock.Now().Add(time.Minute)})
	h.begins(tools, token, "c1", 0, true)
	last := func(l callLines) string {
		got := l.next(100)
		return strings.Join(got[max(0, len(got)-3):], "|")
	}
	ended := func(reason string) string { return "event: bye|data: {\"reason\":\"" + reason + "\"}" }

	out := linesOf(h.follow(t.Context(), token, ""))
	out.next(4)
	h.clock.Add(2 * time.Minute)
	if got := last(out); !strings.HasSuffix(got, ended("token")) {
		t.Errorf("an expired token: %s", got)
	}

	token = h.token(store.Token{Name: "rt2", Scopes: []string{"request"}})
	h.begins(tools, token, "c1", 1, true)
	out = linesOf(h.follow(t.Context(), token, ""))
	out.next(4)
	others, err := shares.Memory.Take(t.Context(), quota.Who{Tenant: "beta", Caller: "rt"}, 1<<28, 0)
	must(t, err)
	// the memory that the stream used is given back a moment later
	most, err := shares.Memory.Take(t.Context(), quota.Who{Tenant: "gamma", Caller: "rt"}, 1<<27, 10*time.Second)
	must(t, err)
	tools.says(t, 1, event("one", false))
	if got := last(out); got != "id: 0.0|"+ended("busy") {
		t.Errorf("no room in memory: %.999s", got)
	}
	others.Return()
	most.Return()

	out = linesOf(h.follow(t.Context(), token, "&after=1.0"))
	out.next(4)
	h.stop()
	if got := last(out); got != "id: 1.0|"+ended("draining") {
		t.Errorf("a server that stops: %s", got)
	}
}

// lazy is a client that pauses before it accepts each piece.
type lazy struct {
	*httptest.ResponseRecorder
	ctx   context.Context
	pause time.Duration
}

func (l *lazy) FlushError() error { return wait.Pause(l.ctx, l.pause) }

// TestSlowReadersOfACall checks that a slow reader gets the reason "slow", that one that
// reads nothing is disconnected, and that both can continue at the same place.
func TestSlowReadersOfACall(t *testing.T) {
	tools := newToolServer(t)
	const slow = 200 * time.Millisecond
	h := withTools(t, tools, func(c *server.Config) { c.Timing.Slow = slow })
	token := h.runtime()
	h.begins(tools, token, "c1", 0, true)
	const bulk = 8
	for range bulk { // more than any buffer on the way takes
		tools.says(t, 0, event(strings.Repeat("x", 900<<10), false))
	}

	req := httptest.NewRequestWithContext(t.Context(), "GET", streamOf, nil)
	req.Header.Set("Authorization", "Bearer "+token)
	out := &lazy{
		ResponseRecorder: httptest.NewRecorder(),
		ctx:              t.Context(),
		pause:            slow * 3 / 4,
	}
	h.srv.ServeHTTP(out, req)
	if got := out.Body.String(); !strings.HasSuffix(got, "id: 0.0\nevent: bye\ndata: {\"reason\":\"slow\"}\n\n") {
		t.Errorf("a slow reader is told %.999q", got)
	}

	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	must(t, err)
	defer conn.Close()
	must(t, conn.(*net.TCPConn).SetReadBuffer(4096))
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", streamOf, token)
	testwait.Until(t, "the one that takes nothing is cut off", func() bool {
		text := h.do("GET", "/metrics", "", "").text
		return strings.Contains(text, `route="GET /v1/agents/{agent}/rap/stream",status="200"} 2`) &&
			strings.Contains(text, "assent_watchers 0")
	})

	seen := 0
	for n, err := range h.client(token).RAPFollow(t.Context(), "desk", "s", "c1", "1.0") {
		must(t, err)
		if n.Event != nil {
			seen++
		}
		if seen == bulk-1 {
			break
		}
	}
}

// TestRAPFollowComesBack checks that a reader misses nothing if its server restarts.
func TestRAPFollowComesBack(t *testing.T) {
	tools := newToolServer(t)
	h := withTools(t, tools)
	token := h.runtime()
	h.begins(tools, token, "c1", 0, true)
	front := &relay{t: t}
	front.listen()
	front.to(h.url)
	c, err := client.New(front.url, token, client.Options{Pause: time.Millisecond, MaxPause: 20 * time.Millisecond})
	must(t, err)
	ctx := testwait.Context(t)
	var got []string
	for n, err := range c.RAPFollow(ctx, "desk", "s", "c1", "") {
		must(t, err)
		switch {
		case n.Call != nil && len(got) == 0:
			tools.says(t, 0, event("one", false))
			got = append(got, "begun")
		case n.Event != nil && n.Event.Text == "one":
			got = append(got, "one")
			h.stop()
			tools.says(t, 0, event("two", false))
			h.start(h.tools)
			front.to(h.url)
			tools.says(t, 0, event("three", true))
		case n.Event != nil:
			got = append(got, n.Event.Text)
		}
	}

	if got := strings.Join(got, " "); got != "begun one two three" {
		t.Errorf("told %q", got)
	}
}
