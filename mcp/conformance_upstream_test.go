package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// siteRow is a gateway before a recording server by HTTP.
type siteRow struct {
	*row
	site *mcptest.Site
}

// visited handles a visit, and reports whether it answered it.
type visited = func(w http.ResponseWriter, v *mcptest.Visit) bool

func newSiteRow(t *testing.T, s mcptest.Script, on visited, change func(*mcp.Config)) *siteRow {
	t.Helper()
	return newSiteRowOf(t, mcptest.Clerk, s, on, change)
}

// newSiteRowOf returns such a row with an agent's file of its own.
func newSiteRowOf(t *testing.T, agent string, s mcptest.Script, on visited, change func(*mcp.Config)) *siteRow {
	t.Helper()
	site := mcptest.NewSite(t, s, on)
	w := newWorldOf(t, agent, policyFile, func(cfg *mcp.Config) {
		cfg.Servers[0].Upstream = startedOf(t, upstream.Config{URL: site.URL + "/mcp"})
		if change != nil {
			change(cfg)
		}
	})
	return &siteRow{row: &row{world: w, t: t}, site: site}
}

// got checks that the bodies of all calls that the server has received so far contain these texts.
func (r *siteRow) got(want ...string) {
	r.t.Helper()
	calls := r.site.Visits(wire.MethodCall)
	for i := range min(len(calls), len(want)) {
		if !strings.Contains(calls[i].Text, want[i]) {
			r.t.Errorf("call %d was %s, expected %s", i+1, calls[i].Text, want[i])
		}
	}
	if len(calls) != len(want) {
		r.t.Errorf("the server got %d calls, expected %d", len(calls), len(want))
	}
}

// onCall answers only calls.
func onCall(do visited) visited {
	return func(w http.ResponseWriter, v *mcptest.Visit) bool {
		return v.Message.Method == wire.MethodCall && do(w, v)
	}
}

func testM17(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable, 0} {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(fmt.Sprint(era, status), func(t *testing.T) {
				t.Parallel()
				provesNothing(t, era, status)
			})
		}
	}
}

// provesNothing checks that a refusal with this status proves nothing about the era of a server, so
// that it is probed again once it is healthy. With status 0, the server doesn't answer until then.
func provesNothing(t *testing.T, era string, status int) {
	var well atomic.Bool
	site := mcptest.NewSite(t, script(era), func(w http.ResponseWriter, v *mcptest.Visit) bool {
		switch {
		case well.Load():
			return false
		case status == 0:
			<-v.Context().Done()
		default:
			w.WriteHeader(status)
		}

		return true
	})
	w := newWorld(t, func(cfg *mcp.Config) {
		at := upstream.Config{URL: site.URL + "/mcp"}
		if status == 0 { // it never answers
			at.Start = time.Second
		}
		cfg.Servers[0].Upstream = startedOf(t, at)
	})
	r := &siteRow{row: &row{world: w, t: t}, site: site}
	c := r.connect(t)
	reason := "can't be reached"
	if status == http.StatusUnauthorized {
		reason = "requires a sign-in"
	}
	c.expect(c.call("read_file", `{}`), reason)
	if first := r.site.Visits("server/discover"); len(first) == 0 || len(r.site.Visits("initialize")) > 0 {
		t.Errorf("the server was probed %d times, and initialized", len(first))
	}
	well.Store(true)
	c.until("read_file", `{}`, "done")
	opened := map[string]string{"legacy": "initialize", "modern": "server/discover"}[era]
	visits := r.site.Visits(opened)
	if len(visits) == 0 || len(r.site.Visits("server/discover")) < 2 {
		t.Errorf("the server was not probed anew")
	}
}

// marked returns a tool whose argument path is repeated in a header.
const marked = `{"name":"write_file","description":"Writes.","inputSchema":{"type":"object",` +
	`"properties":{"path":{"type":"string","x-mcp-header":"Path"}}}}`

// markedScript returns a modern server whose tool of writing has a mark.
func markedScript(description string) mcptest.Script {
	s := script("modern")
	s.Tools[1] = json.RawMessage(strings.Replace(marked, "Writes.", description, 1))
	return s
}

// TestHeadersThatRepeatArgumentsAreHeldToThem: if a client's header differs from the argument,
// nothing is sent.
func TestHeadersThatRepeatArgumentsAreHeldToThem(t *testing.T) {
	t.Parallel()
	r := newSiteRow(t, markedScript("Writes."), nil, short)
	w := r.web()
	call := modernCall("1", "write_file", `{"path":"/größe"}`, "")
	repeated := modernHeaders(wire.MethodCall, "write_file")
	for _, headers := range [][]string{
		repeated,
		append(repeated, "Mcp-Param-Path", "/other"),
		append(repeated, "Mcp-Param-Path", "=?base64?%%?="),
	} {
		w.expect(400, "-32020", w.post(call, headers...))
	}

	none := modernCall("2", "write_file", `{}`, "")
	w.expect(400, "-32020", w.post(none, append(repeated, "Mcp-Param-Path", "/größe")...))
	right := append(repeated, "Mcp-Param-Path", "=?base64?L2dyw7bDn2U=?=", "Mcp-Param-Other", "1")
	w.expect(200, "input_required", w.post(call, right...))
	w.expect(200, "input_required", w.post(none, repeated...))
	r.got()
}

