// Package request implements `assent request`: a runtime on the command line that presents a call
// and runs it once it is allowed.
package request

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

type command struct{ remote.Caller }

// requestFlags are the flags of assent request.
type requestFlags struct {
	remote.Connection
	agent string
	call  string
	key   string
	says  string // file of what the agent says about the call
	wait  bool
	no    int // exit code when it may not run
}

func Command(caller remote.Caller) *cobra.Command {
	a := command{caller}

	var f requestFlags
	cmd := &cobra.Command{
		Use:   "request --agent ID --call FILE|- [--context FILE] [--wait] [-- COMMAND...]",
		Short: "Present a call that wants to run; wait, and run a command once it may",
		Long: "request is a runtime on the command line. It presents the call; with --wait, or with a COMMAND, it " +
			"waits for people, takes the one run,\n" +
			"and only then runs COMMAND with the approved arguments on its standard input, or prints them.\n" +
			"Exit code 0: it may run (and COMMAND's own otherwise), 1: it may not, or not yet, 2: nobody could " +
			"tell, so it may not either.\n" +
			"A hook whose agent stops on 2 alone needs --denied-exit-code 2: it takes 1 for a warning, and runs the " +
			"call.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return errors.New("expected the COMMAND behind --")
			}
			ctx, stop := system.UntilSignal(cmd)
			defer stop()
			return a.request(ctx, f, args)
		},
	}
	flags := remote.Connected(cmd, &f.Connection).Flags()
	flags.StringVar(&f.agent, "agent", "", "`ID` of the agent")
	flags.StringVar(
		&f.call,
		"call",
		"-",
		"`FILE` with one call as JSON (docs/contracts/decide.md), - for standard input",
	)
	flags.StringVar(
		&f.key,
		"key",
		"",
		"idempotency `KEY`: the same key with the same call gets the same answer for a day",
	)
	flags.StringVar(
		&f.says,
		"context",
		"",
		"`FILE` of what the agent says about the call, JSON: a list of label with text, link or diff",
	)
	flags.BoolVar(&f.wait, "wait", false, "wait for people, and take the run")
	flags.IntVar(
		&f.no,
		"denied-exit-code",
		term.ExitNo,
		"exit with `N` instead of 1 when the call may not run, or not yet: from 1 to 125",
	)
	term.Required(cmd, "agent")
	return cmd
}

func (a command) request(ctx context.Context, f requestFlags, command []string) error {
	if f.no < 1 || f.no > 125 {
		return fmt.Errorf(
			"--denied-exit-code: expected a number from 1 to 125, not %d: 0 would say that it may run",
			f.no,
		)
	}

	args, doc, err := a.mayRun(ctx, f, len(command) > 0)
	var no *term.ExitError
	if errors.As(err, &no) && no.Code == term.ExitNo {
		no.Code = f.no
	}
	if err != nil {
		return err
	}

	return a.runApproved(ctx, f, args, doc, command)
}

// mayRun presents the call, and returns the arguments that may run and the server's document. Every
// error means that the call may not run.
func (a command) mayRun(ctx context.Context, f requestFlags, command bool) (args string, doc any, err error) {
	says, err := a.readContext(f)
	if err != nil {
		return "", nil, err
	}
	call, args, err := a.readCall(f.call)
	if err != nil {
		return "", nil, err
	}
	server, err := a.Dial(f.Connection)
	if err != nil {
		return "", nil, err
	}
	opened, err := server.Open(ctx, f.agent, call, client.OpenOptions{Key: f.key, Context: says})
	if err != nil {
		return "", nil, remote.Explain(err)
	}
	switch {
	case opened.Outcome == resolve.Ask && (f.wait || command):
		final, err := a.permitted(ctx, server, f, opened, call)
		if err != nil {
			return "", nil, err
		}
		return string(final.Current().Call.Args), final, nil
	case opened.Outcome == resolve.Allow:
		return args, opened, nil
	}

	return "", nil, a.notAllowed(f, opened)
}

// readContext reads the agent's context for its call, and returns an error for anything that the
// server would refuse.
func (a command) readContext(f requestFlags) ([]info.Item, error) {
	switch {
	case f.says == "":
		return nil, nil
	case f.says == "-" && f.call == "-":
		return nil, errors.New("--context and --call: standard input has one of them, so give a file for the other")
	}

	text, err := term.ReadFile(f.says, a.In)
	if err != nil {
		return nil, fmt.Errorf("--context: %w", err)
	}
	var out []info.Item
	read := json.NewDecoder(bytes.NewReader(text))
	read.DisallowUnknownFields()
	if err := read.Decode(&out); err != nil {
		return nil, fmt.Errorf("--context: expected a JSON list of label with text, link or diff: %w", err)
	}
	if _, err := read.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("--context: expected one JSON list, and nothing behind it")
	}
	if err := info.Check(out); err != nil {
		return nil, fmt.Errorf("--context: %w", err)
	}

	return out, nil
}

