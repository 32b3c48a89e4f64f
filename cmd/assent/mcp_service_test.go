package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/mcptest"
)

const mcpPeople = "schema_version: \"1.0.0\"\npeople:\n  - {id: mara}\n  - {id: ben}\n"

// otherAgent has nothing to do with files.
const otherAgent = `schema_version: "1.0.0"
metadata: {id: other, name: Other, version: "1.0.0", description: Does nothing.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Rest., model: any}}
`

// mcpService is assent serve with gateways for MCP, a process of its
// own.
type mcpService struct {
	*farServer
	dir    string
	secret map[string]string // by the name of a token
}

// serveMCPIn serves the gateways of a section, until the test ends.
func serveMCPIn(t *testing.T, section string) *mcpService {
	t.Helper()
	dir, _ := mcpDir(t)
	listen := freeAddress(t)
	writeFiles(t, dir, map[string]string{
		"people.yaml":    mcpPeople,
		"other.agf.yaml": otherAgent,
		"serve.yaml": "listen: " + listen + "\nstore: s.db\ndrain: 2s\nagents: [clerk.agf.yaml, other.agf.yaml]\n" +
			"people: people.yaml\nmcp:\n" + section,
	})
	s := &mcpService{
		farServer: &farServer{
			t:    t,
			args: []string{"serve", "--config", filepath.Join(dir, "serve.yaml")},
			url:  "http://" + listen,
		},
		dir:    dir,
		secret: map[string]string{},
	}
	s.makes("desk", "--scopes", "request", "--agents", "clerk", "--person", "ben")
	s.makes("mara", "--scopes", "read,vote", "--person", "mara")
	s.makes("ben", "--scopes", "read,vote", "--person", "ben")
	t.Cleanup(s.stop)
	s.start()
	return s
}

const mcpFiles = `  - name: files
    agent: clerk
    hold: 1s
    upstream: {alias: files, command: files-server, cwd: .}
`

// makes makes a token in the store.
func (s *mcpService) makes(name string, flags ...string) {
	s.t.Helper()
	store := filepath.Join(s.dir, "s.db")
	args := append([]string{"token", "create", "--store", store, "--json", "--name", name}, flags...)
	out, errOut, code := ran("", args...)
	var made struct{ Secret string }
	if err := json.Unmarshal([]byte(out), &made); err != nil || code != 0 {
		s.t.Fatalf("%v %d %s%s", err, code, out, errOut)
	}
	s.secret[name] = made.Secret
	writeFiles(s.t, s.dir, map[string]string{name + ".token": made.Secret})
}

// revokes ends the token of a name.
func (s *mcpService) revokes(name string) {
	s.t.Helper()
	store := []string{"--store", filepath.Join(s.dir, "s.db")}
	out, errOut, code := ran("", append([]string{"token", "list", "--json"}, store...)...)
	var list struct {
		Tokens []struct{ ID, Name string }
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		s.t.Fatalf("%v %d %s%s", err, code, out, errOut)
	}
	for _, token := range list.Tokens {
		if token.Name != name {
			continue
		}
		if _, errOut, code := ran("", append([]string{"token", "revoke", token.ID}, store...)...); code != 0 {
			s.t.Fatalf("revoke %s: %s", token.ID, errOut)
		}
	}
}

// as returns the flags by which a person's commands reach the service.
func (s *mcpService) as(who string) []string {
	return []string{"--server", s.url, "--token-file", filepath.Join(s.dir, who+".token")}
}

// at returns a gateway of the service.
func (s *mcpService) at(name string) *listening {
	return &listening{t: s.t, url: s.url + "/mcp/" + name}
}

// client returns one that shows a token at a gateway.
func (s *mcpService) client(gateway, token string) *tokenClient {
	s.t.Helper()
	return s.at(gateway).open("Bearer " + s.secret[token])
}

// says calls a tool, and expects an answer.
func (c *tokenClient) says(tool, args, want string) string {
	c.t.Helper()
	got := c.call(tool, args)
	if !strings.Contains(got, want) {
		c.t.Fatalf("%s: got %s, expected %q", tool, got, want)
	}
	return got
}

