package config

import (
	"fmt"
	"path/filepath"
	"slices"
)

// HookFlags are hooks that ask without a server.
type HookFlags struct {
	Agent      string // file
	Policies   []string
	People     string
	Store      string
	Undeclared string // deny, ask or Native
}

// Native leaves tools that no file names to the product that calls them.
const Native = "native"

// hookStore is the file of the store of hooks unless it is named.
const hookStore = "hook.db"

// Hook is the service of hooks, which asks as that of a gateway for MCP
// does.
func (a Reader) Hook(f HookFlags) (MCP, error) {
	if !slices.Contains([]string{"deny", "ask", Native}, f.Undeclared) {
		return MCP{}, fmt.Errorf("--undeclared %q: expected deny, ask or native", f.Undeclared)
	}
	agent, err := filepath.Abs(f.Agent)
	if err != nil {
		return MCP{}, fmt.Errorf("--agent-file: %w", err)
	}
	if f.Store == "" {
		f.Store = filepath.Join(filepath.Dir(agent), hookStore)
	}
	cfg, err := a.MCP(MCPFlags{
		Agent:    agent,
		Policies: f.Policies,
		People:   f.People,
		Store:    f.Store,
		Alias:    "hook", // no server is started
		Command:  []string{"none"},
	})
	cfg.Undeclared = f.Undeclared

	return cfg, err
}
