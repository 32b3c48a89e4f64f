package mcp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
)

// waits calls the tool that waits.
func (c *client) waits(ref, more string) string {
	c.t.Helper()
	return c.call("assent__wait", `{"approval":"`+ref+`"`+more+`}`)
}

// TestTheWaitToolWaitsAndRunsNothing: the tool reports the people's decision on the caller's own
// calls.
func TestTheWaitToolWaitsAndRunsNothing(t *testing.T) {
	t.Parallel()
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		short(cfg)
		two(cfg)
		cfg.WaitTool = true
	})
	c := r.connect(t)
	c.expect(c.say(request("1", "tools/list", "")), `"name":"assent__wait"`)
	c.expect(c.call("write_file", write), "Not run yet.")
	id := r.pending(t).ID
	c.expect(c.waits(id, ""), "Not run yet.")
	c.expect(c.waits(id, `,"seconds":0`), "Not run yet.")
	foreign := r.web().expect(200, "", r.web().post(modernCall("1", "assent__wait", `{"approval":"`+id+`"}`, ""),
		append(modernHeaders(wire.MethodCall, "assent__wait"), "Authorization", "Bearer other")...))
	c.expect(foreign, "No call of this client waits under this id.")
	c.expect(c.waits("apr_none", ""), "No call of this client waits under this id.")

	r.approve()
	c.expect(c.waits(id, ""), "It was approved ("+id+"), and nothing has run by this.")
	r.settle(t)
	r.ran(0)
	c.until("write_file", write, "done")
	r.ran(1)
	c.expect(c.waits(id, ""), "It was approved ("+id+"), and its one run was taken already.")

	c.expect(c.call("write_file", `{"n":2}`), "Not run yet.")
	id = r.pending(t).ID
	r.deny()
	c.expect(c.waits(id, ""), "Not run. mara denied this call: not like this.")
	for _, args := range []string{
		`{}`,
		`{"approval":1}`,
		`{"approval":"a","seconds":-1}`,
		`{"approval":"a","seconds":"1"}`,
	} {
		c.expect(c.call("assent__wait", args), "-32602")
	}

	task := request("9", wire.MethodCall, `"name":"assent__wait","arguments":{"approval":"a"},"task":{}`)
	c.code(wire.CodeMethodNotFound, c.say(task))
	r.ran(1)
}

// TestTheWaitToolHearsOfAnswers: a person who decides while it waits
// ends the wait, also one who is asked as the caller's user.
func TestTheWaitToolHearsOfAnswers(t *testing.T) {
	t.Parallel()
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		inPlace(cfg)
		short(cfg)
		cfg.WaitTool = true
	})
	c := r.connect(t)
	c.expect(c.call("write_file", write), "Not run yet.")
	id := r.pending(t).ID
	r.stop()
	r.cfg.Callers[0].Hold = 30 * time.Second
	r.start(t)
	c = r.connect(t)
	c.send(request("1", wire.MethodCall, `"name":"assent__wait","arguments":{"approval":"`+id+`"}`))
	c.expect(c.say(request("2", "ping", "")), `"id":2`)
	r.choose(id)
	c.expect(c.hear(), "It was approved")
	r.settle(t)
	r.ran(0)
}

// TestWithoutTheWaitToolItIsUnknown: the tool is offered only if the configuration enables it.
func TestWithoutTheWaitToolItIsUnknown(t *testing.T) {
	t.Parallel()
	c := newWorld(t, nil).connect(t)
	c.no(c.say(request("1", "tools/list", "")), "assent__")
	c.expect(c.waits("apr_none", ""), "unknown tool")
}

// readsAsk has people asked about each resource that is read.
var readsAsk = strings.Replace(mcptest.Clerk, "        - read_file\n",
	"        - read_file\n        - {name: resources/read, approval: true}\n", 1)

func TestAModernClientThatReadsIsSentBackAndReadsOnce(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, readsAsk, policyFile, nil)
	w.files.says = `{"contents":[]}`
	c := w.pipe(t, server.Config{})
	state := c.state(c.say(request("1", "resources/read", `"uri":"file:///a",`+metaPlain)))
	w.Votes(w.pending(t).ID, "mara", approval.Approve, approval.VoteApproved, nil)
	again := request("2", "resources/read", `"uri":"file:///a","requestState":"`+state+`",`+metaPlain)
	c.expect(c.say(again), `"resultType":"complete"`)
	if got := w.files.seen(); len(got) != 1 || got[0] != `{"uri":"file:///a"}` {
		t.Errorf("the server saw %q", got)
	}
}

func TestOnlyACallBecomesATask(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, readsAsk, policyFile, func(cfg *mcp.Config) { cfg.Callers[0].Hold = 1 })
	c := w.pipe(t, server.Config{})
	c.no(c.say(request("1", "resources/read", `"uri":"file:///a",`+metaTasks)), `"task"`)
}
