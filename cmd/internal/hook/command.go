// Package hook implements `assent hook`, which coding agents run before their tools. It reads the
// product's document on standard input, evaluates the rules for the call, asks people if the rules
// require it, and answers in the product's format. Everything but an explicit allow blocks.
package hook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/fileerrors"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
)

// Alone opens a Desk that works without a server. asker is recorded as the origin of its requests,
// and person is the person who uses this machine; person may be empty.
type Alone func(ctx context.Context, c config.MCP, asker, person string) (Desk, error)

type command struct {
	remote.Caller

	alone Alone
}

// flags are the flags that all products have.
type flags struct {
	remote.Connection
	config.HookFlags

	agent     string // id, at a server
	person    string
	principal string
	wait      time.Duration
	defers    bool
	observe   bool
}

// Command returns the command `assent hook`, with one subcommand per product and the commands in
// further.
func Command(caller remote.Caller, alone Alone, further ...*cobra.Command) *cobra.Command {
	a := command{caller, alone}
	var all []*cobra.Command
	for _, p := range products() {
		all = append(all, a.product(p))
	}

	cmd := term.Parent(
		"hook COMMAND",
		"What coding agents run before their tools: nothing runs that nobody allowed",
		"hook reads the hook document of a coding agent on standard input and answers in its way "+
			"(docs/contracts/hook.md).",
		append(all, further...)...,
	)
	// A hook whose settings forgot the product must not pass for one that has no objection to the
	// call.
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return errors.New("expected the product whose hook this is, such as claude-code: `" + cmd.CommandPath() +
			" --help` lists them")
	}

	return cmd
}

// product returns the command of one product. An invalid command line also blocks the call.
func (a command) product(p *product) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   p.name + " --agent ID | --agent-file FILE",
		Short: "Answer a hook of " + p.title,
		Long: p.name + " answers a hook of " + p.title + ". It asks a server about the call (--server, --agent), or the " +
			"people of this machine\n(--agent-file; assent hook inbox shows what waits).\n" +
			"It waits for people as long as --wait says. Everything but an explicit allow blocks: exit code 2 with the " +
			"reason on standard error,\nor a document that denies. At events after a call it records how the call ended. " +
			"With --observe it HOLDS NOTHING UP.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return a.blocked(p, fmt.Errorf("expected no argument, and found %q", args[0]))
		},
		RunE: func(*cobra.Command, []string) error { return a.run(p, f) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return a.blocked(p, err) })
	f.add(cmd, p.wait)
	if p.defers {
		f.addDefer(cmd)
	}

	return cmd
}

// blocked blocks a call before any document was read.
func (a command) blocked(p *product, err error) error {
	catch()

	return a.answer(p, result{err: err})
}

// run reads and answers one document.
func (a command) run(p *product, f flags) error {
	var seen atomic.Pointer[event]
	r := guarded(f.wait+p.reserve, func(ctx context.Context) result { return a.decide(ctx, p, f, &seen) })
	if r.err == nil { // else standard error is what the model reads of the block
		fileerrors.Print(a.Err, r.fileErrors)
	}
	if r.event == nil {
		r.event = seen.Load()
	}
	if r.err != nil && (f.observe || r.event != nil && r.event.moment == after) {
		return a.tell(r.err, f.observe)
	}

	return a.answer(p, r)
}

// decide reads the document and returns the decision about its call.
func (a command) decide(ctx context.Context, p *product, f flags, seen *atomic.Pointer[event]) (out result) {
	text, err := readDocument(a.In)
	if err != nil {
		return result{err: err}
	}
	if out.event, out.err = readEvent(p, text); out.err != nil {
		return out
	}
	seen.Store(out.event)
	out.event.call.Principal = f.principal
	out.event.call.Workspace = out.event.workspace()
	if out.event.moment == after || f.observe {
		out.v = verdict{outcome: silent}
		out.err = a.report(ctx, p, f, out.event)
		return out
	}
	ctx, cancel := withParent(ctx)
	defer cancel()
	desk, err := a.desk(ctx, p, f)
	if err != nil {
		out.err = err
		return out
	}
	if d, ok := desk.(interface{ FileErrors() []diag.Finding }); ok {
		out.fileErrors = d.FileErrors()
	}

	r := &run{
		desk:   desk,
		event:  out.event,
		wait:   f.wait,
		native: f.Undeclared == config.Native,
		defers: f.defers && mayDefer(out.event),
	}
	touched := out.event.touches(f)
	if touched == "" && out.event.bringsSettings(ctx) {
		touched = "the settings of a coding agent, with files that git writes"
	}
	if touched != "" {
		r.insists = "It can touch " + touched + ", which decides what this agent may do."
	}
	out.v, err = r.present(ctx)
	out.err = errors.Join(explained(err), desk.Close())

	return out
}

// mayDefer reports whether a deferred call can't run without approval. In permission modes that
// allow more than the settings, the product would run it.
func mayDefer(e *event) bool {
	return e.moment == before && (e.mode == "default" || e.mode == "dontAsk" || e.mode == "acceptEdits")
}

// explained returns err as one line for the command line: a server's error with its explanation. It
// returns nil for nil.
func explained(err error) error {
	if err == nil {
		return nil
	}

	return errors.New(strings.ReplaceAll(remote.Explain(err).Error(), "\nnext: ", "; "))
}

// desk opens the local service if --agent-file is set, and otherwise connects to the server.
func (a command) desk(ctx context.Context, p *product, f flags) (Desk, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if f.Agent != "" {
		cfg, err := a.Hook(f.HookFlags)
		if err != nil {
			return nil, err
		}
		desk, err := a.alone(ctx, cfg, "hook/"+p.name, f.person)
		if err != nil {
			return nil, fmt.Errorf("the store of this machine: %w", err)
		}
		return desk, nil
	}

	c, err := a.Dial(f.Connection)
	if err != nil {
		return nil, err
	}

	return &served{client.Side(c, f.agent), c, f.agent}, nil
}

// check returns an error for flags that can't be combined.
func (f *flags) check() error {
	switch {
	case f.Agent != "" && f.agent != "":
		return errors.New("--agent is an agent of a server, and --agent-file asks without one: expected one of them")
	case f.Agent == "" && f.agent == "":
		return errors.New("expected --agent ID, of a server, or --agent-file FILE")
	case f.wait < 0 || f.wait > mostWait:
		return fmt.Errorf("--wait %s: expected a time from 0s to %s", f.wait, mostWait)
	case f.person != "" && f.People == "":
		return errors.New("--person is somebody of people.yaml: expected --people FILE beside it")
	case f.observe && (f.defers || f.Undeclared == config.Native):
		return errors.New("--observe holds nothing up: expected no --defer and no --undeclared native beside it")
	case f.agent != "" && f.Undeclared == "ask":
		return errors.New("--undeclared ask is for --agent-file: what a server does with tools that no file names, its " +
			"decision configuration says")
	case f.agent != "" && f.Strict:
		return errors.New("--strict is for --agent-file: what a server does with errors in its files, its own --strict says")
	case f.agent != "" && (f.Store+f.People+f.Decisions != "" || len(f.Policies) > 0):
		return errors.New("--store, --people, --policies and --decisions go with --agent-file: a server has its own")
	}

	return nil
}

// mostWait is the maximum of --wait. No product waits longer.
const mostWait = 24 * time.Hour
