package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/auth/authtest"
	"github.com/assent-dev/assent/mcp/mcptest/gosdk"
)

const signInAgent = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: d}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: x, model: any}}
action_space: {mcp_servers: [{alias: notes}, {alias: files}]}
`

// signInWith runs assent mcp sign-in, and opens its link as a browser does. It returns the end of its
// output and its exit code.
func signInWith(t *testing.T, file string, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.Command("assent", append([]string{"mcp", "sign-in", "notes", "--config", file, "--json"}, args...)...)
	cmd.Stderr = t.Output()
	pipe := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	lines := bufio.NewScanner(pipe)
	var begun struct{ Link string }
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &begun) != nil {
		t.Fatalf("it printed %q", lines.Text())
	}
	authtest.Browse(t, begun.Link)
	if lines.Scan() {
		out = lines.Text()
	}
	_ = cmd.Wait() // the exit code tells
	return out, cmd.ProcessState.ExitCode()
}

// TestServersThatWantASignIn: until a person has signed in, a server has one tool that tells how,
// and its calls tell it, too. The other servers work. The tokens are used at once, are renewed, and
// get further scopes only by a person.
func TestServersThatWantASignIn(t *testing.T) {
	t.Parallel()
	site := authtest.NewSite(t)
	site.MCP = gosdk.Streamable(true)
	dir, file := mcpDir(t)
	writeFiles(t, dir, map[string]string{
		"clerk.agf.yaml": signInAgent,
		"gateway.yaml": "agent: clerk.agf.yaml\ncallers: {name: desk, hold: 1s}\nupstream:\n" +
			"  - {alias: files, command: files-server, cwd: .}\n  - {alias: notes, url: " + site.URL + "/mcp}\n",
	})
	c := startMCP(t, "--config", file)
	const wants = "Not run. The server notes requires a sign-in"
	command := "assent mcp sign-in notes --config " + file
	list := testwait.Value(t, "the servers are listed", func() (string, bool) {
		list := c.ask("tools/list", "{}")
		return list, strings.Contains(list, "files__read_file") && strings.Contains(list, "sign_in")
	})
	if !strings.Contains(list, `"assent__sign_in_notes"`) || strings.Contains(list, "notes__") {
		t.Errorf("the list is %s", list)
	}
	c.call("files__read_file", `{}`, "done")
	c.call("notes__text", `{}`, wants)
	c.call("assent__sign_in_notes", `{}`, "`"+command+"`")

	site.Set(func() { site.Answers = func(q url.Values) { q.Set("error", "access_denied") } })
	if out, code := signInWith(t, file); code != 1 || out != "" {
		t.Errorf("a refused sign-in: %d, %s", code, out)
	}
	site.Set(func() { site.Answers = nil })
	if out, code := signInWith(t, file); code != 0 || !strings.Contains(out, `"renews":true`) {
		t.Errorf("%d, %s", code, out)
	}
	testwait.Until(t, "its tools are listed", func() bool {
		list = c.ask("tools/list", "{}")
		return strings.Contains(list, "notes__text") && !strings.Contains(list, "sign_in")
	})
	c.call("notes__text", `{}`, "größe")
	token := filepath.Join(dir, "mcp.sign-ins", "notes", "token.json")
	if info := must.Get(os.Stat(token))(t); info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v", info.Mode())
	}

	site.Set(func() { site.Needs = "notes:write" })
	c.call("notes__text", `{}`, command+" --scope notes:write")
	out, code := signInWith(t, file, "--scope", "notes:write")
	if code != 0 || !strings.Contains(out, `["notes:write"]`) {
		t.Errorf("%d, %s", code, out)
	}
	c.call("notes__text", `{}`, "größe")

	must.Do(t, os.Chmod(token, 0o644))
	c.call("notes__text", `{}`, wants)
	signInWith(t, file, "--scope", "notes:write")
	c.call("assent__sign_in_notes", `{}`, "Signed in: the tools of notes are listed now.")
	for code, want := range []string{"signed out of notes", ""} {
		out, _, got := ran("", "mcp", "sign-out", "notes", "--config", file)
		if got != code || !strings.Contains(out, want) {
			t.Errorf("sign-out: %d, %s", got, out)
		}
	}
	c.call("notes__text", `{}`, wants)
	for _, wrong := range []struct{ alias, want string }{
		{"files", "files is a program"},
		{"note", `has no server "note", did you mean "notes"`},
	} {
		_, errOut, code := ran("", "mcp", "sign-in", wrong.alias, "--config", file)
		if code != 2 || !strings.Contains(errOut, wrong.want) {
			t.Errorf("%s: %d, %s", wrong.alias, code, errOut)
		}
	}
	site.Set(func() {
		site.Status = map[string]int{"/mcp": http.StatusOK, "/.well-known/oauth-protected-resource/mcp": 404}
	})
	if _, errOut, code := ran("", "mcp", "sign-in", "notes", "--config", file); code != 2 ||
		!strings.Contains(errOut, "notes: the server doesn't ask for a sign-in") {
		t.Errorf("%d, %s", code, errOut)
	}
}
