// Package clients puts the MCP servers of well-known MCP clients behind the gateway. It finds where
// each client stores them and in what form, moves them into a configuration of the gateway, and
// undoes that.
package clients

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/cmd/internal/edits"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/internal/settings"
)

// entryName is the name of the gateway's entry in a client's file.
const entryName = "assent"

// client is a program that connects its user to MCP servers.
type client struct {
	name  string
	title string
	form  settings.Form
	table []string // the path of the servers in the file
	// file returns the path of the client's file for a scope. It is empty if the client has no such
	// scope.
	file  func(p edits.Place, scope string) string
	words words
	hold  string // of the gateway's configuration: how long its calls may wait
}

// words are the names of the fields of a server's entry. A name that the client doesn't have is
// empty or nil.
type words struct {
	command   string
	args      string
	env       string
	cwd       string
	urls      []string
	headers   string
	envNames  string   // list of variables of the client's own environment
	tokenEnv  string   // variable with the bearer token
	headerEnv string   // table of headers and variables
	aside     []string // about the client alone: they are lost
	// refers matches references that the client replaces itself, such as ${HOME}.
	refers *regexp.Regexp
	// carries reports whether the client also replaces them in env.
	carries bool
}

// all returns the supported clients.
func all() []client {
	return []client{claudeCode(), claudeDesktop(), cursor(), vscode(), codex(), gemini(), goose()}
}

func names() []string {
	var out []string
	for _, c := range all() {
		out = append(out, c.name)
	}

	return out
}

func find(name string) (client, error) {
	i := slices.IndexFunc(all(), func(c client) bool { return c.name == name })
	if i < 0 {
		return client{}, fmt.Errorf(
			"--client %q is not known: expected one of %s",
			name,
			strings.Join(names(), ", "),
		)
	}

	return all()[i], nil
}

// braces matches references such as ${NAME} and ${input:NAME}.
var (
	braces  = pattern.Of(`\$\{[^}]+\}`)
	dollars = pattern.Of(`\$(\{[^}]+\}|[A-Za-z_][A-Za-z0-9_]*)`)
)

// program returns the field names that most clients use for a program. aside are fields that
// concern only the client.
func program(aside ...string) words {
	return words{command: "command", args: "args", env: "env", aside: aside}
}

// anywhere returns the field names of most clients that also support addresses and replace
// variables themselves.
func anywhere(aside ...string) words {
	w := program(aside...)
	w.urls = []string{"url"}
	w.headers = "headers"
	w.refers = braces()
	w.carries = true

	return w
}

// claudeCode has three locations: the user's file, a project's part of that file, and a file in the
// project.
func claudeCode() client {
	return client{
		name:  "claude-code",
		title: "Claude Code",
		table: []string{"mcpServers"},
		hold:  "claude-code-stdio",
		file: func(p edits.Place, scope string) string {
			if scope == edits.Project {
				return filepath.Join(p.Project, ".mcp.json")
			}
			if dir := p.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
				return filepath.Join(dir, ".claude.json")
			}

			return p.Home(".claude.json")
		},
		words: anywhere("type"),
	}
}

func claudeDesktop() client {
	return client{
		name:  "claude-desktop",
		title: "Claude Desktop",
		table: []string{"mcpServers"},
		hold:  "claude-desktop",
		file: func(p edits.Place, scope string) string {
			return forUser(scope, p.AppData("Claude", "claude_desktop_config.json"))
		},
		words: program("type"),
	}
}

// cursor uses the format that Claude Desktop introduced, for the user and for a project.
func cursor() client {
	return client{
		name:  "cursor",
		title: "Cursor",
		table: []string{"mcpServers"},
		file: func(p edits.Place, scope string) string {
			return p.Either(scope, ".cursor", "mcp.json")
		},
		words: anywhere("type"),
	}
}

// vscode calls its table servers, and supports inputs that the user enters.
func vscode() client {
	w := anywhere("type", "gallery", "version", "dev")
	w.cwd = "cwd"

	return client{
		name:  "vscode",
		title: "VS Code",
		table: []string{"servers"},
		hold:  "vscode",
		file: func(p edits.Place, scope string) string {
			if scope == edits.Project {
				return filepath.Join(p.Project, ".vscode", "mcp.json")
			}

			return p.AppData("Code", "User", "mcp.json")
		},
		words: w,
	}
}

