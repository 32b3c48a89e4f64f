package answer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/server/openapi"
)

// answerFlags are the flags of the commands that answer a request; each
// command has some of them.
type answerFlags struct {
	remote.Connection
	reason  string
	binding string
	yes     bool
	all     bool
	args    string
	written written
	preview bool
	grant   grantFlags
}

// way is one way to answer a request, which is one command.
type way struct {
	use   string
	short string
	long  string
	flags []string // in addition to those of the connection
	then  string   // what follows the ID on the command line; may be empty
	run   func(a commands, ctx context.Context, f answerFlags, args []string) error
}

// ways returns all ways to answer, in the order of the help.
func ways() []way {
	return []way{
		{
			use: "approve ID [--reason TEXT] [--grant-age 8h] [--grant-uses N] [--grant-session] [--grant " +
				"PATH=KIND:VALUE]... [--at-most PATH]... [--yes --binding PREFIX]",
			short: "Approve a request, after showing the whole call",
			long: "approve shows the whole call and asks for the last 6 characters of the id. Without a terminal it " +
				"asks nothing: --yes approves, and\n" +
				"--binding must name the call that you looked at before.\n\n" +
				"The grant flags offer a standing approval for exactly this call, within the bounds of the " +
				"policies: --at-most and --at-least let\n" +
				"one number differ, with the approved number as the edge. --grant lets one text differ: " +
				"command=words:go test *, file=below:docs,\n" +
				"url=host:docs.example.com, title=prefix:Release, city=equals:Oslo (repeat it for a list), " +
				"content=any_text. assent show prints what\nfits the call, and approve prints examples of what it covers.",
			flags: []string{
				"reason",
				"yes",
				"binding",
				"all",
				"grant-age",
				"grant-uses",
				"grant-session",
				"grant",
				"at-most",
				"at-least",
			},
			run: func(a commands, ctx context.Context, f answerFlags, args []string) error {
				return a.approve(ctx, f, args[0])
			},
		},
		{
			use:   "deny ID --reason TEXT [--yes]",
			short: "Deny a request",
			long:  "deny asks nothing, with a terminal or without; --yes is taken so that scripts can use the flags of approve.",
			flags: []string{"reason", "binding", "yes"},
			run: func(a commands, ctx context.Context, f answerFlags, args []string) error {
				if strings.TrimSpace(f.reason) == "" {
					return errors.New("--reason: expected a text; the agent and the record get it")
				}

				return a.refuse(ctx, f, args[0], openapi.VoteBody{Verdict: approval.Deny, Reason: f.reason})
			},
		},
		{
			use:   "respond ID TEXT",
			short: "Answer the agent instead of letting the call run",
			flags: []string{"reason", "binding", "yes"},
			then:  "a TEXT in quotes",
			run: func(a commands, ctx context.Context, f answerFlags, args []string) error {
				if strings.TrimSpace(args[1]) == "" {
					return errors.New("expected a TEXT that the agent is told")
				}
				body := openapi.VoteBody{
					Verdict:  approval.Respond,
					Response: args[1],
					Reason:   f.reason,
				}

				return a.refuse(ctx, f, args[0], body)
			},
		},
		{
			use:   "choose ID NUMBER [--reason TEXT] [--all] [--yes --binding PREFIX]",
			short: "Answer a tool's question with one of its choices",
			long: "choose shows the question and asks for the last 6 characters of the id. NUMBER is the one in " +
				"brackets in front of the choice; its words\n" +
				"are never taken for it. Without a terminal it asks nothing: --yes answers, and --binding must name " +
				"the call that you looked at before.",
			flags: []string{"reason", "yes", "binding", "all"},
			then:  "the NUMBER of a choice",
			run: func(a commands, ctx context.Context, f answerFlags, args []string) error {
				number, err := readNumber(args[1])
				if err != nil {
					return err
				}

				return a.answerQuestion(ctx, f, args[0], &number)
			},
		},
		{
			use: "answer ID [--field NAME=VALUE]... [--text TEXT] [--data FILE|-] [--reason TEXT] [--all] [--yes --binding " +
				"PREFIX]",
			short: "Answer a question with a text or a form",
			long: "answer shows the question and every field of its form, then the answer, and asks for the last 6 " +
				"characters of the id. A field that isn't\n" +
				"named takes its default; naming one again picks several options. --data reads the whole answer as " +
				"JSON. Without any of them it asks for\n" +
				"one field after the other. Without a terminal it asks nothing: --yes answers, and --binding must " +
				"name the question that you looked at.",
			flags: []string{"field", "text", "data", "reason", "yes", "binding", "all"},
			run: func(a commands, ctx context.Context, f answerFlags, args []string) error {
				return a.submit(ctx, f, args[0])
			},
		},
		{
			use:   "dismiss ID [--reason TEXT] [--all] [--yes --binding PREFIX]",
			short: "Close a question without an answer, which picks the default of choices",
			long: "dismiss shows the question and asks for the last 6 characters of the id. A tool that asks for a choice " +
				"is told its default: it can't\n" +
				"tell a dismissal from a choice. One that asks for a text or a form gets no answer. Without a terminal it asks nothing: --yes dismisses, and --binding must name the call " +
				"that you looked at before.",
			flags: []string{"reason", "yes", "binding", "all"},
			run: func(a commands, ctx context.Context, f answerFlags, args []string) error {
				return a.answerQuestion(ctx, f, args[0], nil)
			},
		},
		{
			use:   "edit ID [--args FILE|-] [--reason TEXT] [--preview] [--yes --binding PREFIX]",
			short: "Approve a request with other arguments",
			long: "edit opens the arguments in $VISUAL or $EDITOR, or takes them from --args. The edited call is a " +
				"new call: it is decided again in full,\n" +
				"votes on the old arguments no longer count, and yours counts for the new ones. What changes is " +
				"shown before it is asked for.",
			flags: []string{"args", "reason", "preview", "yes", "binding"},
			run: func(a commands, ctx context.Context, f answerFlags, args []string) error {
				return editing{a}.edit(ctx, f, args[0])
			},
		},
		{
			use:   "cancel ID [--reason TEXT]",
			short: "Take a request back",
			flags: []string{"reason"},
			run: func(a commands, ctx context.Context, f answerFlags, args []string) error {
				return a.cancel(ctx, f, args[0])
			},
		},
	}
}

