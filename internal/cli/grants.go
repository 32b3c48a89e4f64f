package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// asking runs a command that puts one question to the server and prints the answer: as the API's document, or for people.
func asking[T any](a Assent, c connection, ask func(*client.Client) (T, error), show func(*printer, T)) error {
	server, err := a.dial(c)
	if err != nil {
		return err
	}
	doc, err := ask(server)
	if err != nil {
		return answer(err)
	}
	p := a.printer()
	if c.asJSON {
		return p.document(doc)
	}
	show(p, doc)
	return p.done()
}

func (a Assent) grantsCommand() *cobra.Command {
	var c connection
	var all bool
	cmd := &cobra.Command{
		Use:   "grants [--all]",
		Short: "List standing approvals",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return asking(a, c, func(s *client.Client) (openapi.Grants, error) {
				grants, err := s.Grants(cmd.Context(), all)
				return openapi.Grants{Grants: grants}, err
			}, (*printer).grants)
		},
	}
	connected(cmd, &c).Flags().BoolVar(&all, "all", false, "also those that are revoked, expired or used up")
	return cmd
}

func (p *printer) grants(g openapi.Grants) {
	if len(g.Grants) == 0 {
		p.printf("no standing approvals\n")
		return
	}
	now := time.Now()
	rows := [][]styled{heading("ID", "AGENT", "TARGET", "USES", "ENDS", "SESSION", "BY", "MAY DIFFER", "AT MOST", "ARGUMENTS")}
	for _, x := range g.Grants {
		rows = append(rows, []styled{
			{bold, x.ID}, cell(x.Agent), cell(x.Target), cell(fmt.Sprintf("%d/%d", x.Uses, x.MaxUses)), cell(grantEnd(&x, now)), cell(x.Session),
			cell(strings.Join(x.By, ",")), cell(boundsText(x.Bounds)), cell(exposureText(&x)),
			{dim, shorten(argumentsOf(&x), 60)},
		})
	}
	p.table(rows)
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
	return until(g.Expires, now)
}

func boundsText(bounds []approval.Bound) string {
	var out []string
	for _, b := range bounds {
		out = append(out, b.Path+" "+strings.ReplaceAll(string(b.Kind), "_", " "))
	}
	return strings.Join(out, ", ")
}

// exposureText is what all uses of a standing approval may come to.
func exposureText(g *approval.Grant) string {
	var out []string
	for _, e := range g.Exposures() {
		out = append(out, e.Path+" "+e.Words(g.MaxUses))
	}
	return strings.Join(out, ", ")
}

// argumentsOf are the arguments of a standing approval without what policy hides. One from before that was kept shows none.
func argumentsOf(g *approval.Grant) string {
	if len(g.Rules) == 0 {
		return approval.HiddenValue
	}
	text, _ := approval.Redact(string(g.Call.Args), policy.Arguments{Redact: g.Redact}.Redaction())
	return text
}

func (a Assent) revokeCommand() *cobra.Command {
	var c connection
	var reason string
	cmd := &cobra.Command{
		Use:   "revoke ID [--reason TEXT]",
		Short: "End a standing approval",
		Args:  oneOf("the ID of a grant, as `assent grants` shows it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return asking(a, c, func(s *client.Client) (*approval.Grant, error) { return s.RevokeGrant(cmd.Context(), args[0], reason) },
				func(p *printer, g *approval.Grant) { p.printf("%s: %s\n", g.ID, grantEnd(g, time.Now())) })
		},
	}
	connected(cmd, &c).Flags().StringVar(&reason, "reason", "", "`TEXT` for the record")
	return cmd
}

