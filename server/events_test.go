package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/quota"
	"github.com/assent-dev/assent/store"
)

// mark records an entry for acme that belongs to no request.
func (h *harness) mark(subject string) {
	h.t.Helper()
	must(h.t, h.svc.Record(h.t.Context(), "acme", "mark", subject, "test", nil))
}

// take reads n events, or fails the test.
func take(t *testing.T, h *harness, token string, after int64, n int, do func(i int)) []client.Event {
	t.Helper()
	ctx := testwait.Context(t)
	var out []client.Event
	for e, err := range h.client(token).Events(ctx, after) {
		if err != nil {
			t.Fatalf("after %d events: %v", len(out), err)
		}
		if out = append(out, e); len(out) == n {
			break
		}
		if do != nil {
			do(len(out))
		}
	}

	return out
}

func TestEvents(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	r := h.ask(rt, `{"secret":"hunter2"}`)
	h.vote(mara, r, "approve").must(200)
	h.consume(rt, r, "k").must(200)
	got := take(t, h, mara, client.FromStart, 4, nil)
	for i, want := range []string{"request_opened", "vote_counted", "request_approved", "permit_consumed"} {
		if got[i].Type != want || got[i].Index != int64(i) ||
			!strings.Contains(string(got[i].Leaf), `"type":"`+want+`"`) {
			t.Errorf("event %d: got %+v", i, got[i])
		}
		if strings.Contains(string(got[i].Leaf), "hunter2") {
			t.Errorf("arguments are in an event: %s", got[i].Leaf)
		}
	}

	if later := take(t, h, mara, 1, 2, nil); later[0].Index != 2 || later[1].Index != 3 {
		t.Errorf("got %+v", later)
	}
	for _, query := range []string{"after=x", "after=-2", "since=1"} {
		if a := h.do("GET", "/v1/events?"+query, mara, ""); a.status != 400 {
			t.Errorf("%s: got %d %s", query, a.status, a.text)
		}
	}
	if a := h.do("GET", "/v1/events", mara, "", "Last-Event-ID", "one"); a.status != 400 {
		t.Errorf("got %d %s", a.status, a.text)
	}
	if a := h.do("HEAD", "/v1/events", mara, ""); a.status != 200 ||
		a.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("got %d %v", a.status, a.header)
	}
}

// TestEventsGoOnAfterARestart checks that a watcher that wants only new events also gets
// those that happen while the server is down.
func TestEventsGoOnAfterARestart(t *testing.T) {
	h := newHarness(t)
	mara := h.voter("mara")
	h.mark("old")
	h.size()
	front := &relay{t: t}
	front.listen()
	front.to(h.url)
	c, err := client.New(front.url, mara, client.Options{Pause: time.Millisecond, MaxPause: 20 * time.Millisecond})
	must(t, err)
	ctx := testwait.Context(t)
	began := make(chan struct{})
	var got []client.Event
	var all sync.WaitGroup
	all.Go(func() {
		for e, err := range c.Events(ctx, client.FromNow) {
			if err != nil {
				t.Errorf("the stream ended: %v", err)
				return
			}
			if got = append(got, e); len(got) == 1 {
				close(began)
			}
			if len(got) == 3 {
				return
			}
		}
	})
	testwait.Until(t, "somebody watches", func() bool {
		return strings.Contains(h.do("GET", "/metrics", "", "").text, "assent_watchers 1")
	})
	h.mark("while up")
	<-began
	h.stop()
	h.mark("while down")
	h.start()
	front.to(h.url)
	h.mark("up again")
	all.Wait()
	for i, want := range []string{"while up", "while down", "up again"} {
		if i >= len(got) || !strings.Contains(string(got[i].Leaf), `"subject":"`+want+`"`) {
			t.Fatalf("event %d is not %q: %v", i, want, got)
		}
	}
}

// relay is a port that stays open while the server behind it is restarted.
type relay struct {
	t      *testing.T
	url    string
	target atomic.Pointer[string]
}

func (r *relay) to(url string) {
	addr := strings.TrimPrefix(url, "http://")
	r.target.Store(&addr)
}

