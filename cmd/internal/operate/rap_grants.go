package operate

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/server/openapi"
)

func (a Commands) rapGrantsCommand() *cobra.Command {
	var c remote.Connection
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "List what users of RAP runtimes allowed for a session",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return remote.Ask(a.Caller, c, func(s *client.Client) (openapi.SessionGrants, error) {
				grants, err := s.SessionGrants(cmd.Context())
				return openapi.SessionGrants{Grants: grants}, err
			}, printSessionGrants)
		},
	}

	return remote.Connected(cmd, &c)
}

func printSessionGrants(p *term.Printer, g openapi.SessionGrants) {
	if len(g.Grants) == 0 {
		p.Printf("no session grants\n")
		return
	}
	now := time.Now()
	table := term.Heading("ID", "GATEWAY", "CALLER", "OPERATION", "USER", "SESSION", "USES", "ENDS")
	for _, x := range g.Grants {
		table.Row(
			term.Bold.Of(x.ID),
			x.Gateway,
			x.Caller,
			x.Operation,
			x.User,
			term.Shorten(x.Session, 40),
			fmt.Sprintf("%d/%d", x.Uses, x.MaxUses),
			term.Until(x.Expires, now),
		)
	}

	p.Table(table)
}

func (a Commands) rapRevokeCommand() *cobra.Command {
	var c remote.Connection
	var reason string
	cmd := &cobra.Command{
		Use:   "revoke ID [--reason TEXT]",
		Short: "End a session grant of a RAP gateway",
		Args:  term.OneOf("the ID of a session grant, as `assent rap grants` shows it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return remote.Ask(a.Caller, c, func(s *client.Client) (*openapi.SessionGrant, error) {
				return s.RevokeSessionGrant(cmd.Context(), args[0], reason)
			}, func(p *term.Printer, g *openapi.SessionGrant) { p.Printf("%s: revoked\n", g.ID) })
		},
	}
	remote.Connected(cmd, &c).Flags().StringVar(&reason, "reason", "", "`TEXT` for the record")

	return cmd
}
