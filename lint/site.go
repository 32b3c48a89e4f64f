package lint

import (
	"iter"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/template"
)

// Site is one approval of an agent or policy, with its place.
type Site struct {
	// Approval is the approval with its condition. In a policy, the condition includes that of the
	// rule (policy.Rule.Condition).
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

// Entries returns the entries of an allow-list, or none if it is absent.
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
		approval := r.Approval
		if r.When != nil {
			both := *approval
			both.Form, both.Condition = schema.Conditional, r.Condition()
			approval = &both
		}
		sites = append(sites, Site{
			Approval: approval,
			Use:      use,
			Contexts: contexts,
			Name:     r.ID,
			Range:    r.Range,
		})
	}

	return sites
}

// kindsOf gives the template contexts of a rule's matches and the use
// of its condition.
func kindsOf(m *policy.Match) ([]template.Context, condition.Use) {
	var contexts []template.Context
	for _, k := range kinds(m) {
		contexts = append(contexts, contextsOf(k, len(m.Servers) > 0)...)
	}

	return contexts, UseOf(m)
}

// UseOf returns the use of the condition of a policy rule. Only the calls of
// tools have no parent's input to read, and only pure delegations no
// arguments.
func UseOf(m *policy.Match) condition.Use {
	tools, delegations := true, true
	for _, k := range kinds(m) {
		tools = tools && (k == policy.Tool || k == policy.MCPTool)
		delegations = delegations && k == policy.Delegation
	}
	switch {
	case tools:
		return condition.ToolArgs
	case delegations:
		return condition.Delegation
	}

	return condition.Governance
}

// kinds returns the kinds of call that a rule can match.
func kinds(m *policy.Match) []policy.Kind {
	if len(m.Kinds) == 0 {
		return policy.Kinds()
	}

	return m.Kinds
}

// contextsOf gives the contexts of a kind; on servers there are neither
// local tools nor local agents (docs/design/001-semantics.md).
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

// Condition is one condition of the file: of an approval, a loop's exit
// or a route.
type Condition struct {
	*condition.Expr
	Use condition.Use
}

// Asks reports whether the condition belongs to an approval.
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
		for i := range p.Policy.Rules {
			if r := &p.Policy.Rules[i]; r.Approval == nil && r.When != nil {
				all = append(all, Condition{r.When, UseOf(&r.Match)})
			}
		}
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

// Matchers goes through every matcher of every condition of the file.
func (p *Pass) Matchers() iter.Seq2[Condition, *condition.Matcher] {
	return func(yield func(Condition, *condition.Matcher) bool) {
		for _, c := range p.Conditions() {
			for i := range c.Groups {
				for j := range c.Groups[i].Matchers {
					if !c.Groups[i].Matchers[j].IsFact() && !yield(c, &c.Groups[i].Matchers[j]) {
						return
					}
				}
			}
		}
	}
}

// Readable reports whether every key of the group is valid in its use, and every test could be
// read. Any other group is never more than unknown, and has been reported already.
func Readable(use condition.Use, g *condition.Group) bool {
	return !slices.ContainsFunc(g.Matchers, func(m condition.Matcher) bool {
		_, fault := condition.Places(use, m.Key)
		return fault != "" && !m.IsFact() || slices.ContainsFunc(m.Tests, func(t condition.Test) bool {
			return t.Op == condition.Unreadable
		})
	})
}

// Unread describes the effect on calls if a test of the condition is always unknown: every call
// asks, or the other tests still let some calls through; it gives an example. It returns an empty
// string if the effect can't be determined.
func (p *Pass) Unread(c Condition) string {
	what := "call"
	if c.Use == condition.Delegation {
		what = "delegation"
	}
	switch through, witness := p.Analyzer(c.Use).CanBeFalse(c.Expr); through {
	case condition.No:
		return ": every " + what + " asks"
	case condition.Yes:
		return ", and only the other tests let a " + what + " through" + Witness(witness)
	}

	return ""
}

// Element splits a key that reads one element of a list into the path of the list and the index.
func Element(key string) (list, index string, ok bool) {
	segments := strings.Split(key, ".")
	for i, s := range segments {
		if i > 0 && s != "" && strings.Trim(s, "0123456789") == "" && (s == "0" || s[0] != '0') {
			return strings.Join(segments[:i], "."), s, true
		}
	}
	return "", "", false
}

// Idle reports whether the matcher tests nothing: it has no test at
// all, or only empty exclusions.
func Idle(m *condition.Matcher) bool {
	return !m.IsFact() && !m.Takes && !slices.ContainsFunc(
		m.Tests,
		func(t condition.Test) bool { return !t.Negative() || len(t.Operands()) > 0 },
	)
}
