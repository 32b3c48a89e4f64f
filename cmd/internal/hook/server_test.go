package hook

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// TestServersOfTools reads the table that the adapters for Python and
// TypeScript are held to as well.
func TestServersOfTools(t *testing.T) {
	text, err := os.ReadFile("testdata/servers.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ Tool, Name, Source, Server, Own string }
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) == 0 {
		t.Fatal(err)
	}
	for _, row := range rows {
		server, own, known := serverOf(row.Tool, provenance{row.Name, row.Source})
		if known != (row.Own != "") || known && (server != row.Server || own != row.Own) {
			t.Errorf("%+v: got %q of %q, known: %t", row, own, server, known)
		}
	}
}

// TestApproversSeeTheServer: its name and where it is configured, as Claude Code says.
func TestApproversSeeTheServer(t *testing.T) {
	const head = `{"session_id":"s","cwd":"/w","hook_event_name":"PreToolUse","tool_input":{},"tool_use_id":"1","tool_name":`
	at := slices.IndexFunc(products(), func(p *product) bool { return p.name == "claude-code" })
	for rest, want := range map[string]string{
		`"mcp__fs__read","mcp_server":{"name":"fs","source":"project"}}`: "fs, configured in: project",
		`"mcp__fs__read","mcp_server":{"name":"fs"}}`:                    "fs",
		`"mcp__fs__read"}`: "",
		`"Bash"}`:          "",
	} {
		e, err := readEvent(products()[at], []byte(head+rest))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, item := range (&run{event: e}).says() {
			if item.Label == "MCP server" {
				got = item.Text
			}
		}
		if got != want {
			t.Errorf("%s: %q", rest, got)
		}
	}
}
