package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/mcptest"
)

// envServer is filesServer, and writes down its environment.
func envServer() {
	if os.WriteFile("env", []byte(strings.Join(os.Environ(), "\n")+"\n"), 0o600) == nil {
		filesServer()
	}
}

const wiredConfig = `agent: clerk.agf.yaml
undeclared: ask
callers: {name: desk, hold: 1s}
upstream:
  alias: files
  command: ./server
  cwd: .
  env: {PLAIN: one}
  env_file: secret.env.yaml
  env_from: {LENT: ASSENT_TEST_THERE}
  dotenv_file: .env
  args: ["--there=${there}"]
  fill_in: {"${there}": ASSENT_TEST_THERE}
  exclude_tools: left_out
  pin_binary: true
  pass_meta: [example.com/a]
`

// writeServer writes a program to the directory of the configuration that starts envServer.
func writeServer(t *testing.T, dir, remark string) {
	t.Helper()
	text := "#!/bin/sh\n# " + remark + "\nARGS=\"$*\" exec env-server\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "server"), []byte(text), 0o700))
}

func readFile(t *testing.T, name ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(name...))
	must.Do(t, err)
	return string(text)
}

// TestMCPGatewayWiring: what the configuration says of a program and its
// calls gets there.
func TestMCPGatewayWiring(t *testing.T) {
	t.Setenv("ASSENT_TEST_THERE", "three")
	t.Setenv("NODE_EXTRA_CA_CERTS", "/ca.pem")
	dir, file := mcpDir(t)
	writeServer(t, dir, "first")
	writeFiles(t, dir, map[string]string{
		"gateway.yaml":    wiredConfig,
		"secret.env.yaml": "SECRET: two words\n",
		".env": "# mine\nSECRET=lost\nexport QUOTED = \"a#\\n b\" # so\nBARE=c d # not\nNO NAME=x\n" +
			"SINGLE='$x'\r\n",
	})
	c := startMCP(t, "--config", file)
	if got := c.ask("tools/list", "{}"); !strings.Contains(got, "format_disk") {
		t.Errorf("the list is %s", got)
	}
	c.call("format_disk", "{}", "Not run yet.")
	c.ask("tools/call", `{"name":"read_file","_meta":{"example.com/a":[1],"example.com/b":2}}`)
	if n := callsIn(t, dir, "format_disk"); n != 0 {
		t.Errorf("an undeclared tool ran %d times", n)
	}
	if calls := readFile(t, dir, "calls"); !strings.Contains(calls, `"_meta":{"example.com/a":[1]}`) {
		t.Errorf("the server got %s", calls)
	}

	env := "\n" + readFile(t, dir, "env")
	for _, want := range []string{
		"PLAIN=one", "SECRET=two words", "LENT=three", "QUOTED=a#\n b", "BARE=c d", "SINGLE=$x", "ARGS=--there=three",
		"NODE_EXTRA_CA_CERTS=/ca.pem",
	} {
		if !strings.Contains(env, "\n"+want+"\n") {
			t.Errorf("the environment lacks %s: %s", want, env)
		}
	}
	if strings.Contains(env, "ASSENT_TEST_THERE") {
		t.Errorf("the environment is %s", env)
	}
	c.end(c.in.Close)

	pins := readFile(t, dir, "mcp.pins.json")
	for _, want := range []string{`"LENT",\s*"PLAIN",\s*"QUOTED",\s*"SECRET"`,
		`"--there=\$\{there\}"`, `"sha256": "sha256:`} {
		if !regexp.MustCompile(want).MatchString(pins) {
			t.Errorf("the pins lack %s: %s", want, pins)
		}
	}
	writeServer(t, dir, "second")
	c = startMCP(t, "--config", file)
	c.call("read_file", "{}", "Not run. The server is not the one whose tools were accepted")
	c.end(c.in.Close)
}

// TestMCPGatewayRefusesOpenSecrets: the gateway doesn't start if a file of variables is readable by
// others or if a variable is not set.
func TestMCPGatewayRefusesOpenSecrets(t *testing.T) {
	dir, file := mcpDir(t)
	writeServer(t, dir, "first")
	writeFiles(t, dir, map[string]string{"gateway.yaml": wiredConfig, "secret.env.yaml": "SECRET: two\n"})
	refused := func(want string) {
		t.Helper()
		out, errOut, code := ran("", "mcp", "gateway", "--config", file)
		if code != term.ExitFailure || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("exit %d, expected %q\n%s%s", code, want, out, errOut)
		}
	}
	refused("fill_in: ${there}: the variable ASSENT_TEST_THERE is not set for the gateway")
	writeFiles(t, dir, map[string]string{"gateway.yaml": strings.Replace(wiredConfig, "fill_in: {", "fill_in: {} #",
		1)})
	refused("env_from: LENT: the variable ASSENT_TEST_THERE is not set for the gateway")
	must.Do(t, os.Chmod(filepath.Join(dir, "secret.env.yaml"), 0o644))
	refused("env_file: ")
}