func (r *relay) listen() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(r.t, err)
	r.url = "http://" + l.Addr().String()
	r.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.pass(c)
		}
	}()
}

func (r *relay) pass(c net.Conn) {
	defer c.Close()
	there, err := net.Dial("tcp", *r.target.Load())
	if err != nil {
		return
	}
	defer there.Close()
	go func() {
		_, _ = io.Copy(there, c)
		there.Close()
	}()
	_, _ = io.Copy(c, there)
}

// TestManyWatchers checks that 500 streams on one server share one reader, each gets all
// events in order, and the store is not read for each of them.
func TestManyWatchers(t *testing.T) {
	const watchers, entries = 500, 40
	counted := &counting{}
	h := newHarness(t, func(c *server.Config) {
		counted.Store = c.Store
		c.Store = counted
		c.Timing.Heartbeat = time.Minute
	})
	h.size()
	ctx := testwait.Context(t)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	var clients []*client.Client
	for n := range watchers / 100 { // as many as one token may have
		watcher := h.token(store.Token{Name: fmt.Sprintf("watcher-%d", n), Scopes: []string{"read"}})
		c, err := client.New(h.url, watcher, client.Options{HTTP: &http.Client{Transport: transport}})
		must(t, err)
		clients = append(clients, c)
	}

	var all sync.WaitGroup
	for i := range watchers {
		c := clients[i/100]
		all.Go(func() {
			seen := int64(0)
			for e, err := range c.Events(ctx, client.FromNow) {
				if err != nil || e.Index != int64(h.marks)+seen {
					t.Errorf("after %d events: %+v, %v", seen, e, err)
					return
				}
				if seen++; seen == entries {
					return
				}
			}
		})
	}

	testwait.Until(t, "all watch", func() bool {
		return strings.Contains(h.do("GET", "/metrics", "", "").text, fmt.Sprintf("assent_watchers %d\n", watchers))
	})
	counted.reads.Store(0)
	for i := range entries {
		h.mark(fmt.Sprint(i))
	}
	all.Wait()
	if n := counted.reads.Load(); n > 10*entries {
		t.Errorf("the store was read %d times for %d entries and %d watchers", n, entries, watchers)
	}
}

// counting counts how often the ledger is read.
type counting struct {
	store.Store
	reads atomic.Int64
}

func (c *counting) Leaves(ctx context.Context, tenant string, from int64, limit int) ([]ledger.SealedEntry, error) {
	c.reads.Add(1)
	return c.Store.Leaves(ctx, tenant, from, limit)
}

func TestTooManyWatchers(t *testing.T) {
	h := newHarness(t, func(c *server.Config) {
		limits := quota.Default(1<<30, 2)
		limits.Streams = quota.Parts{Total: 1, Tenant: 1, Caller: 1}
		c.Shares = quota.New(limits)
	})
	mara := h.voter("mara")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream := h.stream(ctx, mara, "?after=-1")
	if a := h.do("HEAD", "/v1/events", mara, ""); a.status != 429 || a.header.Get("Retry-After") == "" {
		t.Errorf("got %d", a.status)
	}
	cancel()
	_, _ = io.Copy(io.Discard, stream)
	testwait.Until(t, "the place is free again", func() bool {
		return h.do("HEAD", "/v1/events", mara, "").status == 200
	})
}

// stream opens the event stream and returns its body.
func (h *harness) stream(ctx context.Context, token, query string) io.Reader {
	h.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", h.url+"/v1/events"+query, nil)
	must(h.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	must(h.t, err)
	if resp.StatusCode != 200 {
		h.t.Fatalf("status %d", resp.StatusCode)
	}
	h.t.Cleanup(func() { resp.Body.Close() })
	return resp.Body
}

func TestHeartbeatsAndTheEnd(t *testing.T) {
	h := newHarness(t)
	lines := bufio.NewScanner(h.stream(t.Context(), h.voter("mara"), ""))
	var seen []string
	for lines.Scan() && len(seen) < 6 {
		seen = append(seen, lines.Text())
	}
	if got := strings.Join(seen, "|"); got != "retry: 1000|id: -1||: still here||: still here" {
		t.Errorf("got %q", got)
	}
	h.stop() // which fails the test when the stream holds it up
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), ":") && lines.Text() != "" {
			t.Errorf("got %q", lines.Text())
		}
	}
}

