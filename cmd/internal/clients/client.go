// Package clients puts the MCP servers of well-known MCP clients behind
// the gateway: it knows where each client keeps them and in what words,
// moves them into a configuration of the gateway, and undoes that.
package clients

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/settings"
)

// entryName is the name of the gateway's entry in a client's file.
const entryName = "assent"

// client is a program that speaks MCP with servers of its user.
type client struct {
	name  string
	title string
	form  settings.Form
	table []string // where its servers stand in the file
	// file is where it keeps them, "" where it has no such scope.
	file  func(p place, scope string) string
	words words
	hold  string // of the gateway's configuration: how long its calls may wait
}

// words are the names of fields of a server's entry; "" and nil where
// the client has no such field.
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
	// refers finds what the client fills in itself, such as ${HOME}.
	refers *regexp.Regexp
	// carries reports whether it fills that in in env, too.
	carries bool
}

// place is where a command runs.
type place struct {
	os      string // as runtime.GOOS
	getenv  func(string) string
	project string // absolute
}

// The scopes of a file.
const (
	scopeUser    = "user"    // all that a user does
	scopeProject = "project" // a directory, for whoever works there
	scopeLocal   = "local"   // a directory, for this user; Claude Code alone
)

// all are the clients.
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

// braces are references such as ${NAME} and ${input:NAME}.
var (
	braces  = regexp.MustCompile(`\$\{[^}]+\}`)
	dollars = regexp.MustCompile(`\$(\{[^}]+\}|[A-Za-z_][A-Za-z0-9_]*)`)
)

// claudeCode has three places: the user's file, a project's part of
// that file, and a file in the project.
func claudeCode() client {
	return client{
		name:  "claude-code",
		title: "Claude Code",
		table: []string{"mcpServers"},
		hold:  "claude-code-stdio",
		file: func(p place, scope string) string {
			if scope == scopeProject {
				return filepath.Join(p.project, ".mcp.json")
			}
			if dir := p.getenv("CLAUDE_CONFIG_DIR"); dir != "" {
				return filepath.Join(dir, ".claude.json")
			}

			return p.home(".claude.json")
		},
		words: words{
			command: "command",
			args:    "args",
			env:     "env",
			urls:    []string{"url"},
			headers: "headers",
			aside:   []string{"type", "timeout"},
			refers:  braces,
			carries: true,
		},
	}
}

func claudeDesktop() client {
	return client{
		name:  "claude-desktop",
		title: "Claude Desktop",
		table: []string{"mcpServers"},
		hold:  "claude-desktop",
		file: func(p place, scope string) string {
			return p.forUser(scope, p.appData("Claude", "claude_desktop_config.json"))
		},
		words: words{
			command: "command",
			args:    "args",
			env:     "env",
			aside:   []string{"type"},
		},
	}
}

// cursor has the table that Claude Desktop began with, for the user and
// for a project.
func cursor() client {
	return client{
		name:  "cursor",
		title: "Cursor",
		table: []string{"mcpServers"},
		file: func(p place, scope string) string {
			return p.either(scope, ".cursor", "mcp.json")
		},
		words: words{
			command: "command",
			args:    "args",
			env:     "env",
			urls:    []string{"url"},
			headers: "headers",
			aside:   []string{"type", "disabled"},
			refers:  braces,
			carries: true,
		},
	}
}

// vscode calls its table servers, and lets the user fill in inputs.
func vscode() client {
	return client{
		name:  "vscode",
		title: "VS Code",
		table: []string{"servers"},
		hold:  "vscode",
		file: func(p place, scope string) string {
			if scope == scopeProject {
				return filepath.Join(p.project, ".vscode", "mcp.json")
			}

			return p.appData("Code", "User", "mcp.json")
		},
		words: words{
			command: "command",
			args:    "args",
			env:     "env",
			cwd:     "cwd",
			urls:    []string{"url"},
			headers: "headers",
			aside:   []string{"type", "gallery", "version", "dev"},
			refers:  braces,
			carries: true,
		},
	}
}

// codex keeps its servers in tables of TOML.
func codex() client {
	return client{
		name:  "codex",
		title: "Codex",
		form:  settings.TOML,
		table: []string{"mcp_servers"},
		hold:  "codex",
		file: func(p place, scope string) string {
			if dir := p.getenv("CODEX_HOME"); dir != "" && scope == scopeUser {
				return filepath.Join(dir, "config.toml")
			}

			return p.either(scope, ".codex", "config.toml")
		},
		words: words{
			command:   "command",
			args:      "args",
			env:       "env",
			cwd:       "cwd",
			urls:      []string{"url"},
			headers:   "http_headers",
			envNames:  "env_vars",
			tokenEnv:  "bearer_token_env_var",
			headerEnv: "env_http_headers",
			aside: []string{
				"enabled",
				"required",
				"startup_timeout_sec",
				"startup_timeout_ms",
				"tool_timeout_sec",
			},
		},
	}
}

