package main

import (
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/answer"
	"github.com/assent-dev/assent/cmd/internal/audit"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/decide"
	"github.com/assent-dev/assent/cmd/internal/demo"
	"github.com/assent-dev/assent/cmd/internal/hook"
	"github.com/assent-dev/assent/cmd/internal/hookfile"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/cmd/internal/rapcall"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/request"
	"github.com/assent-dev/assent/cmd/internal/term"
)

// program is the command assent.
type program struct {
	term.Streams

	Backend operate.Backend
}

// Run executes the command and returns its exit code.
func (p program) Run(args []string) int {
	cmd := p.command
	if len(args) > 0 && args[0] == hookName {
		debug.SetGCPercent(hookGarbage)
		cmd = p.hookAlone
	}

	return term.Run(cmd(), p.Streams, args)
}

// hookName is the name of the command that runs before each tool call of a coding agent.
const hookName = "hook"

// hookGarbage is the percentage by which the memory of a hook grows before a garbage collection. A
// whole run of a hook takes less time than one collection.
const hookGarbage = 400

// hookAlone returns the command with only its hook commands, because creating all commands takes
// longer than deciding on a call.
func (p program) hookAlone() *cobra.Command {
	cmd := root()
	cmd.AddCommand(p.hooks())

	return cmd
}

func (p program) hooks() *cobra.Command {
	caller := remote.Caller{Reader: config.Reader{Streams: p.Streams}}
	operator := operate.Commands{Caller: caller, Backend: p.Backend}

	files := hookfile.Commands{Reader: caller.Reader, Check: hookFinds}

	return hook.Command(caller, hooksAlone, slices.Insert(files.All(), 0, operator.HookInbox())...)
}

func root() *cobra.Command {
	cmd := term.Parent("assent", "Decide when an agent must stop and ask, ask people, and prove what ran", "")
	cmd.Version = term.Version
	cmd.SetVersionTemplate("assent {{.Version}}\n")

	return cmd
}

func (p program) command() *cobra.Command {
	cmd := root()
	caller := remote.Caller{Reader: config.Reader{Streams: p.Streams}}
	operator := operate.Commands{Caller: caller, Backend: p.Backend}
	decider := decide.Decider{Streams: p.Streams}
	group := func(id, title string, commands ...*cobra.Command) {
		cmd.AddGroup(&cobra.Group{ID: id, Title: title})
		for _, c := range commands {
			c.GroupID = id
			cmd.AddCommand(c)
		}
	}
	group(
		"decide",
		"For runtimes:",
		decider.Command(),
		request.Command(caller),
		p.hooks(),
		p.rapCommand(operator),
		p.newMCP(operator),
	)
	group("answer", "For the people who answer:", answer.Commands(caller)...)
	group("audit", "For auditors:", audit.Commands(caller)...)
	group("operate", "For operators:", slices.Insert(operator.All(), 1, demo.Command(operator))...)
	cmd.AddCommand(term.VersionCommand("assent", p.Streams))

	return cmd
}

func (p program) rapCommand(operator operate.Commands) *cobra.Command {
	return term.Parent(
		"rap COMMAND",
		"Tools that speak RAP: put them behind approvals, call them, ask people for them",
		"rap speaks the Reactive Agent Protocol, user choice included (docs/contracts/rap.md).",
		slices.Insert(operator.RAP(), 0, rapcall.Command(p.Streams))...,
	)
}
