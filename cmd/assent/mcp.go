package main

import (
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/cmd/internal/term"
)

// newMCP returns the command assent mcp with its subcommands.
func (p program) newMCP(operator operate.Commands) *cobra.Command {
	return term.Parent(
		"mcp COMMAND",
		"MCP servers: put their tools behind approvals, and look after what was accepted of them",
		"mcp stands between MCP clients and MCP servers (docs/contracts/mcp.md).",
		operator.MCPGateway(),
		operator.MCPInbox(),
		p.mcpSignIn(),
		p.mcpSignOut(),
		p.mcpPins(),
		p.mcpPin(),
		p.mcpDiff(),
		p.mcpClients().Install(),
		p.mcpClients().Uninstall(),
		p.mcpClients().Status(),
		p.mcpClients().Print(),
	)
}
