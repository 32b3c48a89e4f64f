//go:build peers

package mcp_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/upstream"
)

// allAgent lets everything run that a server offers.
const allAgent = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Lets everything run.}
interface: {input: {type: object}, output: {type: object}}
action_space:
  mcp_servers: [{alias: files, server_ref: files, description: All of it.}]
execution_policy: {id: agf.react, config: {instructions: Anything., model: any}}
`

// connect starts a server of others behind the gateway's own client.
func connect(t *testing.T, command ...string) *upstream.Server {
	t.Helper()
	return connectAs(t, mcp.Questions{}, upstream.Auto, command...)
}

// connectAs starts a server that may ask something.
func connectAs(t *testing.T, asks mcp.Questions, era string, command ...string) *upstream.Server {
	t.Helper()
	s := must.Get(upstream.New(upstream.Config{
		Alias:        "files",
		Command:      command,
		Era:          era,
		Env:          os.Environ(),
		Dir:          installed(t),
		Grace:        time.Second,
		Capabilities: asks.Declared(),
		Log:          slog.New(slog.NewTextHandler(t.Output(), nil)),
	}))(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return s
}
