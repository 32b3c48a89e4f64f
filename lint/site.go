package lint

import (
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/template"
)

// Site is one place of an agent or policy where an approval stands.
type Site struct {
	Approval *schema.Approval
	Use      condition.Use      // what the keys of its condition mean
	Contexts []template.Context // what its template may show; several in a policy rule that meets several kinds
	Name     string             // the tool, server, skill, agent or policy rule, for sentences
	Range    diag.Range         // of that name
}

// Sites lists every approval of the file in source order.
func (p *Pass) Sites() []Site {
	if p.sites == nil {
		if p.Policy != nil {
			p.sites = policySites(p.Policy)
		} else {
			p.sites = agentSites(p.Agent)
		}
	}
	return p.sites
}

func agentSites(a *schema.Agent) []Site {
	sites := []Site{}
	add := func(ap *schema.Approval, use condition.Use, ctx template.Context, name string, at diag.Range) {
		if ap != nil {
			sites = append(sites, Site{ap, use, []template.Context{ctx}, name, at})
		}
	}
	space := &a.ActionSpace
	for _, t := range space.LocalTools {
		add(t.Approval, condition.ToolArgs, template.LocalTool, t.Alias, t.AliasRange)
	}
	for _, s := range space.MCPServers {
		add(s.Approval, condition.ToolArgs, template.MCPTool, s.Alias, s.AliasRange)
		for _, t := range Entries(s.AllowedTools) {
			add(t.Approval, condition.ToolArgs, template.MCPTool, t.Name, t.NameRange)
		}
	}
	for _, l := range space.LocalAgents {
		add(l.Approval, condition.Delegation, template.LocalDelegation, l.Alias, l.AliasRange)
	}
	for _, r := range space.RemoteAgents {
		add(r.Approval, condition.Delegation, template.RemoteDelegation, r.Alias, r.AliasRange)
		for _, s := range Entries(r.AllowedSkills) {
			add(s.Approval, condition.SkillArgs, template.Skill, s.Name, s.NameRange)
		}
	}
	return sites
}

// Entries are the entries of an allow-list, none when it is absent.
func Entries(list *[]schema.ToolRef) []schema.ToolRef {
	if list == nil {
		return nil
	}
	return *list
}

func policySites(pol *policy.Policy) []Site {
	sites := []Site{}
	for _, r := range pol.Rules {
		if r.Approval == nil {
			continue
		}
		contexts, use := kindsOf(&r.Match)
		sites = append(sites, Site{Approval: r.Approval, Use: use, Contexts: contexts, Name: r.ID, Range: r.Range})
	}
	return sites
}

// kindsOf gives the template contexts of a rule's matches and the use of its condition. A rule that names no kinds is
// written for arguments; it meets delegations too, where its argument keys are unknown and ask.
func kindsOf(m *policy.Match) ([]template.Context, condition.Use) {
	kinds := m.Kinds
	if len(kinds) == 0 {
		kinds = policy.Kinds()
	}
	var contexts []template.Context
	for _, k := range kinds {
		contexts = append(contexts, contextsOf(k, len(m.Servers) > 0)...)
	}
	if !slices.ContainsFunc(kinds, func(k policy.Kind) bool { return k != policy.Delegation }) {
		return contexts, condition.Delegation
	}
	return contexts, condition.ToolArgs
}

// contextsOf gives the contexts of a kind; on servers there are neither local tools nor local agents (docs/design/001-semantics.md).
func contextsOf(k policy.Kind, onServers bool) []template.Context {
	switch {
	case k == policy.MCPTool:
		return []template.Context{template.MCPTool}
	case k == policy.Skill:
		return []template.Context{template.Skill}
	case k == policy.Tool && !onServers:
		return []template.Context{template.LocalTool}
	case k == policy.Delegation && onServers:
		return []template.Context{template.RemoteDelegation}
	case k == policy.Delegation:
		return []template.Context{template.LocalDelegation, template.RemoteDelegation}
	}
	return nil
}

// Condition is one condition of the file: of an approval, a loop's exit or a route.
type Condition struct {
	*condition.Expr
	Use condition.Use
}

// Asks tells whether the condition belongs to an approval.
func (c Condition) Asks() bool { return c.Use != condition.LoopExit && c.Use != condition.Route }

// Conditions lists every condition of the file.
func (p *Pass) Conditions() []Condition {
	var all []Condition
	for _, s := range p.Sites() {
		if s.Approval.Condition != nil {
			all = append(all, Condition{s.Approval.Condition, s.Use})
		}
	}
	if p.Agent == nil {
		return all
	}
	if exit := p.Agent.Policy.ExitCondition; exit != nil {
		all = append(all, Condition{exit, condition.LoopExit})
	}
	for _, r := range p.Agent.Policy.Routes {
		if r.When != nil {
			all = append(all, Condition{r.When, condition.Route})
		}
	}
	return all
}

// Readable tells whether every key of the group names something in its use. One that does not is never more than unknown, and has
// a rule of its own.
func Readable(use condition.Use, g *condition.Group) bool {
	return !slices.ContainsFunc(g.Matchers, func(m condition.Matcher) bool {
		_, fault := condition.Places(use, m.Key)
		return fault != ""
	})
}

// Idle tells whether the matcher tests nothing: it has no test at all, or only empty exclusions.
func Idle(m *condition.Matcher) bool {
	return !slices.ContainsFunc(m.Tests, func(t condition.Test) bool { return t.Op != condition.NotIn || len(t.List) > 0 })
}
