package mcp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
)

// ended waits until a modern task has ended, and returns its status.
func (c *client) ended(task string) string {
	c.t.Helper()
	return testwait.Value(c.t, "the task ends", func() (string, bool) {
		answer := c.say(taskRequest("tasks/get", task, true))
		return answer, !strings.Contains(answer, `"status":"working"`)
	})
}

// begins makes a call that becomes a modern task.
func (c *client) begins(args string) (task string) {
	c.t.Helper()
	answer := c.say(taskCall("1", "write_file", args))
	c.expect(answer, `"resultType":"task"`)
	return c.member(c.result(answer), "taskId")
}

func testM52(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	c := r.pipe(t, server.Config{})
	task := c.begins(write)
	r.approve()
	testwait.Until(t, "it runs though nobody asks", func() bool { return len(r.u.Calls()) == 1 })
	answer := c.ended(task)
	c.expect(answer, `"status":"completed"`)
	c.expect(answer, `"text":"done"`)
	task = c.begins(`{"path":"/b"}`)
	r.deny()
	answer = c.ended(task)
	c.expect(answer, `"status":"completed"`)
	c.expect(answer, `"isError":true`)
	c.expect(answer, "Not run. mara denied this call")
	r.ran(1)
}

func testM53(t *testing.T) {
	r := newRow(t, script("legacy"), short)
	c := r.pipe(t, server.Config{})
	c.begins(write)
	c.no(c.say(modernCall("2", "write_file", write, "")), `"task"`)
	r.ran(0)
}

func testM54(t *testing.T) {
	r := newRow(t, script("legacy"), two)
	w := r.web()
	c := r.pipe(t, server.Config{})
	task := c.begins(write)
	for _, method := range []string{"tasks/get", "tasks/cancel"} {
		var told []string
		for _, id := range []string{task, "tsk_nobody"} {
			headers := append(modernHeaders(method, id), "Authorization", "Bearer other")
			answer := w.expect(200, "-32602", w.post(taskRequest(method, id, true), headers...))
			told = append(told, strings.TrimSpace(strings.TrimPrefix(answer, "data: "))) // a slow answer is an event
		}
		if told[0] != told[1] {
			t.Errorf("%s tells %q", method, told)
		}
	}

	for _, method := range []string{"tasks/list", "tasks/result"} {
		c.code(wire.CodeMethodNotFound, c.say(taskRequest(method, task, true)))
	}
	c.expect(c.say(taskRequest("tasks/get", task, true)), `"status":"working"`)
}

func testM55(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	c := r.pipe(t, server.Config{})
	task := c.begins(write)
	waiting := r.pending(t)
	c.expect(c.say(taskRequest("tasks/cancel", task, true)), `"resultType":"complete"`)
	c.expect(c.say(taskRequest("tasks/get", task, true)), `"status":"cancelled"`)
	testwait.Until(t, "the request is withdrawn", func() bool {
		got, err := r.Service.Request(t.Context(), "acme", waiting.ID)
		return err == nil && got.State == approval.Cancelled
	})
	r.ran(0)

	for n := range 20 {
		task := c.begins(fmt.Sprintf(`{"n":%d}`, n))
		before, waiting := len(r.u.Calls()), r.pending(t)
		voted := make(chan struct{})
		go func() {
			defer close(voted)
			_, _ = r.Vote(waiting.ID, "mara", approval.Approve, nil)
		}()
		c.say(taskRequest("tasks/cancel", task, true))
		<-voted
		cancelled := strings.Contains(c.ended(task), `"status":"cancelled"`)
		r.settle(t)
		if ran := len(r.u.Calls()) > before; ran == cancelled {
			t.Fatalf("race %d: ran %t, cancelled %t", n, ran, cancelled)
		}
	}
}

func testM58(t *testing.T) {
	s := script("legacy")
	s.Answers = map[string]string{"write_file": `{"content":[{"type":"text","text":"disk full"}],"isError":true}`}
	r := newRow(t, s, nil)
	c := r.connect(t)
	answer := c.say(request("1", wire.MethodCall, `"name":"write_file","task":{"ttl":1000}`))
	c.expect(answer, `"result":{"task":{"taskId":"tsk_`)
	_, rest, _ := strings.Cut(answer, `"taskId":"`)
	task, _, _ := strings.Cut(rest, `"`)
	c.expect(c.say(taskRequest("tasks/get", task, false)), `"status":"working"`)
	c.send(request(`"r"`, "tasks/result", `"taskId":"`+task+`"`))
	c.expect(c.say(request("2", "ping", "")), `"id":2`) // the result has not come
	r.approve()
	answer = c.hear()
	c.expect(answer, "disk full")
	c.expect(answer, `"io.modelcontextprotocol/related-task":{"taskId":"`+task+`"}`)
	c.expect(c.say(taskRequest("tasks/get", task, false)), `"status":"failed"`)
	r.ran(1)
}

func testM59(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	c := r.connect(t)
	answer := c.say(request("1", wire.MethodCall, `"name":"read_file","task":{"ttl":1000}`))
	c.expect(answer, `"result":{"task":{"taskId":"tsk_`)
	c.say(request("2", wire.MethodCall, `"name":"write_file","task":{"ttl":1000}`))
	waiting := r.pending(t)
	r.Clock.Add(time.Minute)
	r.waits(waiting.ID)
	r.approve()
	testwait.Until(t, "both run", func() bool { return len(r.u.Calls()) == 2 })
}

