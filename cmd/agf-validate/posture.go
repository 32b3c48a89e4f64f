package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/lint/listing"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

func (v planning) postureCommand() *cobra.Command {
	var s planFiles
	var format string
	cmd := &cobra.Command{
		Use:   "posture [--policies DIR]... [--decisions FILE] PATH...",
		Short: "List what agents may do: allowed, asked when and by whom, denied, and which line says so",
		Long: "posture lists every target of every agent below PATH: files, or directories to walk " +
			"(docs/contracts/posture.md). Without --policies and --decisions the *.policy.yaml below the directories " +
			"are the policies.\n" +
			"Exit code 0: listed, 2: usage, or something could not be read; then nothing is listed.",
		Args: paths,
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains(listing.Formats(), format) {
				return fmt.Errorf("--format: unknown format %q, expected one of %s",
					format, strings.Join(listing.Formats(), ", "))
			}
			return v.posture(s, format, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&format, "format", "text", "`FORMAT` of the output: "+strings.Join(listing.Formats(), ", "))
	flags.StringVar(
		&s.config,
		"decisions",
		"",
		"decisions.yaml: `FILE` of what the owner chose, as assent serve reads it",
	)
	flags.StringArrayVar(
		&s.policies,
		"policies",
		nil,
		"`DIR` of *.policy.yaml that agents may name, or that apply by selector (repeatable); instead of those of "+
			"--decisions, and of those below PATH",
	)
	term.Offer(cmd, "format", listing.Formats()...)
	return cmd
}

// posture lists all agents, or returns an error.
func (v planning) posture(s planFiles, format string, paths []string) error {
	chosen, err := v.chosen(s)
	if err != nil {
		return err
	}
	inputs := walk(paths, v.In)
	if len(s.policies) == 0 && s.config == "" {
		chosen.Instead(foundBeside(paths))
	}
	registry, err := v.policiesOf(chosen)
	if err != nil {
		return err
	}
	opt := chosen.Options()
	opt.Configuration = ""
	var all []listing.Agent
	for i := range inputs {
		in := &inputs[i]
		switch {
		case in.err != nil:
			return in.err
		case in.kind != agentKind:
			continue
		case in.path == "-":
			return errors.New("agents are listed from files: name the file")
		}

		agent, err := v.parseAgent(in.path)
		if err != nil {
			return err
		}
		plan, err := resolve.Compile(agent, registry, opt)
		var unresolved *resolve.UnresolvedError
		if err != nil && !errors.As(err, &unresolved) { // what is unresolved denies every call, and is listed so
			return err
		}
		all = append(all, listing.Of(agent, plan))
	}

	if len(all) == 0 {
		return errors.New("no *.agf.yaml is here, so there is nothing to list")
	}
	if err := listing.Write(v.Out, format, all); err != nil {
		return fmt.Errorf("write the listing: %w", err)
	}
	return nil
}

// foundBeside lists those directories among paths that have policies.
func foundBeside(paths []string) []string {
	var out []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() {
			continue
		}
		if files, unread := policy.ReadFS(os.DirFS(path), path); len(files)+len(unread) > 0 {
			out = append(out, path)
		}
	}

	return out
}