func (a Assent) freezeCommand() *cobra.Command {
	var c connection
	var agent, reason string
	var list bool
	cmd := &cobra.Command{
		Use:   "freeze [--agent ID] [--reason TEXT]",
		Short: "Throw the kill switch: deny everything of an agent, or of all, from now on",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return asking(a, c, func(s *client.Client) (openapi.Freezes, error) {
				if list {
					freezes, err := s.Freezes(cmd.Context())
					return openapi.Freezes{Freezes: freezes}, err
				}
				freezes, err := s.Freeze(cmd.Context(), agent, reason)
				return openapi.Freezes{Freezes: freezes}, err
			}, (*printer).freezes)
		},
	}
	flags := connected(cmd, &c).Flags()
	flags.StringVar(&agent, "agent", "", "only of the agent with this `ID`; without it, of every agent")
	flags.StringVar(&reason, "reason", "", "`TEXT` for the record")
	flags.BoolVar(&list, "list", false, "freeze nothing, only list what is frozen")
	cmd.MarkFlagsMutuallyExclusive("list", "agent")

	return cmd
}

// thawFlags are the flags of assent thaw.
type thawFlags struct {
	place
	agent  string
	reason string
	wait   bool
}

func (a Assent) thawCommand() *cobra.Command {
	var f thawFlags
	cmd := &cobra.Command{
		Use:   "thaw [--agent ID] [--reason TEXT] [--wait]",
		Short: "Lift a freeze, once administrators have approved it",
		Long: "Through the API and the inbox, two people stand behind lifting a freeze. With --store, whoever holds the store and its key lifts\n" +
			"it alone; the ledger says so.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd)
			defer stop()
			return a.thaw(ctx, f)
		},
	}
	flags := placed(cmd, &f.place).Flags()
	flags.StringVar(&f.agent, "agent", "", "only of the agent with this `ID`; without it, the freeze of every agent")
	flags.StringVar(&f.reason, "reason", "", "`TEXT` for the record")
	flags.BoolVar(&f.wait, "wait", false, "wait until administrators have approved it")

	return cmd
}

func (a Assent) thaw(ctx context.Context, f thawFlags) error {
	left, err := a.thawed(ctx, f)
	if err != nil {
		return err
	}
	p := a.printer()
	doc := openapi.Freezes{Freezes: left}
	if f.asJSON {
		return p.document(doc)
	}
	p.freezes(doc)

	return p.done()
}

// thawed lifts a freeze, and lists what is frozen then.
func (a Assent) thawed(ctx context.Context, f thawFlags) (left []approval.Freeze, err error) {
	if !f.direct() {
		server, err := a.dial(f.connection)
		if err != nil {
			return nil, err
		}
		return administer(ctx, a, f.wait, func() ([]approval.Freeze, error) { return server.LiftFreeze(ctx, f.agent, f.reason) })
	}
	if a.Backend.Thaw == nil {
		return nil, errNoBackend
	}
	where, err := a.directStore(f.place)
	if err != nil {
		return nil, err
	}
	err = a.withStore(ctx, where, func(s store.Store) error {
		if err := a.Backend.Thaw(ctx, s, f.tenant, f.agent, f.reason); err != nil {
			return err
		}
		left, err = s.Freezes(ctx, f.tenant)
		return err
	})

	return left, err
}

func (p *printer) freezes(f openapi.Freezes) {
	for _, x := range f.Freezes {
		who := "everything"
		if x.Agent != "" {
			who = "agent " + x.Agent
		}
		p.printf("%s: %s, by %s, %s", styled{red, "frozen"}, who, x.By, ago(x.At, time.Now()))
		if x.Reason != "" {
			p.printf(": %s", x.Reason)
		}
		p.printf("\n")
	}
	if len(f.Freezes) == 0 {
		p.printf("nothing is frozen\n")
	}
}

func (a Assent) statsCommand() *cobra.Command {
	var c connection
	var since string
	cmd := &cobra.Command{
		Use:   "stats [--since 30d]",
		Short: "Show who answers how much, how fast and how often with yes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			age, err := parseAge(since)
			if err != nil {
				return fmt.Errorf("--since: %w", err)
			}
			return asking(a, c, func(s *client.Client) (*approval.Stats, error) { return s.Stats(cmd.Context(), time.Now().Add(-age)) }, (*printer).stats)
		},
	}
	connected(cmd, &c).Flags().StringVar(&since, "since", "30d", "answers of this `TIME`, up to now")
	return cmd
}

