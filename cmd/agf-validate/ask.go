package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/posture"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// askFlags are the flags of `agf-validate ask`.
type askFlags struct {
	agent     string
	agents    string
	side      sideFlags
	tools     []string
	tool      string
	server    string
	remote    string
	skill     string
	delegate  string
	where     string
	outcome   string
	atLeast   []string
	within    string
	at        string
	format    string
	noHistory bool
}

func (v compiling) askCommand() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use: "ask (--agent FILE | --agents DIR) [TARGET] [--where TESTS] " +
			"(--outcome allow|ask|deny | --at-least GROUP:N | --within-at-most TIME)",
		Short: "Ask whether there is any call with that outcome: no, or yes with one that shows it",
		Long: "ask looks at all calls of the targets at once (docs/contracts/diff.md).\n" +
			"Exit code 0: there is none, or every call is denied or asks as --at-least and --within-at-most say;\n" +
			"1: there is one, or one that does not, or it is undecided; 2: usage, a file that can't be read, or a\n" +
			"question about no call at all, because no target is declared or no call can satisfy --where.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return v.ask(f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.agent, "agent", "", "`FILE` of the agent, .agf.yaml")
	flags.StringVar(&f.agents, "agents", "", "`DIR` of agents: the question is about the calls of all of them")
	flags.StringArrayVar(&f.side.policies, "policies", nil, "`DIR` of *.policy.yaml (repeatable)")
	flags.StringVar(&f.side.config, "decisions", "", "decisions.yaml: `FILE` of what the owner chose")
	toolsFlag(flags, &f.tools, "a tool or an argument of --where that is not there is exit code 2")
	flags.StringVar(&f.tool, "tool", "", "`TOOL` that is called: a local one, or one of --server; may be a glob")
	flags.StringVar(&f.server, "server", "", "`ALIAS` of the MCP server; may be a glob")
	flags.StringVar(&f.remote, "remote", "", "`ALIAS` of the remote agent that has the skill; may be a glob")
	flags.StringVar(&f.skill, "skill", "", "`SKILL` of --remote; may be a glob")
	flags.StringVar(&f.delegate, "delegate", "", "`ALIAS` of the agent that is delegated to; may be a glob")
	flags.StringVar(
		&f.where,
		"where",
		"",
		"`TESTS` that hold for the call, such as 'amount>50000,currency=USD'",
	)
	flags.StringVar(&f.outcome, "outcome", "", "`OUTCOME` to look for: allow, ask or deny")
	flags.StringArrayVar(&f.atLeast, "at-least", nil,
		"`GROUP:N`: every call is denied, or no approval is possible without N people of the group (repeatable)")
	flags.StringVar(&f.within, "within-at-most", "",
		"`TIME`, such as 1h: every call is denied, or its request ends within that time")
	flags.StringVar(&f.at, "at", "", "`MOMENT` of the calls, such as 2026-11-28T14:30:00Z; without it any, and none")
	flags.BoolVar(&f.noHistory, "no-history", false, "calls without past calls only; otherwise with any past calls")
	flags.StringVar(&f.format, "format", "text", "`FORMAT` of the answer: text or json")
	term.Offer(cmd, "outcome", "allow", "ask", "deny")
	term.Offer(cmd, "format", "text", "json")
	cmd.MarkFlagsOneRequired("agent", "agents")
	cmd.MarkFlagsMutuallyExclusive("agent", "agents")
	cmd.MarkFlagsOneRequired("outcome", "at-least", "within-at-most")
	cmd.MarkFlagsMutuallyExclusive("outcome", "at-least")
	cmd.MarkFlagsMutuallyExclusive("outcome", "within-at-most")

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
	case local && !has(f.tool) && !has(f.delegate) && has(f.agents):
		return resolve.Call{}, nil // every call
	}

	return resolve.Call{}, errors.New(
		"name one target: --tool, --server with --tool, --remote with --skill, or --delegate",
	)
}

// query returns the question that the flags ask.
func (f askFlags) query() (posture.Query, error) {
	call, err := f.call()
	q := posture.Query{Call: call, NoHistory: f.noHistory}
	if err != nil {
		return q, err
	}
	if f.outcome != "" {
		if err := q.Outcome.UnmarshalText([]byte(f.outcome)); err != nil {
			return q, fmt.Errorf("--outcome: %w", err)
		}
	} else {
		q.Goal = &posture.Goal{AtLeast: map[string]int{}}
	}
	for _, text := range f.atLeast {
		group, n, err := seatsOf(text)
		if err == nil && q.Goal.AtLeast[group] > 0 {
			err = fmt.Errorf("%q is named twice", group)
		}
		if err != nil {
			return q, fmt.Errorf("--at-least: %w", err)
		}
		q.Goal.AtLeast[group] = n
	}
	if f.within != "" {
		if q.Goal.Within, err = policy.ParseDuration(f.within); err != nil {
			return q, fmt.Errorf("--within-at-most: %w; write it as 30m or 1h", err)
		}
	}
	if f.at != "" {
		if q.Call.At, err = resolve.ParseMoment(f.at); err != nil {
			return q, fmt.Errorf("--at: %w", err)
		}
	}
	if q.Where, err = posture.ParseWhere(f.where); err != nil {
		return q, fmt.Errorf("--where: %w", err)
	}
	return q, nil
}

