package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assent-dev/assent/schema"
)

// agentText returns an agent all of whose tools ask.
func agentText(client string, servers []server) string {
	text := `# What the client may reach through the gateway, and what it must ask for first. Made by assent mcp install.
# Fields: agf-validate schema agent. Why a finding matters: agf-validate explain RULE.
schema_version: "1.0.0"
metadata:
  id: ` + client + `
  name: ` + client + `
  version: "1.0.0" # an approval holds for one version
  description: Calls tools of MCP servers through assent mcp gateway.
interface:
  input: {type: object}
  output: {type: object}
execution_policy:
  id: agf.react
  config:
    instructions: The client has its own.
    model: any
action_space:
  mcp_servers:
`
	for _, s := range servers {
		text += "    - alias: " + s.Alias + `
      # Every tool of the server asks. To let some run unasked, give them an entry in allowed_tools with
      # approval: false; then only the tools that stand there may be called.
      approval: true
`
	}

	return text
}

// declared adds notes about servers that an agent's file does not declare, because their calls
// would be denied.
func (p *plan) declared(agent string) error {
	text, err := p.textOf(agent)
	if err != nil {
		return err
	}
	a, findings := schema.Parse(agent, text)
	for _, f := range findings {
		if f.Stops {
			return fmt.Errorf(
				"%s:%d:%d: the agent can't be used: %s",
				agent,
				f.Range.Start.Line,
				f.Range.Start.Column,
				f.Message,
			)
		}
	}

	for _, s := range p.servers {
		knows := func(m schema.MCPServer) bool { return m.Alias == s.Alias }
		if !slices.ContainsFunc(a.ActionSpace.MCPServers, knows) {
			p.notes = append(
				p.notes,
				fmt.Sprintf("%s does not declare the server %s: its calls are denied", agent, s.Alias),
			)
		}
	}

	return nil
}

// textOf returns the text of a file that will be written, or of an existing file.
func (p *plan) textOf(path string) ([]byte, error) {
	i := slices.IndexFunc(p.files, func(f made) bool { return f.path == path })
	if i >= 0 {
		return p.files[i].text, nil
	}

	return os.ReadFile(path)
}

// gatewayText returns the configuration of the gateway.
func gatewayText(p *plan, c choice, agent string) string {
	dir := filepath.Dir(p.config)
	text := "# assent mcp gateway for " + p.spot.client.title + ". Made by assent mcp install; fields: assent schema mcp.\n"
	text += "agent: " + quoted(beside(dir, agent)) + "\n"
	if len(c.policies) > 0 {
		text += "policies: " + quotedList(relative(dir, c.policies)) + "\n"
	}
	if c.people != "" {
		text += "people: " + quoted(beside(dir, c.people)) + "\n"
	}
	text += "callers:\n  - name: " + p.spot.client.name + "\n"
	if p.spot.client.hold != "" {
		text += "    hold: " + p.spot.client.hold + "\n"
	}
	text += "upstream:\n"
	for _, s := range p.servers {
		text += upstreamText(dir, s)
	}

	return text
}

// upstreamText returns a server's part of the gateway's configuration. It refers to secrets by
// their files.
func upstreamText(dir string, s server) string {
	text := "  - alias: " + quoted(s.Alias) + "\n"
	line := func(name, value string, there bool) {
		if there {
			text += "    " + name + ": " + value + "\n"
		}
	}
	line("command", quoted(s.Command), s.Command != "")
	line("args", quotedList(s.Args), len(s.Args) > 0)
	line("cwd", quoted(s.Cwd), s.Cwd != "")
	line("env_file", quoted(beside(dir, s.EnvFile)), s.EnvFile != "")
	line("env_from", quotedTable(s.EnvFrom), len(s.EnvFrom) > 0)
	line("dotenv_file", quoted(s.DotenvFile), s.DotenvFile != "")
	line("url", quoted(s.URL), s.URL != "")
	line("token_file", quoted(beside(dir, s.TokenFile)), s.TokenFile != "")
	line("token_env", quoted(s.TokenEnv), s.TokenEnv != "")
	files := map[string]string{}
	for name, file := range s.HeaderFiles {
		files[name] = beside(dir, file)
	}
	line("header_files", quotedTable(files), len(files) > 0)
	line("header_env", quotedTable(s.HeaderEnv), len(s.HeaderEnv) > 0)
	line("fill_in", quotedTable(s.FillIn), len(s.FillIn) > 0)
	line("include_tools", quotedList(s.IncludeTools), len(s.IncludeTools) > 0)
	line("exclude_tools", quotedList(s.ExcludeTools), len(s.ExcludeTools) > 0)

	return text
}

// beside returns a path relative to a directory if it is inside of it, and the path itself
// otherwise.
func beside(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}

	return path
}

func relative(dir string, paths []string) []string {
	var out []string
	for _, path := range paths {
		out = append(out, beside(dir, path))
	}

	return out
}

// quoted returns a text as a JSON string, which YAML reads in the same way.
func quoted(s string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // of a text it can't fail

	return strings.ReplaceAll(strings.TrimSpace(out.String()), "\x7f", `\u007f`)
}

func quotedList(list []string) string {
	var out []string
	for _, s := range list {
		out = append(out, quoted(s))
	}

	return "[" + strings.Join(out, ", ") + "]"
}

func quotedTable(table map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(table)) {
		out = append(out, quoted(name)+": "+quoted(table[name]))
	}

	return "{" + strings.Join(out, ", ") + "}"
}
