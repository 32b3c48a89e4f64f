package hookfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/edits"
	"github.com/assent-dev/assent/cmd/internal/fileerrors"
	"github.com/assent-dev/assent/cmd/internal/hook"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/settings"
)

// Commands are the subcommands of `assent hook` that change or check settings.
type Commands struct {
	config.Reader

	// Check checks the configuration of a hook that works without a server. It returns errors in
	// files that remain usable as findings, and any other problem as an error.
	Check func(cfg config.MCP) ([]diag.Finding, error)
}

// flags are the flags of install and uninstall.
type flags struct {
	edits.Flags

	scope   string
	program string
	gentle  bool
}

// All returns the commands.
func (a Commands) All() []*cobra.Command {
	return []*cobra.Command{a.install(), a.uninstall(), a.status()}
}

func (f *flags) addAll(cmd *cobra.Command) {
	f.Add(cmd)
	cmd.Flags().StringVar(&f.scope, "scope", edits.User, "`SCOPE` of the settings: user, project or local (claude-code)")
	term.Offer(cmd, "scope", edits.User, edits.Project, edits.Local)
	cmd.ValidArgs = hook.Products()
	cmd.Args = cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)
}

func (a Commands) install() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "install PRODUCT --agent ID | --agent-file FILE",
		Short: "Write the hook into the settings of a coding agent",
		Long: "install writes the hook into the settings of a coding agent, for all that you do or for this project, with " +
			"what has calls\nblocked when the hook fails. It shows the change and asks. All else in the file stays as it is; " +
			"uninstall undoes it\n(docs/contracts/hook.md). The further flags are those of the hook.",
	}
	f.addAll(cmd)
	cmd.Flags().StringVar(&f.program, "command", "", "`PROGRAM` that the product starts; the path of this one without it")
	cmd.Flags().BoolVar(&f.gentle, "gentle", false, "answer only where the product would ask you: what its own rules "+
		"allow runs without the hook")
	lines := hook.Writes(cmd, a.Reader)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		line, err := lines.Of(args[0])
		if err != nil {
			return err
		}
		if line.Alone != nil {
			found, err := a.Check(*line.Alone)
			if err != nil {
				return fmt.Errorf("the hook could not decide anything: %w", err)
			}
			fileerrors.Print(a.Err, found)
		}
		return a.again(cmd.Context(), f, func() error { return a.doInstall(f, args[0], line) })
	}

	return cmd
}

func (a Commands) uninstall() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "uninstall PRODUCT",
		Short: "Take the hook out of the settings of a coding agent",
		Long: "uninstall restores the settings byte for byte where nothing else has changed in them since install, and else " +
			"takes out the hook\nalone. It shows the change and asks.",
	}
	f.addAll(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.again(cmd.Context(), f, func() error { return a.doUninstall(f, args[0]) })
	}

	return cmd
}

// patience limits how long a change is retried while other processes change the same files.
const patience = 10 * time.Second

// again repeats a change that conflicted with another process's change. It doesn't repeat it
// without --yes, because the person confirmed the change as it was shown.
func (a Commands) again(ctx context.Context, f flags, change func() error) error {
	over := time.Now().Add(patience)
	for {
		err := change()
		hindered := errors.Is(err, settings.ErrBusy) || errors.Is(err, settings.ErrChanged)
		if !hindered || !f.Yes || time.Now().After(over) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// spot returns the file that the flags select, and the directory of the records.
func (a Commands) spot(f flags, name string) (spot, string, error) {
	p, err := find(name)
	if err != nil {
		return spot{}, "", err
	}
	at, err := edits.Here(a.Getenv)
	if err != nil {
		return spot{}, "", err
	}
	s, err := p.spotOf(at, f.scope)
	if err != nil {
		return spot{}, "", err
	}
	records := a.InConfigDir("hooks")
	if records == "" {
		err = errors.New("nobody knows where your configurations are: set HOME")
	}

	return s, records, err
}

// installed is the output of install with --json.
type installed struct {
	Product string   `json:"product"`
	Scope   string   `json:"scope"`
	File    string   `json:"file"`
	Notes   []string `json:"notes"`
	Done    bool     `json:"done"` // false: nothing was changed
}

func (a Commands) doInstall(f flags, name string, line hook.Line) error {
	s, records, err := a.spot(f, name)
	if err != nil {
		return err
	}
	if err := s.alone(); err != nil {
		return err
	}
	program, err := programOf(f.program)
	if err != nil {
		return err
	}
	p, err := s.newInstall(records, program, line, f.gentle)
	if err != nil {
		return err
	}
	out := installed{Product: s.name, Scope: s.scope, File: s.path, Notes: append([]string{}, p.notes...)}
	if p.same {
		return f.Printed(a.Streams, out, "the hook is in "+s.path+" as it should be: nothing is changed")
	}
	show := func() error { return a.show(f, p) }
	change := func() error { return explained(s, p.install()) }
	if out.Done, err = f.Change(a.Streams, s.path, show, change); err != nil {
		return err
	}
	if !out.Done {
		return f.Printed(a.Streams, out, edits.DryRun)
	}

	return f.Printed(a.Streams, out, "installed: start "+s.title+" anew\nTo see how it stands: assent hook status "+
		s.name+"\nTo undo it: assent hook uninstall "+s.name+edits.ScopeFlag(s.scope))
}

// explained adds advice to an error about a file that can't be written.
func explained(s spot, err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%s can't be written, and is as it was: %w; give yourself the right to, or run this as its owner",
			s.path, err)
	}

	return err
}

