package clients

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cmdconfig "github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/edits"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/settings"
	"github.com/assent-dev/assent/mcp/config"
)

// made is a file that an install writes.
type made struct {
	path string
	text []byte
}

// plan is a prepared install.
type plan struct {
	spot    spot
	file    *settings.File
	before  *settings.Table
	after   *settings.Table
	text    []byte // of the client's file
	entry   settings.Member
	config  string
	servers []server
	left    []string // servers that the client keeps in addition to the gateway, with reasons
	// unsupported lists the servers that the gateway can't take, and why.
	unsupported error
	files       []made
	record      record
	// leftover is the record of an install that was interrupted.
	leftover *record
	notes    []string
}

// choice holds the flags of install.
type choice struct {
	servers  []string
	config   string
	agent    string
	policies []string
	people   string
	command  string
}

// newPlan reads the client's file and plans the changes.
func newPlan(s spot, c choice) (*plan, error) {
	p := &plan{spot: s, config: c.config}
	var err error
	if p.file, p.before, err = s.read(); err != nil {
		return nil, err
	}
	if err := p.choose(c.servers); err != nil {
		return nil, err
	}
	for _, check := range []func() error{p.some, p.free} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	p.secrets()
	if err := p.gateway(c); err != nil {
		return nil, err
	}

	p.admitted()
	p.notes = append(p.notes, "servers behind the gateway can't use the model of "+s.client.title+
		" (sampling) nor learn its directories (roots), unless gateway.yaml has sampling: relay and client_roots: relay")

	return p, p.change(c.command)
}

// admitted adds a note if Gemini CLI has a list of the only servers that it starts.
func (p *plan) admitted() {
	if p.spot.client.name != "gemini" {
		return
	}
	t, err := settings.Parse(settings.JSON, p.spot.file, p.file.Text, "mcp")
	if err != nil || t.Member("allowed") == nil {
		return // there is no such list
	}
	list, _ := t.Member("allowed").Value.([]any)
	if !slices.Contains(list, any(entryName)) {
		p.notes = append(
			p.notes,
			"mcp.allowed does not name "+entryName+", so Gemini CLI won't start the gateway: add it",
		)
	}
}

// choose selects the named servers, or all servers that are neither a gateway nor switched off.
func (p *plan) choose(chosen []string) error {
	for _, m := range p.before.Members() {
		named := slices.Contains(chosen, m.Name)
		k := p.spot.client.kindOf(m)
		switch {
		case k == ours:
			return term.No(
				"%s:%d: a gateway of assent is installed already: to move further servers behind it, "+
					"run assent mcp uninstall, then install again",
				p.spot.file,
				m.Line,
			)
		case m.Name == entryName:
			return fmt.Errorf("%s:%d: another server is called %s: rename it", p.spot.file, m.Line, entryName)
		case named && k != plain:
			return fmt.Errorf("--server %s: %s", m.Name, p.spot.client.why(k))
		case k == other || k == off || len(chosen) > 0 && !named:
			p.left = append(p.left, m.Name)
		default:
			next, err := p.spot.serverOf(m)
			if err == nil {
				p.distinct(&next)
				err = p.admits(next)
			}
			switch {
			case err != nil && named:
				return err
			case err != nil:
				p.unsupported = errors.Join(p.unsupported, err)
				p.left = append(p.left, m.Name)
				p.notes = append(p.notes, err.Error()+". It stays outside the gateway, and its calls are not guarded")
			default:
				p.servers = append(p.servers, next)
			}
		}
	}

	return p.chosen(chosen)
}

// why returns why an entry can't be moved.
func (c client) why(k kind) string {
	if k == off {
		return "it is switched off in " + c.title
	}

	return "it has neither " + c.words.command + " nor " + strings.Join(
		append([]string{"an address"}, c.words.urls...),
		", ",
	)
}

// chosen returns an error if a name belongs to no server, or if there is nothing to move.
func (p *plan) chosen(names []string) error {
	for _, name := range names {
		if p.before.Member(name) == nil {
			return fmt.Errorf("--server %s: %s declares no such server", name, p.spot.file)
		}
	}

	return nil
}