// TestMCPGatewayHeaders: a server by HTTP gets what the configuration
// says, and nothing else of the gateway's environment.
func TestMCPGatewayHeaders(t *testing.T) {
	t.Setenv("ASSENT_TEST_TOKEN", "t0ken")
	t.Setenv("ASSENT_TEST_TEAM", "red")
	var mu sync.Mutex
	seen := map[string]bool{}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[fmt.Sprint(r.Header["Authorization"], r.Header["X-Team"], r.Header["X-Site"])] = true
		mu.Unlock()
		var m struct {
			ID     json.RawMessage
			Method string
		}
		text, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(text, &m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, webAnswer(m.Method))
	}))
	defer site.Close()
	dir, file := mcpDir(t)
	writeFiles(t, dir, map[string]string{"site": "north\n", "gateway.yaml": `agent: clerk.agf.yaml
upstream:
  alias: files
  url: ` + site.URL + `/mcp
  token_env: ASSENT_TEST_TOKEN
  header_files: {X-Site: site}
  header_env: {X-Team: ASSENT_TEST_TEAM}
`})
	c := startMCP(t, "--config", file)
	c.call("read_file", "{}", "by the web")
	c.end(c.in.Close)
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 1 || !seen["[Bearer t0ken] [red] [north]"] {
		t.Errorf("the server saw %v", seen)
	}
}

// webAnswer is filesAnswer without files.
func webAnswer(method string) string {
	if method == "tools/call" {
		return `"result":{"content":[{"type":"text","text":"by the web"}]}`
	}
	return filesAnswer(method, "")
}

// farServer is an assent server as a process of its own.
type farServer struct {
	t    *testing.T
	args []string
	url  string
	cmd  *exec.Cmd
}

func newFarServer(t *testing.T, dir string) *farServer {
	t.Helper()
	listen := freeAddress(t)
	s := &farServer{t: t, url: "http://" + listen}
	at := func(name string) string { return filepath.Join(dir, name) }
	s.args = []string{
		"serve", "--store", at("far.db"), "--listen", listen, "--agents", at("clerk.agf.yaml"),
		"--people", at("people.yaml"),
	}
	for name, flags := range map[string][]string{
		"gateway": {"--scopes", "request", "--agents", "clerk"},
		"mara":    {"--scopes", "read,vote", "--person", "mara"},
	} {
		args := append([]string{"token", "create", "--store", at("far.db"), "--json", "--name", name}, flags...)
		out, errOut, code := ran("", args...)
		var made struct{ Secret string }
		if err := json.Unmarshal([]byte(out), &made); err != nil || code != 0 {
			t.Fatalf("%v %d %s%s", err, code, out, errOut)
		}
		writeFiles(t, dir, map[string]string{name + ".token": made.Secret})
	}

	t.Cleanup(s.stop)
	return s
}

