package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/catalog"
	mcpconfig "github.com/assent-dev/assent/mcp/config"
	"github.com/assent-dev/assent/mcp/upstream"
)

// mcpUpstream returns a server behind a gateway and the connection to it.
func mcpUpstream(
	u mcpconfig.Upstream, own mcpOwn, log *slog.Logger,
) (out mcp.Server, connection *upstream.Server, err error) {
	filled, err := u.Filled(os.Getenv)
	if err != nil {
		return out, nil, err
	}
	to, err := connectionOf(filled)
	if err != nil {
		return out, nil, err
	}
	to.Alias, to.Era = u.Alias, u.Era
	to.Version, to.Grace = term.Version, own.grace
	to.Log = log
	asks := mcp.Questions{
		Elicitation:  u.Elicitation != "off",
		Sampling:     u.Sampling == "relay",
		Roots:        u.Roots,
		ClientRoots:  u.ClientRoots == "relay",
		Instructions: u.Instructions == "relay",
	}
	to.Capabilities, to.Ask = asks.Declared(), asks.Answer
	command, err := withSignIn(&to, filled, own)
	if err != nil {
		return out, nil, err
	}
	if connection, err = upstream.New(to); err != nil {
		return out, nil, err
	}
	out = mcp.Server{
		Alias:     u.Alias,
		Upstream:  connection,
		PassMeta:  passMeta(u.PassMeta),
		Questions: asks,
		Include:   u.IncludeTools,
		Exclude:   u.ExcludeTools,
		SignIn:    command,
		Judging: catalog.Settings{
			First:    catalog.First(u.Pins),
			OnChange: catalog.OnChange(u.OnChange),
			OnText:   catalog.OnText(u.OnText),
			Volatile: u.VolatileMeta,
		},
	}
	out.Identity, err = identityOf(u)
	if err == nil {
		err = out.Judging.Check()
	}
	return out, connection, err
}

// connectionOf returns how a server is reached: as a program, or at its address.
func connectionOf(u mcpconfig.Upstream) (upstream.Config, error) {
	if u.URL != "" {
		return addressOf(u)
	}
	env, err := environment(u, os.Getenv)
	return upstream.Config{
		Command: append([]string{u.Command}, u.Args...),
		Env:     pairs(env),
		Dir:     u.Cwd,
	}, err
}

// addressOf returns how a server is reached by HTTP.
func addressOf(u mcpconfig.Upstream) (to upstream.Config, err error) {
	to.URL = u.URL
	if to.Networks, err = prefixes(u.Networks); err != nil {
		return to, err
	}
	if to.Token, err = tokenOf(u); err != nil {
		return to, err
	}
	to.Headers, err = headersOf(u)
	return to, err
}

// headersOf returns the configured headers for a server's requests.
func headersOf(u mcpconfig.Upstream) (map[string]string, error) {
	out := map[string]string{}
	for name, file := range u.HeaderFiles {
		value, err := readSecret(file)
		if err != nil {
			return nil, fmt.Errorf("header_files: %s: %w", name, err)
		}
		out[name] = value
	}

	for name, from := range u.HeaderEnv {
		value, err := variable("header_env", from)
		if err != nil {
			return nil, err
		}
		out[name] = value
	}

	return out, nil
}

// variable returns the value of an environment variable of the gateway that a field names.
func variable(field, name string) (string, error) {
	if v := os.Getenv(name); v != "" {
		return v, nil
	}
	return "", fmt.Errorf("%s: the variable %s is not set for the gateway", field, name)
}

// passMeta converts the word all to the form of package mcp.
func passMeta(keys []string) []string {
	if slices.Contains(keys, "all") {
		return []string{"*"}
	}
	return keys
}

// environment returns the complete environment of a program.
func environment(u mcpconfig.Upstream, getenv func(string) string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range mcpconfig.Passed() {
		if v := getenv(name); v != "" {
			out[name] = v
		}
	}
	given, err := givenVariables(u)
	if err != nil {
		return nil, err
	}
	maps.Copy(out, given)
	for name, from := range u.EnvFrom {
		if out[name] = getenv(from); out[name] == "" {
			return nil, fmt.Errorf("env_from: %s: the variable %s is not set for the gateway", name, from)
		}
	}

	return out, nil
}

