package mcp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/config"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/wire"
)

func testM34(t *testing.T) {
	s := script("legacy")
	s.Does = map[string]string{"read_file": mcptest.Noise}
	r := install(t, s, quick, nil).open()
	for range 20 {
		line := r.say(request("1", wire.MethodCall, `"name":"read_file"`))
		if r.result(line) == nil {
			t.Fatalf("stdout has %q", line)
		}
	}

	if rest := r.leave(); len(rest) > 0 {
		t.Errorf("stdout ends with %q", rest)
	}
	log := r.log.String()
	if n := strings.Count(log, "second"); n != 20 {
		t.Errorf("the log has %d of 20 lines:\n%s", n, log)
	}
	if i := strings.IndexFunc(log, func(c rune) bool { return c < ' ' && c != '\n' }); i >= 0 {
		t.Errorf("the log has a control character at %d", i)
	}
}

func testM35(t *testing.T) {
	s := script("legacy")
	s.Does = map[string]string{"read_file": mcptest.Hold}
	p := install(t, s, quick+"\ngrace: 3s", map[string]any{
		"command": "sh",
		"args":    []string{"-c", `sleep 600 & echo $! >child; exec "$0"`, os.Args[0]},
	})
	r := p.open()
	r.send(request("7", wire.MethodCall, `"name":"read_file"`))
	testwait.Until(t, "the call runs", func() bool { return len(p.u.Calls()) == 1 })
	testwait.Until(t, "the server has started a child", func() bool { return p.pid("child") > 0 })
	must.Do(t, r.end.Close())
	p.u.Release()
	r.expect(r.text(r.hear()), "done")
	if r.lines.Scan() {
		t.Errorf("stdout goes on with %q", r.lines.Text())
	}
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("the gateway ended with %v", err)
	}

	testwait.Until(t, "what the server started has ended", func() bool { return !alive(p.pid("child")) })
	p.inbox()
	if ran := p.audited("read_file")["mcp_call_ran"]; len(ran) != 1 || ran[0]["outcome"] != "returned" {
		t.Errorf("the ledger has %v", ran)
	}
}

// pid reads a file with the id of a process. It returns 0 if the file doesn't exist yet.
func (p *installed) pid(name string) int {
	text, _ := os.ReadFile(filepath.Join(p.dir, name))
	id, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return id
}

// alive reports whether a process is running, and not just a zombie.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil || p.Signal(syscall.Signal(0)) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func testM37(t *testing.T) {
	args := []string{"$(touch pwned)", "; touch pwned", "a  b", "*", `"`, "`touch pwned`", "", "--x=$HOME"}
	p := install(t, script("legacy"), quick, map[string]any{"args": args})
	entry := p.server("files", p.u)
	env := entry["env"].(map[string]string)
	env["GIVEN"] = "$(touch pwned) $HOME"
	entry["args"] = args
	entry["env_from"] = map[string]string{"RENAMED": "OF_THE_GATEWAY"}
	p.configure(quick, entry)
	c := p.open("OF_THE_GATEWAY=taken", "SECRET_OF_THE_GATEWAY=x", "HOME="+p.dir)
	c.expect(c.call("read_file", `{}`), "done")
	c.leave()

	if got := p.u.Args(); !slices.Equal(got, args) {
		t.Errorf("the server was started with %q", got)
	}
	want := append(p.u.Env(), "GIVEN=$(touch pwned) $HOME", "RENAMED=taken", "HOME="+p.dir)
	for _, name := range config.Passed() {
		if value := os.Getenv(name); value != "" && name != "HOME" {
			want = append(want, name+"="+value)
		}
	}
	got := p.u.Environ()
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the environment is %q, expected %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "pwned")); err == nil {
		t.Error("a shell read the arguments")
	}
}

func testM51(t *testing.T) {
	p := install(t, script("legacy"), "callers: {name: desk, hold: 1h}", nil) // calls are held, but tasks are not
	p.inbox()
	r := p.run()
	begun := r.result(r.say(taskCall("1", "write_file", write)))
	id := r.member(begun, "taskId")
	if id == "" || r.member(begun, "resultType") != "task" {
		t.Fatalf("got %s", begun)
	}
	asked := p.whileWorking(r, id)
	r.kill()

	r = p.run()
	if again := p.whileWorking(r, id); again != asked {
		t.Errorf("people are asked %s, and were asked %s", again, asked)
	}
	r.kill()
	p.approve(asked)
	r = p.run()
	var ended string
	testwait.Until(t, "the task has ended", func() bool {
		ended = string(r.result(r.say(taskRequest("tasks/get", id, true))))
		return !strings.Contains(ended, `"working"`)
	})
	r.expect(ended, `"completed"`)
	r.expect(ended, "done")
	if n := len(p.u.Calls()); n != 1 {
		t.Errorf("it ran %d times", n)
	}
	r.leave()
}

