package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/permissions"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
)

func (v program) initCommand() *cobra.Command {
	var tools []string
	var from string
	cmd := &cobra.Command{
		Use:   "init [--tools [ALIAS=]FILE]... [DIR] | init --from claude-code FILE [DIR]",
		Short: "Write a first agent, policy, people.yaml, tests and CI workflow",
		Long: "init writes files to begin with into DIR, which is made if need be: an agent whose every tool asks, a " +
			"policy that says whom, people.yaml, tests, and a workflow that checks and runs them all. With --tools the agent has the tools " +
			"of these lists. With --from it writes an agent and a policy that are at least as strict as the permissions in FILE, " +
			"the settings of a coding agent, and says where they are stricter. Nothing that is there is overwritten.",
		Args: cobra.MaximumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if from != "" {
				return v.initFrom(from, args)
			}
			if len(args) > 1 {
				return errors.New("init writes into one directory")
			}
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return v.init(dir, tools)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "`PRODUCT` whose permissions are imported: claude-code")
	cmd.Flags().StringArrayVar(
		&tools,
		"tools",
		nil,
		"`[ALIAS=]FILE` with the tools that an MCP server offers, or a model is given (repeatable)",
	)
	cmd.MarkFlagsMutuallyExclusive("from", "tools")
	return cmd
}

// written is one file that init writes.
type written struct {
	name string // relative to the directory, with slashes
	text []byte
}

// init writes the files for a start. All of them are created and checked before the first one is
// written.
func (v program) init(dir string, flags []string) error {
	s, err := v.starter(dir, flags)
	if err != nil {
		return err
	}
	files := s.files()
	if err := s.check(files); err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f written) bool { return keeps(dir, f) })
	if err := writeAll(dir, files); err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintf(v.Out, "wrote %s\n", filepath.Join(dir, filepath.FromSlash(f.name)))
	}
	where := ""
	if dir != "." {
		where = "cd " + dir + " && "
	}
	fmt.Fprintf(
		v.Out,
		"\nEvery tool asks. Put your people into people.yaml and agent.test.yaml, then check and test it all:\n"+
			"  %sagf-validate %s .\n  agf-validate test .\n",
		where,
		s.flags(),
	)
	return nil
}

// initFrom imports the permissions of a coding agent.
func (v program) initFrom(product string, args []string) error {
	if product != "claude-code" {
		return fmt.Errorf("--from: %q is none of claude-code", product)
	}
	if len(args) == 0 {
		return errors.New("--from claude-code needs its settings: init --from claude-code .claude/settings.json")
	}
	src, err := term.ReadFile(args[0], v.In)
	if err != nil {
		return err
	}
	in, err := permissions.ClaudeCode(src)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	dir := "."
	if len(args) > 1 {
		dir = args[1]
	}
	files := []written{{agentFile, []byte(in.Agent)}, {"policies/imported.policy.yaml", []byte(in.Policy)}}
	if err := writeAll(dir, files); err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintf(v.Out, "wrote %s\n", filepath.Join(dir, filepath.FromSlash(f.name)))
	}
	fmt.Fprintln(v.Out, "\nNothing is more open than before. These are stricter:")
	for _, loss := range in.Losses {
		fmt.Fprintln(v.Out, "- "+term.Scrub(loss))
	}
	return nil
}

// starter reads the lists of tools. Each of them becomes a file next to the agent that later checks
// use.
func (v program) starter(dir string, flags []string) (*starter, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &starter{id: idOf(filepath.Base(abs))}
	catalogs, err := v.readCatalogs(flags, nil)
	if err != nil {
		return nil, err
	}
	for _, list := range catalogs {
		if list.MCP && list.Server == "" {
			base, _, _ := strings.Cut(filepath.Base(list.File), ".")
			if list.File == stdinName {
				base = "server"
			}
			list.Server = aliasOf(base)
		}

		if list.Server != "" && list.Server != aliasOf(list.Server) {
			return nil, fmt.Errorf(
				"--tools %s: %q is no alias: an alias is letters, digits and _; write --tools %s=%s",
				list.File,
				list.Server,
				aliasOf(list.Server),
				list.File,
			)
		}

		s.catalogs = append(s.catalogs, list)
	}

	return s, nil
}

// check lints the files before they are written, because initial files with findings would be a bad
// example.
func (s *starter) check(files []written) error {
	opt := lint.Options{Catalogs: s.catalogs}
	for _, f := range files {
		switch f.name {
		case peopleFile:
			directory, _ := people.Parse(f.name, f.text)
			opt.People = directory
		case policyFile:
			p, _ := policy.Parse(f.name, f.text)
			opt.Registry, _ = policy.NewSet(p)
		case agentFile:
			opt.Fleet = lint.NewFleet([]*lint.Subject{lint.NewSubject(f.name, f.text, nil, s.catalogs)})
		}
	}

	w := lint.New(rules.All(), opt).Worker()
	var found []diag.Finding
	for _, f := range files {
		switch f.name {
		case policyFile:
			found = append(found, w.Policy(f.name, f.text).Findings...)
		case agentFile:
			found = append(found, w.Agent(f.name, f.text, nil).Findings...)
		}
	}

	if len(found) > 0 {
		return fmt.Errorf(
			"nothing is written, as no agent with these tools would be sound: %s [%s]",
			found[0].Message,
			found[0].Rule,
		)
	}

	return nil
}

// keeps reports whether a list of tools is already stored where init would write it.
func keeps(dir string, f written) bool {
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.name)))
	return err == nil && bytes.Equal(text, f.text) && strings.HasPrefix(f.name, toolsFolder)
}

// writeAll writes all files, or none: when one can't be written, those
// before it and the directories made for them are removed.
func writeAll(dir string, files []written) (err error) {
	var made []string
	defer func() {
		if err == nil {
			return
		}
		for _, path := range slices.Backward(made) {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	for _, f := range files {
		switch _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(f.name))); {
		case err == nil:
			return fmt.Errorf("%s is there already, and nothing is overwritten", filepath.Join(dir, f.name))
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}

	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		folders, err := makeFolders(filepath.Dir(path))
		if made = append(made, folders...); err != nil {
			return err
		}
		out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		made = append(made, path)
		_, err = out.Write(f.text)
		if err = errors.Join(err, out.Close()); err != nil {
			return err
		}
	}

	return nil
}

// makeFolders makes a directory and those above it, and returns the new
// ones, outermost first.
func makeFolders(dir string) (made []string, err error) {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil, nil
	}
	if above := filepath.Dir(dir); above != dir {
		if made, err = makeFolders(above); err != nil {
			return made, err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return made, err
	}
	return append(made, dir), nil
}

// idOf derives the id of an agent from a name.
func idOf(name string) string {
	id := strings.Trim(mapped(strings.ToLower(name), '-'), "-_")
	if id == "" {
		return "agent"
	}
	return id
}

// aliasOf derives an alias from a name.
func aliasOf(name string) string {
	alias := mapped(name, '_')
	if alias == "" || alias[0] >= '0' && alias[0] <= '9' {
		return "t_" + alias
	}
	return alias
}

// mapped replaces each character that is no letter, digit or _ by other. If other is a hyphen,
// hyphens are kept.
func mapped(name string, other rune) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z') {
			return r
		}
		return other
	}, name)
}
