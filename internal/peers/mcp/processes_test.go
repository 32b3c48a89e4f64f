//go:build peers

package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
)

// assent returns the path of the program.
func assent() string { return filepath.Join(os.Getenv("ASSENT_MCP_BIN"), "assent") }

// start starts a program that is ended with the test, and returns what
// it writes: standard output, and the rest as it comes.
func start(t *testing.T, env []string, name string, args ...string) (io.Reader, *testwait.Buffer) {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = installed(t)
	c.Env = append(os.Environ(), env...)
	told := &testwait.Buffer{}
	c.Stderr = io.MultiWriter(told, t.Output())
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait() // servers of others say what they like
	})
	return out, told
}

// slowly is testwait.Until for what starts programs to look: it looks
// twice a second, and longer.
func slowly(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticks := time.NewTicker(500 * time.Millisecond)
	defer ticks.Stop()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); <-ticks.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// place is a directory with a gateway's files.
type place struct {
	t   *testing.T
	dir string
}

// newPlace writes files, by their names.
func newPlace(t *testing.T, files map[string]string) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir()}
	for name, text := range files {
		p.write(name, text)
	}
	return p
}

func (p *place) write(name, text string) {
	p.t.Helper()
	at := p.at(name)
	err := os.MkdirAll(filepath.Dir(at), 0o700)
	if err == nil {
		err = os.WriteFile(at, []byte(text), 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) at(name string) string { return filepath.Join(p.dir, name) }

// text returns the text of a file. It is empty if the file doesn't exist.
func (p *place) text(name string) string {
	text, err := os.ReadFile(p.at(name))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return string(text)
}

// client speaks to a gateway that it started.
type client struct {
	t     *testing.T
	in    io.Writer
	lines *bufio.Scanner
	last  int
}

// gateway starts assent mcp gateway on its standard streams.
func (p *place) gateway(t *testing.T) *client {
	t.Helper()
	c := exec.Command(assent(), "mcp", "gateway", "--config", p.at("gateway.yaml"))
	c.Stderr = t.Output()
	in := must.Get(c.StdinPipe())(t)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := c.Wait(); err != nil {
			t.Errorf("the gateway ended with %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	g := &client{t: t, in: in, lines: lines}
	g.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"d","version":"1"}}`)
	return g
}

// ask sends a request, and returns the line of its answer.
func (c *client) ask(method, params string) string {
	c.t.Helper()
	c.last++
	fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.last, method, params)
	for c.lines.Scan() {
		var m struct{ ID *int }
		if err := json.Unmarshal(c.lines.Bytes(), &m); err != nil {
			c.t.Fatalf("the gateway wrote %q: %v", c.lines.Text(), err)
		}
		if m.ID != nil && *m.ID == c.last {
			return c.lines.Text()
		}
	}

	c.t.Fatalf("%s: the gateway ended: %v", method, c.lines.Err())
	return ""
}

// call calls a tool; its arguments come in pairs.
func (c *client) call(tool string, pairs ...any) string {
	c.t.Helper()
	args := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		args[pairs[i].(string)] = pairs[i+1]
	}
	text := must.Get(json.Marshal(map[string]any{"name": tool, "arguments": args}))(c.t)
	return c.ask("tools/call", string(text))
}

// expect checks that an answer contains a text.
func expect(t *testing.T, answer, want string) {
	t.Helper()
	if !strings.Contains(answer, want) {
		t.Errorf("got %s, expected %q", answer, want)
	}
}

// inbox are the flags by which a person's commands reach the inbox of a
// gateway.
type inbox []string

func (p *place) inbox(t *testing.T) inbox {
	t.Helper()
	out, _ := start(t, nil, assent(), "mcp", "inbox", "--json", "--config", p.at("gateway.yaml"))
	var doc struct {
		API  string `json:"api"`
		File string `json:"token_file"`
	}
	if err := json.NewDecoder(out).Decode(&doc); err != nil {
		t.Fatalf("the inbox: %v", err)
	}
	return inbox{"--server", doc.API, "--token-file", doc.File}
}

// answers has a person approve or deny the request that an answer
// names, by the command line.
func (in inbox) answers(t *testing.T, verdict, answer string) {
	t.Helper()
	expect(t, answer, "Not run yet. This call waits for people to decide (apr_")
	in.decides(t, verdict, regexp.MustCompile(`apr_[0-9a-z]+`).FindString(answer))
}

// waiting returns the request that waits about a file.
func (in inbox) waiting(t *testing.T, file string) string {
	t.Helper()
	found := ""
	slowly(t, "the request waits", func() bool {
		listed := run(t, assent(), append([]string{"list", "--json"}, in...)...)
		for _, id := range regexp.MustCompile(`apr_[0-9a-z]+`).FindAllString(string(listed), -1) {
			if strings.Contains(string(run(t, assent(), append([]string{"show", id, "--json"}, in...)...)), "/"+file) {
				found = id
			}
		}
		return found != ""
	})

	return found
}

// decides has a person decide about a request.
func (in inbox) decides(t *testing.T, verdict, id string) {
	t.Helper()
	shown := run(t, assent(), append([]string{"show", id, "--json"}, in...)...)
	binding := regexp.MustCompile(`"binding": *"([^"]+)"`).FindSubmatch(shown)
	if binding == nil {
		t.Fatalf("show %s: %s", id, shown)
	}
	how := []string{"--yes"}
	if verdict == "deny" {
		how = []string{"--reason", "not this one"}
	}
	how = append(how, "--binding", string(binding[1]))
	run(t, assent(), slices.Concat([]string{verdict, id}, how, in)...)
}
