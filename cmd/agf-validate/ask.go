package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint/posture"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// askFlags are the flags of `agf-validate ask`.
type askFlags struct {
	agent     string
	side      sideFlags
	tools     []string
	tool      string
	server    string
	remote    string
	skill     string
	delegate  string
	where     string
	outcome   string
	format    string
	noHistory bool
}

func (v program) askCommand() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "ask --agent FILE --tool TOOL [--where TESTS] --outcome allow|ask|deny",
		Short: "Ask whether there is any call with that outcome: no, or yes with one that shows it",
		Long: "ask looks at all calls of one target at once (docs/contracts/diff.md).\n" +
			"Exit code 0: there is none; 1: there is one, or it is undecided; 2: usage, a file that can't be read,\n" +
			"or a question about no call at all, because the target is not declared or no call can satisfy --where.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return v.ask(f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.agent, "agent", "", "`FILE` of the agent, .agf.yaml")
	flags.StringArrayVar(&f.side.policies, "policies", nil, "`DIR` of *.policy.yaml (repeatable)")
	flags.StringVar(&f.side.config, "config", "", "decisions.yaml: `FILE` of what the owner chose")
	toolsFlag(flags, &f.tools, "a tool or an argument of --where that is not there is exit code 2")
	flags.StringVar(&f.tool, "tool", "", "`TOOL` that is called: a local one, or one of --server")
	flags.StringVar(&f.server, "server", "", "`ALIAS` of the MCP server")
	flags.StringVar(&f.remote, "remote", "", "`ALIAS` of the remote agent that has the skill")
	flags.StringVar(&f.skill, "skill", "", "`SKILL` of --remote")
	flags.StringVar(&f.delegate, "delegate", "", "`ALIAS` of the agent that is delegated to")
	flags.StringVar(
		&f.where,
		"where",
		"",
		"`TESTS` that hold for the call, such as 'amount>50000,currency=USD'",
	)
	flags.StringVar(&f.outcome, "outcome", "", "`OUTCOME` to look for: allow, ask or deny")
	flags.BoolVar(&f.noHistory, "no-history", false, "calls without past calls only; otherwise with any past calls")
	flags.StringVar(&f.format, "format", "text", "`FORMAT` of the answer: text or json")
	term.Required(cmd, "agent", "outcome")
	term.Offer(cmd, "outcome", "allow", "ask", "deny")
	term.Offer(cmd, "format", "text", "json")

	return cmd
}

// call returns the call that the flags describe.
func (f askFlags) call() (resolve.Call, error) {
	has := func(s string) bool { return s != "" }
	local := !has(f.server) && !has(f.remote) && !has(f.skill)
	switch {
	case has(f.tool) && local && !has(f.delegate):
		return resolve.Call{Kind: resolve.Tool, Tool: f.tool}, nil
	case has(f.tool) && has(f.server) && !has(f.remote) && !has(f.skill) && !has(f.delegate):
		return resolve.Call{Kind: resolve.MCPTool, Server: f.server, Tool: f.tool}, nil
	case has(f.skill) && has(f.remote) && !has(f.tool) && !has(f.server) && !has(f.delegate):
		return resolve.Call{Kind: resolve.Skill, Agent: f.remote, Skill: f.skill}, nil
	case has(f.delegate) && local && !has(f.tool):
		return resolve.Call{Kind: resolve.Delegation, Agent: f.delegate}, nil
	}

	return resolve.Call{}, errors.New(
		"name one target: --tool, --server with --tool, --remote with --skill, or --delegate",
	)
}

func (v program) ask(f askFlags) error {
	call, err := f.call()
	if err != nil {
		return err
	}
	q := posture.Query{Call: call, NoHistory: f.noHistory}
	if err := q.Outcome.UnmarshalText([]byte(f.outcome)); err != nil {
		return fmt.Errorf("--outcome: %w", err)
	}
	if q.Where, err = posture.ParseWhere(f.where); err != nil {
		return fmt.Errorf("--where: %w", err)
	}
	if f.format != "text" && f.format != "json" {
		return fmt.Errorf("--format: %q is none of text, json", f.format)
	}
	src, err := term.ReadFile(f.agent, v.In)
	if err != nil {
		return err
	}

	side := &sideTree{what: f.agent, files: []sideFile{{name: f.agent, src: src, kind: agentKind}}}
	compiled, err := v.compile(side, f.side)
	if err != nil {
		return err
	}
	plan := compiled.sides[""].Plan
	if why := q.Vacuous(plan); why != "" {
		return fmt.Errorf("the question is about no call of %s: %s", call.Target(), why)
	}
	catalogs, err := v.offered(f.tools)
	if err == nil {
		err = unheld(f.tools, catalogs, []*schema.Agent{plan.Agent()})
	}
	if err != nil {
		return err
	}
	if why := catalogs.Unoffered(plan, &q.Call, q.Where); why != "" {
		return fmt.Errorf("the question is about no call of %s: %s", call.Target(), why)
	}
	answer := q.Ask(plan)
	if err := v.printAnswer(f.format, call, answer); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if answer.Found != condition.No {
		return term.Exit(term.ExitFindings)
	}

	return nil
}

func didYouMean(name string, known []string) string {
	if near := diag.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q", near)
	}
	return ""
}

// printAnswer prints the answer to a query.
func (v program) printAnswer(format string, call resolve.Call, a posture.Answer) error {
	if format == "json" {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(a); err != nil {
			return err
		}

		_, err := v.Out.Write([]byte(term.JSONSafe(b.String())))

		return err
	}

	text := a.Found.String() + ": no such call of " + call.Target()
	switch a.Found {
	case condition.Yes:
		text = "yes: " + string(a.Witness)
	case condition.Undecided:
		text = "undecided: " + a.Why
	}

	_, err := fmt.Fprintln(v.Out, term.Scrub(strings.ReplaceAll(text, "\n", " ")))

	return err
}