// readCall reads one call and the exact text of its arguments.
func (a command) readCall(path string) (call []byte, args string, err error) {
	if path == "-" {
		a.ExpectTyping("one call as JSON")
	}
	text, err := term.ReadFile(path, a.In)
	if err != nil {
		return nil, "", fmt.Errorf("--call: %w", err)
	}
	text = []byte(strings.TrimSpace(string(text)))
	parsed, err := resolve.ParseCall(text, value.Limits{})
	if err != nil {
		return nil, "", fmt.Errorf("--call: %w", err)
	}
	return text, string(parsed.Recorded().Args), nil
}

// permitted waits for people and takes the run.
func (a command) permitted(
	ctx context.Context, server *client.Client, f requestFlags, opened *approval.Opened, call []byte,
) (*approval.Request, error) {
	id := opened.Request.ID
	note := &term.Printer{W: a.Err}
	note.Printf("assent: %s waits for people, %s\n", id, term.Until(opened.Request.Deadline, time.Now()))
	printUnfillable(note, "assent: ", opened.Unfillable)
	decided, err := server.WaitDecided(ctx, id)
	if ctx.Err() != nil {
		return nil, term.No("stopped waiting: %s stays open (assent cancel takes it back)", term.ScrubLine(id))
	}
	if err != nil {
		return nil, remote.Explain(err)
	}
	if decided.State != approval.Approved {
		no := &client.NotRunError{Opened: opened, Request: decided}
		if f.AsJSON {
			if err := a.Printer().Document(decided); err != nil {
				return nil, err
			}
		}
		return nil, term.No("%s", term.ScrubLine(no.Error()))
	}

	final, err := server.Take(ctx, decided, call)
	if err != nil {
		return nil, remote.Explain(err)
	}
	return final, nil
}

// runApproved runs the command with exactly the approved arguments on
// its standard input, or prints what may run.
func (a command) runApproved(ctx context.Context, f requestFlags, args string, doc any, command []string) error {
	switch {
	case len(command) > 0:
		return a.runCommand(ctx, args, command)
	case f.AsJSON:
		return a.Printer().Document(doc)
	}

	return a.WriteOut(args+"\n", term.JSONSafe)
}

func (a command) runCommand(ctx context.Context, args string, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(args)
	cmd.Stdout = a.Out
	cmd.Stderr = a.Err
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return term.Exit(exit.ExitCode())
	}
	if err != nil {
		return fmt.Errorf("the run was taken, but the command failed: %w", err)
	}
	return nil
}

// notAllowed prints that a call may not run, or not yet.
func (a command) notAllowed(f requestFlags, opened *approval.Opened) error {
	p := a.Printer()
	if f.AsJSON {
		if err := p.Document(opened); err != nil {
			return err
		}
		return term.Exit(term.ExitNo)
	}

	if opened.Outcome != resolve.Ask {
		return term.No("%s", term.ScrubLine((&client.NotRunError{Opened: opened}).Error()))
	}
	printWaiting(p, opened)
	if err := p.Done(); err != nil {
		return err
	}
	return term.Exit(term.ExitNo)
}

// printWaiting prints the state of a call that people are asked about, and the next step.
func printWaiting(p *term.Printer, opened *approval.Opened) {
	r := opened.Request
	switch r.State {
	case approval.Pending:
		p.Printf("%s: pending, to be decided %s; not run\n", r.ID, term.Until(r.Deadline, time.Now()))
		printUnfillable(p, "  ", opened.Unfillable)
		if opened.PermitAge != "" {
			p.Printf("  once approved it can be used for %s\n", term.Scrub(opened.PermitAge))
		}
		p.Printf(
			"  next: the same command with --wait waits for the answer and takes the run; `assent show %s` tells "+
				"how it stands\n",
			r.ID,
		)
	case approval.Approved:
		p.Printf("%s: approved; not run\n", r.ID)
		p.Printf("  next: the same command with --wait takes the run\n")
	default:
		p.Printf("%s: %s\n", r.ID, (&client.NotRunError{Opened: opened, Request: r}).Error())
	}
}

// printUnfillable prints the stages for which there are not enough people.
func printUnfillable(p *term.Printer, mark string, all []approval.Shortage) {
	if len(all) > 0 {
		p.Printf(
			"%snobody can fill this quorum: %s; it can only be denied, or expire\n",
			term.Ready(mark),
			approval.ShortageWords(all),
		)
	}
}
