package clients

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/edits"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/must"
	mcp "github.com/assent-dev/assent/mcp/config"
	"github.com/assent-dev/assent/schema"
)

// world is a home directory with a client's file.
type world struct {
	t    *testing.T
	home string
	out  bytes.Buffer
	errs bytes.Buffer
	in   string // what a person types; "": there is no terminal

	variables map[string]string // of the environment, in addition to HOME and PATH
}

func newWorld(t *testing.T) *world { return &world{t: t, home: t.TempDir()} }

func (w *world) getenv(name string) string {
	if value, has := w.variables[name]; has {
		return value
	}
	return map[string]string{"HOME": w.home, "PATH": "/bin"}[name]
}

// run executes a command, and returns its exit code and all output.
func (w *world) run(args ...string) (int, string) {
	w.out.Reset()
	w.errs.Reset()
	streams := term.Streams{
		In:          strings.NewReader(w.in),
		Out:         &w.out,
		Err:         &w.errs,
		Env:         w.getenv,
		InTerminal:  w.in != "",
		OutTerminal: w.in != "",
	}
	all := Commands{config.Reader{Streams: streams}}
	cmd := term.Parent("mcp", "", "", all.Install(), all.Uninstall(), all.Status(), all.Print())
	code := term.Run(cmd, streams, args)

	return code, w.out.String() + w.errs.String()
}

// wants runs a command and checks its exit code and output.
func (w *world) wants(code int, says string, args ...string) string {
	w.t.Helper()
	got, text := w.run(args...)
	if got != code || !strings.Contains(text, says) {
		w.t.Fatalf("%v: code %d, want %d with %q:\n%s", args, got, code, says, text)
	}
	if strings.Contains(text, "hushhush") {
		w.t.Errorf("%v shows a secret:\n%s", args, text)
	}

	return text
}

func (w *world) path(parts ...string) string {
	return filepath.Join(append([]string{w.home}, parts...)...)
}