// state returns the state of an answer that sends the client back.
func (c *client) state(answer string) string {
	c.t.Helper()
	c.expect(answer, `"inputRequests":{}`)
	return c.member(c.result(answer), "requestState")
}

// back repeats a call with a state.
func back(id, args, state string) string {
	return modernCall(id, "write_file", args, `"requestState":"`+state+`",`)
}

func testM62(t *testing.T) {
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		short(cfg)
		two(cfg)
	})
	c := r.pipe(t, server.Config{})
	state := c.state(c.say(modernCall("1", "write_file", write, "")))
	flipped := []byte(state)
	flipped[len(flipped)/2] ^= 1
	r.approve()
	for _, text := range []string{
		back("2", write, state[:len(state)-4]),
		back("2", write, string(flipped)),
		back("2", `{"path":"/b"}`, state),
	} {
		c.code(wire.CodeInvalidParams, c.say(text))
	}

	headers := append(modernHeaders(wire.MethodCall, "write_file"), "Authorization", "Bearer other")
	r.web().expect(200, "-32602", r.web().post(back("2", write, state), headers...))
	r.Clock.Add(2 * time.Hour)
	c.code(wire.CodeInvalidParams, c.say(back("2", write, state)))
	r.settle(t)
	r.ran(0)

	again := newRow(t, script("legacy"), short)
	c = again.pipe(t, server.Config{})
	state = c.state(c.say(modernCall("1", "write_file", write, "")))
	c.state(c.say(back("2", write, state)))
	c.code(wire.CodeInvalidParams, c.say(back("3", write, state)))
	again.ran(0)
}

func testM63(t *testing.T) {
	r := newRow(t, script("legacy"), short)
	c := r.pipe(t, server.Config{})
	const answers = `"inputResponses":{"apr_1":{"action":"accept","content":{"decision":"approve"}}},`
	c.state(c.say(modernCall("1", "write_file", write, answers)))
	r.pending(t)
	r.ran(0)
}

func testM65(t *testing.T) {
	r := newRow(t, script("legacy"), short)
	c := r.pipe(t, server.Config{})
	state := c.state(c.say(modernCall("1", "write_file", write, "")))
	state = c.state(c.say(back("2", write, state)))
	answer := c.say(back("3", write, state))
	c.expect(answer, "Not run yet.")
	c.expect(answer, `"isError":true`)
	r.ran(0)
}

func testM68(t *testing.T) {
	r := newRow(t, script("legacy"), long)
	c := r.connect(t)
	answer := r.outlast(t, c, request("1", wire.MethodCall, `"name":"write_file"`))
	id := r.pending(t).ID
	for _, want := range []string{"Not run yet.", id, ", until 20", "same arguments", `"isError":true`} {
		c.expect(answer, want)
	}
	c.expect(r.outlast(t, c, request("2", wire.MethodCall, `"name":"write_file","arguments":{}`)), id)
	r.waits(id)
	r.ran(0)
}

func testM69(t *testing.T) {
	r := newRow(t, script("legacy"), short)
	c := r.connect(t)
	const first = `{ "path":"/a", "n":1.0 }`
	c.expect(c.call("write_file", first), "Not run yet.")
	id := r.pending(t).ID
	r.ran(0)
	r.approve()
	other := r.connect(t)
	other.until("write_file", `{"n":1,"path":"\u002fa"}`, "done")
	r.sees(`{"name":"write_file","arguments":` + first + `}`)
	other.expect(other.call("write_file", first), "Not run yet.")
	if next := r.pending(t).ID; next == id {
		t.Error("one approval was used twice")
	}
	r.ran(1)
}

// until repeats a call until its answer contains a text.
func (c *client) until(name, args, want string) {
	c.t.Helper()
	testwait.Until(c.t, want, func() bool { return strings.Contains(c.call(name, args), want) })
}

func testM70(t *testing.T) {
	r := newRow(t, script("legacy"), short)
	c := r.connect(t)
	c.expect(c.call("write_file", write), "Not run yet.")
	must.Do(t, r.Edit(r.pending(t).ID, "mara", `{"path":"/b"}`))
	c.until("write_file", write, "done")
	r.sees(`{"name":"write_file","arguments":{"path":"/b"}}`)
}

func testM71(t *testing.T) {
	r := newRow(t, script("legacy"), short)
	c := r.connect(t)
	c.expect(c.call("write_file", write), "Not run yet.")
	first := r.pending(t)
	r.approve()
	answer := c.call("write_file", `{"path":"/b"}`)
	c.expect(answer, "Not run yet.")
	c.no(answer, first.ID)
	r.settle(t)
	r.ran(0)
}

func testM74(t *testing.T) {
	r := newRow(t, script("legacy"), long)
	c := r.connect(t)
	c.sendCall(7, "write_file", write)
	id := r.pending(t).ID
	c.cancel(7)
	c.expect(c.say(request("8", "ping", "")), `"id":8`)
	r.left(t)
	r.waits(id)
	r.approve()
	r.settle(t)
	r.ran(0)
	c.until("write_file", write, "done")
	r.ran(1)
}

func testM76(t *testing.T) {
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		short(cfg)
		cfg.MaxPending = 1
	})
	c := r.connect(t)
	c.expect(c.call("write_file", `{"n":1}`), "Not run yet.")
	id := r.pending(t).ID
	c.expect(c.call("write_file", `{"n":2}`), "Not run. Too many requests wait")
	c.expect(c.call("write_file", `{"n":1}`), "Not run yet.") // a call that waits already is no further request
	r.waits(id)
	r.ran(0)
}
