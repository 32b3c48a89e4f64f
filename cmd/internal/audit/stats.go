package audit

import (
	"fmt"
	"strconv"
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
	rows := [][]term.Styled{
		term.Heading("PERSON", "ANSWERS", "PER HOUR", "BUSIEST HOUR", "APPROVED", "MEDIAN", ""),
	}
	for _, f := range s.Approvers {
		rows = append(
			rows,
			[]term.Styled{
				term.Bold.Of(f.Person),
				term.Cell(strconv.Itoa(f.Votes)),
				term.Cell(fmt.Sprintf("%.1f", f.PerHour)),
				term.Cell(strconv.Itoa(f.BusiestHour)),
				term.Cell(percent(f.ApproveRate)),
				term.Cell(term.Span(f.MedianWait)),
				term.Red.Of(overload(f)),
			},
		)
	}

	p.Table(rows)
	p.Printf("\n")
	rows = [][]term.Styled{term.Heading("AGENT", "ASKS", "PER DAY", "DECIDED", "APPROVED", "MEDIAN")}
	for _, f := range s.Agents {
		rows = append(
			rows,
			[]term.Styled{
				term.Bold.Of(f.Agent),
				term.Cell(strconv.Itoa(f.Asks)),
				term.Cell(fmt.Sprintf("%.1f", f.PerDay)),
				term.Cell(strconv.Itoa(f.Decided)),
				term.Cell(percent(f.ApproveRate)),
				term.Cell(term.Span(f.MedianDecide)),
			},
		)
	}

	p.Table(rows)
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
