package mcp_test

import (
	"encoding/json"
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

// modern is the _meta of a modern request.
func modern(capabilities string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}`
}

func TestAModernClientThatReadsIsSentBackAndReadsOnce(t *testing.T) {
	w := newWorldOf(t, readsAsk, policyFile, nil)
	w.files.says = `{"contents":[]}`
	c := w.pipe(t, server.Config{})
	read := func(more string) (out struct {
		Result struct {
			ResultType   string
			RequestState string
		}
		Error *struct{ Message string }
	}) {
		text := c.say(request("1", "resources/read", `"uri":"file:///a",`+more+modern(`{}`)))
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := read("")
	if first.Result.RequestState == "" {
		t.Fatalf("it got %+v", first)
	}
	w.Votes(w.pending(t).ID, "mara", approval.Approve, approval.VoteApproved, nil)
	second := read(`"requestState":"` + first.Result.RequestState + `",`)
	if second.Error != nil || second.Result.ResultType != "complete" {
		t.Errorf("it got %+v %+v", second, second.Error)
	}
	if got := w.files.seen(); len(got) != 1 || got[0] != `{"uri":"file:///a"}` {
		t.Errorf("the server saw %q", got)
	}
}

func TestOnlyACallBecomesATask(t *testing.T) {
	w := newWorldOf(t, readsAsk, policyFile, func(cfg *mcp.Config) { cfg.Callers[0].Hold = 1 })
	c := w.pipe(t, server.Config{})
	tasks := modern(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`)
	got := c.say(request("1", "resources/read", `"uri":"file:///a",`+tasks))
	if strings.Contains(got, `"task"`) {
		t.Errorf("it got %s", got)
	}
}
