package mcp_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/wire"
)

func testM29(t *testing.T) {
	r := newRow(t, script("modern"), long)
	w := r.web()
	ctx, leave := context.WithCancel(t.Context())
	call := modernCall("1", "write_file", write, "")
	resp := w.ask(ctx, http.MethodPost, call, modernHeaders(wire.MethodCall, "write_file")...)
	first := r.pending(t)
	leave()
	resp.Body.Close()
	r.left(t)
	r.waits(first.ID)
	r.approve()
	r.settle(t)
	r.ran(0)

	c := r.connect(t)
	c.until("write_file", write, "done")
	r.ran(1)
}

func testM36(t *testing.T) {
	s := script("legacy")
	s.Does = map[string]string{"read_file": mcptest.Crash}
	r := newRowOf(t, open, asksAboutWriting(), s, func(cfg *mcp.Config) {
		another(t, cfg, "more", script("legacy"))
	})
	c := r.connect(t)
	c.expect(c.call("files__read_file", `{}`), "This call may have run")
	c.expect(c.call("more__read_file", `{}`), "done")
	r.u.Rewrite(script("legacy"))
	c.until("files__read_file", `{}`, "done")
	if starts := r.u.Starts(); starts < 2 {
		t.Errorf("the server was started %d times", starts)
	}
}

func testM72(t *testing.T) {
	r := newRow(t, script("legacy"), short)
	c := r.connect(t)
	for _, end := range []struct {
		args string
		ends func(id string)
		want string
	}{
		{
			args: `{"n":1}`,
			ends: func(string) { r.deny() },
			want: "Not run. mara denied this call: not like this. Do not try it again.",
		},
		{
			args: `{"n":2}`,
			ends: func(id string) {
				must.Get(r.Service.Cancel(t.Context(), assenttest.Tenant, id, "ann", "not needed"))(t)
			},
			want: "Not run. The request was taken back: not needed.",
		},
		{
			args: `{"n":3}`,
			ends: func(string) { r.Later(25 * time.Hour) },
			want: "Not run. Nobody decided about this call in time",
		},
	} {
		c.expect(c.call("write_file", end.args), "Not run yet.")
		end.ends(r.pending(t).ID)
		c.until("write_file", end.args, end.want)
	}

	r.settle(t)
	r.ran(0)
}

func testM73(t *testing.T) {
	s := script("legacy")
	s.Does = map[string]string{"write_file": mcptest.Hold}
	r := newRow(t, s, long)
	c := r.connect(t)
	c.sendCall(7, "write_file", write)
	r.approve()
	testwait.Until(t, "it runs", func() bool { return len(r.u.Calls()) == 1 })
	c.cancel(7)
	c.expect(c.say(request("8", "ping", "")), `"id":8`)
	r.u.Release()
	c.expect(c.call("write_file", write), "done")
	r.ran(1)
	c.sendCall(9, "write_file", write)
	if next := r.pending(t); next.State != approval.Pending {
		t.Errorf("the next call found a request that is %s", next.State)
	}
	r.ran(1)
}

func testM77(t *testing.T) {
	kept := &mcptest.Pins{}
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		cfg.Servers[0].Judging.First = catalog.Required
		cfg.Pins = kept
	})
	c := r.connect(t)
	c.no(c.say(request("1", "tools/list", "")), "read_file")
	c.expect(c.call("read_file", `{}`), "Not run. Nobody has accepted this tool's definition yet")
	pin(t, kept, catalog.Server{Command: "files"}, upstreamTools()[0])
	must.Do(t, r.gateway.Refresh(t.Context(), "files"))
	listed := c.say(request("1", "tools/list", ""))
	c.expect(listed, "read_file")
	c.no(listed, "write_file")
	c.expect(c.call("read_file", `{}`), "done")
	r.ran(1)
}

// pin accepts a tool, as its operators do.
func pin(t *testing.T, kept *mcptest.Pins, of catalog.Server, definition []byte) {
	t.Helper()
	pin := must.Get(catalog.NewPin(of, catalog.Read(definition), nil))(t)
	kept.Add("files", of, pin)
}
