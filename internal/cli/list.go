package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/template"
)

func (a Assent) listCommand() *cobra.Command {
	var c connection
	var q client.Query
	cmd := &cobra.Command{
		Use:   "list [--mine] [--state STATES] [--agent ID] [--group GROUP] [--limit N]",
		Short: "List requests, those that wait for people first to be decided first",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.list(cmd, c, q) },
	}
	flags := connected(cmd, &c).Flags()
	flags.StringVar(&q.State, "state", "pending", "only in these `STATES`, separated by commas; open is pending and approved, all is every one")
	flags.StringVar(&q.Agent, "agent", "", "only of the agent with this `ID`")
	flags.StringVar(&q.Group, "group", "", "only what somebody of this `GROUP` may answer")
	flags.BoolVar(&q.Mine, "mine", false, "only what waits for the token's person: what they have not answered, and their answer would count for")
	flags.IntVar(&q.Limit, "limit", 50, "at most `N`, up to 500")
	flags.StringVar(&q.Cursor, "cursor", "", "`CURSOR` of the next page, as the page before named it")
	offer(cmd, "state", states()...)
	return cmd
}

func states() []string {
	return []string{"all", "open", string(approval.Pending), string(approval.Approved), string(approval.Denied), string(approval.Expired), string(approval.Cancelled), string(approval.Consumed), string(approval.Answered)}
}

// offer completes the value of a flag words.
func offer(cmd *cobra.Command, flag string, words ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag was defined by the caller
	}
}

func (a Assent) list(cmd *cobra.Command, c connection, q client.Query) error {
	switch q.State {
	case "all":
		q.State = ""
	case string(approval.Pending):
		q.Order = "due"
	}
	server, err := a.dial(c)
	if err != nil {
		return err
	}
	page, err := server.Requests(cmd.Context(), q)
	if err != nil {
		return answer(err)
	}
	p := a.printer()
	if c.asJSON {
		return p.document(page)
	}
	p.page(page, time.Now())
	return p.done()
}

func (p *printer) page(page *approval.Page, now time.Time) {
	if len(page.Requests) == 0 {
		p.printf("no requests\n")
		return
	}
	p.table(summaryRows(page.Requests, now))
	if page.Next != "" {
		p.printf("%d of %d; the next page: --cursor %s\n", len(page.Requests), page.Total, page.Next)
	}
}

func summaryRows(requests []approval.Summary, now time.Time) [][]styled {
	rows := [][]styled{heading("ID", "STATE", "VOTES", "DUE", "GROUPS", "AGENT", "TARGET", "MESSAGE")}
	for _, r := range requests {
		due := ""
		if r.State == approval.Pending {
			due = until(r.Deadline, now)
		}
		rows = append(rows, []styled{
			{bold, r.ID}, cell(string(r.State)), cell(votesOf(r)), cell(due),
			cell(answerersOf(r)), cell(r.Agent), cell(r.Target), {dim, messageOf(r)},
		})
	}
	return rows
}

// votesOf tells how many of the approvals are there that are needed; questions have none.
func votesOf(r approval.Summary) string {
	if r.Question {
		return "question"
	}
	return fmt.Sprintf("%d/%d", r.Approvals, max(r.Needed, 1))
}

// messageOf is a request's message in a list; a summary goes without it where policy hides what it could repeat.
func messageOf(r approval.Summary) ready {
	if r.Message == "" {
		return "hidden by policy"
	}
	return ready(shorten(r.Message, 60))
}

// answerersOf names the groups that may answer, or the one person whom a question is for.
func answerersOf(r approval.Summary) string {
	if names := groupNames(r.Groups); !r.Question || r.Principal == "" || names != groupNames(nil) {
		return names
	}
	return "only " + r.Principal
}

func groupNames(groups []string) string {
	names := strings.Join(groups, ",")
	if names == "" {
		return "any"
	}
	return names
}

// shorten cuts a text for a list, at its first line's end too, and shows that it did. Where it matters the whole text is printed.
func shorten(text string, most int) string {
	first, _, more := strings.Cut(text, "\n")
	runes := []rune(first)
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	if more {
		return first + "…"
	}
	return first
}

func (a Assent) showCommand() *cobra.Command {
	var c connection
	var all bool
	cmd := &cobra.Command{
		Use:               "show ID [--all]",
		Short:             "Show one request: what would run, who asks and why, who must answer",
		Args:              oneOf("the ID of a request, as `assent list` shows it"),
		ValidArgsFunction: a.completeIDs(&c),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.show(cmd, c, args[0], all) },
	}
	connected(cmd, &c).Flags().BoolVar(&all, "all", false, "leave nothing out, however long the arguments are; and tell what the ledger says")
	return cmd
}

func (a Assent) show(cmd *cobra.Command, c connection, id string, all bool) error {
	server, err := a.dial(c)
	if err != nil {
		return err
	}
	r, err := server.Request(cmd.Context(), id)
	if err != nil {
		return answer(err)
	}
	p := a.printer()
	if c.asJSON {
		return p.document(r)
	}
	s := &shower{printer: p, now: time.Now(), all: all}
	s.request(r)
	if all {
		history, err := server.History(cmd.Context(), id)
		if err != nil {
			return answer(err)
		}
		p.printf("\nLedger\n")
		for _, e := range history {
			p.entry(e.Index, e.Leaf)
		}
	}
	return p.done()
}

// completeIDs offers the pending requests. Whatever goes wrong, there is just nothing to offer.
func (a Assent) completeIDs(c *connection) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		server, err := a.dial(*c)
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