// answerCommand returns the command for a way to answer.
func (a commands) answerCommand(w way) *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use:               w.use,
		Short:             w.short,
		Long:              w.long,
		Args:              w.check,
		ValidArgsFunction: a.completeIDs(&f.Connection),
		RunE:              func(cmd *cobra.Command, args []string) error { return w.run(a, cmd.Context(), f, args) },
	}
	if strings.Contains(w.then, "choice") {
		cmd.ValidArgsFunction = a.completeChoices(&f.Connection)
	}
	known, flags := f.known(), remote.Connected(cmd, &f.Connection).Flags()
	for _, name := range w.flags {
		flags.AddFlag(known.Lookup(name))
	}

	return cmd
}

// check checks the arguments: the ID of a request, and what must follow it.
func (w way) check(_ *cobra.Command, args []string) error {
	switch {
	case w.then == "" && len(args) != 1:
		return errors.New("want the ID of a request, as `assent list` shows it")
	case w.then != "" && len(args) != 2:
		return fmt.Errorf("want the ID of a request and %s, got %d arguments", w.then, len(args))
	}

	return nil
}

// known returns all flags of answers.
func (f *answerFlags) known() *pflag.FlagSet {
	flags := pflag.NewFlagSet("answer", pflag.ContinueOnError)
	flags.StringVar(&f.reason, "reason", "", "`TEXT` for the record; of a denial for the agent, too")
	flags.StringVar(
		&f.binding,
		"binding",
		"",
		"`PREFIX` of the binding that you looked at, at least 12 digits; another call is refused",
	)
	flags.BoolVar(&f.yes, "yes", false, "don't ask; approving and answering need --binding too")
	flags.BoolVar(&f.all, "all", false, "leave nothing out, however long the texts are")
	flags.StringVar(&f.args, "args", "", "`FILE` of the new arguments, JSON; - for standard input")
	flags.StringArrayVar(
		&f.written.fields,
		"field",
		nil,
		"`NAME=VALUE` of one field of a form (repeatable; again for one more option of a list)",
	)
	flags.StringArrayVar(&f.written.text, "text", nil, "`TEXT` that a question asks for")
	flags.StringVar(&f.written.data, "data", "", "`FILE` of the whole answer, JSON; - for standard input")
	flags.BoolVar(&f.preview, "preview", false, "only show what the edit would do")
	flags.StringVar(&f.grant.age, "grant-age", "", "offer a standing approval for this `TIME`, such as 8h")
	flags.IntVar(&f.grant.uses, "grant-uses", 0, "offer a standing approval for `N` uses")
	flags.BoolVar(
		&f.grant.session,
		"grant-session",
		false,
		"offer a standing approval for the running session only",
	)
	flags.StringArrayVar(
		&f.grant.bounds,
		"grant",
		nil,
		"with a grant: `PATH=KIND:VALUE` of a text that may differ, such as 'command=words:go test *' (repeatable)",
	)
	flags.StringArrayVar(
		&f.grant.atMost,
		"at-most",
		nil,
		"with a grant: `PATH` of a number that may be smaller (repeatable)",
	)
	flags.StringArrayVar(
		&f.grant.atLeast,
		"at-least",
		nil,
		"with a grant: `PATH` of a number that may be larger (repeatable)",
	)

	return flags
}