// some returns an error if there is nothing to move.
func (p *plan) some() error {
	if len(p.servers) == 0 && p.unsupported != nil {
		return p.unsupported
	}
	if len(p.servers) == 0 {
		return term.No("%s declares no MCP servers that could be moved: nothing is changed", p.spot.file)
	}

	return nil
}

// distinct gives a server a unique alias.
func (p *plan) distinct(next *server) {
	first := next.Alias
	taken := func(s server) bool { return s.Alias == next.Alias }
	for i := 2; slices.ContainsFunc(p.servers, taken); i++ {
		next.Alias = fmt.Sprintf("%s_%d", first, i)
	}
	if next.Alias != first {
		next.notes = append(next.notes, "its alias is "+next.Alias+", since another server has "+first)
	}
}

// admits returns the reason why the gateway would refuse the configuration of a server.
func (p *plan) admits(s server) error {
	p.secretsOf(&s) // s names their files then
	text := "agent: x\nupstream:\n" + upstreamText(filepath.Dir(p.config), s)
	if _, findings := config.Read(p.config, []byte(text)); len(findings) > 0 {
		return refused(text, findings[0])
	}
	return nil
}

// free checks that no file would be overwritten, except those that an interrupted install left
// behind.
func (p *plan) free() error {
	left, err := readRecord(p.config)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case left.Before == edits.Digest(p.file.Text) && left.File == p.spot.file:
		p.leftover = &left
	default:
		return fmt.Errorf(
			"%s belongs to an install in %s: run assent mcp uninstall for that, or give another --config",
			recordOf(p.config),
			left.File,
		)
	}

	there, err := p.exists(p.config)
	if there {
		return fmt.Errorf("%s is there already, and nothing is overwritten: give another --config", p.config)
	}

	return err
}

// exists reports whether there is a file that this install must not overwrite.
func (p *plan) exists(path string) (bool, error) {
	if p.leftover != nil && p.leftover.wrote(path) {
		return false, nil
	}
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}

	return err == nil, err
}

// secrets moves values of variables and headers into files of their own.
func (p *plan) secrets() {
	for i := range p.servers {
		s := &p.servers[i]
		p.files = append(p.files, p.secretsOf(s)...)
		if s.SignsIn() {
			s.notes = append(s.notes, "if it wants you to sign in, run: "+cmdconfig.SignInCommand(s.Alias, p.config))
		}
		p.notes = append(p.notes, prefixed(s.name, s.notes)...)
	}
}

// secretsOf returns the files with the secrets of a server, and replaces its secrets with their
// names.
func (p *plan) secretsOf(s *server) (files []made) {
	keep := func(name, text string) string {
		path := filepath.Join(filepath.Dir(p.config), "secrets", s.Alias+"."+name)
		files = append(files, made{path, []byte(text)})
		return path
	}
	if len(s.variables) > 0 {
		s.EnvFile = keep("env.yaml", envText(s.variables))
	}
	if s.token != "" {
		s.TokenFile = keep("token", s.token+"\n")
	}
	s.HeaderFiles = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.headers)) {
		s.HeaderFiles[name] = keep("header."+aliasOf(name), s.headers[name]+"\n")
	}
	return files
}

func prefixed(name string, notes []string) []string {
	var out []string
	for _, note := range notes {
		out = append(out, "server "+name+": "+note)
	}

	return out
}

func envText(variables map[string]string) string {
	text := "# Variables of a program behind assent mcp gateway. Keep others from reading this file.\n"
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		text += quoted(name) + ": " + quoted(variables[name]) + "\n"
	}

	return text
}

// gateway generates the configuration, and an agent unless one is given, and reads both in the same
// way as the gateway.
func (p *plan) gateway(c choice) error {
	agent := c.agent
	if agent == "" {
		agent = filepath.Join(filepath.Dir(p.config), "agent.agf.yaml")
		there, err := p.exists(agent)
		if err != nil {
			return err
		}
		if !there {
			p.files = append(p.files, made{agent, []byte(agentText(p.spot.client.name, p.servers))})
		}
	}

	text := []byte(gatewayText(p, c, agent))
	_, findings := config.Read(p.config, text)
	if len(findings) > 0 {
		return refused(string(text), findings[0])
	}
	p.files = append(p.files, made{p.config, text})

	return p.declared(agent)
}

