package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/mcptest"
)

// filesServer is an MCP server: a program that writes down each call
// that it gets, in the file calls.
func filesServer() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, filesAnswer(m.Method, in.Text()))
	}
}

func filesAnswer(method, text string) string {
	switch method {
	case "initialize":
		return `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"files","version":"1"}}`
	case "tools/list":
		const tool = `{"name":"%s","inputSchema":{"type":"object"}}`
		return fmt.Sprintf(`"result":{"tools":[`+tool+","+tool+","+tool+"]}", "read_file", "write_file", "format_disk")
	case "tools/call":
		f, err := os.OpenFile("calls", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(f, text)
		}
		if err != nil {
			os.Exit(1)
		}
		return `"result":{"content":[{"type":"text","text":"done"}]}`
	}

	return `"error":{"code":-32601,"message":"no such method"}`
}

const filesConfig = `agent: clerk.agf.yaml
callers: {name: desk, hold: 1s}
upstream: {alias: files, command: files-server, cwd: .}
`

// mcpClient is a client that started the gateway.
type mcpClient struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	last  int
}

func startMCP(t *testing.T, args ...string) *mcpClient {
	t.Helper()
	return startMCPWith(t, "{}", args...)
}

// startMCPWith starts a client with capabilities.
func startMCPWith(t *testing.T, capabilities string, args ...string) *mcpClient {
	t.Helper()
	c := &mcpClient{t: t, cmd: exec.Command("assent", append([]string{"mcp", "gateway"}, args...)...)}
	in, err := c.cmd.StdinPipe()
	must.Do(t, err)
	out, err := c.cmd.StdoutPipe()
	must.Do(t, err)
	c.cmd.Stderr = t.Output()
	must.Do(t, c.cmd.Start())
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	c.in, c.lines = in, bufio.NewScanner(out)
	c.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":`+capabilities+
		`,"clientInfo":{"name":"desk","version":"1"}}`)
	return c
}

// ask sends a request, and returns the line of the answer.
func (c *mcpClient) ask(method, params string) string {
	c.t.Helper()
	c.last++
	fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.last, method, params)
	for c.lines.Scan() {
		var m struct {
			JSONRPC string
			ID      *int
		}
		if err := json.Unmarshal(c.lines.Bytes(), &m); err != nil || m.JSONRPC != "2.0" {
			c.t.Fatalf("stdout has %q: %v", c.lines.Text(), err)
		}
		if m.ID != nil && *m.ID == c.last {
			return c.lines.Text()
		}
	}

	c.t.Fatalf("%s: the gateway ended: %v", method, c.lines.Err())
	return ""
}

// call calls a tool, and expects an answer.
func (c *mcpClient) call(tool, args, want string) string {
	c.t.Helper()
	got := c.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
	if !strings.Contains(got, want) {
		c.t.Fatalf("%s: got %s, expected %q", tool, got, want)
	}
	return got
}

// end ends the gateway, and expects exit code 0 and no more on stdout.
func (c *mcpClient) end(stop func() error) {
	c.t.Helper()
	must.Do(c.t, stop())
	rest := c.lines.Scan()
	if err := c.cmd.Wait(); err != nil || rest {
		c.t.Errorf("the gateway ended with %v, and wrote %q", err, c.lines.Text())
	}
}

func (c *mcpClient) terminate() error { return c.cmd.Process.Signal(syscall.SIGTERM) }

// inboxOf runs assent mcp inbox, and returns how to reach it.
func inboxOf(t *testing.T, args ...string) []string { return inboxOn(t, "mcp", args...) }

// inboxOn returns the inbox of gateways, "mcp", or of hooks, "hook".
func inboxOn(t *testing.T, of string, args ...string) []string {
	t.Helper()
	cmd := exec.Command("assent", append([]string{of, "inbox", "--json"}, args...)...)
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	cmd.Stderr = t.Output()
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the inbox: %v", err)
		}
	})
	var doc struct {
		API  string `json:"api"`
		Link string `json:"link"`
		File string `json:"token_file"`
	}
	if err := json.NewDecoder(out).Decode(&doc); err != nil || doc.Link == "" {
		t.Fatalf("the inbox says %+v: %v", doc, err)
	}
	return []string{"--server", doc.API, "--token-file", doc.File}
}