func (s *farServer) start() {
	s.t.Helper()
	s.cmd = exec.Command("assent", s.args...)
	s.cmd.Stderr = s.t.Output()
	must.Do(s.t, s.cmd.Start())
	testwait.Until(s.t, "the server answers", func() bool {
		resp, err := http.Get(s.url + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

func (s *farServer) stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// TestMCPGatewayOfAServer: the people of a server are asked. While it is
// away nothing runs that asks, and the rest as offline says.
func TestMCPGatewayOfAServer(t *testing.T) {
	t.Parallel()
	dir, _ := mcpDir(t)
	writeFiles(t, dir, map[string]string{"people.yaml": "schema_version: \"1.0.0\"\npeople: [{id: mara}]\n"})
	far := newFarServer(t, dir)
	gateway := func(offline string) *mcpClient {
		at := filepath.Join(dir, offline)
		writeFiles(t, at, map[string]string{"gateway.yaml": `agent: ../clerk.agf.yaml
server: ` + far.url + `
server_token_file: ../gateway.token
offline: ` + offline + `
callers: {name: desk, hold: 1s}
upstream: {alias: files, command: files-server, cwd: .}
`})
		return startMCP(t, "--config", filepath.Join(at, "gateway.yaml"))
	}
	deny, allow := gateway("deny"), gateway("allow")
	says := func(c *mcpClient, tool, want string) func() bool {
		return func() bool {
			return strings.Contains(c.ask("tools/call", `{"name":"`+tool+`","arguments":{"path":"/a"}}`), want)
		}
	}
	const read, written = "read_file", "write_file"
	if says(deny, read, "done")() || !says(allow, read, "done")() || says(allow, written, "done")() {
		t.Error("a gateway goes by another word than offline says")
	}

	far.start()
	testwait.Until(t, "the gateway sees the server", says(deny, read, "done"))
	pending := ""
	testwait.Until(t, "people are asked", func() bool {
		pending = allow.ask("tools/call", `{"name":"write_file","arguments":{"path":"/a"}}`)
		return strings.Contains(pending, "apr_")
	})
	approveIn(t, []string{"--server", far.url, "--token-file", filepath.Join(dir, "mara.token")}, pending)
	testwait.Until(t, "it runs", says(allow, written, "done"))
	if n := callsIn(t, filepath.Join(dir, "allow"), written); n != 1 {
		t.Errorf("it ran %d times", n)
	}

	far.stop()
	allow.call(read, "{}", "done")
	allow.call(written, `{"path":"/b"}`, "Not run")
	testwait.Until(t, "the gateway notices", func() bool { return !says(deny, read, "done")() })
	deny.end(deny.in.Close)
	allow.end(allow.in.Close)
}

// TestMCPPinsOfARunningServer: the list of a server is pinned, the
// gateway that runs offers what was pinned, and the agent's file is
// checked against the pins.
func TestMCPPinsOfARunningServer(t *testing.T) {
	dir, file := mcpDir(t)
	config := strings.Replace(filesConfig, "cwd: .", "cwd: ., pins: required", 1)
	writeFiles(t, dir, map[string]string{"gateway.yaml": config})
	c := startMCP(t, "--config", file)
	c.call("read_file", "{}", "Not run. Nobody has accepted this tool's definition yet")

	tools, pins := filepath.Join(dir, "tools.json"), filepath.Join(dir, "mcp.pins.json")
	server := exec.Command("files-server")
	server.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n")
	list, err := server.Output()
	must.Do(t, err)
	writeFiles(t, dir, map[string]string{"tools.json": string(list)})
	pin := []string{"mcp", "pin", pins, tools, "read_file", "write_file", "--alias", "files", "--cwd", dir, "--"}
	pin = append(pin, "files-server")
	if out, errOut, code := ran("", pin...); code != 0 {
		t.Fatalf("pin: exit %d\n%s%s", code, out, errOut)
	}
	c.call("read_file", "{}", "done")
	out, _, code := ran("", "mcp", "diff", pins, tools)
	if code != term.ExitNo || !strings.Contains(out, "new format_disk") {
		t.Errorf("diff: exit %d\n%s", code, out)
	}
	if out, _, code := ran("", "mcp", "pins", pins); code != 0 || !strings.Contains(out, "operator") {
		t.Errorf("pins: exit %d\n%s", code, out)
	}
	sound := readFile(t, pins)
	writeFiles(t, dir, map[string]string{"mcp.pins.json": sound[1:]})
	c.call("read_file", "{}", "Not run. Nobody can say which definitions of the tools of files were accepted")
	writeFiles(t, dir, map[string]string{"mcp.pins.json": sound})
	c.call("read_file", "{}", "done")
	must.Do(t, os.Remove(pins))
	c.call("read_file", "{}", "Not run. Nobody has accepted this tool's definition yet")
	writeFiles(t, dir, map[string]string{"mcp.pins.json": sound})
	c.end(c.in.Close)

	validate := testbin.Path(t, "cmd/agf-validate")
	agent := filepath.Join(dir, "clerk.agf.yaml")
	if out, err := exec.Command(validate, "--tools", pins, agent).CombinedOutput(); err != nil {
		t.Errorf("agf-validate: %v\n%s", err, out)
	}
	wrong := strings.Replace(mcptest.Clerk, "- read_file", "- raed_file", 1)
	writeFiles(t, dir, map[string]string{"clerk.agf.yaml": wrong})
	found, err := exec.Command(validate, "--fail-on", "warning", "--tools", pins, agent).CombinedOutput()
	if err == nil || !strings.Contains(string(found), "tool-not-offered") {
		t.Errorf("agf-validate: %v\n%s", err, found)
	}
}