// TestSlowReaders checks that a client that doesn't read is disconnected, and that others
// are not affected.
func TestSlowReaders(t *testing.T) {
	h := newHarness(t, func(c *server.Config) { c.Timing.Slow = 100 * time.Millisecond })
	mara := h.voter("mara")
	const bulk = 25
	for range bulk { // more than any buffer on the way takes, and than the server remembers
		if err := h.svc.Record(
			t.Context(),
			"acme",
			"bulk",
			"",
			"test",
			map[string]any{"text": strings.Repeat("x", 300_000)},
		); err != nil {
			t.Fatal(err)
		}
	}

	h.size()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	must(t, err)
	defer conn.Close()
	must(t, conn.(*net.TCPConn).SetReadBuffer(4096))
	fmt.Fprintf(conn, "GET /v1/events?after=-1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", mara)
	testwait.Until(t, "the slow one watches, then is cut off", func() bool {
		text := h.do("GET", "/metrics", "", "").text
		return strings.Contains(text, `route="GET /v1/events",status="200"`) &&
			strings.Contains(text, "assent_watchers 0")
	})
	if got := take(t, h, mara, client.FromStart, bulk, nil); got[bulk-1].Index != bulk-1 {
		t.Errorf("got %d", got[bulk-1].Index)
	}
}

func TestLongPoll(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	r := h.ask(rt, `{"amount":1}`)
	var all sync.WaitGroup
	all.Go(func() {
		if a := h.do("GET", "/v1/requests/"+r.ID+"?wait=30s&version=1", rt, ""); a.str("state") != "approved" {
			t.Errorf("got %s", a.text)
		}
	})
	h.vote(mara, r, "approve").must(200)
	all.Wait()
	if a := h.do("GET", "/v1/requests/"+r.ID+"?wait=30s&version=1", rt, ""); a.str("state") != "approved" {
		t.Errorf("an old version waits: %s", a.text)
	}
	if a := h.do("GET", "/v1/requests/"+r.ID+"?wait=50ms&version=2", rt, ""); a.str("state") != "approved" {
		t.Errorf("got %s", a.text)
	}
	for _, query := range []string{"wait=1", "wait=-1s", "version=x", "version=-1", "wiat=1s"} {
		if a := h.do("GET", "/v1/requests/"+r.ID+"?"+query, rt, ""); a.status != 400 {
			t.Errorf("%s: got %d %s", query, a.status, a.text)
		}
	}
	// A server that shuts down answers long polls with the current state.
	all.Go(func() {
		if a := h.do("GET", "/v1/requests/"+r.ID+"?wait=60s&version=2", rt, ""); a.status != 200 ||
			a.str("state") != "approved" {
			t.Errorf("got %d %s", a.status, a.text)
		}
	})
	testwait.Until(t, "somebody waits", func() bool {
		return strings.Contains(h.do("GET", "/metrics", "", "").text, "assent_long_polls 1")
	})
	h.stop()
	all.Wait()
}

