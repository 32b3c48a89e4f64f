//go:build bars

package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/testwait"
)

// variable makes this program an MCP server. Its value is the number of tools.
const variable = "ASSENT_BENCH_MCP_TOOLS"

func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		serve(n)
		return
	}
	os.Exit(m.Run())
}

// serve answers on standard input and output as fast as it can.
func serve(tools int) {
	list := listOf(tools)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		answer := `"error":{"code":-32601,"message":"unknown method"}`
		switch m.Method {
		case "initialize":
			answer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"1"}}`
		case "tools/list":
			answer = `"result":` + list
		case "tools/call":
			answer = `"result":{"content":[{"type":"text","text":"done"}],"isError":false}`
		}

		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer)
	}
}

// listOf returns a list of tools with definitions of a typical size.
func listOf(n int) string {
	var b strings.Builder
	b.WriteString(`{"tools":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"tool_%04d","description":"Does the thing number %d, %s.","inputSchema":`+
			`{"type":"object","properties":{"path":{"type":"string","description":"Where it is."},`+
			`"text":{"type":"string","description":"What it says."},"limit":{"type":"integer","minimum":1}},`+
			`"required":["path"]},"annotations":{"readOnlyHint":true}}`, i, i, strings.Repeat("and so on ", 12))
	}

	b.WriteString("]}")
	return b.String()
}

const agentFile = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Keeps files.}
interface: {input: {type: object}, output: {type: object}}
action_space:
  mcp_servers:
    - {alias: files, server_ref: files, description: Files.}
constraints:
  governance_policies: [{policy_ref: acme.asks}]
execution_policy: {id: agf.react, config: {instructions: Keep files., model: any}}
`

const policyFile = `schema_version: "1.0.0"
policy_ref: acme.asks
rules:
  - {id: asks, match: {kinds: [mcp_tool], targets: [tool_0001]}, approval: true}
`

// arguments is used in every call.
const arguments = `{"path":"/srv/reports/2026/11/overview.md","text":"The quick brown fox jumps over the lazy dog.","limit":20}`

// assent builds the program.
func assent(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "assent")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/assent")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build assent: %v\n%s", err, out)
	}
	return bin
}

// configure writes the configuration of a gateway for a server with the given number of tools.
func configure(t *testing.T, tools int, more string) (file string) {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf("agent: clerk.agf.yaml\npolicies: .\nupstream: {alias: files, command: %q, env: {%s: %q}}\n%s",
		os.Args[0], variable, strconv.Itoa(tools), more)
	for name, text := range map[string]string{
		"clerk.agf.yaml":   agentFile,
		"asks.policy.yaml": policyFile,
		"gateway.yaml":     text,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	return filepath.Join(dir, "gateway.yaml")
}

// client sends requests one after the other, over any transport.
type client interface {
	ask(method, params string) ([]byte, error)
}

const hello = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`

// pipe is a client of a program on its standard streams.
type pipe struct {
	cmd  *exec.Cmd
	in   io.Writer
	out  *bufio.Reader
	last int
}

// start starts a program and opens a session with it.
func start(t *testing.T, env []string, command ...string) *pipe {
	t.Helper()
	cmd := program(t, env, command...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	p := &pipe{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	if _, err := p.ask("initialize", hello); err != nil {
		t.Fatal(err)
	}
	return p
}

// program returns a command that writes its log to a file, as clients configure it.
func program(t *testing.T, env []string, command ...string) *exec.Cmd {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = log
	return cmd
}

func (p *pipe) ask(method, params string) ([]byte, error) {
	p.last++
	if _, err := p.in.Write(message(p.last, method, params)); err != nil {
		return nil, err
	}
	for {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		if answers(line, p.last) {
			return line, nil
		}
	}
}

func message(id int, method, params string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
}

func answers(line []byte, id int) bool {
	var m struct{ ID int }
	return json.Unmarshal(line, &m) == nil && m.ID == id
}

// web is a client of an HTTP endpoint.
type web struct {
	url, session string
	last         int
}

// connect opens a session with an endpoint as soon as the endpoint answers.
func connect(t *testing.T, url string) *web {
	t.Helper()
	w := &web{url: url}
	testwait.Until(t, url+" answers", func() bool {
		_, err := w.ask("initialize", hello)
		return err == nil
	})
	return w
}

func (w *web) ask(method, params string) ([]byte, error) {
	w.last++
	r, err := http.NewRequest(http.MethodPost, w.url, bytes.NewReader(message(w.last, method, params)))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2025-06-18")
	if w.session != "" {
		r.Header.Set("Mcp-Session-Id", w.session)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %d %s: %w", method, resp.StatusCode, text, err)
	}
	if s := resp.Header.Get("Mcp-Session-Id"); s != "" {
		w.session = s
	}
	for line := range bytes.Lines(text) {
		line = bytes.TrimPrefix(line, []byte("data:"))
		if answers(line, w.last) {
			return line, nil
		}
	}

	return nil, fmt.Errorf("%s: no answer in %s", method, text)
}

// port returns a free port.
func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// background starts a program that serves, and stops it when the test ends.
func background(t *testing.T, env []string, command ...string) {
	t.Helper()
	cmd := program(t, env, command...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
}
