package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint/catalog"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// names compares the names in one of the owner's files with the agents of a run. A name that is
// almost right is a warning; any other may belong to an agent that is not checked here.
type names struct {
	rule     string
	findings []diag.Finding
}

func (n *names) report(at diag.Range, text, message, expected string, known []string) {
	f := diag.Finding{
		Rule:     n.rule,
		Severity: diag.Info,
		Range:    at,
		Message:  message,
		Expected: expected,
	}
	if near := diag.Nearest(text, known); near != "" {
		f.Severity, f.Nearest = diag.Warning, near
	}
	n.findings = append(n.findings, f)
}

// owned reports agents that people own and that are none of the run: the
// owner would vote on calls of her own agent.
func (f *Fleet) owned(root *yamldoc.Node) []diag.Finding {
	if f == nil || len(f.subjects) == 0 {
		return nil
	}
	var ids []string
	for _, s := range f.subjects {
		ids = append(ids, s.Metadata.ID)
	}
	n := names{rule: ownedAgentUnknown}
	for _, person := range itemsOf(root.Get("people")) {
		for _, owns := range itemsOf(person.Get("owns")) {
			if !slices.Contains(ids, owns.Text) {
				n.report(
					owns.Range,
					owns.Text,
					fmt.Sprintf("no agent checked here has the id %q, so the owner may approve its calls", owns.Text),
					"the metadata.id of an agent",
					ids,
				)
			}
		}
	}

	return n.findings
}

// Owner reports what a decision configuration names and no agent of the run has: servers that are
// trusted, tools that facts are derived of, and what standing approvals may leave open.
func (l *Linter) Owner(file string, src []byte) diag.Report {
	doc, _ := yamldoc.Parse(file, src, yamldoc.Limits{})
	f := l.opt.Fleet
	if doc == nil || f == nil || slices.ContainsFunc(f.subjects, func(s Subject) bool { return s.open }) {
		return diag.Report{File: file}
	}
	n := names{rule: ownerNamesNothing}
	f.trusted(&n, doc.Root)
	f.derived(&n, doc.Root)
	f.standing(&n, doc.Root)

	return l.Other(file, n.findings)
}

func (f *Fleet) trusted(n *names, root *yamldoc.Node) {
	known := f.Servers()
	for _, s := range f.subjects {
		_, servers := s.Names()
		known = append(known, servers...)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, item := range itemsOf(root.Get("trusted_servers")) {
		if !slices.ContainsFunc(known, func(server string) bool { return policy.Glob(item.Text, server) }) {
			n.report(
				item.Range,
				item.Text,
				fmt.Sprintf("no agent checked here has a server %q, so nothing is trusted", item.Text),
				"the alias of a server in an agent's file",
				known,
			)
		}
	}
}

func (f *Fleet) derived(n *names, root *yamldoc.Node) {
	for _, entry := range itemsOf(root.Get("derived")) {
		f.target(n, entry, "its conditions find no facts")
	}
}

// target reports the target of an entry that no agent has. It returns false if it reported it, or
// if the target can't be read.
func (f *Fleet) target(n *names, entry *yamldoc.Node, consequence string) bool {
	target := entry.Get("target")
	switch {
	case target == nil || resolve.CheckTarget(target.Text) != nil:
		return false
	case f.has(target.Text):
		return true
	}
	n.report(
		target.Range,
		target.Text,
		fmt.Sprintf("no agent checked here has %q, so %s", target.Text, consequence),
		"a tool of an agent, such as tool NAME or mcp_tool SERVER/NAME",
		f.places(),
	)

	return false
}

// standing reports targets that no agent has, and arguments that the target does not take.
func (f *Fleet) standing(n *names, root *yamldoc.Node) {
	for _, entry := range itemsOf(root.Get("grants")) {
		if !f.target(n, entry, "nothing follows from this entry") {
			continue
		}
		tools := f.tools(matchOf(entry.Get("target").Text))
		if len(tools) == 0 {
			continue
		}
		var known []string
		for _, t := range tools {
			known = append(known, t.Args.Names()...)
		}
		slices.Sort(known)
		known = slices.Compact(known)
		for _, name := range itemsOf(entry.Get("ignored")) {
			if !slices.ContainsFunc(tools, func(t *catalog.Tool) bool {
				_, has := Typed(t, condition.ToolArgs, name.Text)
				return has
			}) {
				n.report(
					name.Range,
					name.Text,
					fmt.Sprintf("the tool takes no argument %q, so standing approvals compare all it has", name.Text),
					"an argument of the tool",
					known,
				)
			}
		}
	}
}

// tools returns the tools that a match can meet. It returns none if one of them is unknown.
func (f *Fleet) tools(m *policy.Match) []*catalog.Tool {
	var out []*catalog.Tool
	for _, s := range f.subjects {
		for _, c := range s.calls {
			switch {
			case !c.meets(m):
			case c.tool == nil:
				return nil
			default:
				out = append(out, c.tool)
			}
		}
	}

	return out
}

// places lists the tools of all agents as a configuration names them.
func (f *Fleet) places() []string {
	var out []string
	for _, s := range f.subjects {
		for _, c := range s.calls {
			switch {
			case c.kind == policy.Tool:
				out = append(out, "tool "+c.target)
			case c.kind == policy.MCPTool && !c.anyTarget:
				out = append(out, "mcp_tool "+c.server+"/"+c.target)
			}
		}
	}
	slices.Sort(out)

	return slices.Compact(out)
}

// has reports whether some agent can call a tool, named as a
// configuration does.
func (f *Fleet) has(target string) bool {
	m := matchOf(target)
	return slices.ContainsFunc(f.subjects, func(s Subject) bool { return s.Meets(m) })
}

// matchOf returns a match of the target that a configuration names.
func matchOf(target string) *policy.Match {
	kind, name, _ := strings.Cut(target, " ")
	m := policy.Match{Kinds: []policy.Kind{policy.Kind(kind)}, Targets: []string{name}}
	if server, tool, ok := strings.Cut(name, "/"); ok && m.Kinds[0] == policy.MCPTool {
		m.Servers, m.Targets = []string{server}, []string{tool}
	}

	return &m
}

func itemsOf(n *yamldoc.Node) []*yamldoc.Node {
	if n == nil {
		return nil
	}
	return n.Items
}