// approveIn approves the request that an answer names.
func approveIn(t *testing.T, at []string, answer string) {
	t.Helper()
	if errOut, code := approved(t, at, answer); code != 0 {
		t.Fatalf("approve: %s", errOut)
	}
}

func approved(t *testing.T, at []string, answer string) (errOut string, code int) {
	t.Helper()
	id := regexp.MustCompile(`apr_[0-9a-z]+`).FindString(answer)
	out, errOut, _ := ran("", append([]string{"show", id, "--json"}, at...)...)
	binding := regexp.MustCompile(`"binding": *"([^"]+)"`).FindStringSubmatch(out)
	if binding == nil {
		t.Fatalf("show %s: %s%s", id, out, errOut)
	}
	args := append([]string{"approve", id, "--yes", "--binding", binding[1]}, at...)
	_, errOut, code = ran("", args...)
	return errOut, code
}

func callsIn(t *testing.T, dir, tool string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), `"name":"`+tool+`"`)
}

func mcpDir(t *testing.T) (dir, config string) {
	t.Helper()
	dir = t.TempDir()
	writeFiles(t, dir, map[string]string{"clerk.agf.yaml": mcptest.Clerk, "gateway.yaml": filesConfig})
	return dir, filepath.Join(dir, "gateway.yaml")
}

// TestAnMCPGatewayAsksAndRunsOnce: a client, the gateway, a server and
// the inbox are processes of their own.
func TestAnMCPGatewayAsksAndRunsOnce(t *testing.T) {
	t.Parallel()
	dir, file := mcpDir(t)
	c := startMCP(t, "--config", file)
	if got := c.ask("tools/list", "{}"); strings.Contains(got, "format_disk") || !strings.Contains(got, "write_file") {
		t.Errorf("the list is %s", got)
	}
	c.call("read_file", `{"path":"/a"}`, "done")
	pending := c.call("write_file", `{"path":"/a"}`, "Not run yet.")
	if n := callsIn(t, dir, "write_file"); n != 0 {
		t.Fatalf("the call ran %d times before anybody was asked", n)
	}

	must.Do(t, c.cmd.Process.Kill())
	_ = c.cmd.Wait() // it was killed
	at := inboxOf(t, "--config", file)
	approveIn(t, at, pending)
	c = startMCP(t, "--config", file)
	c.call("write_file", `{"path":"/a"}`, "done")
	c.call("write_file", `{"path":"/a"}`, "Not run yet.")
	if n := callsIn(t, dir, "write_file"); n != 1 {
		t.Errorf("an approved call ran %d times", n)
	}
	c.end(c.in.Close)
}

// TestMCPGatewaysShareAStore: each client starts its own gateway, and
// what one of them asked the other runs, once.
func TestMCPGatewaysShareAStore(t *testing.T) {
	t.Parallel()
	dir, file := mcpDir(t)
	one := startMCP(t, "--config", file)
	pending := one.call("write_file", `{"path":"/b"}`, "Not run yet.")
	two := startMCP(t, "--config", file)
	approveIn(t, inboxOf(t, "--config", file), pending)
	testwait.Until(t, "the other gateway runs it", func() bool {
		return strings.Contains(two.ask("tools/call", `{"name":"write_file","arguments":{"path":"/b"}}`), "done")
	})
	if n := callsIn(t, dir, "write_file"); n != 1 {
		t.Errorf("an approved call ran %d times", n)
	}
	one.end(one.in.Close)
	two.end(two.terminate)
}

