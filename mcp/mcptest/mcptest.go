// Package mcptest is an MCP server for tests in a process of its own. It keeps every byte that it
// receives, speaks the configured era, and misbehaves on demand. Its behaviour is in a file that a
// test may change while it runs.
package mcptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/assent-dev/assent/mcp/wire"
)

// Variable makes a test binary that calls Main a server. It names the
// server's directory.
const Variable = "ASSENT_TEST_MCP_SERVER_DIR"

// The behaviours of a server when it is called.
const (
	Crash    = "crash"    // it ends
	Hang     = "hang"     // it never answers
	Hold     = "hold"     // it answers once it was released
	Progress = "progress" // it reports progress three times
	Asks     = "asks"     // it asks the client for everything there is to ask
	Task     = "task"     // it answers with a task of its own, which is done a little later
	Question = "question" // it asks the script's question, and returns the answer
	Noise    = "noise"    // it writes to its log
	Flood    = "flood"    // it reports progress, logs and changed lists, thousands of each
	Tells    = "tells"    // it logs, and reports changes of resources, including one without subscription
	Changed  = "changed"  // it says that its tools have changed
)

// Script says how a server behaves.
type Script struct {
	// Era is "legacy", "modern", "deaf" (legacy, and it doesn't answer
	// server/discover) or "first" (legacy, and it ends when something
	// comes before initialize).
	Era     string
	Tools   []json.RawMessage
	News    bool              // it has news of resources, and a log
	Does    map[string]string // by a tool's name; what isn't here is answered
	Answers map[string]string // results by a tool's name, byte for byte
	// TaskEnds is the status of its task when that is asked for a second
	// time; "": completed.
	TaskEnds string
	Asks     string            // its question, as JSON: a method and params
	Errors   map[string]string // errors of the protocol, likewise
	// Lists are results by a method of resources and prompts, byte for byte, in which PARAMS is
	// replaced by the request's params. If a result is empty, the request is never answered.
	Lists map[string]string
	Info  string // what it says of itself, as JSON; "": a name and a version
}

// Server is a server as its test knows it.
type Server struct {
	t   testing.TB
	dir string
}

// New returns a server that behaves as the script says.
func New(t testing.TB, s Script) *Server {
	t.Helper()
	u := &Server{t: t, dir: t.TempDir()}
	u.Rewrite(s)
	return u
}

// Rewrite changes the server's behaviour from its next message on.
func (u *Server) Rewrite(s Script) {
	u.t.Helper()
	text, err := json.Marshal(s)
	next := filepath.Join(u.dir, "next")
	if err == nil {
		err = os.WriteFile(next, text, 0o600)
	}
	if err == nil {
		err = os.Rename(next, filepath.Join(u.dir, "script"))
	}
	if err != nil {
		u.t.Fatal(err)
	}
}

// Env returns the environment that the server's process needs. Without GORACE, a program that was
// built with the race detector sleeps for a second before it exits.
func (u *Server) Env() []string {
	return []string{Variable + "=" + u.dir, "GOCOVERDIR=" + u.dir, "GORACE=atexit_sleep_ms=0"}
}

// Release lets held calls end.
func (u *Server) Release() {
	u.t.Helper()
	if err := os.WriteFile(filepath.Join(u.dir, "released"), nil, 0o600); err != nil {
		u.t.Fatal(err)
	}
}

// Got returns every byte that the server has received in all its processes.
func (u *Server) Got() []byte { return u.file("got") }

// Said returns every line that the server has written to its client.
func (u *Server) Said() []byte { return u.file("said") }

// Starts returns a line for each process that was started.
func (u *Server) Starts() int { return bytes.Count(u.file("starts"), []byte("\n")) }

// Args returns the arguments of the last process.
func (u *Server) Args() []string { return u.texts("args") }

// Environ returns the environment of the last process.
func (u *Server) Environ() []string { return u.texts("environ") }

func (u *Server) texts(name string) (all []string) {
	u.t.Helper()
	if err := json.Unmarshal(u.file(name), &all); err != nil {
		u.t.Fatal(err)
	}
	return all
}

func (u *Server) file(name string) []byte {
	u.t.Helper()
	text, err := os.ReadFile(filepath.Join(u.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		u.t.Fatal(err)
	}
	return text
}

// Messages returns the messages that the server has received, in order.
func (u *Server) Messages() (all []wire.Message) {
	u.t.Helper()
	for line := range bytes.Lines(u.Got()) {
		m, bad := wire.Parse(bytes.TrimSuffix(line, []byte("\n")), wire.Limits())
		if bad != nil {
			u.t.Fatalf("the server got %q: %v", line, bad)
		}
		all = append(all, m)
	}

	return all
}

// Params returns the params of the requests with a method, byte for byte.
func (u *Server) Params(method string) (all []string) {
	u.t.Helper()
	for _, m := range u.Messages() {
		if m.Method == method && m.Kind() == wire.Request {
			all = append(all, string(m.Params))
		}
	}
	return all
}

// Calls returns the params of tools/call.
func (u *Server) Calls() []string { return u.Params(wire.MethodCall) }

// Main serves on standard input and output if Variable is set, and reports whether it was.
func Main() bool {
	dir := os.Getenv(Variable)
	if dir == "" {
		return false
	}
	if err := serve(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}