// whileWorking checks that a task waits, and returns the request to people.
func (p *installed) whileWorking(r *running, task string) (request string) {
	p.t.Helper()
	r.expect(r.say(taskRequest("tasks/get", task, true)), `"working"`)
	return testwait.Value(
		p.t,
		"people are asked",
		func() (string, bool) {
			_, id, found := strings.Cut(p.command("list", "--json"), `"apr_`)
			id, _, _ = strings.Cut(id, `"`)
			return "apr_" + id, found
		},
	)
}

// testM75 kills the gateway while its server executes the call, and before that while no call is
// under way. internal/crashtest kills it at every step.
func testM75(t *testing.T) {
	s := script("legacy")
	s.Does = map[string]string{"write_file": mcptest.Hold}
	p := install(t, s, quick, nil)
	p.inbox()
	r := p.open()
	asked := r.call("write_file", write)
	r.expect(asked, "Not run yet.")
	p.approve(asked)
	r.kill()

	r = p.open()
	r.send(request("1", wire.MethodCall, `"name":"write_file","arguments":`+write))
	testwait.Until(t, "it runs", func() bool { return len(p.u.Calls()) == 1 })
	r.kill()
	p.u.Release()
	r = p.open()
	r.expect(r.comes("write_file", write, "This call may have run"), requestIn(asked))
	r.expect(r.call("write_file", write), "Not run yet.")
	r.leave()
	if n := len(p.u.Calls()); n != 1 {
		t.Errorf("it was sent %d times", n)
	}

	events := p.audited("write_file")
	runs, ran := events["mcp_call_runs"], events["mcp_call_ran"]
	if len(runs) != 1 || len(ran) != 1 || ran[0]["outcome"] != "unknown" || ran[0]["request"] != requestIn(asked) {
		t.Errorf("the ledger has %v", events)
	}
}

func testM84(t *testing.T) {
	p := install(t, script("legacy"), quick, nil)
	p.write(
		"clerk.agf.yaml",
		strings.Replace(
			mcptest.Clerk,
			"execution_policy",
			`    - {alias: more, server_ref: more, description: More.}
    - {alias: gone, server_ref: gone, description: Never there.}
execution_policy`,
			1,
		),
	)
	u := mcptest.New(t, script("legacy"))
	more := p.server("more", u)
	more["command"] = filepath.Join(p.dir, "more")
	started := "#!/bin/sh\necho $$ >pid\nexec '" + os.Args[0] + "'\n"
	p.write("more", started)
	gone := map[string]any{"alias": "gone", "command": filepath.Join(p.dir, "gone")}
	p.configure(quick, p.server("files", p.u), more, gone)
	c := p.open()
	listed := c.say(request("1", "tools/list", ""))
	c.expect(listed, `"files__read_file"`)
	c.expect(listed, `"more__read_file"`)
	c.no(listed, "gone")
	c.expect(c.call("gone__read_file", `{}`), "Not run. The server gone can't be reached.")
	c.expect(c.call("files__read_file", `{}`), "done")
	c.expect(c.call("more__read_file", `{}`), "done")

	must.Do(t, os.Remove(filepath.Join(p.dir, "more")))
	process, err := os.FindProcess(p.pid("pid"))
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.until("more__read_file", `{}`, "Not run. The server more can't be reached.")
	c.expect(c.call("files__read_file", `{}`), "done")
	before := len(u.Calls())
	p.write("more", started)
	c.until("more__read_file", `{}`, "done")
	c.leave()
	if n := len(u.Calls()); n != before+1 {
		t.Errorf("calls of a server that is down reached it %d times", n-before-1)
	}
}

func testM90(t *testing.T) {
	s := script("legacy")
	s.Answers = map[string]string{"read_file": `{"content":[],"isError":true}`}
	p := install(t, s, quick, nil)
	p.inbox()
	r := p.open()
	r.expect(r.say(request("1", wire.MethodCall, `"name":"read_file","arguments":{"n":1}`)), `"isError":true`)
	asked := r.call("write_file", write)
	p.approve(asked)
	r.until("write_file", write, "done")
	s.Does = map[string]string{"read_file": mcptest.Crash}
	p.u.Rewrite(s)
	r.expect(r.call("read_file", `{"n":2}`), "may have run")
	r.leave()

	read := p.audited("read_file")["mcp_call_ran"]
	if len(read) != 2 || read[0]["is_error"] != true || read[1]["outcome"] != "unknown" {
		t.Fatalf("the ledger has %v", read)
	}
	wrote := p.audited("write_file")["mcp_call_ran"]
	if len(wrote) != 1 || wrote[0]["request"] != requestIn(asked) || wrote[0]["is_error"] != false {
		t.Fatalf("the ledger has %v", wrote)
	}
	for _, facts := range append(read, wrote...) {
		digests(t, facts, "binding", "definition")
		if facts["outcome"] == "returned" {
			digests(t, facts, "result")
		}
	}

	if read[0]["binding"] == read[1]["binding"] {
		t.Error("two calls have one binding")
	}
}

// digests checks that facts are digests.
func digests(t *testing.T, facts map[string]any, names ...string) {
	t.Helper()
	for _, name := range names {
		text, _ := facts[name].(string)
		if !strings.HasPrefix(text, "sha256:") {
			t.Errorf("%s of %v is no digest", name, facts)
		}
	}
}
