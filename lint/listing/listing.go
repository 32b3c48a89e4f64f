// Package listing lists what agents may do: for every target of an
// agent whether its calls are allowed, asked about or denied, when, by
// whom, until when, and which line of which file says so. It is for
// auditors (docs/contracts/posture.md).
package listing

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// Agent is the listing of one agent. Its texts are unchanged from the
// files: code that shows them must make them safe first.
type Agent struct {
	ID      string
	Version string
	File    string
	Rows    []Row
}

// Row is what one rule says about the calls of a target, or that none
// has anything to say.
type Row struct {
	Target  string
	Outcome string // allowed, asked or denied; of a bound of the run: not enforced
	When    string // the condition in words
	By      string // who must approve; "" where nobody is asked
	Within  string // the deadline
	Timeout string // what happens when nobody has decided by then
	Rule    string // policy_ref and rule, or the place in the agent's file; "" for allowed
	File    string
	Line    int
}

// The outcomes of a row.
const (
	Allowed     = "allowed"
	Asked       = "asked"
	Refused     = "denied"
	NotEnforced = "not enforced"
)

// Of lists an agent under its plan.
func Of(agent *schema.Agent, plan *resolve.Plan) Agent {
	out := Agent{ID: agent.Metadata.ID, Version: agent.Metadata.Version, File: agent.File}
	for _, stop := range plan.Stopped() {
		out.Rows = append(out.Rows, Row{
			Target:  "every call",
			Outcome: Refused,
			When:    "always: " + stop.Detail,
			Rule:    stop.Policy,
			File:    stop.File,
			Line:    stop.Line,
		})
	}

	if len(out.Rows) > 0 {
		return out // nothing else that a file says has an effect
	}

	targets := plan.Targets()
	for i := range targets {
		allowed := Row{
			Target:  name(&targets[i]),
			Outcome: Allowed,
			When:    "always",
			File:    agent.File,
			Line:    declared(agent, &targets[i]),
		}
		out.Rows = append(out.Rows, rows(allowed, plan.Target(&targets[i]).Gates)...)
	}

	rest := &resolve.Call{Kind: resolve.Tool, Tool: "*"}
	for i := range plan.Target(rest).Gates {
		if g := &plan.Target(rest).Gates[i]; g.Source == resolve.FromActionSpace {
			row := rowOf("whatever is not listed", g)
			row.When = "always: the agent's file does not declare it, or its list does not allow it"
			out.Rows = append(out.Rows, row)
		}
	}

	out.Rows = append(out.Rows, bounds(agent)...)
	return out
}

// bounds lists what the file sets as bounds of a run, which assent does
// not enforce: it sees single calls.
func bounds(agent *schema.Agent) []Row {
	var out []Row
	c := &agent.Constraints
	for _, b := range []struct {
		group, name string
		limit       *int64
	}{
		{"budget", "max_token_usage", c.Budget.MaxTokenUsage},
		{"budget", "max_duration_seconds", c.Budget.MaxDurationSeconds},
		{"limits", "max_llm_calls", c.Limits.MaxLLMCalls},
		{"limits", "max_tool_calls", c.Limits.MaxToolCalls},
	} {
		if b.limit == nil {
			continue
		}
		out = append(out, Row{
			Target:  "the whole run",
			Outcome: NotEnforced,
			When:    fmt.Sprintf("by assent: %s %d", b.name, *b.limit),
			Rule:    "constraints." + b.group,
			File:    agent.File,
			Line:    agent.Doc.Root.Get("constraints").Get(b.group).Field(b.name).Key.Range.Start.Line,
		})
	}
	return out
}

// name is how a target is called in a listing.
func name(c *resolve.Call) string {
	switch {
	case c.Kind == resolve.MCPTool && c.Tool == "*":
		return "mcp_tool " + c.Server + "/* (any other tool)"
	case c.Kind == resolve.Skill && c.Skill == "*":
		return "skill " + c.Agent + "/* (any other skill)"
	case c.Kind == resolve.Delegation && c.Remote == resolve.RemoteYes:
		return c.Target() + " (remote)"
	default:
		return c.Target()
	}
}

// declared returns the line on which an agent's file declares a target: its
// entry, or that of its container.
func declared(a *schema.Agent, c *resolve.Call) int {
	space := &a.ActionSpace
	key, alias := "local_tools", c.Tool
	var listed *[]schema.ToolRef
	switch {
	case c.Kind == resolve.MCPTool:
		key, alias = "mcp_servers", c.Server
		for i := range space.MCPServers {
			if space.MCPServers[i].Alias == alias {
				listed = space.MCPServers[i].AllowedTools
			}
		}
	case c.Kind == resolve.Delegation && c.Remote == resolve.RemoteNo:
		key, alias = "local_agents", c.Agent
	case c.Kind != resolve.Tool:
		key, alias = "remote_agents", c.Agent
		for i := range space.RemoteAgents {
			if space.RemoteAgents[i].Alias == alias && c.Kind == resolve.Skill {
				listed = space.RemoteAgents[i].AllowedSkills
			}
		}
	}

	if listed != nil {
		for _, e := range *listed {
			if e.Name == c.Tool+c.Skill {
				return e.Range.Start.Line
			}
		}
	}

	for _, list := range space.Lists() {
		for _, e := range list.Entries {
			if list.Key == key && e.Alias == alias {
				return e.AliasRange.Start.Line
			}
		}
	}

	return 0
}

