package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/stores"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/mcp/config"
	"github.com/assent-dev/assent/schema"
)

// MCP is the configuration of an MCP gateway, from its file or from flags.
type MCP struct {
	config.Gateway
	Chosen  *term.Decisions // by Decisions; nil: there are none
	Name    string          // of its records: another file, or another program, is another gateway
	File    string          // that it was read from; "": flags
	KeyFile string
	Mark    string // the file of the watermark
	Private string // directory of what only this user may read; empty for that of the key
	LogText bool
	Strict  bool // as Serve.Strict
}

// MCPFlags are a gateway without a file.
type MCPFlags struct {
	File     string
	Agent    string
	Policies []string
	People   string
	Store    string
	Alias    string
	Command  []string
	Strict   bool
}

// MCP reads a gateway's file, or builds a configuration from the flags.
func (a Reader) MCP(f MCPFlags) (cfg MCP, err error) {
	switch {
	case f.File != "" && f.flags():
		return cfg, errors.New("--config says everything: expected no --agent, --policies, --people, --store, --alias " +
			"and no command beside it")
	case f.File != "":
		cfg, err = a.mcpFile(f.File)
	case f.Agent == "":
		return cfg, errors.New("expected --config FILE, or --agent FILE and a command behind --")
	default:
		cfg, err = a.mcpProgram(f)
	}

	if err != nil {
		return cfg, err
	}

	cfg.LogText = a.ErrTerminal
	cfg.Strict = f.Strict
	if err := a.decisions(cfg.Decisions, &cfg.Chosen, nil); err != nil {
		return cfg, err
	}
	if cfg.Store, err = a.whereStore(cfg.Store, cfg.StoreFile, true); err != nil {
		return cfg, err
	}
	where, err := cfg.Location().WithDefaults()
	cfg.KeyFile, cfg.Mark = where.KeyFile, where.Watermark
	return cfg, err
}

// TakeCommand stores the arguments after -- as the command of the MCP server.
func (f *MCPFlags) TakeCommand(cmd *cobra.Command, args []string) error {
	if cmd.ArgsLenAtDash() != 0 && len(args) > 0 {
		return errors.New("expected the command of the MCP server behind --")
	}
	f.Command = args
	return nil
}

// MCPPlace returns the configuration for commands that only use the data of a gateway and start no
// server. If the gateway has no file, they need no COMMAND.
func (a Reader) MCPPlace(f MCPFlags) (MCP, error) {
	if f.File == "" {
		f.Alias, f.Command = "none", []string{"none"}
	}
	return a.MCP(f)
}

// Pins returns the path of the file with the gateway's pins. Gateways with different stores in one
// directory have separate files.
func (c *MCP) Pins() string { return c.Beside(c.storeName() + ".pins.json") }

// SignIn returns the path of the file with the tokens of a person's sign-in to a server.
func (c *MCP) SignIn(alias string) string {
	return filepath.Join(c.Beside(c.storeName()+".sign-ins"), alias, "token.json")
}

// plainWord matches words that a shell reads as they are.
var plainWord = pattern.Of(`^[A-Za-z0-9_./:@%+=-]+$`)

// SignInCommand returns the command by which a person signs in to a server of a gateway, whose
// configuration is in a file.
func SignInCommand(alias, file string) string {
	if !plainWord().MatchString(file) {
		file = "'" + strings.ReplaceAll(file, "'", `'\''`) + "'"
	}
	return "assent mcp sign-in " + alias + " --config " + file
}

