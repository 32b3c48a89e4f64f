package answer

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/audit"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/template"
)

func (a commands) listCommand() *cobra.Command {
	var c remote.Connection
	var q client.Query
	cmd := &cobra.Command{
		Use:   "list [--mine] [--state STATES] [--agent ID] [--group GROUP] [--limit N]",
		Short: "List requests, those that wait for people first to be decided first",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.list(cmd, c, q) },
	}
	flags := remote.Connected(cmd, &c).Flags()
	flags.StringVar(
		&q.State,
		"state",
		"pending",
		"only in these `STATES`, separated by commas; open is pending and approved, all is every one",
	)
	flags.StringVar(&q.Agent, "agent", "", "only of the agent with this `ID`")
	flags.StringVar(&q.Group, "group", "", "only what somebody of this `GROUP` may answer")
	flags.BoolVar(
		&q.Mine,
		"mine",
		false,
		"only what waits for the token's person: what they have not answered, and their answer would count for",
	)
	flags.IntVar(&q.Limit, "limit", 50, "at most `N`, up to 500")
	flags.StringVar(&q.Cursor, "cursor", "", "`CURSOR` of the next page, as the page before named it")
	term.Offer(cmd, "state", states()...)
	return cmd
}

func states() []string {
	return []string{
		"all",
		"open",
		string(approval.Pending),
		string(approval.Approved),
		string(approval.Denied),
		string(approval.Expired),
		string(approval.Cancelled),
		string(approval.Consumed),
		string(approval.Answered),
	}
}

func (a commands) list(cmd *cobra.Command, c remote.Connection, q client.Query) error {
	switch q.State {
	case "all":
		q.State = ""
	case string(approval.Pending):
		q.Order = "due"
	}

	var toSignIn *signin.Page
	return remote.Ask(a.Caller, c, func(s *client.Client) (page *approval.Page, err error) {
		if !c.AsJSON && q.Cursor == "" {
			if toSignIn, err = signInsOf(cmd.Context(), s); err != nil {
				return nil, err
			}
		}

		return s.Requests(cmd.Context(), q)
	}, func(p *term.Printer, page *approval.Page) {
		if toSignIn != nil && len(toSignIn.SignIns) > 0 {
			printSignIns(p, toSignIn)
			p.Printf("\n")
		}
		printPage(p, page)
	})
}

func printPage(p *term.Printer, page *approval.Page) {
	if len(page.Requests) == 0 {
		p.Printf("no requests\n")
		return
	}
	p.Table(summaryRows(page.Requests, time.Now()))
	if page.Next != "" {
		p.Printf("%d of %d; the next page: --cursor %s\n", len(page.Requests), page.Total, page.Next)
	}
}

func summaryRows(requests []approval.Summary, now time.Time) *term.Table {
	table := term.Heading("ID", "STATE", "VOTES", "DUE", "GROUPS", "AGENT", "TARGET", "MESSAGE")
	for _, r := range requests {
		due := ""
		if r.State == approval.Pending {
			due = term.Until(r.Deadline, now)
		}
		table.Row(
			term.Bold.Of(r.ID), r.State, votesOf(r), due, answerersOf(r), r.Agent, r.Target, term.Dim.Of(messageOf(r)),
		)
	}

	return table
}

// votesOf returns how many of the required approvals a request has. Questions have none.
func votesOf(r approval.Summary) string {
	if r.Question {
		return "question"
	}
	return fmt.Sprintf("%d/%d", r.Approvals, max(r.Needed, 1))
}

// messageOf returns a request's message for a list. A summary omits it if it could repeat values
// that a policy hides.
func messageOf(r approval.Summary) term.Ready {
	if r.Message == "" {
		return "hidden by policy"
	}
	return term.Ready(term.Shorten(r.Message, 60))
}

// answerersOf names the groups that may answer, or the person to whom a question is addressed.
func answerersOf(r approval.Summary) string {
	if names := GroupNames(r.Groups); !r.Question || r.Principal == "" || names != GroupNames(nil) {
		return names
	}
	return "only " + r.Principal
}

func GroupNames(groups []string) string {
	names := strings.Join(groups, ",")
	if names == "" {
		return "any"
	}
	return names
}

func (a commands) showCommand() *cobra.Command {
	var c remote.Connection
	var all bool
	cmd := &cobra.Command{
		Use:               "show ID [--all]",
		Short:             "Show one request: what would run, who asks and why, who must answer",
		Args:              term.OneOf("the ID of a request, as `assent list` shows it"),
		ValidArgsFunction: a.completeIDs(&c),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.show(cmd, c, args[0], all) },
	}
	remote.Connected(cmd, &c).
		Flags().
		BoolVar(&all, "all", false, "leave nothing out, however long the arguments are; and tell what the ledger says")
	return cmd
}

func (a commands) show(cmd *cobra.Command, c remote.Connection, id string, all bool) error {
	server, err := a.Dial(c)
	if err != nil {
		return err
	}
	r, err := server.Request(cmd.Context(), id)
	if err != nil {
		return remote.Explain(err)
	}
	p := a.Printer()
	if c.AsJSON {
		return p.Document(r)
	}
	s := viewOn(p, all)
	s.request(r)
	if all {
		history, err := server.History(cmd.Context(), id)
		if err != nil {
			return remote.Explain(err)
		}
		p.Printf("\nLedger\n")
		for _, e := range history {
			audit.PrintEntry(p, e.Index, e.Leaf)
		}
	}

	return p.Done()
}

// completeIDs completes the ids of pending requests. If an error occurs, there are no completions.
func (a commands) completeIDs(c *remote.Connection) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		server, err := a.Dial(*c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		page, err := server.Requests(cmd.Context(), client.Query{State: "open", Order: "due"})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, r := range page.Requests {
			out = append(out, template.Escape(r.ID)+"\t"+template.Escape(r.Agent+", "+r.Target))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
