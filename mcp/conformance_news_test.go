package mcp_test

import (
	"context"
	"encoding/json"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// listening returns a modern client's request for notifications.
func listening(id, wanted string) string {
	return request(id, "subscriptions/listen", `"notifications":{`+wanted+`},`+metaTasks)
}

func testM56(t *testing.T) {
	r := newRow(t, script("legacy"), two)
	c := r.pipe(t, server.Config{})
	task := c.member(c.result(c.say(taskCall("1", "write_file", write))), "taskId")
	wanted := `"taskIds":["` + task + `","tsk_other"]`
	c.send(listening("7", wanted))
	agreed := c.hear()
	c.expect(agreed, `"notifications":{"taskIds":["`+task+`"]}`)
	c.expect(agreed, `"_meta":{"io.modelcontextprotocol/subscriptionId":7}`)
	c.expect(c.hear(), `"status":"working"`)

	w := r.web()
	headers := []string{"Mcp-Protocol-Version", wire.V20260728, "Mcp-Method", "subscriptions/listen"}
	foreign := w.expect(200, `"resultType":"complete"`,
		w.post(listening("8", wanted), append(headers, "Authorization", "Bearer other")...))
	c.no(foreign, task)

	r.approve()
	_, ended := c.hearUntil(`"status":"completed"`)
	c.expect(ended, `"method":"notifications/tasks"`)
	c.expect(ended, `"text":"done"`)
	got := c.say(taskRequest("tasks/get", task, true))
	told, asked := object(t, ended, "params"), object(t, got, "result")
	delete(told, "_meta")
	delete(asked, "resultType")
	if !reflect.DeepEqual(told, asked) {
		t.Errorf("told %v, and tasks/get says %v", told, asked)
	}
	c.code(wire.CodeInvalidParams, c.say(taskRequest("tasks/update", task, true)))
	c.code(wire.CodeInvalidParams, c.say(taskRequest("tasks/update", "tsk_other", true)))
}

// object returns a member of a message.
func object(t *testing.T, message, member string) (all map[string]any) {
	t.Helper()
	if err := json.Unmarshal(jsonmsg.Get([]byte(message), member), &all); err != nil {
		t.Fatalf("%s: %v", message, err)
	}
	return all
}

func testM87(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		s := script(era)
		s.Does = map[string]string{"read_file": mcptest.Flood}
		u := mcptest.New(t, s)
		w := newWorld(t, func(cfg *mcp.Config) {
			cfg.Servers[0].Upstream = started(t, u, func(cfg *upstream.Config) { cfg.Settle = 24 * time.Hour })
		})
		r := &row{world: w, t: t, u: u}
		c := r.connect(t)
		c.say(request("1", "tools/list", ""))
		listed, before := len(r.u.Params("tools/list")), heap()
		c.send(request("2", wire.MethodCall, `"name":"read_file","_meta":{"progressToken":"p"}`))
		heard, answer := c.hearUntil(`"id":2`)
		c.expect(answer, "done")
		counts := map[string]int{}
		for _, line := range heard {
			m, _ := wire.Parse([]byte(line), wire.Limits())
			counts[m.Method]++
		}

		if counts["notifications/progress"] != 100 || counts["notifications/message"] > 100 || len(heard) > 210 {
			t.Errorf("%s: the client got %v", era, counts)
		}
		if grown := heap() - before; grown > 4<<20 {
			t.Errorf("%s: %d bytes are kept of a flood", era, grown)
		}
		if got := len(r.u.Params("tools/list")) - listed; got > 0 {
			t.Errorf("%s: the server was asked %d times for its tools before the settling time was over", era, got)
		}
	}
}

// heap returns the number of bytes in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// readsFiles lets resources be read.
func readsFiles() string {
	return strings.Replace(mcptest.Clerk, "- read_file\n", "- read_file\n        - resources/read\n", 1)
}

// tells returns a server that sends notifications.
func tells(era string) mcptest.Script {
	s := script(era)
	s.News = true
	s.Does = map[string]string{"read_file": mcptest.Tells}
	return s
}

// asked waits until a server has received a request that contains a text.
func (r *row) asked(method, text string) {
	r.t.Helper()
	testwait.Until(r.t, "the server gets "+method+" "+text, func() bool {
		return slices.ContainsFunc(r.u.Params(method), func(p string) bool { return strings.Contains(p, text) })
	})
}

