package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/lint/posture"
)

// diffFlags are the flags of `agf-validate diff`.
type diffFlags struct {
	format   string
	old, new sideFlags
	config   string
	loosen   bool
	worktree bool
	tools    []string
}

func (v compiling) diffCommand() *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff [flags] OLD NEW | A..B [-- PATH...]",
		Short: "Compare two versions: which calls are asked about, allowed or denied otherwise",
		Long: "diff compares agents with their policies, for all calls: files, directories, or revisions of git.\n" +
			"Everything that decides is read from each side: agents, policies, decisions.yaml, people.yaml and\n" +
			".agf-validate.yaml, unless flags name other files. Revisions need --from-worktree for such flags.\n" +
			"Exit code 0: equivalent, or nothing loosens; 1: something loosens or is undecided, unless " +
			"--allow-loosening; 2: usage, or a side can't be read (docs/contracts/diff.md).",
		Args: sidesGiven,
		RunE: func(cmd *cobra.Command, args []string) error { return v.diff(f, args, cmd.ArgsLenAtDash()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", "text", "`FORMAT` of the output: "+strings.Join(diffFormats(), ", "))
	flags.StringArrayVar(
		&f.old.policies,
		"policies-old",
		nil,
		"`DIR` of *.policy.yaml of the old side (repeatable)",
	)
	flags.StringArrayVar(
		&f.new.policies,
		"policies-new",
		nil,
		"`DIR` of *.policy.yaml of the new side (repeatable)",
	)
	flags.StringVar(&f.config, "decisions", "", "decisions.yaml: `FILE` of what the owner chose, for both sides")
	flags.StringVar(&f.old.config, "decisions-old", "", "`FILE` instead of --decisions, for the old side")
	flags.StringVar(&f.new.config, "decisions-new", "", "`FILE` instead of --decisions, for the new side")
	flags.StringVar(
		&f.old.people,
		"people-old",
		"",
		"people.yaml: `FILE` of who may answer on the old side, instead of the side's own",
	)
	flags.StringVar(
		&f.new.people,
		"people-new",
		"",
		"people.yaml: `FILE` of who may answer on the new side, instead of the side's own",
	)
	flags.BoolVar(
		&f.worktree,
		"from-worktree",
		false,
		"in a comparison of revisions, read the files that other flags name from the working tree",
	)
	toolsFlag(
		flags,
		&f.tools,
		"tools of a server without allow-list are compared by name; every other name is compared as well",
	)
	flags.BoolVar(&f.loosen, "allow-loosening", false, "exit 0 whatever the verdict is")
	term.Offer(cmd, "format", diffFormats()...)

	return cmd
}

func diffFormats() []string { return []string{"text", "json", "markdown"} }

// sidesGiven requires two sides, or a range of revisions and paths after a double dash.
func sidesGiven(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash < 0 && len(args) == 2, dash == 1 && len(args) > 1:
		return nil
	case dash == 1:
		return errors.New("name a path behind --")
	case dash < 0 && len(args) == 1 && strings.Contains(args[0], ".."):
		return nil
	}

	return errors.New("name two files or directories, OLD and NEW, or A..B -- PATH; --help tells more")
}

// diff compares two sides and prints the report.
func (v compiling) diff(f diffFlags, args []string, dash int) error {
	if !slices.Contains(diffFormats(), f.format) {
		return fmt.Errorf("--format: %q is none of %s", f.format, strings.Join(diffFormats(), ", "))
	}

	if (f.old.people == "") != (f.new.people == "") {
		return errors.New("--people-old and --people-new belong together: name the people of both sides")
	}
	if f.old.config == "" {
		f.old.config = f.config
	}
	if f.new.config == "" {
		f.new.config = f.config
	}
	revised := dash >= 0 || len(args) == 1
	switch named := f.old.given() || f.new.given(); {
	case revised && named && !f.worktree:
		return errors.New("--decisions, --policies and --people name files of the working tree, which would stand in for " +
			"those of both revisions: leave them out, since each revision's own decisions.yaml, policies and people are " +
			"read, or add --from-worktree to compare with the files of the working tree")
	case f.worktree && !(revised && named):
		return errors.New("--from-worktree is only for a comparison of revisions with --decisions, --policies or --people")
	}
	trees, err := v.readSides(args, revised)
	if err != nil {
		return err
	}
	old, err := v.compile(trees[0], f.old)
	if err != nil {
		return fmt.Errorf("old side: %w", err)
	}
	new, err := v.compile(trees[1], f.new)
	if err != nil {
		return fmt.Errorf("new side: %w", err)
	}
	if len(old.sides)+len(new.sides) == 0 {
		return fmt.Errorf("no *.agf.yaml is in %s or %s, so nothing was compared", trees[0].what, trees[1].what)
	}

	catalogs, err := v.readCatalogs(f.tools, nil)
	if err != nil {
		return err
	}
	agents := append(old.name(catalogs), new.name(catalogs)...)
	if err := unheld(f.tools, catalogs, agents); err != nil {
		return err
	}
	report := posture.CompareAll(old.sides, new.sides)
	if err := v.printReport(f.format, report); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if !report.Verdict.Safe() && !f.loosen {
		return term.Exit(term.ExitFindings)
	}

	return nil
}

// readSides reads two paths, or paths at two revisions.
func (v compiling) readSides(args []string, revised bool) (out [2]*sideTree, err error) {
	if !revised {
		for i, path := range args {
			if out[i], err = v.readTree(path); err != nil {
				return out, err
			}
		}

		return out, replacedByLinks(out[0], out[1])
	}

	old, new, err := revisions(args[0])
	if err != nil {
		return out, err
	}
	var both []*revision
	for _, what := range []string{old, new} {
		r, err := openRevision(what)
		if err != nil {
			return out, err
		}
		both = append(both, r)
	}
	paths := args[1:]
	if len(paths) == 0 {
		if paths, err = v.settledPaths(both); err != nil {
			return out, err
		}
	}
	if len(paths) == 0 {
		return out, fmt.Errorf(
			"name the paths to compare: diff %s -- PATH, or `paths` in the %s of a revision", args[0], settingsName,
		)
	}
	if missing, err := lacks(both, paths); err != nil || missing != "" {
		return out, cmp.Or(err, fmt.Errorf("neither %s nor %s has %s, so nothing was compared", old, new, missing))
	}
	for i, r := range both {
		if out[i], err = v.readRevision(r, paths); err != nil {
			return out, err
		}
	}

	return out, sameLinks(out[0], out[1])
}

// settledPaths returns the paths that the settings of either revision name.
func (v compiling) settledPaths(both []*revision) ([]string, error) {
	var out []string
	for _, r := range both {
		t := &sideTree{what: r.what, store: r}
		if err := v.settle(t); err != nil {
			return nil, err
		}
		if t.chosen == nil {
			continue
		}
		for _, p := range t.chosen.Paths {
			rel, err := t.within(t.read[0], p)
			if err != nil {
				return nil, err
			}
			if name := r.name(rel); !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}

	return out, nil
}