func (w *world) write(path, text string) {
	w.t.Helper()
	must.Do(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(w.t, os.WriteFile(path, []byte(text), 0o640))
}

func (w *world) read(path string) string {
	w.t.Helper()
	text, err := os.ReadFile(path)
	must.Do(w.t, err)

	return string(text)
}

// file returns the path of the file in which a client stores the user's servers.
func (w *world) file(name string) string {
	c, err := find(name)
	must.Do(w.t, err)

	return c.file(edits.Place{OS: "linux", Getenv: w.getenv, Project: "/project"}, edits.User)
}

func (w *world) gateway(name string) string {
	return w.path(".config", "assent", "mcp", name, "gateway.yaml")
}

// samples returns a file for each client with a program, an address, and unrelated content. The
// results are in expected.
func samples() map[string]string {
	jsonFile := func(table, kind, address, ref string) string {
		return `{
  // kept
  "other": {"secret": "hushhush"},
  "` + table + `": {
    "issue-tracker": {` + kind + `
      "command": "npx", "args": ["-y", "tracker", "$(x); rm", ""],
      "env": {"TOKEN": "hushhush\n", "LEVEL": ""` + ref + `}
    },
    "web": {` + address + `}
  }
}
`
	}

	return map[string]string{
		"claude-code": jsonFile(
			"mcpServers",
			`"type": "stdio", "timeout": 5,`,
			`"type": "http", "url": "https://web.example/mcp", "headers": {"authorization": "Bearer hushhush", "X-A": "${A}"}`,
			`, "HOST": "${HOST:-here}"`,
		),
		"claude-desktop": strings.Replace(jsonFile("mcpServers", "", "", ""), `,
    "web": {}`, "", 1),
		"cursor": jsonFile(
			"mcpServers",
			"",
			`"url": "https://web.example/mcp", "headers": {"authorization": "Bearer hushhush", "X-A": "${env:A}"}`,
			`, "HOST": "${env:HOST}"`,
		),
		"vscode": jsonFile(
			"servers",
			`"type": "stdio",`,
			`"type": "http", "url": "https://web.example/mcp", "headers": {"authorization": "Bearer hushhush", "X-A": "${input:a}"}`,
			`, "HOST": "${input:host}"`,
		),
		"gemini": jsonFile(
			"mcpServers",
			`"trust": true,`,
			`"httpUrl": "https://web.example/mcp", "headers": {"authorization": "Bearer hushhush", "X-A": "$A"}`,
			`, "HOST": "$HOST"`,
		),
		"codex": `# kept
model = "hushhush"

[mcp_servers.issue-tracker] # head
command = "npx"
args = ["-y", "tracker", "$(x); rm", ""]
env_vars = ["HOST"]
startup_timeout_sec = 5

[mcp_servers.issue-tracker.env]
TOKEN = "hushhush\n"
LEVEL = ""

[mcp_servers.web]
url = "https://web.example/mcp"
bearer_token_env_var = "WEB_TOKEN"
env_http_headers = { "X-A" = "A" }

[other]
x = 1
`,
		"goose": `# kept
GOOSE_MODEL: hushhush
extensions:
  developer: # kept
    type: builtin
    enabled: true
  issue-tracker:
    type: stdio
    enabled: true
    name: issue-tracker
    cmd: npx
    args: [-y, tracker, "$(x); rm", ""]
    envs:
      TOKEN: "hushhush\n"
      LEVEL: ""
    env_keys:
      - HOST
    timeout: 300
  web:
    type: streamable_http
    enabled: true
    uri: https://web.example/mcp
    headers:
      authorization: Bearer hushhush
      X-A: hushhush
`,
	}
}

// TestInstall: the servers of each client's file are moved behind the gateway unchanged, secrets
// are written only to files that only their owner can read, and uninstall restores the file byte
// for byte and leaves no files.
func TestInstall(t *testing.T) {
	for name, text := range samples() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.file(name), text)
			w.wants(0, "dry run", "install", "--client", name, "--dry-run")
			if got := w.tree(); len(got) != 1 {
				t.Errorf("a dry run wrote %v", got)
			}
			w.wants(0, "installed", "install", "--client", name, "--yes")
			w.tracker(name)
			if name != "claude-desktop" {
				w.web(name)
			}
			after := w.read(w.file(name))
			if strings.Contains(after, "npx") || !strings.Contains(after, "kept") ||
				strings.Contains(after, "web.example") {
				t.Errorf("the file is\n%s", after)
			}
			w.wants(0, "behind the gateway: issue_tracker", "status", "--client", name)
			w.wants(1, "installed already", "install", "--client", name, "--yes")
			w.wants(0, "byte for byte", "uninstall", "--client", name, "--yes")
			if got := w.read(w.file(name)); got != text {
				t.Errorf("it is now\n%s", got)
			}
			if got := w.tree(); len(got) != 1 {
				t.Errorf("it left %v", got)
			}
			w.wants(1, "nothing is changed", "uninstall", "--client", name, "--yes")
		})
	}
}

// tree returns all files.
func (w *world) tree() []string {
	var out []string
	err := filepath.WalkDir(w.home, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}

		return err
	})
	must.Do(w.t, err)

	return out
}

func (w *world) upstream(name string, i int) mcp.Upstream {
	w.t.Helper()
	file := w.gateway(name)
	cfg, findings := mcp.Read(file, []byte(w.read(file)))
	if len(findings) > 0 || i >= len(cfg.Upstream) {
		w.t.Fatalf("%+v, %+v", cfg, findings)
	}
	agent, found := schema.Parse(cfg.Agent, []byte(w.read(cfg.Agent)))
	if agent == nil || len(agent.ActionSpace.MCPServers) != len(cfg.Upstream) {
		w.t.Fatalf("%+v", found)
	}
	for _, s := range agent.ActionSpace.MCPServers {
		if s.Approval == nil {
			w.t.Errorf("the server %s runs unasked", s.Alias)
		}
	}

	return cfg.Upstream[i]
}