// codex stores its servers in TOML tables.
func codex() client {
	w := program(
		"required", "startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "tools",
		"default_tools_approval_mode", "supports_parallel_tool_calls",
	)
	w.cwd = "cwd"
	w.urls = []string{"url"}
	w.headers = "http_headers"
	w.envNames = "env_vars"
	w.tokenEnv = "bearer_token_env_var"
	w.headerEnv = "env_http_headers"

	return client{
		name:  "codex",
		title: "Codex",
		form:  settings.TOML,
		table: []string{"mcp_servers"},
		hold:  "codex",
		file: func(p edits.Place, scope string) string {
			if dir := p.Getenv("CODEX_HOME"); dir != "" && scope == edits.User {
				return filepath.Join(dir, "config.toml")
			}

			return p.Either(scope, ".codex", "config.toml")
		},
		words: w,
	}
}

// gemini stores servers in its settings, and distinguishes HTTP from SSE by the field's name.
func gemini() client {
	w := anywhere("type", "trust")
	w.cwd = "cwd"
	w.urls = []string{"httpUrl", "url"}
	w.refers = dollars()

	return client{
		name:  "gemini",
		title: "Gemini CLI",
		table: []string{"mcpServers"},
		file: func(p edits.Place, scope string) string {
			return p.Either(scope, ".gemini", "settings.json")
		},
		words: w,
	}
}

// goose stores its servers as extensions in YAML, and uses other names for the kinds.
func goose() client {
	return client{
		name:  "goose",
		title: "Goose",
		form:  settings.YAML,
		table: []string{"extensions"},
		file: func(p edits.Place, scope string) string {
			if p.OS == "windows" {
				return forUser(
					scope,
					filepath.Join(p.Getenv("APPDATA"), "Block", "goose", "config", "config.yaml"),
				)
			}

			return forUser(scope, p.Config("goose", "config.yaml"))
		},
		words: words{
			command:  "cmd",
			args:     "args",
			env:      "envs",
			urls:     []string{"uri"},
			headers:  "headers",
			envNames: "env_keys",
			aside:    []string{"type", "bundled"},
			refers:   dollars(),
		},
	}
}

// forUser returns a file that a client has only for the user.
func forUser(scope, file string) string {
	if scope == edits.User {
		return file
	}

	return ""
}

// scopes returns the scopes that a client supports.
func (c client) scopes(p edits.Place) []string {
	out := []string{edits.User}
	if c.file(p, edits.Project) != "" {
		out = append(out, edits.Project)
	}
	if c.name == "claude-code" {
		out = append(out, edits.Local)
	}

	return out
}

// spot is one table of servers: that of a client for a scope.
type spot struct {
	client  client
	scope   string
	file    string
	table   []string
	project string // "" for edits.User
	home    string // of the user; "" if it is not known
	getenv  func(name string) string
}

// spotOf returns the spot where a client stores the servers of a scope.
func (c client) spotOf(p edits.Place, scope string) (spot, error) {
	if !slices.Contains(c.scopes(p), scope) {
		return spot{}, fmt.Errorf("--scope %s: %s has no such file: expected %s", scope, c.title,
			strings.Join(c.scopes(p), " or "))
	}
	s := spot{client: c, scope: scope, file: c.file(p, scope), table: c.table, home: p.Getenv("HOME"), getenv: p.Getenv}
	if !filepath.IsAbs(s.file) {
		return spot{}, fmt.Errorf("nobody knows where %s keeps its settings: set HOME", c.title)
	}

	if scope != edits.User {
		s.project = p.Project
	}
	if scope == edits.Local {
		s.table = append([]string{"projects", p.Project}, c.table...)
	}

	return s, nil
}

// folder returns the name of the directory for the gateway's files, below that of assent's
// configurations.
func (s spot) folder() string {
	return edits.Folder(s.client.name, s.scope, s.project)
}

// read opens the file and its table.
func (s spot) read() (*settings.File, *settings.Table, error) {
	f, err := settings.Open(s.file)
	if err != nil {
		return nil, nil, err
	}
	t, err := s.parse(f.Text)

	return f, t, err
}

func (s spot) parse(text []byte) (*settings.Table, error) {
	return settings.Parse(s.client.form, s.file, text, s.table...)
}