// gemini keeps servers among its settings, and tells HTTP from SSE by
// the field's name.
func gemini() client {
	return client{
		name:  "gemini",
		title: "Gemini CLI",
		table: []string{"mcpServers"},
		file: func(p place, scope string) string {
			return p.either(scope, ".gemini", "settings.json")
		},
		words: words{
			command: "command",
			args:    "args",
			env:     "env",
			cwd:     "cwd",
			urls:    []string{"httpUrl", "url"},
			headers: "headers",
			aside:   []string{"type", "timeout", "trust", "description"},
			refers:  dollars,
			carries: true,
		},
	}
}

// goose keeps its servers as extensions in YAML, and calls the kinds by
// other names.
func goose() client {
	return client{
		name:  "goose",
		title: "Goose",
		form:  settings.YAML,
		table: []string{"extensions"},
		file: func(p place, scope string) string {
			if p.os == "windows" {
				return p.forUser(
					scope,
					filepath.Join(
						p.getenv("APPDATA"),
						"Block",
						"goose",
						"config",
						"config.yaml",
					),
				)
			}

			return p.forUser(scope, p.config("goose", "config.yaml"))
		},
		words: words{
			command:  "cmd",
			args:     "args",
			env:      "envs",
			urls:     []string{"uri"},
			headers:  "headers",
			envNames: "env_keys",
			aside: []string{
				"type",
				"enabled",
				"name",
				"display_name",
				"description",
				"timeout",
				"bundled",
			},
			refers: dollars,
		},
	}
}

// home is a file in the user's home directory.
func (p place) home(parts ...string) string {
	dir := p.getenv("HOME")
	if p.os == "windows" {
		dir = p.getenv("USERPROFILE")
	}

	return filepath.Join(append([]string{dir}, parts...)...)
}

// config is a file in the directory of configurations on Unix.
func (p place) config(parts ...string) string {
	dir := p.getenv("XDG_CONFIG_HOME")
	if dir == "" {
		dir = p.home(".config")
	}

	return filepath.Join(append([]string{dir}, parts...)...)
}

// appData is a file where programs with windows keep theirs.
func (p place) appData(parts ...string) string {
	switch p.os {
	case "windows":
		return filepath.Join(append([]string{p.getenv("APPDATA")}, parts...)...)
	case "darwin":
		return p.home(append([]string{"Library", "Application Support"}, parts...)...)
	}

	return p.config(parts...)
}

func (p place) forUser(scope, file string) string {
	if scope == scopeUser {
		return file
	}

	return ""
}

// either is a file in the home directory or in the project, in a
// directory of the same name.
func (p place) either(scope string, parts ...string) string {
	if scope == scopeProject {
		return filepath.Join(append([]string{p.project}, parts...)...)
	}

	return p.home(parts...)
}

// scopes are those that a client has.
func (c client) scopes(p place) []string {
	out := []string{scopeUser}
	if c.file(p, scopeProject) != "" {
		out = append(out, scopeProject)
	}
	if c.name == "claude-code" {
		out = append(out, scopeLocal)
	}

	return out
}

// spot is one table of servers: of a client, for a scope.
type spot struct {
	client  client
	scope   string
	file    string
	table   []string
	project string // "" for scopeUser
}

// spotOf is where a client keeps the servers of a scope.
func (c client) spotOf(p place, scope string) (spot, error) {
	if !slices.Contains(c.scopes(p), scope) {
		return spot{}, fmt.Errorf("--scope %s: %s has no such file: expected %s", scope, c.title,
			strings.Join(c.scopes(p), " or "))
	}
	s := spot{
		client: c,
		scope:  scope,
		file:   c.file(p, scope),
		table:  c.table,
	}
	if !filepath.IsAbs(s.file) {
		return spot{}, fmt.Errorf(
			"nobody knows where %s keeps its settings: set HOME",
			c.title,
		)
	}

	if scope != scopeUser {
		s.project = p.project
	}
	if scope == scopeLocal {
		s.table = append([]string{"projects", p.project}, c.table...)
	}

	return s, nil
}

// folder is the name of the directory for what the gateway needs, in
// that of assent's configurations.
func (s spot) folder() string {
	if s.scope == scopeUser {
		return s.client.name
	}
	digest := sha256.Sum256([]byte(s.project))

	return s.client.name + "-" + s.scope + "-" + hex.EncodeToString(digest[:4])
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