// runs calls a tool until it ran.
func (c *tokenClient) runs(tool, args string) {
	c.t.Helper()
	testwait.Until(c.t, "the call runs", func() bool { return strings.Contains(c.call(tool, args), "done") })
}

// TestMCPInServe: allowed calls run, denied ones don't, and calls that ask wait for the people of
// the service and run once. The asker is the token, and the person of the token can't answer.
func TestMCPInServe(t *testing.T) {
	t.Parallel()
	s := serveMCPIn(t, mcpFiles)
	c := s.client("files", "desk")
	c.says("read_file", `{"path":"/a"}`, "done")
	c.says("format_disk", `{}`, "Not run.")
	pending := c.says("write_file", `{"path":"/a"}`, "Not run yet.")

	var list struct{ Requests []struct{ ID string } }
	c.read(&list, append([]string{"list", "--json"}, s.as("mara")...)...)
	if len(list.Requests) != 1 || !strings.Contains(pending, list.Requests[0].ID) {
		t.Fatalf("%s: %+v wait", pending, list)
	}
	var doc struct{ Requester asker }
	c.read(&doc, append([]string{"show", list.Requests[0].ID, "--json"}, s.as("mara")...)...)
	if doc.Requester.Runtime != "desk" || doc.Requester.Person != "ben" {
		t.Errorf("asked by %+v", doc.Requester)
	}

	if errOut, code := approved(t, s.as("ben"), pending); code == 0 {
		t.Errorf("ben approved his own call: %s", errOut)
	}
	approveIn(t, s.as("mara"), pending)
	c.runs("write_file", `{"path":"/a"}`)
	c.says("write_file", `{"path":"/a"}`, "Not run yet.")
	for tool, want := range map[string]int{"read_file": 1, "write_file": 1, "format_disk": 0} {
		if n := callsIn(t, s.dir, tool); n != want {
			t.Errorf("%s ran %d times, want %d", tool, n, want)
		}
	}

	if text := readFile(t, s.dir, "mcp-files.pins.json"); !strings.Contains(text, `"write_file"`) {
		t.Errorf("the pins are %s", text)
	}
}

// TestMCPInServeHeedsNewRules: rules that change while it serves hold
// for the next call, and for what was approved before.
func TestMCPInServeHeedsNewRules(t *testing.T) {
	t.Parallel()
	s := serveMCPIn(t, mcpFiles)
	c := s.client("files", "desk")
	pending := c.says("write_file", `{"path":"/a"}`, "Not run yet.")
	approveIn(t, s.as("mara"), pending)
	strict := strings.Replace(mcptest.Clerk, "        - read_file\n        - {name: write_file, approval: true}\n",
		"        - {name: read_file, approval: true}\n", 1)
	writeFiles(t, s.dir, map[string]string{"clerk.agf.yaml": strict})
	testwait.Until(t, "reading asks", func() bool {
		return strings.Contains(c.call("read_file", `{"path":"/b"}`), "Not run yet.")
	})
	c.says("write_file", `{"path":"/a"}`, "Not run.")
	if n := callsIn(t, s.dir, "write_file"); n != 0 {
		t.Errorf("%d writes ran that the rules deny now", n)
	}
}

// TestMCPInServeFrozen: while the agent is frozen nothing runs, neither
// what the rules allow nor what was approved.
func TestMCPInServeFrozen(t *testing.T) {
	t.Parallel()
	s := serveMCPIn(t, mcpFiles)
	s.makes("root", "--scopes", "admin")
	c := s.client("files", "desk")
	approveIn(t, s.as("mara"), c.says("write_file", `{"path":"/a"}`, "Not run yet."))
	freeze := append([]string{"freeze", "--agent", "clerk", "--reason", "odd"}, s.as("root")...)
	if _, errOut, code := ran("", freeze...); code != 0 {
		t.Fatal(errOut)
	}
	c.says("write_file", `{"path":"/a"}`, "Not run. The agent is frozen by its operators.")
	c.says("read_file", `{"path":"/a"}`, "Not run. The agent is frozen by its operators.")
	if n := callsIn(t, s.dir, "write_file") + callsIn(t, s.dir, "read_file"); n != 0 {
		t.Errorf("%d calls ran of an agent that is frozen", n)
	}
}