// refused returns which server the gateway could not take, and why. It doesn't repeat values,
// because they may be secret.
func refused(text string, f diag.Finding) error {
	lines := strings.Split(text, "\n")[:f.Range.Start.Line]
	name, _, _ := strings.Cut(strings.TrimSpace(lines[len(lines)-1]), ":")
	for _, line := range slices.Backward(lines) {
		if alias, found := strings.CutPrefix(line, "  - alias: "); found {
			name = "the server " + alias + ": " + name
			break
		}
	}

	return fmt.Errorf("the gateway could not take this: %s: %s; expected %s", name, f.Message, f.Expected)
}

// change generates the new text of the client's file.
func (p *plan) change(command string) error {
	p.entry = p.before.New(entryName, p.entryValue(command))
	var remove []string
	for _, s := range p.servers {
		remove = append(remove, s.name)
	}
	var err error
	if p.text, err = p.before.Change(remove, p.entry); err != nil {
		return err
	}
	p.after, err = settings.Parse(p.spot.client.form, p.spot.file, p.text, p.spot.table...)
	p.record = record{
		Client:  p.spot.client.name,
		Scope:   p.spot.scope,
		Project: p.spot.project,
		File:    p.spot.file,
		Before:  edits.Digest(p.file.Text),
		After:   edits.Digest(p.text),
		Moved:   remove,
		Entry:   p.entry.Value,
	}
	for _, f := range p.files {
		p.record.Files = append(p.record.Files, recorded{f.path, edits.Digest(f.text)})
	}

	return err
}

// entryValue returns the gateway's entry in the client's format.
func (p *plan) entryValue(command string) settings.Object {
	w := p.spot.client.words
	carried := map[string]string{}
	var inherited []string
	for _, s := range p.servers {
		maps.Copy(carried, s.carried)
		inherited = append(inherited, s.inherited...)
	}
	if w.envNames != "" { // the client hands over no other variables
		for _, name := range config.Network() {
			if p.spot.getenv(name) != "" {
				inherited = append(inherited, name)
			}
		}
	}
	slices.Sort(inherited)
	out := p.spot.client.head()
	out = append(out,
		settings.Field{Name: w.command, Value: command},
		settings.Field{Name: w.args, Value: []string{"mcp", "gateway", "--config", p.config}},
	)
	if len(carried) > 0 {
		var env settings.Object
		for _, name := range slices.Sorted(maps.Keys(carried)) {
			env = append(env, settings.Field{Name: name, Value: carried[name]})
		}
		out = append(out, settings.Field{Name: w.env, Value: env})
	}

	if len(inherited) > 0 {
		out = append(out, settings.Field{Name: w.envNames, Value: slices.Compact(inherited)})
	}

	return out
}

// head returns the fields that a client requires before the command.
func (c client) head() settings.Object {
	switch c.name {
	case "claude-code", "vscode":
		return settings.Object{{Name: "type", Value: "stdio"}}
	case "goose":
		return settings.Object{
			{Name: "enabled", Value: true},
			{Name: "type", Value: "stdio"},
			{Name: "name", Value: entryName},
			{Name: "description", Value: "MCP servers behind approvals"},
		}
	}

	return nil
}

// write writes the files and then changes the client's file, while no other install changes that.
// If an error occurs, only the backup is left.
func (p *plan) write() error {
	wrote := false
	err := p.file.ReplaceWithBackup(p.text, func(backup string) error {
		if p.leftover != nil {
			if err := p.leftover.remove(); err != nil {
				return err
			}
		}
		p.record.Backup, wrote = backup, true
		return p.record.write(p.config, p.files)
	})
	if err != nil && wrote {
		err = errors.Join(err, p.record.remove())
	}

	return err
}
