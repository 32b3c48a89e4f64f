package audit

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/term"
)

func (a commands) statsCommand() *cobra.Command {
	var c remote.Connection
	var since string
	cmd := &cobra.Command{
		Use:   "stats [--since 30d]",
		Short: "Show who answers how much, how fast and how often with yes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			age, err := term.ParseAge(since)
			if err != nil {
				return fmt.Errorf("--since: %w", err)
			}
			return remote.Ask(a.Caller, c, func(s *client.Client) (*approval.Stats, error) {
				return s.Stats(cmd.Context(), time.Now().Add(-age))
			}, printStats)
		},
	}
	remote.Connected(cmd, &c).Flags().StringVar(&since, "since", "30d", "answers of this `TIME`, up to now")
	return cmd
}

func printStats(p *term.Printer, s *approval.Stats) {
	p.Printf("%s to %s\n\n", term.Stamp(s.Since), term.Stamp(s.Until))
	table := term.Heading("PERSON", "ANSWERS", "PER HOUR", "BUSIEST HOUR", "APPROVED", "MEDIAN", "")
	for _, f := range s.Approvers {
		table.Row(
			term.Bold.Of(f.Person),
			f.Votes,
			fmt.Sprintf("%.1f", f.PerHour),
			f.BusiestHour,
			percent(f.ApproveRate),
			term.Span(f.MedianWait),
			term.Red.Of(overload(f)),
		)
	}

	p.Table(table)
	p.Printf("\n")
	table = term.Heading("AGENT", "ASKS", "PER DAY", "DECIDED", "APPROVED", "MEDIAN")
	for _, f := range s.Agents {
		table.Row(
			term.Bold.Of(f.Agent),
			f.Asks,
			fmt.Sprintf("%.1f", f.PerDay),
			f.Decided,
			percent(f.ApproveRate),
			term.Span(f.MedianDecide),
		)
	}

	p.Table(table)
}

func percent(rate float64) string { return fmt.Sprintf("%.0f %%", rate*100) }

func overload(f approval.ApproverFigures) string {
	switch {
	case f.TooMany && f.RubberStamps:
		return "overloaded: too many in one hour, and approves without reading"
	case f.TooMany:
		return "overloaded: too many in one hour"
	case f.RubberStamps:
		return "approves nearly everything within seconds"
	}

	return ""
}
