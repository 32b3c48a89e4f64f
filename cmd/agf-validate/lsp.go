package main

import (
	"bytes"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/editor"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/posture"
	"github.com/assent-dev/assent/policy"
)

func (v program) lspCommand() *cobra.Command {
	var f validateFlags
	cmd := &cobra.Command{
		Use:   "lsp [flags]",
		Short: "Serve an editor by the Language Server Protocol",
		Long: "lsp speaks the Language Server Protocol on standard input and output. The editor shows findings while " +
			"somebody writes, what a gate asks about, what may stand at the cursor, and remedies. Policies and people are " +
			"read again when a file is saved.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := v.settled(&f, cmd.Flags(), nil); err != nil {
				return err
			}
			load := func() (editor.Settings, error) { return v.editorSettings(f) }
			return editor.Serve(cmd.Context(), v.In, v.Out, load)
		},
	}
	f.inputs(cmd.Flags())
	cmd.Flags().
		StringVar(&f.people, "people", "", "people.yaml `FILE`, whose groups policies may ask")
	return cmd
}

// editorSettings reads the settings for checks in an editor.
func (v program) editorSettings(f validateFlags) (editor.Settings, error) {
	set := editor.Settings{
		Options: lint.Options{Strict: f.strict},
		HelpURL: func(rule string) string { return term.HelpURL + rule + ".md" },
	}
	chosen, err := v.readConfig(f, &set.Options)
	if err != nil {
		return set, err
	}
	if f.people != "" {
		directory, err := v.readPeople(f.people)
		if err != nil {
			return set, err
		}
		set.Options.People = directory
		set.Groups = directory.Groups()
	}

	if set.Options.Catalogs, err = v.readCatalogs(f.tools, nil); err != nil {
		return set, err
	}
	v.shelf(chosen, 0).take(&set.Options)
	c := comparison{owner: set.Options.Owner, registry: set.Options.Registry}
	set.Drift = c.drift
	if known, ok := set.Options.Registry.(*policy.Set); ok {
		set.Policies = known.Policies()
	}
	return set, nil
}

// drift reports how an agent's text differs from the committed file. It returns nil if the file is
// new or can't be read.
func (c comparison) drift(path string, src []byte) []editor.Drift {
	before, err := git("", "-C", filepath.Dir(path), "cat-file", "blob", "HEAD:./"+filepath.Base(path))
	if err != nil || bytes.Equal(before, src) {
		return nil
	}
	report, err := c.agents(path, before, src)
	if err != nil {
		return nil
	}
	var out []editor.Drift
	for _, change := range report.Changes {
		text := "since the last commit " + targetOf(change) + ": " + sentence(change)
		for _, line := range (detail{caused: caused{Change: change}, places: true}).lines() {
			text += "\n" + line
		}
		d := editor.Drift{
			Message: term.Scrub(text),
			Loosens: change.Effect == posture.Loosens || change.Effect == posture.Undecided,
		}
		if at := change.New; at != nil && at.File == path {
			d.At = diag.Position{Line: at.Line, Column: at.Column}
		}
		out = append(out, d)
	}

	return out
}
