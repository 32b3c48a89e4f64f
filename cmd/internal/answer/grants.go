package answer

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/server/openapi"
)

func (a commands) grantsCommand() *cobra.Command {
	var c remote.Connection
	var all bool
	cmd := &cobra.Command{
		Use:   "grants [--all]",
		Short: "List standing approvals",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return remote.Ask(a.Caller, c, func(s *client.Client) (openapi.Grants, error) {
				grants, err := s.Grants(cmd.Context(), all)
				return openapi.Grants{Grants: grants}, err
			}, printGrants)
		},
	}
	remote.Connected(cmd, &c).
		Flags().
		BoolVar(&all, "all", false, "also those that are revoked, expired or used up")
	return cmd
}

func printGrants(p *term.Printer, g openapi.Grants) {
	if len(g.Grants) == 0 {
		p.Printf("no standing approvals\n")
		return
	}
	now := time.Now()
	table := term.Heading(
		"ID", "AGENT", "TARGET", "USES", "ENDS", "SESSION", "BY", "MAY DIFFER", "AT MOST", "ARGUMENTS",
	)
	for _, x := range g.Grants {
		table.Row(
			term.Bold.Of(x.ID),
			x.Agent,
			x.Target,
			fmt.Sprintf("%d/%d", x.Uses, x.MaxUses),
			grantEnd(&x, now),
			x.Session,
			strings.Join(x.By, ","),
			mayDiffer(&x),
			exposureText(&x),
			term.Dim.Of(term.Shorten(argumentsOf(&x), 60)),
		)
	}

	p.Table(table)
}

func grantEnd(g *approval.Grant, now time.Time) string {
	switch {
	case g.Revoked != nil:
		return "revoked"
	case !g.Expires.After(now):
		return "expired"
	case g.Uses >= g.MaxUses:
		return "used up"
	}

	return term.Until(g.Expires, now)
}

// mayDiffer describes the arguments that may differ from the approved ones.
func mayDiffer(g *approval.Grant) string {
	out := approval.SaysAll(g.Bounds, g.Ignored)
	for _, e := range g.Examples {
		if e.Covered {
			out = append(out, "such as "+strconv.Quote(e.Text))
			break
		}
	}
	return strings.Join(out, ", ")
}

// exposureText describes the total effect of all uses of a standing approval.
func exposureText(g *approval.Grant) string {
	var out []string
	for _, e := range g.Exposures() {
		out = append(out, e.Path+" "+e.Words(g.MaxUses))
	}
	return strings.Join(out, ", ")
}

// argumentsOf returns the arguments of a standing approval without values that a policy hides. If
// the approval was stored without its rules, by an earlier version, all arguments are hidden.
func argumentsOf(g *approval.Grant) string {
	if len(g.Rules) == 0 {
		return approval.HiddenValue
	}
	text, _ := approval.Redact(string(g.Call.Args), policy.Arguments{Redact: g.Redact}.Redaction())
	return text
}

func (a commands) revokeCommand() *cobra.Command {
	var c remote.Connection
	var reason string
	cmd := &cobra.Command{
		Use:   "revoke ID [--reason TEXT]",
		Short: "End a standing approval",
		Args:  term.OneOf("the ID of a grant, as `assent grants` shows it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return remote.Ask(a.Caller, c, func(s *client.Client) (*approval.Grant, error) {
				return s.RevokeGrant(cmd.Context(), args[0], reason)
			},
				func(p *term.Printer, g *approval.Grant) { p.Printf("%s: %s\n", g.ID, grantEnd(g, time.Now())) })
		},
	}
	remote.Connected(cmd, &c).Flags().StringVar(&reason, "reason", "", "`TEXT` for the record")
	return cmd
}