func (w *world) tracker(name string) {
	w.t.Helper()
	u := w.upstream(name, 0)
	env, err := mcp.ReadEnv(u.EnvFile)
	must.Do(w.t, err)
	if want := map[string]string{"TOKEN": "hushhush\n", "LEVEL": ""}; !reflect.DeepEqual(env, want) {
		w.t.Errorf("variables %v", env)
	}
	if want := []string{"-y", "tracker", "$(x); rm", ""}; u.Command != "npx" || !slices.Equal(u.Args, want) {
		w.t.Errorf("%q %q", u.Command, u.Args)
	}
	host := map[string]string{
		"codex":          "HOST",
		"goose":          "HOST",
		"claude-desktop": "",
		"":               "ASSENT_ISSUE_TRACKER_HOST",
	}
	from, known := host[name]
	if !known {
		from = host[""]
	}
	if u.EnvFrom["HOST"] != from {
		w.t.Errorf("HOST comes from %q, want %q", u.EnvFrom["HOST"], from)
	}
	if !strings.Contains(w.read(w.file(name)), from) {
		w.t.Errorf("the client does not hand over %s:\n%s", from, w.read(w.file(name)))
	}
	for _, path := range w.tree() {
		info, err := os.Stat(path)
		must.Do(w.t, err)
		if strings.HasPrefix(path, w.path(".config", "assent")) && info.Mode().Perm() != 0o600 {
			w.t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
}

func (w *world) web(name string) {
	w.t.Helper()
	u := w.upstream(name, 1)
	if u.URL != "https://web.example/mcp" {
		w.t.Errorf("%+v", u)
	}
	switch name {
	case "codex":
		if u.TokenEnv != "WEB_TOKEN" || u.HeaderEnv["X-A"] != "A" {
			w.t.Errorf("%+v", u)
		}
		if got := w.read(w.file(name)); !strings.Contains(got, `env_vars = ["A", "HOST", "WEB_TOKEN"]`) {
			w.t.Errorf("%s", got)
		}
	case "goose":
		if w.read(u.TokenFile) != "hushhush\n" || w.read(u.HeaderFiles["X-A"]) != "hushhush\n" {
			w.t.Errorf("%+v", u)
		}
	default:
		if w.read(u.TokenFile) != "hushhush\n" || u.HeaderEnv["X-A"] != "ASSENT_WEB_X_A" {
			w.t.Errorf("%+v", u)
		}
	}
}

// TestStates: for any state of a client's file, install either succeeds, or refuses with a reason
// and changes nothing.
func TestStates(t *testing.T) {
	bad := map[string]string{
		"not readable": "{]<",
		"binary":       "\xff\xfe\x00",
		"empty":        "",
		"no servers":   "",
	}
	for name, text := range samples() {
		for state, in := range bad {
			t.Run(name+" "+state, func(t *testing.T) {
				w := newWorld(t)
				w.write(w.file(name), in)
				code, says := w.run("install", "--client", name, "--yes")
				want, where := 2, w.file(name)+":1:"
				if in == "" {
					want, where = 1, w.file(name)+" declares no MCP servers"
				}
				if code != want || !strings.Contains(says, where) || w.read(w.file(name)) != in {
					t.Errorf("code %d: %s", code, says)
				}
				if got := w.tree(); len(got) != 1 {
					t.Errorf("there are %v", got)
				}
			})
		}

		t.Run(name+" written otherwise", func(t *testing.T) { testForms(t, name, text) })
		t.Run(name+" missing", func(t *testing.T) {
			newWorld(t).wants(1, "declares no MCP servers", "install", "--client", name, "--yes")
		})
	}
}

// testForms installs and uninstalls in files with other formatting, and through a link.
func testForms(t *testing.T, name, text string) {
	for form, in := range map[string]string{
		"CRLF":           strings.ReplaceAll(text, "\n", "\r\n"),
		"mark":           "\ufeff" + text,
		"without an end": strings.TrimRight(text, "\n"),
		"link":           text,
	} {
		w := newWorld(t)
		target := w.file(name)
		w.write(target, in)
		if form == "link" {
			target = w.path("dotfiles")
			must.Do(t, os.Rename(w.file(name), target))
			must.Do(t, os.Symlink(target, w.file(name)))
		}

		w.wants(0, "installed", "install", "--client", name, "--yes")
		if form == "CRLF" && strings.Contains(strings.ReplaceAll(w.read(target), "\r\n", ""), "\n") {
			t.Errorf("%s: line ends differ:\n%q", form, w.read(target))
		}
		w.tracker(name)
		w.wants(0, "byte for byte", "uninstall", "--client", name, "--yes")
		if got := w.read(target); got != in {
			t.Errorf("%s: it is now\n%q", form, got)
		}
		link, err := os.Lstat(w.file(name))
		if err != nil || form == "link" && link.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s: the link is gone: %v", form, err)
		}
	}
}

// TestTwice: a duplicate name is refused with its position.
func TestTwice(t *testing.T) {
	for name, text := range map[string]string{
		"claude-code": "{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\"}}}",
		"codex":       "[mcp_servers.a]\n[mcp_servers.a]\n",
		"goose":       "extensions:\n  a: {}\n  a: {}\n",
	} {
		w := newWorld(t)
		w.write(w.file(name), text)
		w.wants(2, w.file(name)+":", "install", "--client", name, "--yes")
		if w.read(w.file(name)) != text {
			t.Errorf("%s has changed", name)
		}
	}
}

// TestOneServerThatCanNotBeMovedStays: the other servers are moved. Fields that only describe a
// server don't prevent a move.
func TestOneServerThatCanNotBeMovedStays(t *testing.T) {
	w := newWorld(t)
	file := w.file("vscode")
	w.write(file, `{"servers": {"a": {"command": "x"}, "boxed": {"command": "y", "sandbox": {}}}}`)
	w.wants(2, "sandbox", "install", "--client", "vscode", "--yes", "--server", "boxed") // it is named
	w.write(file, `{"servers": {
		"kb": {"command": "x", "description": "Knowledge base", "icon": "x.png"},
		"figma": {"transport": "http", "url": "http://127.0.0.1:3845/mcp", "title": "Figma"},
		"boxed": {"command": "y", "sandbox": {}}, "number": {"command": 1}, "odd": {"command": "x", "env": {"A B": "c"}},
		"lan": {"url": "http://192.168.1.5:3000/mcp"},
		"here": {"command": "z", "args": ["${workspaceFolder}"]}}}`)
	code, says := w.run("install", "--client", "vscode", "--yes")
	if code != 0 || !strings.Contains(says, "the server boxed: sandbox: the gateway can't do what this says") ||
		!strings.Contains(says, "its calls are not guarded") {
		t.Errorf("code %d: %s", code, says)
	}
	now := w.read(file)
	for name, moved := range map[string]bool{
		"kb": true, "figma": true, "boxed": false, "here": true, "number": false, "odd": false, "lan": false,
	} {
		if strings.Contains(now, `"`+name+`"`) == moved {
			t.Errorf("%s: %s", name, now)
		}
	}
}

// TestRefused: servers that the gateway could not run in the same way as the client are not moved,
// and the reason says what to do.
func TestRefused(t *testing.T) {
	for entry, want := range map[string]string{
		`{"command": "x", "envFile": ".env"}`:            "envFile: expected an absolute path",
		`{"command": "x", "envFile": "${input:x}/.env"}`: "envFile holds ${input:x}, which only VS Code can fill in",
		`{"command": "x", "enabled_tools": []}`:          "enabled_tools: it offers no tool at all",
		`{"command": "x", "sandbox": {}}`:                "sandbox: the gateway can't do what this says",
		`{"command": "x", "url": "https://a.example"}`:   "expected a program or an address",
		`{"command": 1}`:                                  "command: expected a text",
		`{"command": "x", "args": [1]}`:                   "args: expected a list of texts",
		`{"command": "x", "env": {"A": 1}}`:               "env: expected texts by their names",
		`{"command": "x", "cwd": "sub"}`:                  "cwd: expected an absolute path",
		`{"url": "https://me:hushhush@a.example"}`:        "is no address that could be called",
		`{"url": "http://a.example/mcp"}`:                 "is no address that could be called",
		`{"command": "x", "env": {"A B": "hushhush"}}`:    `"A B" is no name of a variable`,
		`{"command": "x"}, "assent": {"command": "mine"}`: "another server is called assent",
	} {
		w := newWorld(t)
		text := `{"servers": {"s": ` + entry + `}}`
		w.write(w.file("vscode"), text)
		code, says := w.run("install", "--client", "vscode", "--yes")
		if code != 2 || !strings.Contains(says, want) || strings.Contains(says, "hushhush") {
			t.Errorf("%s: code %d: %s", entry, code, says)
		}
		if got := w.tree(); len(got) != 1 || w.read(w.file("vscode")) != text {
			t.Errorf("%s: there are %v", entry, got)
		}
	}
}

// TestChosen: only the named servers are moved, servers that are switched off are not, and status
// reports those that bypass the gateway.
func TestChosen(t *testing.T) {
	w := newWorld(t)
	w.write(
		w.file("cursor"),
		`{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}, "c": {"command": "z", "disabled": true}}}`,
	)
	w.wants(2, "--server d: ", "install", "--client", "cursor", "--yes", "--server", "d")
	w.wants(2, "--server c: it is switched off in Cursor", "install", "--client", "cursor", "--yes", "--server", "c")
	w.wants(0, "leaves  b", "install", "--client", "cursor", "--yes", "--server", "a")
	text := w.wants(1, "without the gateway: b", "status", "--client", "cursor")
	if strings.Contains(text, "gateway: b, c") {
		t.Error(text)
	}
}

// TestAsked: a person is asked before a file changes. Without a terminal, nothing changes without
// --yes.
func TestAsked(t *testing.T) {
	w := newWorld(t)
	text := samples()["cursor"]
	w.write(w.file("cursor"), text)
	w.wants(2, "there is no terminal to ask at", "install", "--client", "cursor")
	w.in = "y\n"
	w.wants(1, "stopped: nothing was changed", "install", "--client", "cursor")
	if w.read(w.file("cursor")) != text || len(w.tree()) != 1 {
		t.Error("it has changed")
	}
	w.in = "yes\n"
	w.wants(0, "installed", "install", "--client", "cursor")
	w.in = "no\n"
	w.wants(1, "stopped", "uninstall", "--client", "cursor")
	w.in = "yes\n"
	w.wants(0, "byte for byte", "uninstall", "--client", "cursor")
}

// TestChangedSince: other changes of the file are kept, and the servers are restored.
func TestChangedSince(t *testing.T) {
	for name, text := range samples() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.file(name), text)
			w.wants(0, "installed", "install", "--client", name, "--yes")
			w.write(w.file(name), strings.Replace(w.read(w.file(name)), "kept", "kept and changed", 1))
			w.wants(0, "changed since", "status", "--client", name)
			w.wants(0, "only the gateway's entry was taken out", "uninstall", "--client", name, "--yes")
			got := w.read(w.file(name))
			if !strings.Contains(got, "kept and changed") || strings.Contains(got, "gateway") {
				t.Errorf("it is now\n%s", got)
			}
			here := edits.Place{OS: "linux", Getenv: w.getenv, Project: "/project"}
			s, err := mustFind(t, name).spotOf(here, edits.User)
			must.Do(t, err)
			before, err := s.parse([]byte(text))
			must.Do(t, err)
			after, err := s.parse([]byte(got))
			must.Do(t, err)
			for _, m := range before.Members() {
				if now := after.Member(m.Name); now == nil || !reflect.DeepEqual(now.Value, m.Value) {
					t.Errorf("%s is now %v", m.Name, now)
				}
			}
		})
	}
}