func (p *printer) stats(s *approval.Stats) {
	p.printf("%s to %s\n\n", stamp(s.Since), stamp(s.Until))
	rows := [][]styled{heading("PERSON", "ANSWERS", "PER HOUR", "BUSIEST HOUR", "APPROVED", "MEDIAN", "")}
	for _, f := range s.Approvers {
		rows = append(rows, []styled{
			{bold, f.Person}, cell(strconv.Itoa(f.Votes)), cell(fmt.Sprintf("%.1f", f.PerHour)), cell(strconv.Itoa(f.BusiestHour)), cell(percent(f.ApproveRate)),
			cell(span(f.MedianWait)), {red, overload(f)},
		})
	}
	p.table(rows)
	p.printf("\n")
	rows = [][]styled{heading("AGENT", "ASKS", "PER DAY", "DECIDED", "APPROVED", "MEDIAN")}
	for _, f := range s.Agents {
		rows = append(rows, []styled{
			{bold, f.Agent}, cell(strconv.Itoa(f.Asks)), cell(fmt.Sprintf("%.1f", f.PerDay)), cell(strconv.Itoa(f.Decided)), cell(percent(f.ApproveRate)), cell(span(f.MedianDecide)),
		})
	}
	p.table(rows)
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

func (a Assent) deliveriesCommand() *cobra.Command {
	var c connection
	var state string
	var limit int
	var again int64
	cmd := &cobra.Command{
		Use:   "deliveries [--state dead] [--limit N] [--redeliver NUMBER]",
		Short: "List what is sent outside: dead letters, or what waits or was sent",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return asking(a, c, func(s *client.Client) (openapi.Deliveries, error) {
				if again > 0 {
					if err := s.Redeliver(cmd.Context(), again); err != nil {
						return openapi.Deliveries{}, err
					}
				}
				d, err := s.Deliveries(cmd.Context(), openapi.DeliveryState(state), limit)
				return openapi.Deliveries{Deliveries: d}, err
			}, (*printer).deliveries)
		},
	}
	flags := connected(cmd, &c).Flags()
	flags.StringVar(&state, "state", "dead", "`STATE`: waiting, sent or dead")
	flags.IntVar(&limit, "limit", 50, "at most `N`, up to 500")
	flags.Int64Var(&again, "redeliver", 0, "try the dead one with this `NUMBER` again first")
	offer(cmd, "state", "waiting", "sent", "dead")
	return cmd
}

func (p *printer) deliveries(d openapi.Deliveries) {
	if len(d.Deliveries) == 0 {
		p.printf("no deliveries\n")
		return
	}
	rows := [][]styled{heading("NUMBER", "STATE", "TARGET", "EVENT", "SUBJECT", "ATTEMPTS", "MADE", "PROBLEM")}
	for _, x := range d.Deliveries {
		rows = append(rows, []styled{
			{bold, strconv.FormatInt(x.ID, 10)}, cell(string(x.State)), cell(x.Target), cell(x.Event), cell(x.Subject), cell(strconv.Itoa(x.Attempt)),
			cell(ago(x.Created, time.Now())), {plain, shorten(x.Problem, 80)},
		})
	}
	p.table(rows)
}

// entry prints one ledger entry on a line.
func (p *printer) entry(index int64, text json.RawMessage) {
	leaf, err := ledger.ParseLeaf(text)
	if err != nil {
		p.printf("%d  %s\n", index, string(text))
		return
	}
	p.leaf(index, leaf)
}

func (p *printer) leaf(index int64, leaf ledger.Leaf) {
	p.printf("%d  %s  %s", index, stamp(leaf.Time), styled{bold, leaf.Type})
	for _, part := range []string{leaf.Subject, leaf.Actor} {
		if part != "" {
			p.printf("  %s", part)
		}
	}
	for _, m := range leaf.Facts.Members {
		switch m.Key {
		case "agent", "target", "state", "outcome", "verdict", "cause", "digest":
			p.printf("  %s=%s", m.Key, m.Value.Text)
		case "chosen", "count", "broken_count":
			p.printf("  %s=%s", m.Key, string(m.Value.AppendJSON(nil)))
		}
	}
	p.printf("\n")
}
