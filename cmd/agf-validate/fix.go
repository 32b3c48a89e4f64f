package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/fix"
	"github.com/assent-dev/assent/lint/rules"
)

// fixFlags are the flags of fix in addition to those of a check.
type fixFlags struct {
	validateFlags
	unsafe bool
	dryRun bool
}

func (v program) fixCommand() *cobra.Command {
	var f fixFlags
	cmd := &cobra.Command{
		Use:   "fix [flags] PATH...",
		Short: "Mend what has a mechanical remedy",
		Long: "fix mends findings that have a mechanical remedy, in the files themselves: names that are nearly right, " +
			"text that wants quotes, entries that stand twice or do nothing. Comments and formatting stay.\n" +
			"A remedy after which other calls are asked about, or others are asked, is refused without --unsafe.\n" +
			"Exit code 0: everything with a remedy is mended, 1: a remedy was refused, 2: usage, or something could " +
			"not be read or written.",
		Args: fixPaths,
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := v.settled(&f.validateFlags, cmd.Flags(), args)
			if err != nil {
				return err
			}
			return v.fix(f, chosen)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.unsafe, "unsafe", false, "mend also what changes which calls are asked about")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be done, and write nothing")
	f.inputs(flags)
	return cmd
}

// fixPaths requires files that can be written.
func fixPaths(cmd *cobra.Command, args []string) error {
	if slices.Contains(args, "-") {
		return errors.New("standard input can't be mended: name files or directories")
	}
	return paths(cmd, args)
}

// fix fixes the files of all paths.
func (v program) fix(f fixFlags, paths []string) error {
	if len(paths) == 0 {
		return errNoPaths
	}
	opt := lint.Options{Strict: f.strict}
	chosen, err := v.readConfig(f.validateFlags, &opt)
	if err != nil {
		return err
	}
	if opt.Catalogs, err = v.readCatalogs(f.tools, paths); err != nil {
		return err
	}
	inputs, policies := walk(paths, v.In), v.shelf(chosen, 0)
	policies.take(&opt)
	opt.Fleet = fleet(inputs, &opt, false, v.workers())
	m := mender{
		program: v,
		flags:   f,
		inputs:  inputs,
		opt:     opt,
		worker:  lint.New(rules.All(), opt).Worker(),
	}
	for i := range inputs {
		m.mend(&inputs[i])
	}
	return m.finish()
}

// mender fixes one file after the other.
type mender struct {
	program
	flags   fixFlags
	inputs  []input
	opt     lint.Options
	worker  *lint.Worker
	made    int
	refused int
	failed  bool
}

func (m *mender) mend(in *input) {
	if in.err == nil && in.src == nil {
		in.src, in.err = term.ReadFile(in.path, m.In)
	}
	if in.err != nil {
		m.fail(in.err)
		return
	}
	if in.kind == peopleKind {
		return // none of its findings has a remedy
	}

	found := fix.Mend(in.src, m.check(in), m.keep(in))
	for _, r := range found.Made {
		m.say(in, r, "")
	}
	for _, r := range found.Refused {
		m.say(in, r.Remedy, "refused: "+r.Why+": ")
	}
	m.made += len(found.Made)
	m.refused += len(found.Refused)
	if len(found.Made) == 0 || m.flags.dryRun {
		return
	}
	if err := system.Rewrite(in.path, found.Text); err != nil {
		m.fail(err)
		return
	}
	in.src = found.Text
}

func (m *mender) fail(err error) {
	fmt.Fprintf(m.Err, "agf-validate: %v\n", err)
	m.failed = true
}

// say prints one fix.
func (m *mender) say(in *input, r fix.Remedy, prefix string) {
	at := r.Finding.Range.Start
	fmt.Fprintf(m.Out, "%s:%d:%d: %s%s [%s]\n", in.path, at.Line, at.Column, prefix, r.Title, r.Finding.Rule)
}

// check returns a function that lints a text of one file.
func (m *mender) check(in *input) func([]byte) []diag.Finding {
	return func(src []byte) []diag.Finding {
		if in.kind == policyKind {
			return m.worker.Policy(in.path, src).Findings
		}
		return m.worker.Agent(in.path, src, in.files()).Findings
	}
}

func (m *mender) finish() error {
	fmt.Fprintf(m.Out, "%d %s, %d refused\n", m.made, m.verb(), m.refused)
	switch {
	case m.failed:
		return term.Exit(term.ExitFailure)
	case m.refused > 0:
		return term.Exit(term.ExitFindings)
	}

	return nil
}

func (m *mender) verb() string {
	if m.flags.dryRun {
		return "would be mended"
	}
	return "mended"
}