func mustFind(t *testing.T, name string) client {
	t.Helper()
	c, err := find(name)
	must.Do(t, err)

	return c
}

// TestEntryChanged: an entry that was changed is not removed.
func TestEntryChanged(t *testing.T) {
	w := newWorld(t)
	w.write(w.file("cursor"), samples()["cursor"])
	w.wants(0, "installed", "install", "--client", "cursor", "--yes")
	changed := strings.Replace(w.read(w.file("cursor")), `"assent"`+",", `"/opt/assent",`, 1)
	w.write(w.file("cursor"), changed)
	w.wants(1, "somebody has changed the gateway's entry", "status", "--client", "cursor")
	w.wants(1, "undo it by hand", "uninstall", "--client", "cursor", "--yes")
	if w.read(w.file("cursor")) != changed {
		t.Error("it has changed")
	}
}

// TestAgentKept: an agent's file that was changed is kept, and the next install uses it.
func TestAgentKept(t *testing.T) {
	w := newWorld(t)
	w.write(w.file("cursor"), samples()["cursor"])
	w.wants(0, "installed", "install", "--client", "cursor", "--yes")
	agent := w.path(".config", "assent", "mcp", "cursor", "agent.agf.yaml")
	mine := strings.Replace(w.read(agent), "alias: web", "alias: other", 1)
	w.write(agent, mine)
	w.wants(0, "kept "+agent, "uninstall", "--client", "cursor", "--yes")
	w.wants(0, "does not declare the server web: its calls are denied", "install", "--client", "cursor", "--yes")
	if w.read(agent) != mine {
		t.Error("the agent has changed")
	}
}