// TestMCPInServeRefusesTokens: a client without a token for the agent gets nothing from the gateway
// except the reason, in the form that OAuth defines.
func TestMCPInServeRefusesTokens(t *testing.T) {
	t.Parallel()
	s := serveMCPIn(t, mcpFiles+`  - name: users
    agent: clerk
    ask: user
    upstream: {alias: files, command: files-server, cwd: .}
`)
	s.makes("short", "--scopes", "request", "--agents", "clerk", "--expires", "1s")
	s.makes("elsewhere", "--scopes", "request", "--agents", "other")
	s.makes("decides", "--scopes", "decide", "--agents", "clerk")
	s.makes("ended", "--scopes", "request", "--agents", "clerk")
	s.makes("nobody", "--scopes", "request", "--agents", "clerk")
	s.revokes("ended")
	const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	refused := func(what, gateway, token string, status int, challenge string) bool {
		resp, text := s.at(gateway).post(token, "", initialize)
		ok := resp != nil && resp.StatusCode == status && resp.Header.Get("Mcp-Session-Id") == "" &&
			strings.Contains(resp.Header.Get("WWW-Authenticate"), challenge)
		if !ok && what != "" {
			t.Errorf("%s: %+v\n%s", what, resp, text)
		}
		return ok
	}
	bearer := func(name string) string { return "Bearer " + s.secret[name] }
	refused("none", "files", "", 401, `Bearer realm="assent"`)
	refused("no bearer", "files", "Basic "+s.secret["desk"], 401, `Bearer realm="assent"`)
	refused("an unknown one", "files", "Bearer assent_x", 401, `Bearer realm="assent"`)
	refused("a revoked one", "files", bearer("ended"), 401, `error="invalid_token"`)
	refused("one of another agent", "files", bearer("elsewhere"), 403, "")
	refused("one without the scope", "files", bearer("decides"), 403, `error="insufficient_scope", scope="request"`)
	refused("one that answers", "files", bearer("mara"), 403, `error="insufficient_scope"`)
	refused("one of nobody, where users are asked", "users", bearer("nobody"), 403, "")
	testwait.Until(t, "the token expires", func() bool {
		return refused("", "files", bearer("short"), 401, `error="invalid_token"`)
	})
	shown := s.at("files?access_token=" + s.secret["desk"])
	resp, _ := shown.post(bearer("desk"), "", initialize)
	if resp == nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a token in the address: %+v", resp)
	}
	resp, _ = s.at("nothing").post(bearer("desk"), "", initialize)
	if resp == nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("a gateway that is not there: %+v", resp)
	}
}

// TestMCPInServeEndsWithTheToken: what people approve for a token that
// was revoked meanwhile doesn't run.
func TestMCPInServeEndsWithTheToken(t *testing.T) {
	t.Parallel()
	s := serveMCPIn(t, strings.Replace(mcpFiles, "hold: 1s", "hold: 10m", 1))
	c := s.client("files", "desk")
	answer := make(chan string, 1)
	go func() { answer <- c.call("write_file", `{"path":"/a"}`) }()
	type waiting struct{ Requests []struct{ ID string } }
	list := testwait.Value(t, "somebody is asked", func() (list waiting, asked bool) {
		c.read(&list, append([]string{"list", "--json"}, s.as("mara")...)...)
		return list, len(list.Requests) == 1
	})
	s.revokes("desk")
	approveIn(t, s.as("mara"), list.Requests[0].ID)
	if text := <-answer; !strings.Contains(text, "may not call here any more") {
		t.Errorf("the client is told %s", text)
	}
	if n := callsIn(t, s.dir, "write_file"); n != 0 {
		t.Errorf("%d calls ran for a token that is revoked", n)
	}
}

