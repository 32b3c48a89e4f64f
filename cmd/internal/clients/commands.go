package clients

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/edits"
	"github.com/assent-dev/assent/cmd/internal/term"
)

// Commands holds the commands of `assent mcp` that edit clients' files.
type Commands struct{ config.Reader }

// flags are the flags of install and uninstall.
type flags struct {
	choice

	edits.Flags

	client string
	scope  string
}

func (f *flags) addAll(cmd *cobra.Command) {
	all := cmd.Flags()
	all.StringVar(&f.client, "client", "", "`CLIENT`: "+strings.Join(names(), ", "))
	all.StringVar(
		&f.scope,
		"scope",
		edits.User,
		"`SCOPE` of the client's file: user, project or local (claude-code)",
	)
	all.StringVar(
		&f.config,
		"config",
		"",
		"`FILE` of the gateway's configuration; else in your assent directory",
	)
	f.Add(cmd)
	term.Required(cmd, "client")
	term.Offer(cmd, "client", names()...)
	term.Offer(cmd, "scope", edits.User, edits.Project, edits.Local)
}

// Install returns the command that puts servers behind the gateway.
func (a Commands) Install() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "install --client CLIENT [--server NAME]...",
		Short: "Put the MCP servers of a client behind the gateway",
		Long: "install moves servers out of the client's file into a configuration of assent mcp gateway, and puts one entry\n" +
			"for that gateway in their place. It shows the change and asks. The rest of the file stays as it is, and a\n" +
			"backup stands beside it; uninstall undoes it (docs/contracts/mcp.md). Without --agent every tool asks.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.install(f) },
	}
	f.addAll(cmd)
	all := cmd.Flags()
	all.StringArrayVar(&f.servers, "server", nil, "`NAME` of a server to move (repeatable); else all of them")
	all.StringVar(&f.agent, "agent", "", "`FILE` of the agent that decides, *.agf.yaml; else one is written")
	all.StringArrayVar(&f.policies, "policies", nil, "`DIR` of *.policy.yaml (repeatable)")
	all.StringVar(&f.people, "people", "", "`FILE` people.yaml: who may answer")
	all.StringVar(&f.command, "command", "assent", "`PROGRAM` that the client starts: assent, or its path")

	return cmd
}

// Uninstall returns the command that undoes Install.
func (a Commands) Uninstall() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "uninstall --client CLIENT",
		Short: "Undo install: the client gets its servers back",
		Long: "uninstall restores the client's file byte for byte where nothing else has changed in it since, and else takes\n" +
			"out the gateway's entry and puts the servers back.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.uninstall(f) },
	}
	f.addAll(cmd)

	return cmd
}

// spot returns the spot that the flags select. If they name no configuration, it is in the
// directory of assent's configurations.
func (a Commands) spot(f *flags) (spot, error) {
	c, err := find(f.client)
	if err != nil {
		return spot{}, err
	}
	p, err := edits.Here(a.Getenv)
	if err != nil {
		return spot{}, err
	}
	s, err := c.spotOf(p, f.scope)
	if err != nil {
		return spot{}, err
	}

	return s, f.absolute(a.InConfigDir(filepath.Join("mcp", s.folder(), "gateway.yaml")))
}

// absolute makes paths absolute, because the client may start the gateway in any directory.
func (f *flags) absolute(gateway string) error {
	f.config = cmp.Or(f.config, gateway)
	paths := []*string{&f.config, &f.agent, &f.people}
	for i := range f.policies {
		paths = append(paths, &f.policies[i])
	}
	for _, path := range paths {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = abs
	}

	if f.config == "" {
		return errors.New("nobody knows where your configurations are: set HOME, or give --config FILE")
	}

	return nil
}

// installed is the output of install --json.
type installed struct {
	File   string   `json:"file"`
	Backup string   `json:"backup,omitempty"`
	Config string   `json:"config"`
	Moved  []string `json:"moved"`
	Left   []string `json:"left"`
	Wrote  []string `json:"wrote"`
	Notes  []string `json:"notes"`
	Done   bool     `json:"done"`
}

