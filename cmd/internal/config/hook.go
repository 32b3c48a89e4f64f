package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/assent-dev/assent/cmd/internal/stores"
	"github.com/assent-dev/assent/cmd/internal/term"
)

// HookFlags are the flags of hooks that work without a server.
type HookFlags struct {
	Agent      string // file
	Policies   []string
	People     string
	Store      string
	Decisions  string // file
	Undeclared string // deny, ask, Native, or "": deny, or as Decisions says
	Strict     bool   // an error in a file of agents or policies blocks every call
}

// Native leaves tools that no file names to the product that calls them.
const Native = "native"

// hookStore is the file of the store of hooks unless it is named.
const hookStore = "hook.db"

// Hook returns the configuration of the service for hooks, which asks people like an MCP gateway's
// service.
func (a Reader) Hook(f HookFlags) (MCP, error) {
	if !slices.Contains([]string{"", "deny", "ask", Native}, f.Undeclared) {
		return MCP{}, fmt.Errorf("--undeclared %q: expected deny, ask or native", f.Undeclared)
	}
	chosen, err := a.hookDecisions(f)
	if err != nil {
		return MCP{}, err
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
		Strict:   f.Strict,
	})
	cfg.Undeclared = f.Undeclared
	cfg.Decisions = f.Decisions
	cfg.Chosen = chosen
	if err == nil {
		err = a.keepPrivate(&cfg)
	}

	return cfg, err
}

// keepPrivate sets the paths of the store's key and of the inbox's token to files in the configuration
// directory of the user, because the agent works in the directory of its file. If an older version
// created the key in the directory of the store, that key stays in use.
func (a Reader) keepPrivate(cfg *MCP) error {
	store, err := filepath.Abs(cfg.Store)
	if err != nil || stores.IsURL(cfg.Store) {
		return err
	}
	if cfg.Private = a.InConfigDir(filepath.Join("hooks", nameOf(store))); cfg.Private == "" {
		return nil
	}
	key := filepath.Join(cfg.Private, filepath.Base(cfg.KeyFile))
	if isFile(cfg.KeyFile) && !isFile(key) {
		return nil
	}
	cfg.KeyFile, cfg.Mark = key, key+".watermark"
	cfg.Key, cfg.Watermark = key, cfg.Mark

	return nil
}

func isFile(name string) bool {
	_, err := os.Stat(name)

	return err == nil
}

// hookDecisions reads the decision configuration. It returns an error if a flag sets what the
// configuration sets.
func (a Reader) hookDecisions(f HookFlags) (chosen *term.Decisions, err error) {
	err = a.decisions(f.Decisions, &chosen, map[string]bool{
		"--policies":   len(f.Policies) > 0,
		"--undeclared": f.Undeclared == "deny" || f.Undeclared == "ask",
	})

	return chosen, err
}
