package operate

import (
	"bytes"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/lint/replay"
	"github.com/assent-dev/assent/server/openapi"
)

func (a Commands) candidateCommand() *cobra.Command {
	var c remote.Connection
	var format string
	cmd := &cobra.Command{
		Use:   "candidate [--format text|json|markdown]",
		Short: "Tell what would change if the candidate of serve --candidate decided",
		Long: "candidate tells how the calls of the server were decided, and how the files of the candidate would " +
			"have decided them.\n\n" +
			"Exit code 1 says that calls would go unasked, 2 that not all of them could be compared.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.compared(cmd, c, format)
		},
	}
	flags := remote.Connected(cmd, &c).Flags()
	flags.StringVar(&format, "format", "text", "`FORMAT`: text, json or markdown")
	term.Offer(cmd, "format", replay.Formats()...)
	return cmd
}

func (a Commands) compared(cmd *cobra.Command, c remote.Connection, format string) error {
	var text bytes.Buffer
	if _, err := replay.NewPrinter(format, &text); err != nil {
		return term.ExitWith(term.ExitFailure, err)
	}
	c.AsJSON = c.AsJSON || format == "json"
	var seen openapi.Candidate
	err := remote.Ask(a.Caller, c, func(s *client.Client) (openapi.Candidate, error) {
		got, err := s.Candidate(cmd.Context())
		if err == nil {
			seen = *got
		}
		return seen, err
	}, func(p *term.Printer, doc openapi.Candidate) { printCandidate(p, format, doc) })
	if err != nil {
		return err
	}
	return verdict(&seen)
}

// verdict returns the exit code of a comparison.
func verdict(c *openapi.Candidate) error {
	whole := len(c.Problems) == 0 && c.Dropped == 0
	for _, one := range c.Agents {
		whole = whole && one.NotCompared == 0
		if r := one.Report; r != nil && r.Unasked+r.DenialsUnasked > 0 {
			return term.Exit(term.ExitNo)
		}
	}

	if !whole {
		return term.Exit(term.ExitFailure)
	}
	return nil
}

// printCandidate prints the comparison in the requested format.
func printCandidate(p *term.Printer, format string, c openapi.Candidate) {
	clean := safetext.Escape
	item := ""
	if format == "markdown" {
		item = "- "
		clean = func(text string) string { return safetext.Markdown(safetext.Escape(text)) }
	}
	line := func(words ...string) { p.Raw(item + strings.Join(words, "") + "\n") }
	line("Candidate, compared since ", term.Stamp(c.Since))
	for _, problem := range c.Problems {
		line("Can't be compared as it stands: ", clean(problem))
	}
	if c.Dropped > 0 {
		line("Incomplete: too many calls waited, and ", safetext.Count(int(c.Dropped)), " of them were not compared.")
	}
	if len(c.Agents) == 0 {
		line("No call was compared yet.")
	}
	for i := range c.Agents {
		printCompared(p, format, clean, &c.Agents[i])
	}
}

// printCompared prints the outcomes of one agent's calls under the rules in force and under the
// candidate's.
func printCompared(p *term.Printer, format string, clean func(string) string, one *openapi.ComparedAgent) {
	title := "Agent " + clean(one.Agent) + ", since " + one.Since.UTC().Format(time.RFC3339)
	if format == "markdown" {
		title = "## " + title
	}
	p.Raw("\n" + title + "\n")
	if one.Why != "" {
		p.Raw("\nIncomplete: " + safetext.Count(one.NotCompared) + " calls were not compared: " + clean(one.Why) + "\n")
	}
	if one.Report == nil {
		return
	}
	var text bytes.Buffer
	page, err := replay.NewPrinter(format, &text)
	if err == nil {
		err = replay.Print(page, one.Found, one.Report)
	}
	if err != nil && p.Err == nil {
		p.Err = err
	}
	p.Raw(text.String())
}
