package mcptest

import (
	"context"
	"sync"

	"github.com/assent-dev/assent/mcp/catalog"
)

// Clerk is an agent that may list and read files, asks people about writing, and may not format.
const Clerk = clerkHead + `    - alias: files
      server_ref: files
      description: Files.
      allowed_tools:
        - read_file
        - {name: write_file, approval: true}
` + clerkFoot

const clerkHead = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Keeps files.}
interface: {input: {type: object}, output: {type: object}}
action_space:
  mcp_servers:
`

const clerkFoot = `execution_policy: {id: agf.react, config: {instructions: Keep files., model: any}}
`

// ClerkOf returns the file of the same agent with other entries of
// mcp_servers, each line with its indentation of four.
func ClerkOf(servers string) string { return clerkHead + servers + clerkFoot }

// Pins accepts all tools when they are first seen, and remembers them.
type Pins struct {
	mu  sync.Mutex
	all catalog.Pins
}

// Pins returns the accepted definitions.
func (p *Pins) Pins(context.Context) (*catalog.Pins, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.Clone(), nil
}

// Accept stores the accepted definitions.
func (p *Pins) Accept(_ context.Context, j *catalog.Judgement) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	j.Keep(&p.all)
	return nil
}

// Add accepts a tool of a server, as its operators do.
func (p *Pins) Add(alias string, of catalog.Server, pin catalog.Pin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all.Add(alias, of, []catalog.Pin{pin}, catalog.Instead)
}

// Of returns the pin of a server's tool. It panics if there is none.
func (p *Pins) Of(alias, tool string) catalog.Pin {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.Of(alias).Of(tool)[0]
}