// alone returns an error if another scope has a hook for the same calls: after one of two hooks let
// a call run, the other would find its approval used.
func (s spot) alone() error {
	for _, scope := range s.scopes {
		if scope == s.scope {
			continue
		}
		beside, err := s.product.spotOf(s.place, scope)
		if err != nil {
			return err
		}
		if c, err := beside.look(); err == nil && len(c.ours) > 0 && beside.path != s.path {
			return fmt.Errorf("%s has a hook of assent already, and %s would run both for each call: run assent hook "+
				"uninstall %s%s first", beside.path, s.title, s.name, edits.ScopeFlag(scope))
		}
	}

	return nil
}

func (s spot) look() (*content, error) {
	f, err := settings.Open(s.path)
	if err != nil {
		return nil, err
	}

	return s.read(f, f.Text)
}

// programOf returns the program to write to the settings: an absolute path, or a name that the
// product looks up in its PATH.
func programOf(given string) (string, error) {
	if given == "" {
		return os.Executable()
	}
	if !isAssent(given) {
		return "", fmt.Errorf("--command %s: expected a program called assent", given)
	}
	if filepath.Base(given) == given {
		return given, nil
	}

	return filepath.Abs(given)
}

// show prints a change for people.
func (a Commands) show(f flags, p *plan) error {
	text, err := p.difference()
	if err != nil {
		return err
	}
	w := f.Shown(a.Streams)
	w.Raw(term.Scrub(text))
	for i, note := range p.notes {
		if i == 0 {
			w.Printf("\n")
		}
		w.Printf("note    %s\n", note)
	}

	return w.Done()
}

// uninstalled is the output of uninstall with --json.
type uninstalled struct {
	Product string `json:"product"`
	Scope   string `json:"scope"`
	File    string `json:"file"`
	Exact   bool   `json:"exact"` // byte for byte as before the install
	Done    bool   `json:"done"`
}

func (a Commands) doUninstall(f flags, name string) error {
	s, records, err := a.spot(f, name)
	if err != nil {
		return err
	}
	p, err := s.newUninstall(records)
	if err != nil {
		return err
	}
	out := uninstalled{Product: s.name, Scope: s.scope, File: s.path, Exact: p.exact}
	show := func() error { return a.show(f, p) }
	change := func() error { return explained(s, p.uninstall()) }
	if out.Done, err = f.Change(a.Streams, s.path, show, change); err != nil {
		return err
	}
	if !out.Done {
		return f.Printed(a.Streams, out, edits.DryRun)
	}
	said := "uninstalled: the file is byte for byte as it was"
	switch {
	case p.text == nil:
		said = "uninstalled: the file was made by install, and is gone"
	case !p.exact:
		said = "uninstalled: the hook alone was taken out, since the file is not as install left it"
	}

	return f.Printed(a.Streams, out, said)
}

func (a Commands) status() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "status [PRODUCT]",
		Short: "Say which coding agents run the hook, and what would run without it",
		Long: "status looks at the settings of all products, for you and for this directory.\n" +
			"Exit code 0: all is well; 1: a hook is installed, and something is wrong with it.",
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: hook.Products(),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.doStatus(strings.Join(args, ""), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")

	return cmd
}

func (a Commands) doStatus(only string, asJSON bool) error {
	at, err := edits.Here(a.Getenv)
	if err != nil {
		return err
	}
	found := []status{}
	for _, p := range all() {
		if cmp.Or(only, p.name) != p.name {
			continue
		}
		of, err := a.statuses(p, at)
		if err != nil {
			return err
		}
		found = append(found, of...)
	}

	if err := term.Print(a.Streams, asJSON, found, showStatus); err != nil {
		return err
	}
	if slices.ContainsFunc(found, func(s status) bool { return len(s.Problems) > 0 }) {
		return term.Exit(term.ExitNo)
	}

	return nil
}