// TestMCPCallersPersonMayNotApprove: whose client asks doesn't answer.
func TestMCPCallersPersonMayNotApprove(t *testing.T) {
	t.Parallel()
	dir, file := mcpDir(t)
	config := strings.Replace(filesConfig, "name: desk,", "name: desk, person: mara,", 1) + "people: people.yaml\n"
	writeFiles(t, dir, map[string]string{
		"gateway.yaml": config,
		"people.yaml":  "schema_version: \"1.0.0\"\npeople:\n  - {id: mara}\n  - {id: ben}\n",
	})
	c := startMCP(t, "--config", file)
	pending := c.call("write_file", `{"path":"/c"}`, "Not run yet.")
	if errOut, code := approved(t, inboxOf(t, "--config", file, "--person", "mara"), pending); code == 0 {
		t.Errorf("mara approved her own call: %s", errOut)
	}
	approveIn(t, inboxOf(t, "--config", file, "--person", "ben"), pending)
	testwait.Until(t, "it runs", func() bool {
		return strings.Contains(c.ask("tools/call", `{"name":"write_file","arguments":{"path":"/c"}}`), "done")
	})
	if n := callsIn(t, dir, "write_file"); n != 1 {
		t.Errorf("an approved call ran %d times", n)
	}
	c.end(c.in.Close)
}

// TestMCPGatewayOfOneProgram: agent and command are enough.
func TestMCPGatewayOfOneProgram(t *testing.T) {
	dir, _ := mcpDir(t)
	t.Chdir(dir)
	c := startMCP(t, "--agent", "clerk.agf.yaml", "--", "files-server")
	c.call("read_file", `{"path":"/a"}`, "done")
	c.end(c.in.Close)
	for _, of := range [][]string{{"mcp.pins.json"}, {"--agent", "clerk.agf.yaml"}, {"--config", "gateway.yaml"}} {
		out, errOut, code := ran("", append([]string{"mcp", "pins"}, of...)...)
		if code != 0 || !strings.Contains(out, "format_disk") {
			t.Errorf("the pins of %v: exit %d\n%s%s", of, code, out, errOut)
		}
	}

	for want, args := range map[string][]string{
		"expected either a FILE of pins":  {"pins"},
		"expected either a FILE":          {"pins", "mcp.pins.json", "--agent", "clerk.agf.yaml"},
		"no such file":                    {"pins", "--agent", "clerk.agf.yaml", "--store", "elsewhere/mcp.db"},
		"expected --config FILE, or":      {"print"},
		"expected the command of the MCP": {"print", "--agent", "clerk.agf.yaml"},
	} {
		_, errOut, code := ran("", append([]string{"mcp"}, args...)...)
		if code != term.ExitFailure || !strings.Contains(errOut, want) {
			t.Errorf("%v: exit %d\n%s", args, code, errOut)
		}
	}

	out, errOut, code := ran("", "mcp", "print", "--agent", "clerk.agf.yaml", "--", "files-server", "a b")
	if code != 0 || !strings.Contains(out, "files\n") || !strings.Contains(out, `"a b"`) {
		t.Errorf("print: exit %d\n%s%s", code, out, errOut)
	}
}

// TestMCPGatewayRefuses: what can't work is said before anything starts.
func TestMCPGatewayRefuses(t *testing.T) {
	dir, _ := mcpDir(t)
	agent := filepath.Join(dir, "clerk.agf.yaml")
	for want, args := range map[string][]string{
		"expected --config FILE, or --agent FILE":       nil,
		"expected the command of the MCP server":        {"--agent", agent},
		"expected the command of the MCP server behind": {"--agent", agent, "files-server"},
		"--config says everything":                      {"--agent", agent, "--config", "x"},
		"--alias \"a__b\"":                              {"--agent", agent, "--alias", "a__b", "--", "files-server"},
	} {
		out, errOut, code := ran("", append([]string{"mcp", "gateway"}, args...)...)
		if code != term.ExitFailure || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, errOut)
		}
	}

	for name, want := range map[string]string{
		"ask: user\nserver: https://assent.example\nserver_token_file: t": "by a gateway without a server",
		"ask: user\npeople: people.yaml":                                  "nobody knows whom to ask",
	} {
		file := filepath.Join(t.TempDir(), "g.yaml")
		text := strings.Replace(filesConfig, "clerk.agf.yaml", agent, 1) + name + "\n"
		writeFiles(t, filepath.Dir(file), map[string]string{"g.yaml": text})
		if _, errOut, code := ran("", "mcp", "gateway", "--config", file); code != term.ExitFailure ||
			!strings.Contains(errOut, want) {
			t.Errorf("%s: exit %d\n%s", name, code, errOut)
		}
	}
}