// givenVariables returns the variables whose values the configuration sets.
func givenVariables(u mcpconfig.Upstream) (map[string]string, error) {
	out := map[string]string{}
	if u.DotenvFile != "" {
		more, err := mcpconfig.ReadDotenv(u.DotenvFile)
		if err != nil {
			return nil, fmt.Errorf("dotenv_file: %w", err)
		}
		maps.Copy(out, more)
	}
	if u.EnvFile != "" {
		more, err := mcpconfig.ReadEnv(u.EnvFile)
		if err != nil {
			return nil, fmt.Errorf("env_file: %w", err)
		}
		maps.Copy(out, more)
	}

	maps.Copy(out, u.Env)
	return out, nil
}

func pairs(env map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// identityOf returns the identity of a server for the pins. Values of variables are not part of it.
func identityOf(u mcpconfig.Upstream) (catalog.Server, error) {
	if u.URL != "" {
		return catalog.AtURL(u.URL)
	}
	given, err := givenVariables(u)
	if err != nil {
		return catalog.Server{}, err
	}
	names := append(slices.Collect(maps.Keys(given)), u.Variables()...)
	slices.Sort(names)
	out := catalog.Server{
		Command: u.Command,
		Args:    u.Args,
		Dir:     u.Cwd,
		Env:     slices.Compact(names),
	}
	if u.PinBinary {
		out.Binary, err = digestOf(u)
	}
	return out, err
}

// digestOf returns the digest of the program that a command starts. A relative path is resolved
// from the working directory of the program.
func digestOf(u mcpconfig.Upstream) (string, error) {
	command := u.Command
	if u.Cwd != "" && filepath.Base(command) != command && !filepath.IsAbs(command) {
		command = filepath.Join(u.Cwd, command)
	}
	path, err := exec.LookPath(command)
	if err != nil {
		return "", fmt.Errorf("pin_binary: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("pin_binary: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("pin_binary: %w", err)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

func mcpNaming(cfg mcpconfig.Works) catalog.Naming {
	return catalog.Naming{Prefix: catalog.Prefix(cfg.Prefix), Limit: cfg.NameLimit}
}

// mcpCallers returns the configured callers. On the standard streams there is one caller, which
// needs no configuration.
func mcpCallers(cfg config.MCP) []mcp.Caller {
	if len(cfg.Callers) == 0 {
		return []mcp.Caller{{Name: "client", Principal: userOf(cfg, "")}}
	}
	var out []mcp.Caller
	for _, c := range cfg.Callers {
		out = append(out, mcp.Caller{
			Name:      c.Name,
			Person:    c.Person,
			Principal: userOf(cfg, c.Person),
			Session:   c.Session,
			Hold:      c.Hold,
			InPlace:   c.InPlace,
		})
	}

	return out
}

// userOf returns the principal of a caller if users are asked: its person, or the user of this
// machine if there are no other people.
func userOf(cfg config.MCP, person string) string {
	switch {
	case !cfg.AsksUser():
		return ""
	case person == "" && cfg.People == "":
		return config.DevPerson
	}

	return person
}

// mcpAsk returns the setting that determines who is asked.
func mcpAsk(cfg mcpconfig.Works) mcp.Ask {
	if cfg.AsksUser() {
		return mcp.Ask(cfg.Ask)
	}
	return mcp.AskApprovers
}

// hostsOf returns the host names by which clients reach a gateway. An empty list means the loopback
// names of this machine.
func hostsOf(cfg config.MCP, addr net.Addr) []string {
	at, _ := addr.(*net.TCPAddr)
	local := at != nil && at.IP.IsLoopback()
	if local && len(cfg.Hosts) == 0 && cfg.PublicURL == "" {
		return nil
	}
	_, port, _ := net.SplitHostPort(addr.String()) // it is what was listened at
	names := append([]string{"localhost", "127.0.0.1", "::1"}, cfg.Hosts...)
	out := []string{addr.String()}
	for _, name := range names {
		out = append(out, name, net.JoinHostPort(name, port))
	}
	if u, err := url.Parse(cfg.PublicURL); err == nil {
		out = append(out, u.Host)
	}

	return out
}
