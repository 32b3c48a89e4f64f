package hook

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/resolve"
)

// provenance describes the MCP server of a tool according to Claude Code: its name in the
// configuration, and the location of that configuration.
type provenance struct{ name, source string }

// String returns the name and the location for people. It is empty if the name is unknown.
func (p provenance) String() string {
	if p.name == "" || p.source == "" {
		return p.name
	}
	return p.name + ", configured in: " + p.source
}

// ownSources are the locations of servers that the user, the administrator or the program around
// Claude Code configured. Servers that are configured in a repository, come with a plugin or have
// an unknown location are not among them.
var ownSources = []string{"user", "local", "managed", "enterprise", "claudeai", "sdk", "dynamic"}

// tool reads what a name calls: mcp__SERVER__TOOL a tool of an MCP
// server, anything else a tool of the product.
func (e *event) tool(in jsonmsg.Fields, field string) {
	name := in.NonEmpty(field)
	var from provenance
	if in.Has("mcp_server") {
		given := in.Object("mcp_server")
		from = provenance{given.NonEmpty("name"), given.Text("source")}
	}
	server, tool, known := serverOf(name, from)
	if !known {
		in.Expect(field, "the name of a tool of the server that mcp_server names")
	}
	e.from = from
	e.call.Kind, e.call.Tool = resolve.Tool, tool
	if server != "" {
		e.call.Kind, e.call.Server = resolve.MCPTool, server
	}
}

// serverOf takes the name of a tool apart. Without provenance the alias
// ends at the first two underscores. With it the server is the one that
// is configured, so that a server "fs__evil" is never "fs". A name that
// Claude Code rewrites to letters, digits and _- ("fs. x" to "fs__x") may
// be rewritten to that of another server: only servers of ownSources are
// known by it. known is false if the name and the server don't fit.
func serverOf(name string, from provenance) (server, tool string, known bool) {
	rest, isMCP := strings.CutPrefix(name, "mcp__")
	if from.name == "" {
		server, tool, found := strings.Cut(rest, "__")
		if isMCP && found && server != "" && tool != "" {
			return server, tool, true
		}
		return "", name, true
	}
	for _, alias := range rewritten(from.name) {
		tool, found := strings.CutPrefix(rest, alias+"__")
		switch {
		case !isMCP || !found || tool == "" || alias == "":
		case alias == from.name || slices.Contains(ownSources, from.source):
			return alias, tool, true
		default:
			return from.name, tool, true
		}
	}
	return "", name, false
}

var (
	notInNames  = pattern.Of(`[^A-Za-z0-9_-]`)
	underscores = pattern.Of(`_+`)
)

// rewritten are the forms that a server's name may have in those of its
// tools. Those of claude.ai have no two underscores in a row.
func rewritten(name string) []string {
	alias := notInNames().ReplaceAllString(name, "_")
	if strings.HasPrefix(name, "claude.ai ") {
		return []string{strings.Trim(underscores().ReplaceAllString(alias, "_"), "_"), alias}
	}
	return []string{alias}
}