// install shows the changes, asks, writes the gateway's files, and changes the client's file last.
func (a Commands) install(f flags) error {
	s, err := a.spot(&f)
	if err != nil {
		return err
	}
	p, err := newPlan(s, f.choice)
	if err != nil {
		return err
	}
	out := installed{
		File:   s.file,
		Config: p.config,
		Moved:  p.record.Moved,
		Left:   slices.Concat([]string{}, p.left),
		Notes:  slices.Concat([]string{}, p.notes),
	}
	for _, made := range p.files {
		out.Wrote = append(out.Wrote, made.path)
	}
	show := func() error { return a.showPlan(f, p, &out) }
	if out.Done, err = f.Change(a.Streams, s.file, show, p.write); err != nil {
		return err
	}
	if !out.Done {
		return f.Printed(a.Streams, out, edits.DryRun)
	}
	out.Backup = p.record.Backup

	return f.Printed(a.Streams, out, "installed; the file as it was is "+out.Backup+"\nRestart "+s.client.title+
		". To answer what it asks: assent mcp inbox --config "+out.Config+
		"\nTo undo it: assent mcp uninstall --client "+s.client.name+edits.ScopeFlag(s.scope))
}

// showPlan prints the changes of an install for people.
func (a Commands) showPlan(f flags, p *plan, out *installed) error {
	w := f.Shown(a.Streams)
	w.Raw(term.Scrub(difference(p.spot, p.before, p.after)))
	w.Printf("\n")
	for _, path := range out.Wrote {
		w.Printf("writes  %s\n", path)
	}
	for _, name := range out.Left {
		w.Printf("leaves  %s, which %s goes on reaching without the gateway\n", name, p.spot.client.title)
	}

	for _, note := range out.Notes {
		w.Printf("note    %s\n", note)
	}

	return w.Done()
}

// uninstalled is the output of uninstall --json.
type uninstalled struct {
	File     string   `json:"file"`
	Exact    bool     `json:"exact"` // byte for byte as it was
	Restored []string `json:"restored"`
	Declared []string `json:"declared"` // again, and left as they are
	Backup   string   `json:"backup,omitempty"`
	Kept     []string `json:"kept"` // files of the install that were changed since
	Done     bool     `json:"done"`
}

// uninstall restores the file byte for byte if nothing else has changed since, and otherwise
// restores only the part that install changed.
func (a Commands) uninstall(f flags) error {
	given := f.config != ""
	s, err := a.spot(&f)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(recordOf(f.config)); errors.Is(err, fs.ErrNotExist) && !given {
		f.config = ""
	}
	u, err := newUndo(s, f.config)
	if err != nil {
		return err
	}
	out := uninstalled{
		File:     s.file,
		Exact:    u.exact,
		Restored: slices.Concat([]string{}, u.restored),
		Declared: slices.Concat([]string{}, u.kept),
		Kept:     []string{},
	}
	show := func() error { return a.showUndo(f, u) }
	change := func() error {
		kept, err := u.write()
		out.Kept = append(out.Kept, kept...)
		return err
	}
	if out.Done, err = f.Change(a.Streams, s.file, show, change); err != nil {
		return err
	}
	if !out.Done {
		return f.Printed(a.Streams, out, edits.DryRun)
	}
	if !u.exact {
		out.Backup = u.record.Backup
	}

	return f.Printed(a.Streams, out, u.told(out.Kept))
}

func (a Commands) showUndo(f flags, u *undo) error {
	after, err := u.spot.parse(u.text)
	if err != nil {
		return err
	}
	w := f.Shown(a.Streams)
	w.Raw(term.Scrub(difference(u.spot, u.now, after)))
	for _, name := range u.kept {
		w.Printf("note    %s is declared again, and stays as it is now\n", name)
	}

	return w.Done()
}

// told returns the message about the result of an uninstall.
func (u *undo) told(kept []string) string {
	text := "uninstalled: the file is byte for byte as it was"
	if !u.exact {
		text = "uninstalled: other things in the file have changed since, so only the gateway's entry was taken out and the " +
			"servers put back; the file as it was before is " + u.record.Backup
	}
	for _, path := range kept {
		text += "\nkept " + path + ", which was changed since"
	}

	return text
}