// seatsOf reads GROUP:N.
func seatsOf(text string) (group string, n int, err error) {
	at := strings.LastIndex(text, ":")
	if at > 0 {
		n, err = strconv.Atoi(text[at+1:])
	}
	if at <= 0 || err != nil || n < 1 || text[at+1:] != strconv.Itoa(n) {
		return "", 0, fmt.Errorf("%q: expected a group and a number from 1 on, such as finance:2", text)
	}
	return text[:at], n, nil
}

func (v compiling) ask(f askFlags) error {
	q, err := f.query()
	if err != nil {
		return err
	}
	if f.format != "text" && f.format != "json" {
		return fmt.Errorf("--format: %q is none of text, json", f.format)
	}
	sides, catalogs, err := v.asked(f)
	if err != nil {
		return err
	}
	answer, err := askAll(q, sides, catalogs)
	if err != nil {
		return err
	}
	if err := v.printAnswer(f.format, q, answer); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if answer.Found != condition.No {
		return term.Exit(term.ExitFindings)
	}

	return nil
}

// asked compiles the agents of a question, by the path of their file.
func (v compiling) asked(f askFlags) (map[string]*posture.Side, lint.Catalogs, error) {
	var tree *sideTree
	if f.agents != "" {
		var err error
		if tree, err = v.readTree(f.agents); err != nil {
			return nil, nil, err
		}
	} else {
		src, err := term.ReadFile(f.agent, v.In)
		if err != nil {
			return nil, nil, err
		}
		tree = &sideTree{what: f.agent, files: []sideFile{{name: f.agent, src: src, kind: agentKind}}}
	}
	all, err := v.compile(tree, f.side)
	if err != nil {
		return nil, nil, err
	}
	if len(all.sides) == 0 {
		return nil, nil, fmt.Errorf("%s has no agent (*.agf.yaml)", f.agents)
	}
	catalogs, err := v.offered(f.tools)
	if err == nil {
		err = unheld(f.tools, catalogs, all.name(catalogs))
	}
	return all.sides, all.catalogs, err
}

// askAll answers a question about the calls of all agents. The error says why the question is about no
// call at all.
func askAll(q posture.Query, sides map[string]*posture.Side, catalogs lint.Catalogs) (posture.Answer, error) {
	answer, asked := posture.Answer{}, false
	why, declared := "no agent declares such a target", false
	for _, file := range slices.Sorted(maps.Keys(sides)) {
		side := sides[file]
		queries, ok := q.Over(side)
		if !ok {
			const why = "the names that rules have are too many to tell apart"
			answer, asked = posture.Answer{Found: condition.Undecided, Why: why, Agent: file}, true
		}
		for _, one := range queries {
			none := one.Vacuous(side.Plan)
			if none == "" {
				none = catalogs.Unoffered(side.Plan, &one.Call, one.Where)
			}
			if none != "" {
				is := !slices.ContainsFunc(side.Plan.Decide(&one.Call).Reasons,
					func(r resolve.Reason) bool { return r.Code == resolve.NotDeclared })
				if is || !declared { // the other reason says more
					why, declared = none, is
				}
				continue
			}
			asked = true
			a := one.Ask(side.Plan)
			if len(sides) > 1 {
				a.Agent = file
			}
			switch a.Found {
			case condition.Yes:
				return a, nil
			case condition.Undecided:
				answer = a
			}
		}
	}
	if !asked {
		return answer, fmt.Errorf("the question is about no call of %s: %s", askedTarget(q), why)
	}
	return answer, nil
}

func askedTarget(q posture.Query) string {
	if q.Call.Kind == "" {
		return "any target"
	}
	return q.Call.Target()
}

func didYouMean(name string, known []string) string {
	if near := diag.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q", near)
	}
	return ""
}

// printAnswer prints the answer to a query.
func (v compiling) printAnswer(format string, q posture.Query, a posture.Answer) error {
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

	of := ""
	if a.Agent != "" {
		of = " for " + a.Agent
	}
	text := a.Found.String() + ": no such call of " + askedTarget(q)
	if q.Goal != nil {
		text = "holds: every such call of " + askedTarget(q) + " is denied, or asks as it has to"
	}
	switch {
	case a.Found == condition.Undecided:
		text = "undecided" + of + ": " + a.Why
	case a.Found == condition.Yes && q.Goal != nil:
		text = "refuted" + of + ": " + string(a.Witness) + ": " + a.Instead
	case a.Found == condition.Yes:
		text = "yes" + of + ": " + string(a.Witness)
	}

	_, err := fmt.Fprintln(v.Out, term.Scrub(strings.ReplaceAll(text, "\n", " ")))

	return err
}