func TestNewsOfResourcesTravelBetweenEras(t *testing.T) {
	t.Parallel()
	const uri = "file:///a"
	for _, era := range []string{"legacy", "modern"} {
		r := newRowOf(t, readsFiles(), policyFile, tells(era), nil)
		follows, leaves := "resources/subscribe", "resources/unsubscribe"
		if era == "modern" {
			follows, leaves = "subscriptions/listen", ""
		}
		old, young := r.connect(t), r.pipe(t, server.Config{})
		old.say(request("1", "tools/list", ""))
		old.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		old.expect(old.say(request("2", "resources/subscribe", `"uri":"`+uri+`"`)), `"result":{}`)
		young.send(listening(`"s"`, `"resourceSubscriptions":["`+uri+`"]`))
		young.expect(young.hear(), `"notifications":{"resourceSubscriptions":["`+uri+`"]}`)
		r.asked(follows, uri)
		old.send(request("3", wire.MethodCall, `"name":"read_file"`))
		updated := old.updated()
		old.expect(updated, `"params":{"uri":"`+uri+`"}`)
		young.expect(young.updated(), `"uri":"`+uri+`","_meta":{"io.modelcontextprotocol/subscriptionId":"s"}`)

		old.expect(old.say(request("4", "resources/unsubscribe", `"uri":"`+uri+`"`)), `"result":{}`)
		young.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}`)
		if leaves != "" {
			r.asked(leaves, uri)
		}
	}
}

// updated reads messages until a resource has changed.
func (c *client) updated() string {
	c.t.Helper()
	before, line := c.hearUntil("notifications/resources/updated")
	for _, other := range append(before, line) {
		c.no(other, "file:///other")
	}
	return line
}

func TestNobodyHearsOfAResourceThatItMayNotRead(t *testing.T) {
	t.Parallel()
	r := newRow(t, tells("legacy"), nil)
	c, m := r.connect(t), r.pipe(t, server.Config{})
	c.say(request("1", "tools/list", ""))
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.code(wire.CodeInvalidParams, c.say(request("2", "resources/subscribe", `"uri":"file:///a"`)))
	m.send(listening("1", `"resourceSubscriptions":["file:///a"]`))
	m.expect(m.hear(), `"notifications":{}`)
	m.expect(m.hear(), `"resultType":"complete"`)
	if got := r.u.Params("resources/subscribe"); len(got) != 0 {
		t.Errorf("the server got %q", got)
	}
}

func TestLogsTravelBetweenErasFromTheLevelThatIsWanted(t *testing.T) {
	t.Parallel()
	const leveled = `"_meta":{"io.modelcontextprotocol/logLevel":"warning",`
	for _, era := range []string{"legacy", "modern"} {
		r := newRow(t, tells(era), nil)
		old, young := r.connect(t), r.pipe(t, server.Config{})
		old.say(request("1", "tools/list", ""))
		old.code(wire.CodeInvalidParams, old.say(request("2", wire.MethodLevel, `"level":"loud"`)))
		old.expect(old.say(request("2", wire.MethodLevel, `"level":"warning"`)), `"result":{}`)
		old.logs(request("3", wire.MethodCall, `"name":"read_file"`), true)
		quiet := modernCall("3", "read_file", "{}", "")
		young.logs(strings.Replace(quiet, `"_meta":{`, leveled, 1), true)
		young.logs(quiet, false)
		if era == "legacy" {
			r.asked(wire.MethodLevel, `"level":"warning"`)
			continue
		}
		r.asked(wire.MethodCall, `"io.modelcontextprotocol/logLevel":"warning"`)
	}
}

// logs makes a call, and checks that one log message comes with it, or none.
func (c *client) logs(call string, wanted bool) {
	c.t.Helper()
	c.send(call)
	heard, _ := c.hearUntil(`"id":3`)
	const line = `"params":{"level":"error","logger":"files/disk","data":{"note":"loud"}}`
	if wanted && (len(heard) != 1 || !strings.Contains(heard[0], line)) || !wanted && len(heard) != 0 {
		c.t.Errorf("heard %q, expected a line: %t", heard, wanted)
	}
}

func TestTheListsOfARestartedServerAreReadAgain(t *testing.T) {
	t.Parallel()
	s := script("legacy")
	s.Tools = s.Tools[:1]
	s.Does = map[string]string{"read_file": mcptest.Crash}
	told := make(chan string, 10)
	r := newRow(t, s, func(cfg *mcp.Config) {
		cfg.Announce = func(_ context.Context, method string) { told <- method }
	})
	c := r.connect(t)
	c.no(c.say(request("1", "tools/list", "")), "write_file")
	s.Tools = upstreamTools()
	r.u.Rewrite(s) // it doesn't say so
	c.send(request("2", wire.MethodCall, `"name":"read_file"`))
	c.hearUntil(`"id":2`)
	for method := range told {
		if method == server.ToolsChanged {
			break
		}
	}
	c.expect(c.say(request("3", "tools/list", "")), "write_file")
}
