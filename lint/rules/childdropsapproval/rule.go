// Package childdropsapproval reports sub-agents that may call what their parent asks about, without asking.
package childdropsapproval

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

//go:embed bad.agf.yaml
var bad string

//go:embed good.agf.yaml
var good string

// Rule returns the rule.
func Rule() lint.Rule {
	return lint.Rule{
		RuleInfo: diag.RuleInfo{
			ID: "child-drops-approval", Title: "A sub-agent drops an approval that its parent demands", Severity: diag.Warning,
			Why: "The agent asks before it calls a tool; its sub-agent has the same tool and does not, or asks less. So delegating is a way around the gate. assent holds the " +
				"parent's approvals against its sub-agents too; the standard leaves open whether other runtimes do. Give the sub-agent the same approval. " +
				"Compared are local tools by alias, tools of servers with the same `server_ref` (or alias), remote agents by alias and their skills. Sub-agents in files only.",
			Bad: lint.Sample(bad), Good: lint.Sample(good), Spec: "Agent Format, tighten_only_invariant",
		},
		Agent:      check,
		NeedsGraph: true,
	}
}

func check(p *lint.Pass) {
	root := p.Graph.Root
	for _, link := range root.Children {
		w := walk{pass: p, link: link, seen: map[*schema.Member]bool{root: true}}
		w.visit(link.To, gatesOf(root.Agent))
	}
}

// target is something that can be called: a local tool, a tool of a server (every one when name is ""), a skill, a remote agent.
type target struct{ kind, server, name string }

const (
	localTool = "tool"
	mcpTool   = "MCP tool"
	skill     = "skill"
	remote    = "remote agent"
)

// gate is the approval that holds for a target; nil where nobody is asked.
type gate struct {
	target
	approval *schema.Approval
	at       diag.Range // of the entry's name
}

// asks tells whether somebody may be asked.
func (g gate) asks() bool { return g.approval != nil && g.approval.Form != schema.Never }

func gatesOf(a *schema.Agent) []gate {
	var all []gate
	for _, t := range a.ActionSpace.LocalTools {
		all = append(all, gate{target{localTool, "", t.Alias}, t.Approval, t.AliasRange})
	}
	for _, s := range a.ActionSpace.MCPServers {
		id := cmp.Or(s.ServerRef, s.Alias)
		if s.AllowedTools == nil {
			all = append(all, gate{target{mcpTool, id, ""}, s.Approval, s.AliasRange})
		}
		for _, t := range lint.Entries(s.AllowedTools) {
			approval := t.Approval
			if approval == nil {
				approval = s.Approval
			}
			all = append(all, gate{target{mcpTool, id, t.Name}, approval, t.NameRange})
		}
	}
	for _, r := range a.ActionSpace.RemoteAgents {
		all = append(all, gate{target{remote, "", r.Alias}, r.Approval, r.AliasRange})
		for _, s := range lint.Entries(r.AllowedSkills) {
			all = append(all, gate{target{skill, r.Alias, s.Name}, s.Approval, s.NameRange})
		}
	}
	return all
}

// meets tells whether some call is a call of both targets.
func (t target) meets(u target) bool {
	return t.kind == u.kind && t.server == u.server && (t.name == u.name || t.kind == mcpTool && (t.name == "" || u.name == ""))
}

// walk goes through the sub-agents behind one link.
type walk struct {
	pass *lint.Pass
	link schema.Edge
	seen map[*schema.Member]bool
}

// visit compares one sub-agent with what is demanded above it. What it has itself is compared with its own sub-agents in its turn.
func (w *walk) visit(m *schema.Member, demanded []gate) {
	if w.seen[m] || m.Agent == nil {
		return
	}
	w.seen[m] = true
	own := gatesOf(m.Agent)
	var rest []gate
	for _, demand := range demanded {
		i := slices.IndexFunc(own, func(g gate) bool { return g.meets(demand.target) })
		switch {
		case i < 0:
			rest = append(rest, demand)
		case demand.asks():
			w.compare(m, demand, own[i])
		}
	}
	for _, link := range m.Children {
		w.visit(link.To, rest)
	}
}

// compare reports a sub-agent's gate that lets calls through which the demand would ask about.
func (w *walk) compare(m *schema.Member, demand, own gate) {
	witness := ""
	if own.asks() {
		if demand.kind == remote {
			return // each reads the input of its own agent
		}
		covers, gap := w.pass.Analyzer(condition.ToolArgs).Covers(demand.approval.Condition, own.approval.Condition)
		if covers != condition.No {
			return
		}
		witness = lint.Witness(gap)
	}
	name := cmp.Or(demand.name, own.name, demand.server)
	w.pass.Report(w.link.Range, fmt.Sprintf("behind this sub-agent %s %q is called without the approval demanded here%s", demand.kind, name, witness),
		lint.Expected("the same approval in the sub-agent"),
		lint.Related(demand.approval.Range, "demanded here"), w.pass.Elsewhere(m, own.at, "not demanded here"))
}