// TestNoRunWithoutTheStore (threat 19) checks that calls are denied if the store fails.
func TestNoRunWithoutTheStore(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	r := h.ask(rt, `{"amount":1}`)
	h.vote(mara, r, "approve").must(200)
	testwait.Until(t, "ready", func() bool { return h.do("GET", "/readyz", "", "").status == 200 })
	h.store.lose(fmt.Errorf("%w: the disk at /secret/path is gone", store.ErrUnavailable))
	for _, c := range []struct{ path, body string }{
		{"/v1/agents/desk/decide", `{"kind":"tool","tool":"quote"}`},
		{"/v1/agents/desk/requests", `{"call":{"kind":"tool","tool":"quote"}}`},
		{"/v1/requests/" + r.ID + "/consume", `{"binding":"` + r.Binding() + `","key":"k"}`},
	} {
		a := h.do("POST", c.path, rt, c.body)
		if a.status != 503 || a.str("code") != "unavailable" || a.str("outcome") != "deny" ||
			a.str("next_action") != "retry" ||
			a.header.Get("Retry-After") == "" ||
			strings.Contains(a.text, "secret") {
			t.Errorf("%s: got %d %s", c.path, a.status, a.text)
		}
	}

	testwait.Until(t, "red", func() bool { return h.do("GET", "/readyz", "", "").status == 503 })
	testwait.Until(t, "the log says so", func() bool {
		return strings.Contains(h.log.String(), "the work in the background fails")
	})
	h.do("GET", "/healthz", "", "").must(200)
	h.store.lose(nil)
	testwait.Until(t, "green again", func() bool { return h.do("GET", "/readyz", "", "").status == 200 })
	h.consume(rt, r, "k").must(200)
	if n := strings.Count(h.log.String(), "worker=sealing error"); n != 1 {
		t.Errorf("the failure of sealing was logged %d times", n)
	}
}

func TestMetrics(t *testing.T) {
	h := newHarness(t, func(c *server.Config) {
		c.MetricsToken = true
		c.Timing.Gauges = 10 * time.Millisecond
	})
	rt, mara := h.runtime(), h.voter("mara")
	r := h.ask(rt, `{"amount":1}`)
	h.ask(rt, `{"amount":2}`)
	h.vote(mara, r, "approve").must(200)
	h.consume(rt, r, "k").must(200)
	h.do("GET", "/metrics", "", "").must(401)
	h.do("GET", "/v1/nowhere/at/all", mara, "").must(404)
	want := []string{
		`assent_calls_total{outcome="pending"} 2`,
		`assent_consumes_total{result="consumed"} 1`,
		`assent_open_requests{state="pending"} 1`,
		`assent_open_requests{state="approved"} 0`,
		`assent_dead_deliveries 0`,
		`assent_answer_seconds_count{verdict="approve"} 1`,
		`assent_http_seconds_count{route="POST /v1/requests/{id}/votes",status="200"} 1`,
		`route="none",status="404"`,
		"assent_sealed_timestamp_seconds ",
		"go_goroutines",
	}
	missing := ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("missing: " + missing)
		}
	})
	testwait.Until(t, "the figures are there", func() bool {
		text := h.do("GET", "/metrics", mara, "").must(200).text
		for _, line := range want {
			if !strings.Contains(text, line) {
				missing = line + " in\n" + text
				return false
			}
		}

		missing = "a name"
		return !strings.Contains(text, "acme") && !strings.Contains(text, "mara") && !strings.Contains(text, r.ID)
	})
}

func TestPanicsTellNothing(t *testing.T) {
	h := newHarness(t, func(c *server.Config) {
		c.Directory = broken{c.Directory}
		c.Inbox = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/half" {
				_, _ = w.Write([]byte("half"))
				panic("hunter2")
			}
			fmt.Fprint(w, "the inbox")
		})
	})
	mara := h.voter("mara")
	a := h.do("GET", "/v1/requests?mine=true", mara, "")
	if a.status != 500 || a.str("code") != "internal" || strings.Contains(a.text, "hunter2") {
		t.Errorf("got %d %s", a.status, a.text)
	}
	if log := h.log.String(); !strings.Contains(log, "hunter2") || !strings.Contains(log, a.str("request_id")) ||
		strings.Contains(log, mara) {
		t.Errorf("got %s", log)
	}
	if a := h.do("GET", "/requests/x", "", ""); a.text != "the inbox" {
		t.Errorf("got %s", a.text)
	}
	if a := h.do("GET", "/v1/x", "", ""); a.str("code") != "not_found" {
		t.Errorf("got %s", a.text)
	}
	if resp, err := http.Get(h.url + "/half"); err == nil {
		if text, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("half an answer looks whole: %q", text)
		}
		resp.Body.Close()
	}
}

// broken is a directory that panics.
type broken struct{ approval.Directory }

func (broken) Person(context.Context, string, string) (approval.Person, bool, error) {
	panic(errors.New("hunter2"))
}