// TestStoppedInstall: files of an install that was killed before it changed the client's file don't
// block the next one.
func TestStoppedInstall(t *testing.T) {
	w := newWorld(t)
	text := samples()["cursor"]
	w.write(w.file("cursor"), text)
	w.wants(0, "installed", "install", "--client", "cursor", "--yes")
	w.write(w.file("cursor"), text) // as if the rename had never come
	w.wants(0, "not installed", "status", "--client", "cursor")
	w.wants(0, "installed", "install", "--client", "cursor", "--yes")
	w.wants(0, "byte for byte", "uninstall", "--client", "cursor", "--yes")
	if got := w.tree(); len(got) != 1 || w.read(w.file("cursor")) != text {
		t.Errorf("there are %v", got)
	}
}

// TestScopes: Claude Code's servers of a directory are in the user's file, or in a file that others
// also read.
func TestScopes(t *testing.T) {
	w := newWorld(t)
	t.Chdir(w.home)
	dir, err := os.Getwd()
	must.Do(t, err)
	local := fmt.Sprintf(
		`{"mcpServers": {"u": {"command": "x"}}, "projects": {%q: {"mcpServers": {"l": {"command": "./y"}}}}}`,
		dir,
	)
	w.write(w.path(".claude.json"), local)
	w.write(w.path(".mcp.json"), `{"mcpServers": {"p": {"command": "./z"}}}`)
	w.wants(0, "without the gateway: p", "status", "--client", "claude-code")
	for i, scope := range []string{"local", "project", "user"} {
		if i == 2 { // the user's servers still go round the gateway
			w.wants(1, "without the gateway: u", "status", "--client", "claude-code")
		}
		w.wants(0, "installed", "install", "--client", "claude-code", "--yes", "--scope", scope)
	}

	text := w.wants(0, "behind the gateway: l", "status", "--client", "claude-code")
	if !strings.Contains(text, "behind the gateway: u") || !strings.Contains(text, "behind the gateway: p") {
		t.Error(text)
	}
	for _, scope := range []string{"user", "local", "project"} {
		w.wants(0, "uninstalled", "uninstall", "--client", "claude-code", "--yes", "--scope", scope)
	}
	if got := w.read(w.path(".mcp.json")); got != `{"mcpServers": {"p": {"command": "./z"}}}` {
		t.Error(got)
	}
	w.wants(2, "has no such file: expected user", "install", "--client", "goose", "--yes", "--scope", "project")
	w.wants(2, `--client "clippy" is not known`, "install", "--client", "clippy")
}

