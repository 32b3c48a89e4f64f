package mcp_test

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/server"
)

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
