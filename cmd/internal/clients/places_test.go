package clients

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/edits"
)

// TestPlaces: the paths of the clients' files.
func TestPlaces(t *testing.T) {
	env := map[string]string{
		"HOME":        "/home/ann",
		"USERPROFILE": "/home/ann",
		"APPDATA":     "/home/ann/AppData/Roaming",
	}
	for _, c := range []struct{ os, client, scope, want string }{
		{"linux", "claude-code", edits.User, "/home/ann/.claude.json"},
		{"linux", "claude-code", edits.Project, "/project/.mcp.json"},
		{"linux", "claude-desktop", edits.User, "/home/ann/.config/Claude/claude_desktop_config.json"},
		{"darwin", "claude-desktop", edits.User, "/home/ann/Library/Application Support/Claude/claude_desktop_config.json"},
		{"windows", "claude-desktop", edits.User, "/home/ann/AppData/Roaming/Claude/claude_desktop_config.json"},
		{"windows", "cursor", edits.User, "/home/ann/.cursor/mcp.json"},
		{"linux", "cursor", edits.Project, "/project/.cursor/mcp.json"},
		{"linux", "vscode", edits.User, "/home/ann/.config/Code/User/mcp.json"},
		{"darwin", "vscode", edits.User, "/home/ann/Library/Application Support/Code/User/mcp.json"},
		{"windows", "vscode", edits.User, "/home/ann/AppData/Roaming/Code/User/mcp.json"},
		{"linux", "vscode", edits.Project, "/project/.vscode/mcp.json"},
		{"darwin", "codex", edits.User, "/home/ann/.codex/config.toml"},
		{"linux", "codex", edits.Project, "/project/.codex/config.toml"},
		{"linux", "gemini", edits.User, "/home/ann/.gemini/settings.json"},
		{"linux", "gemini", edits.Project, "/project/.gemini/settings.json"},
		{"darwin", "goose", edits.User, "/home/ann/.config/goose/config.yaml"},
		{"windows", "goose", edits.User, "/home/ann/AppData/Roaming/Block/goose/config/config.yaml"},
	} {
		p := edits.Place{OS: c.os, Getenv: func(name string) string { return env[name] }, Project: "/project"}
		s, err := mustFind(t, c.client).spotOf(p, c.scope)
		if err != nil || s.file != c.want {
			t.Errorf("%s, %s, %s: %s, %v, want %s", c.os, c.client, c.scope, s.file, err, c.want)
		}
	}
}

// TestPrintShowsArguments: each argument of the command is shown separately, and no secret is
// shown.
func TestPrintShowsArguments(t *testing.T) {
	w := newWorld(t)
	w.write(w.file("gemini"), samples()["gemini"])
	w.wants(0, "installed", "install", "--client", "gemini", "--yes")
	text := w.wants(0, `argv     "npx" "-y" "tracker" "$(x); rm" ""`, "print", "--config", w.gateway("gemini"))
	for _, want := range []string{
		"env      HOME HOST=$ASSENT_ISSUE_TRACKER_HOST LEVEL PATH TOKEN\n",
		"url      https://web.example/mcp\n",
		"header   X-A: $ASSENT_WEB_X_A\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}

	w.wants(0, `"argv": [`, "print", "--json", "--config", w.gateway("gemini"))
	w.write(w.gateway("gemini"), "upstreem: 1\n")
	w.wants(2, `no field is called "upstreem"`, "print", "--config", w.gateway("gemini"))
	w.wants(1, "the gateway can't start", "status", "--client", "gemini")
}

// TestAdmitted: Gemini CLI may have a list of the servers that it
// starts.
func TestAdmitted(t *testing.T) {
	const note = "mcp.allowed does not name assent"
	for list, want := range map[string]bool{
		"":                                false,
		`"mcp": {"allowed": ["a"]},`:      true,
		`"mcp": {"allowed": ["assent"]},`: false,
	} {
		w := newWorld(t)
		w.write(w.file("gemini"), "{"+list+` "mcpServers": {"a": {"command": "x"}}}`)
		text := w.wants(0, "installed", "install", "--client", "gemini", "--yes")
		if strings.Contains(text, note) != want {
			t.Errorf("%s: %s", list, text)
		}
	}
}

// TestQueriesHidden: the queries of addresses may be secret, even several on one line.
func TestQueriesHidden(t *testing.T) {
	w := newWorld(t)
	w.write(w.file("cursor"), `{"mcpServers": {"a": {"url": "https://a.example/mcp?key=hushhush"}, `+
		`"b": {"url": "https://b.example/mcp?key=hushhush"}}}`)
	text := w.wants(0, "https://b.example/mcp?***", "install", "--client", "cursor", "--yes")
	if !strings.Contains(text, "https://a.example/mcp?***") {
		t.Error(text)
	}
	w.wants(0, "url      https://a.example/mcp?***", "print", "--config", w.gateway("cursor"))
}

// TestDeclaredAgain: a server that was declared again meanwhile is kept as it is now, and the
// others are restored.
func TestDeclaredAgain(t *testing.T) {
	w := newWorld(t)
	w.write(w.file("cursor"), `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}`)
	w.wants(0, "installed", "install", "--client", "cursor", "--yes")
	more := strings.Replace(w.read(w.file("cursor")), `{"mcpServers": {`, `{"mcpServers": {"a": {"command": "new"}, `, 1)
	w.write(w.file("cursor"), more)
	w.wants(0, "a is declared again", "uninstall", "--client", "cursor", "--yes")
	if got := w.read(w.file("cursor")); got != `{"mcpServers": {"a": {"command": "new"}, "b": {"command": "y"}}}` {
		t.Error(got)
	}
}

// TestEntryGone: the servers are restored even if the gateway's entry was removed.
func TestEntryGone(t *testing.T) {
	w := newWorld(t)
	w.write(w.file("cursor"), `{"mcpServers": {"a": {"command": "x"}}}`)
	w.wants(0, "installed", "install", "--client", "cursor", "--yes")
	w.write(w.file("cursor"), `{"mcpServers": {"b": {"command": "y"}}}`)
	w.wants(0, "the servers put back", "uninstall", "--client", "cursor", "--yes")
	if got := w.read(w.file("cursor")); got != `{"mcpServers": {"b": {"command": "y"}, "a": {"command": "x"}}}` {
		t.Error(got)
	}
}