// TestServersKeepWhatTheyHad: references, files of variables and lists of tools of a client also
// work behind the gateway.
func TestServersKeepWhatTheyHad(t *testing.T) {
	w := newWorld(t)
	t.Chdir(w.home)
	dir, err := os.Getwd()
	must.Do(t, err)
	w.write(w.path(".vscode", "mcp.json"), `{"servers": {
		"a.b": {"command": "${userHome}/x", "args": ["${workspaceFolder}/y", "${env:HOME}", "--key=${input:key}"],
			"cwd": "${input:dir}", "envFile": "${workspaceFolder}/.env", "excludeTools": ["drop"]},
		"a_b": {"command": "x", "envFile": "sub/.env", "includeTools": ["read(all)", "list"], "autoApprove": ["read"],
			"disabled": false},
		"web": {"url": "https://a.example/${input:key}", "timeout": 3}}}`)
	says := w.wants(0, "installed", "install", "--client", "vscode", "--scope", "project", "--yes")
	if !strings.Contains(says, "can't use the model of VS Code (sampling) nor learn its directories (roots)") ||
		!strings.Contains(says, "its alias is a_b_2") ||
		!strings.Contains(says, "web: if it wants you to sign in, run: assent mcp sign-in web --config "+w.home) ||
		strings.Count(says, "sign-in") != 1 {
		t.Error(says)
	}
	place := edits.Place{OS: "linux", Getenv: w.getenv, Project: dir}
	s, err := mustFind(t, "vscode").spotOf(place, edits.Project)
	must.Do(t, err)
	first, second := w.upstream(s.folder(), 0), w.upstream(s.folder(), 1)
	fill := map[string]string{"${input:key}": "ASSENT_A_B_REF_INPUT_KEY", "${input:dir}": "ASSENT_A_B_REF_INPUT_DIR"}
	if first.Command != w.home+"/x" || !reflect.DeepEqual(first.FillIn, fill) ||
		!slices.Equal(first.Args, []string{dir + "/y", w.home, "--key=${input:key}"}) ||
		first.Cwd != "${input:dir}" || first.DotenvFile != dir+"/.env" ||
		!slices.Equal(first.ExcludeTools, []string{"drop"}) {
		t.Errorf("%+v", first)
	}
	if second.DotenvFile != dir+"/sub/.env" || !slices.Equal(second.IncludeTools, []string{"read", "list"}) {
		t.Errorf("%+v", second)
	}
	if got := w.read(w.path(".vscode", "mcp.json")); !strings.Contains(got, `"ASSENT_A_B_REF_INPUT_KEY": "${input:key}"`) {
		t.Error(got)
	}
	got, err := w.upstream(s.folder(), 2).Filled(func(name string) string { return "<" + name + ">" })
	if err != nil || got.URL != "https://a.example/<ASSENT_WEB_REF_INPUT_KEY>" {
		t.Errorf("%+v: %v", got, err)
	}
}

