package main

import (
	"github.com/assent-dev/assent/cmd/internal/clients"
	"github.com/assent-dev/assent/cmd/internal/config"
)

// mcpClients returns the commands that edit the files of MCP clients.
func (p program) mcpClients() clients.Commands {
	return clients.Commands{Reader: config.Reader{Streams: p.Streams}}
}