// Status returns the command that reports the state of the files.
func (a Commands) Status() *cobra.Command {
	var only string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "status [--client CLIENT]",
		Short: "Say which clients reach their MCP servers through the gateway, and which go round it",
		Long: "status looks at the files of all clients, for the user and for this directory.\n" +
			"Exit code 0: all is well; 1: a client with a gateway reaches servers beside it, or its gateway can't start.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.status(only, asJSON) },
	}
	cmd.Flags().StringVar(&only, "client", "", "`CLIENT` to look at; else all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	term.Offer(cmd, "client", names()...)

	return cmd
}

// status reports the files of all clients, and whether calls can bypass the gateway.
func (a Commands) status(only string, asJSON bool) error {
	list := all()
	if only != "" {
		c, err := find(only)
		if err != nil {
			return err
		}
		list = []client{c}
	}

	p, err := edits.Here(a.Getenv)
	if err != nil {
		return err
	}
	found, bad := []status{}, false
	for _, c := range list {
		of, err := c.statuses(p)
		if err != nil {
			return err
		}
		found = append(found, of...)
		bad = bad || roundabout(of)
	}

	if err := term.Print(a.Streams, asJSON, found, showStatus); err != nil {
		return err
	}
	if bad {
		return term.Exit(term.ExitNo)
	}

	return nil
}

func showStatus(p *term.Printer, found []status) {
	for _, s := range found {
		p.Printf("%s (%s): %s\n  %s\n", s.Client, s.Scope, s.sentence(), s.File)
		if len(s.Behind) > 0 {
			p.Printf("  behind the gateway: %s\n", strings.Join(s.Behind, ", "))
		}
		if len(s.Beside) > 0 {
			p.Printf("  without the gateway: %s\n", strings.Join(s.Beside, ", "))
		}
		for _, problem := range s.Problems {
			p.Printf("  problem: %s\n", problem)
		}
	}
}

// sentence describes the state.
func (o *status) sentence() string {
	switch o.State {
	case stateAbsent:
		return "no file"
	case stateNotInstalled:
		return "not installed"
	case stateChanged:
		return "installed, but somebody has changed the gateway's entry since"
	case stateUnreadable:
		return "the file can't be read"
	}

	if o.Since {
		return "installed; other things in the file have changed since"
	}

	return "installed"
}

// Print returns the command that shows what a gateway would start.
func (a Commands) Print() *cobra.Command {
	var f config.MCPFlags
	asJSON := false
	cmd := &cobra.Command{
		Use:   "print --config FILE | --agent FILE [--alias ALIAS] -- COMMAND [ARG]...",
		Short: "Show what a gateway would start and call",
		Long: "print shows the programs that assent mcp gateway would start, argument by argument, since no shell reads them,\n" +
			"and the addresses that it would call; of variables and secrets the names and files, never a value.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.TakeCommand(cmd, args); err != nil {
				return err
			}
			return a.print(f, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.File, "config", "", "`FILE` of the gateway's configuration")
	flags.StringVar(&f.Agent, "agent", "", "`FILE` of the agent, for a gateway without a file")
	flags.StringVar(&f.Alias, "alias", "", "`ALIAS` of the server; the only one of the agent's mcp_servers")
	flags.BoolVar(&asJSON, "json", false, "print JSON")

	return cmd
}

// print shows what a gateway would start, without starting anything.
func (a Commands) print(f config.MCPFlags, asJSON bool) error {
	cfg, err := a.MCP(f)
	if err != nil {
		return err
	}
	list := []started{}
	for _, u := range cfg.Upstream {
		s, err := startedOf(u, a.Getenv)
		if err != nil {
			return err
		}
		list = append(list, s)
	}

	return term.Print(a.Streams, asJSON, list, showStarted)
}

func showStarted(p *term.Printer, list []started) {
	for _, s := range list {
		p.Printf("%s\n", term.Bold.Of(s.Alias))
		row := func(name, value string) {
			if value != "" {
				p.Printf("  %-8s %s\n", name, value)
			}
		}
		row("argv", argv(s.Argv))
		row("cwd", s.Cwd)
		row("env", strings.Join(s.Env, " "))
		row("env_file", s.EnvFile)
		row("url", s.URL)
		row("token", s.Token)
		for _, header := range s.Headers {
			row("header", header)
		}
	}
}