func testM25(t *testing.T) {
	r := newSiteRow(t, markedScript("Writes."), nil, long)
	c := r.connect(t)
	c.sendCall(1, "write_file", write)
	must.Do(t, r.Edit(r.pending(t).ID, "mara", `{"path":"/größe"}`))
	c.expect(c.hear(), "done")
	r.got(`"name":"write_file","arguments":{"path":"/größe"}`)
	head := r.site.Visits(wire.MethodCall)[0].Header
	for name, want := range map[string]string{
		"Mcp-Param-Path":       "=?base64?L2dyw7bDn2U=?=",
		"Mcp-Name":             "write_file",
		"Mcp-Method":           wire.MethodCall,
		"Mcp-Protocol-Version": wire.V20260728,
	} {
		if got := head.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, expected %q", name, got, want)
		}
	}
}

func testM32(t *testing.T) {
	var id atomic.Value
	breaks := func(w http.ResponseWriter, v *mcptest.Visit) bool {
		switch last := v.Header.Get("Last-Event-Id"); {
		case v.Message.Method == wire.MethodCall && strings.Contains(v.Text, `"n":1`):
			id.Store(v.Message.ID.Text())
			mcptest.Events(w, "id: a\ndata:\n\n")
		case v.Message.Method == wire.MethodCall:
			mcptest.Events(w, ": nothing that could be gone on with\n\n")
		case last == "a":
			mcptest.Events(w, "id: b\ndata:\n\n")
		case last == "b":
			const result = `,"result":{"content":[{"type":"text","text":"fetched"}]}}`
			mcptest.Events(w, `data: {"jsonrpc":"2.0","id":`+id.Load().(string)+result+"\n\n")
		default:
			return false
		}

		return true
	}
	r := newSiteRow(t, script("legacy"), breaks, nil)
	c := r.connect(t)
	c.expect(c.call("read_file", `{"n":1}`), "fetched")
	r.got(`"n":1`)
	c.expect(c.call("read_file", `{"n":2}`), "This call may have run")
	r.got(`"n":1`, `"n":2`)

	c.expect(c.call("write_file", `{"n":2}`), "Not run yet.")
	r.approve()
	c.until("write_file", `{"n":2}`, "This call may have run")
	r.settle(t)
	r.got(`"n":1`, `"n":2`, `"n":2`)
}

func testM33(t *testing.T) {
	var visits atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer elsewhere.Close()
	for _, event := range []string{
		"event: endpoint\ndata: " + elsewhere.URL + "/messages\n\n",
		"event: endpoint\ndata: //" + elsewhere.Listener.Addr().String() + "/messages\n\n",
		"event: endpoint\ndata: https://SELF/messages\n\n",
		"event: endpoint\ndata: http://user@SELF/messages\n\n",
		"event: endpoint\ndata: ::\n\n",
		"event: message\ndata: /messages\n\n",
	} {
		r := newSiteRow(t, script("old"), func(w http.ResponseWriter, v *mcptest.Visit) bool {
			if v.Method == http.MethodGet {
				mcptest.Events(w, strings.Replace(event, "SELF", v.Host, 1))
				<-v.Context().Done()
			}
			return v.Method == http.MethodGet
		}, nil)
		c := r.connect(t)
		c.expect(c.call("read_file", `{}`), "Not run. The server files can't be reached.")
		r.got()
	}

	if n := visits.Load(); n > 0 {
		t.Errorf("another origin got %d requests", n)
	}

	r := newSiteRow(t, script("old"), nil, nil)
	c := r.connect(t)
	c.expect(c.call("read_file", `{ "n":1.0 }`), "done")
	c.expect(c.call("write_file", `{}`), "Not run yet.")
	r.approve()
	c.until("write_file", `{}`, "done")
	r.got(`"arguments":{ "n":1.0 }`, `"name":"write_file"`)
}

// mismatch makes the first calls fail because of their headers.
func mismatch(times int, meanwhile func()) visited {
	return onCall(func(w http.ResponseWriter, v *mcptest.Visit) bool {
		if v.Times > times {
			return false
		}
		meanwhile()
		mcptest.Say(w, http.StatusBadRequest, &v.Message, "", wire.Fail(wire.CodeHeaderMismatch, "header"))
		return true
	})
}

func testM49(t *testing.T) {
	t.Run("the definition is the same", func(t *testing.T) {
		r := newSiteRow(t, markedScript("Writes."), mismatch(1, func() {}), long)
		c := r.connect(t)
		c.sendCall(1, "write_file", write)
		r.approve()
		c.expect(c.hear(), "done")
		r.got(write, write)
		if n := len(r.site.Visits("tools/list")); n != 2 {
			t.Errorf("the tools were listed %d times", n)
		}
	})
	t.Run("it is refused again", func(t *testing.T) {
		r := newSiteRow(t, markedScript("Writes."), mismatch(9, func() {}), nil)
		c := r.connect(t)
		c.expect(c.call("read_file", `{}`), "Not run. The server files refused the call's headers.")
		r.got(`{}`, `{}`)
	})
	t.Run("the definition is another", changedMeanwhile)
}

func changedMeanwhile(t *testing.T) {
	var site atomic.Pointer[mcptest.Site]
	change := func() { site.Load().Rewrite(markedScript("Writes all.")) }
	r := newSiteRow(t, markedScript("Writes."), mismatch(1, change), func(cfg *mcp.Config) {
		long(cfg)
		cfg.Servers[0].Judging.OnChange = catalog.AcceptChange
	})
	site.Store(r.site)
	c := r.connect(t)
	c.sendCall(1, "write_file", write)
	first := r.pending(t).ID
	r.approve()
	c.expect(c.text(c.hear()), "Not run. The rules or the tool's definition changed")
	c.sendCall(2, "write_file", write)
	if next := r.pending(t).ID; next == first {
		t.Errorf("%s still holds for another definition", next)
	}
	c.cancel(2)
	r.got(write)
}
