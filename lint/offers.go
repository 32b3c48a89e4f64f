package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint/catalog"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
)

// Catalogs are the lists of tools of a run. A list that names a server belongs to the MCP servers
// with this alias. Any other list of MCP belongs to the only server that an agent has, or to its
// local tools if it has no server. The tools of a model are local ones.
type Catalogs []*catalog.Catalog

// Local lists the known local tools of an agent. known is false if no catalogue is about them.
func (c Catalogs) Local(space *schema.ActionSpace) (tools []*catalog.Tool, known bool) {
	for _, list := range c {
		if list.Server == "" && (!list.MCP || len(space.MCPServers) == 0) {
			tools, known = appendTools(tools, list), true
		}
	}
	return tools, known
}

// Server is like Local for an MCP server of the agent.
func (c Catalogs) Server(space *schema.ActionSpace, alias string) (tools []*catalog.Tool, known bool) {
	for _, list := range c {
		if list.Server == alias || list.Server == "" && list.MCP && len(space.MCPServers) == 1 {
			tools, known = appendTools(tools, list), true
		}
	}
	return tools, known
}

// Offered returns the names of the tools that the MCP servers of an agent offer, by alias.
func (c Catalogs) Offered(space *schema.ActionSpace) map[string][]string {
	out := map[string][]string{}
	for i := range space.MCPServers {
		alias := space.MCPServers[i].Alias
		tools, _ := c.Server(space, alias)
		for _, t := range tools {
			out[alias] = append(out[alias], t.Name)
		}
	}
	return out
}

func appendTools(tools []*catalog.Tool, list *catalog.Catalog) []*catalog.Tool {
	for i := range list.Tools {
		tools = append(tools, &list.Tools[i])
	}
	return tools
}

// Homeless returns the lists that could belong to any of several servers.
func (c Catalogs) Homeless(space *schema.ActionSpace) Catalogs {
	if len(space.MCPServers) < 2 {
		return nil
	}
	var lists Catalogs
	for _, list := range c {
		if list.Server == "" && list.MCP {
			lists = append(lists, list)
		}
	}
	return lists
}

// uses adds the catalogues that are about the tools of a file, or that may be.
func (s *Subject) uses(space *schema.ActionSpace) {
	for _, list := range s.catalogs {
		named := slices.ContainsFunc(
			space.MCPServers,
			func(m schema.MCPServer) bool { return m.Alias == list.Server },
		)
		anybodys := list.Server == "" && (list.MCP && len(space.MCPServers) > 0 || len(space.LocalTools) > 0)
		if named || anybodys {
			s.used = append(s.used, list)
		}
	}
}