// rows lists what the gates of a target say. allowed is what is left
// when none of them speaks.
func rows(allowed Row, gates []resolve.Gate) []Row {
	if len(gates) == 0 {
		return []Row{allowed}
	}
	var out []Row
	always := false
	for i := range gates {
		out = append(out, rowOf(allowed.Target, &gates[i]))
		always = always || gates[i].When == nil && gates[i].Annotations() == nil
	}

	if !always {
		allowed.When = "when none of the rules above asks or denies"
		out = append(out, allowed)
	}
	return out
}

func rowOf(target string, g *resolve.Gate) Row {
	row := Row{
		Target:  target,
		Outcome: Asked,
		When:    when(g),
		Rule:    g.Rule,
		File:    g.File,
		Line:    g.Range.Start.Line,
	}
	if g.Policy != "" {
		row.Rule = g.Policy + "/" + g.Rule
	}
	if row.Rule == "" {
		row.Rule = "action_space"
	}
	if g.Outcome == resolve.Deny {
		row.Outcome = Refused
		if g.Source == resolve.FromPolicy {
			row.When += ": " + g.Detail()
		}
		return row
	}

	require := policy.Require{}
	if g.Require != nil {
		require = *g.Require
	}
	row.By, row.Within = People(&require), Deadline(&require)
	row.Timeout = Fallback(&require)
	return row
}

// when puts into words which calls a rule speaks about.
func when(g *resolve.Gate) string {
	var parts []string
	for _, hint := range g.Annotations() {
		wanted, required := g.Hint(hint)
		if !required {
			continue
		}
		part := hint + " is " + strconv.FormatBool(wanted)
		if assumed, known := policy.DefaultHint(hint); !known || assumed == wanted {
			part += " or not told"
		}
		parts = append(parts, part)
	}

	if except := g.Excepted(); except != nil {
		var all []string
		for _, hint := range slices.Sorted(maps.Keys(except)) {
			all = append(all, hint+" "+strconv.FormatBool(except[hint]))
		}
		parts = append(parts, "the call is not one with "+strings.Join(all, " and "))
	}
	if g.When != nil {
		parts = append(parts, Condition(g.When))
	}
	if len(parts) == 0 {
		return "always"
	}
	return "when " + strings.Join(parts, ", and ")
}

// Condition puts a condition into words: amount > 10000 and currency is
// "USD", or …
func Condition(e *condition.Expr) string {
	var groups []string
	for i := range e.Groups {
		groups = append(groups, group(&e.Groups[i]))
	}
	if len(groups) == 0 {
		return "always"
	}
	return strings.Join(groups, ", or ")
}

func group(g *condition.Group) string {
	var tests []string
	for i := range g.Matchers {
		m := &g.Matchers[i]
		if m.Takes || m.IsFact() {
			words := m.Key + " is given"
			if m.IsFact() {
				words = m.FactText()
			}
			tests = append(tests, words)
			continue
		}
		for j := range m.Tests {
			tests = append(tests, m.Key+" "+test(&m.Tests[j]))
		}
		if len(m.Tests) == 0 {
			tests = append(tests, m.Key+" is anything")
		}
	}

	if len(tests) == 0 {
		return "always"
	}
	return strings.Join(tests, " and ")
}

// test puts one test into words, with all of its operands.
func test(t *condition.Test) string {
	operands := t.Operands()
	list := make([]string, len(operands))
	for i := range operands {
		list[i] = operands[i].String()
	}
	if len(list) == 0 && t.Op != condition.In && t.Op != condition.NotIn {
		list = []string{t.OperandText()}
	}
	words := t.Op.InLists()
	switch {
	case t.Op == condition.Unreadable:
		return "is tested by what can't be read"
	case words == "":
		return t.String()
	case len(list) == 0 && (t.Op == condition.In || t.Op == condition.NotIn):
		return words + " nothing"
	}

	return strings.TrimSpace(words + " " + strings.Join(list, ", "))
}

// People says who must approve.
func People(r *policy.Require) string {
	var out []string
	for _, s := range r.Stages {
		out = append(out, fmt.Sprintf("%d of %s", s.People, s.Group))
	}
	for _, alternatives := range r.AnyOf {
		out = append(out, "("+alternatives.String()+")")
	}
	if len(out) == 0 {
		out = []string{"one approver"}
	}
	if !r.Reason.IsZero() {
		out = append(out, r.Reason.String())
	}
	return strings.Join(out, " and ")
}

// Deadline says until when.
func Deadline(r *policy.Require) string {
	if r.Within == 0 {
		return "the server's"
	}
	return policy.FormatDuration(r.Within)
}

// Fallback says what happens in the end, and who is called in before.
func Fallback(r *policy.Require) string {
	var out []string
	for _, e := range r.Escalate {
		call := "after " + policy.FormatDuration(e.After) + " " + e.To + " may approve too"
		if e.May == policy.MayLook {
			call = "after " + policy.FormatDuration(e.After) + " " + e.To + " may look and deny"
		}
		out = append(out, call)
	}

	last := map[policy.Timeout]string{
		policy.TimeoutApprove:  "approved",
		policy.TimeoutEscalate: "passed on once, then denied",
	}[r.Fallback()]
	if last == "" {
		last = "denied"
	}
	return strings.Join(append(out, last), "; ")
}
