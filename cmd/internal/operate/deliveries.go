package operate

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/server/openapi"
)

func (a Commands) deliveriesCommand() *cobra.Command {
	var c remote.Connection
	var state string
	var limit int
	var again int64
	cmd := &cobra.Command{
		Use:   "deliveries [--state dead] [--limit N] [--redeliver NUMBER]",
		Short: "List what is sent outside: dead letters, or what waits or was sent",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return remote.Ask(a.Caller, c, func(s *client.Client) (openapi.Deliveries, error) {
				if again > 0 {
					if err := s.Redeliver(cmd.Context(), again); err != nil {
						return openapi.Deliveries{}, err
					}
				}
				d, err := s.Deliveries(cmd.Context(), openapi.DeliveryState(state), limit)
				return openapi.Deliveries{Deliveries: d}, err
			}, printDeliveries)
		},
	}
	flags := remote.Connected(cmd, &c).Flags()
	flags.StringVar(&state, "state", "dead", "`STATE`: waiting, sent or dead")
	flags.IntVar(&limit, "limit", 50, "at most `N`, up to 500")
	flags.Int64Var(&again, "redeliver", 0, "try the dead one with this `NUMBER` again first")
	term.Offer(cmd, "state", "waiting", "sent", "dead")
	return cmd
}

func printDeliveries(p *term.Printer, d openapi.Deliveries) {
	if len(d.Deliveries) == 0 {
		p.Printf("no deliveries\n")
		return
	}
	table := term.Heading("NUMBER", "STATE", "TARGET", "EVENT", "SUBJECT", "ATTEMPTS", "MADE", "PROBLEM")
	for _, x := range d.Deliveries {
		table.Row(
			term.Bold.Of(x.ID),
			x.State,
			x.Target,
			x.Event,
			x.Subject,
			x.Attempt,
			term.Ago(x.Created, time.Now()),
			term.Shorten(x.Problem, 80),
		)
	}

	p.Table(table)
}
