package rules

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

// childDropsApproval reports sub-agents that may make a call without approval although their
// parent asks about that call.
func childDropsApproval(p *lint.Pass) {
	root := p.Graph.Root
	for _, link := range root.Children {
		var demanded []demand
		for _, g := range gatesOf(root.Agent) {
			if g.asks() {
				demanded = append(demanded, demand{gate: g})
			}
		}
		w := walk{
			pass: p,
			link: link,
			seen: map[*schema.Member]bool{root: true},
		}
		w.visit(link.To, demanded)
	}
}

// target is something that can be called: a local tool, a tool of a server, a skill or a remote
// agent. If name is "", it is every tool or skill of its container.
type target struct{ kind, server, name string }

const (
	localTool = "tool"
	mcpTool   = "MCP tool"
	skill     = "skill"
	remote    = "remote agent"
)

// gate is the approval that one entry of a file sets for a target. approval is nil if the entry
// has none. If a target has several entries, all of them apply.
type gate struct {
	target
	alias    string // of the container in this file
	approval *schema.Approval
	at       diag.Range // the entry's name
}

// asks reports whether the gate can ask for an approval.
func (g gate) asks() bool { return g.approval != nil && g.approval.Form != schema.Never }

func gatesOf(a *schema.Agent) []gate {
	var all []gate
	for _, t := range a.ActionSpace.LocalTools {
		all = append(all, gate{target{localTool, "", t.Alias}, "", t.Approval, t.AliasRange})
	}
	for _, s := range a.ActionSpace.MCPServers {
		id := cmp.Or(s.ServerRef, s.Alias)
		if s.AllowedTools == nil {
			all = append(all, gate{target{mcpTool, id, ""}, s.Alias, s.Approval, s.AliasRange})
		}
		for _, t := range lint.Entries(s.AllowedTools) {
			approval := t.Approval
			if approval == nil {
				approval = s.Approval
			}
			all = append(all, gate{target{mcpTool, id, t.Name}, s.Alias, approval, t.NameRange})
		}
	}

	for _, r := range a.ActionSpace.RemoteAgents {
		all = append(all, gate{target{remote, "", r.Alias}, "", r.Approval, r.AliasRange})
		if r.AllowedSkills == nil {
			all = append(all, gate{target{skill, r.Alias, ""}, r.Alias, nil, r.AliasRange})
		}
		for _, s := range lint.Entries(r.AllowedSkills) {
			all = append(all, gate{target{skill, r.Alias, s.Name}, r.Alias, s.Approval, s.NameRange})
		}
	}

	return all
}

// meets reports whether a call can be a call of both targets.
func (t target) meets(u target) bool {
	return t.kind == u.kind && t.server == u.server &&
		(t.name == u.name || t.server != "" && (t.name == "" || u.name == ""))
}

// demand is a gate of the agent, passed down to its sub-agents.
type demand struct {
	gate
	met []string // names that a sub-agent on the way lists itself, if the demand covers a whole container
}

// walk goes through the sub-agents behind one link.
type walk struct {
	pass *lint.Pass
	link schema.Edge
	seen map[*schema.Member]bool
}

// visit compares one sub-agent with the demands from above. The gates of the sub-agent itself
// are compared with its own sub-agents when it is checked as a parent.
func (w *walk) visit(m *schema.Member, demanded []demand) {
	if w.seen[m] || m.Agent == nil {
		return
	}
	w.seen[m] = true
	entries := byTarget(gatesOf(m.Agent))
	var rest []demand
	for _, d := range demanded {
		met, open := slices.Clone(d.met), true
		for _, own := range entries {
			name := own[0].name
			if !own[0].meets(d.target) || slices.Contains(d.met, name) {
				continue
			}
			w.compare(m, d.gate, own)
			met = append(met, name)
			open = open && name != d.name && name != ""
		}

		if open {
			rest = append(rest, demand{d.gate, met})
		}
	}

	for _, link := range m.Children {
		w.visit(link.To, rest)
	}
}

// byTarget groups the entries for each target, in the order of the file.
func byTarget(gates []gate) [][]gate {
	var all [][]gate
	for _, g := range gates {
		same := func(of []gate) bool {
			return of[0].target == g.target && of[0].alias == g.alias
		}
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i] = append(all[i], g)
		} else {
			all = append(all, []gate{g})
		}
	}

	return all
}

// compare reports the entries of a sub-agent for one target, if together they let a call
// through that the demand would ask about.
func (w *walk) compare(m *schema.Member, demanded gate, own []gate) {
	asking := slices.DeleteFunc(slices.Clone(own), func(g gate) bool { return !g.asks() })
	witness := ""
	if len(asking) > 0 {
		if demanded.kind == remote {
			return // each one reads the input of its own agent
		}
		covers, gap := w.pass.Analyzer(condition.ToolArgs).Covers(demanded.approval.Condition, union(asking))
		if covers != condition.No {
			return
		}
		witness = lint.Witness(gap)
	}

	name := cmp.Or(demanded.name, own[0].name, demanded.server)
	w.pass.Report(
		w.link.Range,
		fmt.Sprintf(
			"behind this sub-agent %s %q is called without the approval demanded here%s",
			demanded.kind,
			name,
			witness,
		),
		lint.Expected("the same approval in the sub-agent"),
		lint.Related(demanded.approval.Range, "demanded here"),
		w.pass.Elsewhere(m, own[0].at, "not demanded here"),
	)
}

// union returns the condition under which at least one of the gates asks. It returns nil if one
// of them always asks.
func union(asking []gate) *condition.Expr {
	var all condition.Expr
	for _, g := range asking {
		e := g.approval.Condition
		if e == nil || len(e.Groups) == 0 {
			return nil
		}
		all.Groups = append(all.Groups, e.Groups...)
	}

	return &all
}