// TestMCPInServeEnds: a service that was killed runs nothing twice, and a service that is stopped
// ends even if a client waits.
func TestMCPInServeEnds(t *testing.T) {
	t.Parallel()
	s := serveMCPIn(t, mcpFiles+strings.NewReplacer("name: files", "name: slow", "1s", "10m").Replace(mcpFiles))
	c := s.client("files", "desk")
	pending := c.says("write_file", `{"path":"/a"}`, "Not run yet.")
	s.kills()
	s.start()
	approveIn(t, s.as("mara"), pending)
	c = s.client("files", "desk")
	c.runs("write_file", `{"path":"/a"}`)
	s.kills()
	s.start()
	c = s.client("files", "desk")
	c.says("write_file", `{"path":"/a"}`, "Not run yet.")
	if n := callsIn(t, s.dir, "write_file"); n != 1 {
		t.Errorf("an approved call ran %d times", n)
	}

	slow := s.client("slow", "desk")
	ended := make(chan string, 1)
	go func() { ended <- slow.call("write_file", `{"path":"/z"}`) }()
	testwait.Until(t, "it waits for people", func() bool {
		out, _, _ := ran("", append([]string{"list", "--json"}, s.as("mara")...)...)
		return strings.Count(out, `"id"`) > 1
	})
	must.Do(t, s.cmd.Process.Signal(syscall.SIGTERM))
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	s.cmd = nil
	if text := <-ended; strings.Contains(text, "done") {
		t.Errorf("the client is told %s", text)
	}
	if n := callsIn(t, s.dir, "write_file"); n != 1 {
		t.Errorf("%d calls ran", n)
	}
}

// kills ends the service with SIGKILL.
func (s *mcpService) kills() {
	s.t.Helper()
	must.Do(s.t, s.cmd.Process.Kill())
	var exit *exec.ExitError
	if err := s.cmd.Wait(); !errors.As(err, &exit) {
		s.t.Fatalf("it ended with %v", err)
	}
}

// TestMCPInServeIsChecked: what can't work is said by --check with its
// place, and stops the start. No server is started by it.
func TestMCPInServeIsChecked(t *testing.T) {
	t.Parallel()
	for section, want := range map[string]string{
		mcpFiles: "nothing is wrong",
		strings.Replace(mcpFiles, "agent: clerk", "agent: nobody", 1):       "mcp: gateway files: agent: ",
		mcpFiles + strings.Replace(mcpFiles, "agent: clerk", "agent: x", 1): `another gateway of assent serve is called "files"`,
		mcpFiles + "    store: x\n":                                         "store is no field of this gateway of assent serve",
		mcpFiles + "    callers: {name: a}\n":                               "assent token create",
		mcpFiles + "    server: https://a.example\n":                        "the people of this server are asked",
		mcpFiles + "    policies: x\n":                                      "policies, beside mcp",
		mcpFiles + "    in_place: true\n":                                   "in_place is about users",
		mcpFiles + "    pins: bad.json\n":                                   "mcp: gateway files: pins: ",
		strings.Replace(mcpFiles, "cwd: .", "env_from: {A: NOT_SET_HERE}", 1): "server files: env_from: A: the variable " +
			"NOT_SET_HERE is not set",
		strings.Replace(mcpFiles, "name: files", "name: Files/x", 1): "this is no name of an address",
	} {
		dir, _ := mcpDir(t)
		writeFiles(t, dir, map[string]string{
			"people.yaml": mcpPeople,
			"bad.json":    "{",
			"serve.yaml":  "store: s.db\nagents: clerk.agf.yaml\npeople: people.yaml\nmcp:\n" + section,
		})
		out, errOut, code := ran("", "serve", "--check", "--config", filepath.Join(dir, "serve.yaml"))
		right := (code == 0) == (section == mcpFiles) && (code != term.ExitNo || errOut == "")
		if !right || !strings.Contains(out+errOut, want) {
			t.Errorf("%s\nexit %d\n%s%s", section, code, out, errOut)
		}
		if callsIn(t, dir, "") != 0 {
			t.Error("a server was started")
		}
	}
}