// storeName returns the name of the store without its extension.
func (c *MCP) storeName() string {
	if stores.IsURL(c.Store) {
		return "mcp"
	}
	base := filepath.Base(c.Store)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

func (f MCPFlags) flags() bool {
	return f.Agent != "" || len(f.Policies) > 0 || f.People+f.Store+f.Alias != "" || len(f.Command) > 0
}

// mcpFile reads a file. It prints findings to the error stream.
func (a Reader) mcpFile(file string) (cfg MCP, err error) {
	src, err := term.ReadFile(file, nil)
	if err != nil {
		return cfg, err
	}
	g, findings := config.Read(file, src)
	if len(findings) > 0 {
		term.PrintFindings(a.Err, findings, map[string][]byte{file: src})
		return cfg, fmt.Errorf("the configuration %s can't be used", file)
	}
	whole, err := filepath.Abs(file)
	cfg.Gateway, cfg.Name, cfg.File = g, nameOf(whole), whole
	return cfg, err
}

// mcpProgram returns a gateway of one program.
func (a Reader) mcpProgram(f MCPFlags) (cfg MCP, err error) {
	if f.Alias == "" {
		if f.Alias, err = a.onlyAlias(f.Agent); err != nil {
			return cfg, err
		}
	}
	if len(f.Command) == 0 {
		return cfg, errors.New("expected the command of the MCP server behind --")
	}
	if !config.IsAlias(f.Alias) {
		return cfg, fmt.Errorf("--alias %q: expected letters, digits and single underscores", f.Alias)
	}
	agent, err := filepath.Abs(f.Agent)
	if err != nil {
		return cfg, err
	}
	cfg.Gateway = config.Program(agent, f.Alias, f.Command)
	cfg.Policies, cfg.People = f.Policies, f.People
	if f.Store != "" {
		cfg.Store = f.Store
	}
	cfg.Name = nameOf(append([]string{agent, f.Alias}, f.Command...)...)
	return cfg, nil
}

// onlyAlias returns the alias of the one MCP server that an agent declares.
func (a Reader) onlyAlias(file string) (string, error) {
	src, err := term.ReadFile(file, nil)
	if err != nil {
		return "", fmt.Errorf("the agent: %w", err)
	}
	agent, findings := schema.Parse(file, src)
	if agent == nil {
		term.PrintFindings(a.Err, yamldoc.Stopping(findings), map[string][]byte{file: src})
		return "", fmt.Errorf("the agent %s can't be used", file)
	}
	var names []string
	for _, s := range agent.ActionSpace.MCPServers {
		names = append(names, s.Alias)
	}
	if len(names) != 1 {
		return "", fmt.Errorf("--alias: %s declares %d MCP servers (%s): say which one COMMAND starts",
			file, len(names), strings.Join(names, ", "))
	}
	return names[0], nil
}

// nameOf returns a short name for what identifies a gateway.
func nameOf(parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:6])
}

// Location returns the store that the gateway opens.
func (c *MCP) Location() Store {
	return Store{Where: c.Store, KeyFile: c.Key, Watermark: c.Watermark, Create: true}
}

// Beside returns the path of a file in the directory of the key.
func (c *MCP) Beside(name string) string { return filepath.Join(filepath.Dir(c.KeyFile), name) }

// TokenFile returns the path of the token with which the user of this machine answers. older is the
// path at which older versions wrote it, or empty if that is the same.
func (c *MCP) TokenFile() (file, older string) {
	const name = "mcp.token"
	if c.Private == "" {
		return c.Beside(name), ""
	}

	return filepath.Join(c.Private, name), filepath.Join(filepath.Dir(c.Store), name)
}

// Asking returns the configuration of the service inside the gateway, which asks people. It listens
// only on this machine. With person, or without people, there is a sign-in link.
func (c *MCP) Asking(person string) Serve {
	if person == "" && c.People == "" {
		person = DevPerson
	}
	cfg := Serve{
		Listen:        "127.0.0.1:0",
		Store:         c.Store,
		KeyFile:       c.KeyFile,
		Watermark:     c.Mark,
		OnBrokenFiles: c.OnBrokenFiles,
		LogLevel:      "info",
		Drain:         c.Grace,
		Dev:           person != "",
		DevPerson:     person,
		Personal:      true,
		LogText:       c.LogText,
		Strict:        c.Strict,
		Tenants: []Tenant{{
			Name:          DefaultTenant,
			Agents:        []string{c.Agent},
			Policies:      c.Policies,
			People:        c.People,
			Decisions:     c.Decisions,
			Chosen:        c.Chosen,
			AskUndeclared: c.Undeclared == "ask",
			PermitAge:     c.PermitAge,
		}},
	}
	if c.Chosen != nil {
		t := &cfg.Tenants[0]
		t.Policies = c.Chosen.PolicyDirs()
		t.TrustedServers = c.Chosen.TrustedServers
		t.CaseSensitive = c.Chosen.CaseSensitive
	}

	return cfg
}

// CheckTogether refuses fields that don't go with others.
func (c *MCP) CheckTogether() error {
	if c.Chosen != nil && c.Undeclared == "ask" {
		return errors.New("undeclared stands beside decisions: move it into that file")
	}
	for _, caller := range c.Callers {
		switch {
		case c.Server != "" && caller.Person != "":
			return fmt.Errorf("person of the caller %s can't be told to the server: expected a server_token_file "+
				"that was made there for that person", caller.Name)
		case c.Listen == "" && caller.TokenFile != "":
			return fmt.Errorf("token_file of the caller %s: clients on the standard streams send no token", caller.Name)
		}
	}

	return nil
}