// Tool returns the tool with a name, or nil if there is none.
func Tool(tools []*catalog.Tool, name string) *catalog.Tool {
	i := slices.IndexFunc(tools, func(t *catalog.Tool) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return tools[i]
}

// Catalogs returns the catalogues of the run.
func (p *Pass) Catalogs() Catalogs { return p.worker.linter.opt.Catalogs }

// Trusts reports whether the owner trusts the hints of an MCP server or a remote agent.
func (p *Pass) Trusts(server string) bool {
	trusted := p.worker.linter.opt.Owner.TrustedServers
	return slices.ContainsFunc(trusted, func(pattern string) bool { return policy.Glob(pattern, server) })
}

// Fact reports whether a key of args_match names a fact that the owner
// has derived, and no argument of a tool.
func (p *Pass) Fact(key string) bool { return p.Source(key) != key }

// Source is the argument of a tool that a key of args_match is about:
// what a fact is derived from, or else the key itself.
func (p *Pass) Source(key string) string { return p.Sources(key)[0] }

// Sources returns all arguments that a key of args_match may be about.
func (p *Pass) Sources(key string) []string {
	var out []string
	all := p.worker.linter.opt.Owner.Derived
	for i := range all {
		if strings.HasPrefix(key, all[i].As+".") {
			out = append(append(out, all[i].Source()), all[i].Paths...)
		}
	}
	if len(out) == 0 {
		return []string{key}
	}

	return out
}

// Gate is an approval for which all guarded tools are known.
type Gate struct {
	Site
	Tools []*catalog.Tool // at least one
}

// Gates lists the approvals of the file for which all guarded tools are known.
func (p *Pass) Gates() []Gate {
	var all []Gate
	for _, s := range p.Sites() {
		var tools []*catalog.Tool
		if p.Policy != nil {
			tools = p.Fleet.guarded(p.Policy, s.Approval)
		} else {
			tools = p.guarded(s.Approval)
		}
		if len(tools) > 0 {
			all = append(all, Gate{s, tools})
		}
	}

	return all
}

// guarded returns the tools to which an approval of the agent applies. It returns none if one of
// them is unknown.
func (p *Pass) guarded(a *schema.Approval) []*catalog.Tool {
	space := &p.Agent.ActionSpace
	for _, t := range space.LocalTools {
		if t.Approval == a {
			offered, _ := p.Catalogs().Local(space)
			return only(LocalTool(offered, &t))
		}
	}

	for _, s := range space.MCPServers {
		offered, _ := p.Catalogs().Server(space, s.Alias)
		for _, t := range Entries(s.AllowedTools) {
			if t.Approval == a {
				return only(Tool(offered, t.Name))
			}
		}
		if s.Approval == a {
			return inheriting(&s, offered)
		}
	}

	return nil
}

func only(t *catalog.Tool) []*catalog.Tool {
	if t == nil {
		return nil
	}
	return []*catalog.Tool{t}
}

// LocalTool finds a local tool by what models know it as, or its alias.
func LocalTool(offered []*catalog.Tool, t *schema.LocalTool) *catalog.Tool {
	if named := Tool(offered, t.Name); named != nil {
		return named
	}
	return Tool(offered, t.Alias)
}

// inheriting returns the tools of a server that have no approval of their own. A tool that is not
// offered is never called.
func inheriting(s *schema.MCPServer, offered []*catalog.Tool) []*catalog.Tool {
	if s.AllowedTools == nil {
		return offered
	}
	var tools []*catalog.Tool
	for _, e := range *s.AllowedTools {
		if t := Tool(offered, e.Name); t != nil && e.Approval == nil && !slices.Contains(tools, t) {
			tools = append(tools, t)
		}
	}
	return tools
}

// guarded returns the tools that a rule of a policy can match. It returns none if the rule can
// match an unknown tool.
func (f *Fleet) guarded(pol *policy.Policy, a *schema.Approval) []*catalog.Tool {
	i := slices.IndexFunc(pol.Rules, func(r policy.Rule) bool { return r.Approval != nil && r.Approval.Node == a.Node })
	if i < 0 {
		return nil
	}
	return f.guardedBy(pol, &pol.Rules[i].Match)
}

// Guarded returns the tools whose calls a rule of the policy can match. It returns none if the rule
// can match an unknown tool.
func (p *Pass) Guarded(r *policy.Rule) []*catalog.Tool { return p.Fleet.guardedBy(p.Policy, &r.Match) }

func (f *Fleet) guardedBy(pol *policy.Policy, m *policy.Match) []*catalog.Tool {
	if f == nil {
		return nil
	}
	var tools []*catalog.Tool
	for _, s := range f.Governed(pol) {
		if s.open {
			return nil
		}
		for _, c := range s.calls {
			switch {
			case !c.meets(m):
			case c.tool == nil:
				return nil
			case !slices.Contains(tools, c.tool):
				tools = append(tools, c.tool)
			}
		}
	}

	return tools
}

// Bounds returns the possible types of a tool's arguments at the paths that a condition reads, and
// at their parents.
func Bounds(t *catalog.Tool, use condition.Use, e *condition.Expr) []condition.Bound {
	var bounds []condition.Bound
	seen := map[string]bool{}
	for i := range e.Groups {
		for _, m := range e.Groups[i].Matchers {
			if seen[m.Key] || m.IsFact() {
				continue
			}
			seen[m.Key] = true
			for _, place := range placesOfArguments(use, m.Key) {
				for n := 1; n <= len(place); n++ {
					values, _ := t.Args.At(place[:n])
					bounds = append(bounds, condition.Bound{Place: place[:n], Values: values})
				}
			}
		}
	}

	return bounds
}

// placesOfArguments returns the paths of a key that are in the arguments.
func placesOfArguments(use condition.Use, key string) [][]string {
	places, _ := condition.Places(use, key)
	return slices.DeleteFunc(places, func(place []string) bool {
		return use == condition.Governance && place[0] == "parent.input"
	})
}

// Typed returns the type of an argument that a condition names, or nil if the tool doesn't declare
// one. has is false if the tool can't have the argument.
func Typed(t *catalog.Tool, use condition.Use, key string) (typ *catalog.Type, has bool) {
	places := placesOfArguments(use, key)
	if len(places) == 0 {
		return nil, true
	}
	for _, place := range places {
		values, at := t.Args.At(place)
		if at != nil && !at.Values.Empty() {
			return at, true
		}
		has = has || !values.And(condition.AnyValue()).Empty()
	}

	return nil, has
}

// Declared points to a tool in its catalogue.
func Declared(t *catalog.Tool) func(*diag.Finding) {
	return Within(t.File, t.Range, fmt.Sprintf("the tool %q as it is offered", t.Name))
}
