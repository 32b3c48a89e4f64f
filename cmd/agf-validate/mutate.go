package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/lint/policytest"
)

// createFlags are the flags of `agf-validate create-tests`.
type createFlags struct {
	policies  []string
	parents   []string
	decisions string
	output    string
	tools     []string
}

func (v program) createCommand() *cobra.Command {
	var f createFlags
	cmd := &cobra.Command{
		Use:   "create-tests AGENT",
		Short: "Write a test file of the calls on both sides of every edge",
		Long: "create-tests writes a test file (docs/contracts/tests.md) for an agent: for every rule that meets one of " +
			"its tools, servers, skills and sub-agents the calls at and beside each bound, with what they come to now. " +
			"It passes at once; read it before you rely on it.\n" +
			"Exit code 0: written; 2: usage, or something could not be read or written.",
		Args: term.OneOf("the file of one agent"),
		RunE: func(_ *cobra.Command, args []string) error { return v.createTests(f, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.policies, "policies", nil, "`DIR` of *.policy.yaml that the agent may name (repeatable)")
	flags.StringArrayVar(
		&f.parents,
		"parent",
		nil,
		"`FILE` of an agent that delegates to this one (repeatable, outermost first)",
	)
	flags.StringVar(&f.decisions, "decisions", "", "decisions.yaml: `FILE` of what the owner chose")
	toolsFlag(flags, &f.tools, toolsOfTests)
	flags.StringVar(&f.output, "output", "", "new `FILE` to write, which no file may be yet; standard output without it")

	return cmd
}

func (v program) createTests(f createFlags, agent string) error {
	dir := filepath.Dir(f.output)
	header := policytest.Header{Agent: beside(dir, agent)}
	for _, p := range f.parents {
		header.Parents = append(header.Parents, beside(dir, p))
	}
	for _, p := range f.policies {
		header.Policies = append(header.Policies, beside(dir, p))
	}
	if f.decisions != "" {
		header.Decisions = beside(dir, f.decisions)
	}
	catalogs, err := v.offered(f.tools)
	if err != nil {
		return err
	}
	built, err := header.Build(filepath.ToSlash(dir), disk{})
	if err != nil {
		return err
	}
	if err := unheld(f.tools, catalogs, built.Agents); err != nil {
		return err
	}
	built.Catalogs = catalogs
	text, err := policytest.Create(header, built)
	if err != nil {
		return err
	}
	if f.output == "" {
		if _, err := v.Out.Write(text); err != nil {
			return fmt.Errorf("write the tests: %w", err)
		}
		return nil
	}

	return system.CreateText(f.output, 0o644, string(text))
}

// beside returns a path relative to a directory, for use in a file there.
func beside(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && !filepath.IsAbs(path) {
		path = rel
	}

	return filepath.ToSlash(path)
}

// mutateFlags are the flags of `agf-validate mutate`.
type mutateFlags struct {
	format string
	least  int // percent
	tools  []string
}

func (v program) mutateCommand() *cobra.Command {
	var f mutateFlags
	cmd := &cobra.Command{
		Use:   "mutate PATH...",
		Short: "Change agents and policies in memory, and name the changes that no test notices",
		Long: "mutate runs the tests of PATH (docs/contracts/tests.md) on each small change of the agents and policies " +
			"that they name: operators, bounds, lists, groups, messages, selectors, requirements. It prints each change that no " +
			"test notices, with a call that shows the difference if one is found.\n" +
			"Exit code 0: at least --min percent of the changes that make a difference are noticed, 1: fewer, or a " +
			"test fails as it is, 2: usage, or something could not be read.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name test files, or directories to walk for *.test.yaml")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return v.mutate(f, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", "text", "`FORMAT` of the output: text, json")
	flags.IntVar(&f.least, "min", 100, "`PERCENT` of the changes that must be noticed, else the exit code is 1")
	toolsFlag(flags, &f.tools, toolsOfTests)
	term.Offer(cmd, "format", "text", "json")

	return cmd
}

func (v program) mutate(f mutateFlags, paths []string) error {
	if f.format != "text" && f.format != "json" {
		return fmt.Errorf("--format: %q is none of text, json", f.format)
	}
	if f.least < 0 || f.least > 100 {
		return fmt.Errorf("--min: %d is no percentage, expected 0 to 100", f.least)
	}
	catalogs, err := v.offered(f.tools)
	if err != nil {
		return err
	}
	files, unread := testFiles(paths)
	if len(unread) > 0 {
		return errors.Join(unread...)
	}

	t := tester{program: v, picked: func(string) bool { return true }, catalogs: catalogs}
	var suites []*policytest.Suite
	for _, name := range files {
		file, world, built := t.read(name)
		if file == nil {
			return term.Exit(term.ExitFailure)
		}
		for _, r := range file.Run(built, t.picked) {
			if !r.Passed() {
				return term.ExitWith(
					term.ExitFindings,
					fmt.Errorf("%s: the test %q fails as it is: run agf-validate test", name, r.Name),
				)
			}
		}

		suites = append(suites, &policytest.Suite{
			Files: []*policytest.File{file},
			World: world,
			Built: built,
		})
	}

	if err := unheld(f.tools, catalogs, t.agents); err != nil {
		return err
	}
	score := policytest.Mutate(suites)
	if err := score.Write(v.Out, f.format); err != nil {
		return err
	}
	if score.Percent() < f.least {
		return term.Exit(term.ExitFindings)
	}

	return nil
}