// TestSecretsOfArgumentsAreNotShown: the printed change masks them.
func TestSecretsOfArgumentsAreNotShown(t *testing.T) {
	for arg, hidden := range map[string]string{
		`"--token", "hushhush"`: "", `"--api-key=hushhush"`: "", `"--apiKey", "hushhush"`: "", `"-e", "X=hushhush"`: "",
		`"GITHUB_TOKEN=hushhush"`: "", `"--header", "X-Any: hushhush"`: "", `"Authorization: hushhush"`: "",
		`"postgres://me:hushhush@db/x"`: "", `"--password:hushhush"`: "", `"-H", "hushhush"`: "",
		`"https://a.example/mcp?k=hushhush"`: "", `"ghp_hushhush0123456789abc"`: "", `"a1hushhush-bcdefghij_234"`: "",
		`"https://a.example/s/a1hushhushbcdefghij234/mcp"`: "", `"--pass", "hushhush", "plainly"`: "plainly",
		`"--verbose", "plainly"`: "plainly", `"@scope/plainly-mcp@1.2.3"`: "plainly",
	} {
		w := newWorld(t)
		w.write(w.file("cursor"), `{"mcpServers": {"a": {"command": "x", "args": ["-y", `+arg+`]}}}`)
		text := w.wants(0, "dry run", "install", "--client", "cursor", "--dry-run") // no hushhush in it
		if !strings.Contains(text, hidden) || !strings.Contains(text, `"-y"`) {
			t.Errorf("%s: %s", arg, text)
		}
	}
}

func TestCodexHandsOverTheVariablesOfTheNetwork(t *testing.T) {
	w := newWorld(t)
	w.variables = map[string]string{"HTTPS_PROXY": "http://proxy:1", "NODE_EXTRA_CA_CERTS": "/ca.pem"}
	w.write(w.file("codex"), "[mcp_servers.a]\ncommand = \"x\"\nenabled_tools = [\"read\"]\n")
	w.wants(0, "installed", "install", "--client", "codex", "--yes")
	if got := w.read(w.file("codex")); !strings.Contains(got, `env_vars = ["HTTPS_PROXY", "NODE_EXTRA_CA_CERTS"]`) {
		t.Error(got)
	}
	if got := w.upstream("codex", 0).IncludeTools; !slices.Equal(got, []string{"read"}) {
		t.Errorf("%q", got)
	}
}
