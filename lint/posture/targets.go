package posture

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// named is the list of names of a container on one side.
type named struct {
	list *[]schema.ToolRef // nil: every name
}

// targets compares every target that either side declares, and undeclared names if they can run or
// be asked about.
func (c *comparer) targets() {
	c.tools()
	c.within(resolve.MCPTool, c.containers(toolLists))
	c.within(resolve.Skill, c.containers(skillLists))
	c.delegations()
}

// toolLists adds the allow-list of each MCP server.
func toolLists(s *schema.ActionSpace, add func(alias string, list *[]schema.ToolRef)) {
	for i := range s.MCPServers {
		add(s.MCPServers[i].Alias, s.MCPServers[i].AllowedTools)
	}
}

// skillLists adds the allow-list of each remote agent.
func skillLists(s *schema.ActionSpace, add func(alias string, list *[]schema.ToolRef)) {
	for i := range s.RemoteAgents {
		add(s.RemoteAgents[i].Alias, s.RemoteAgents[i].AllowedSkills)
	}
}

// asksUndeclared reports whether a side asks about undeclared calls instead of denying them.
func (c *comparer) asksUndeclared() bool {
	return slices.ContainsFunc(c.sides(), func(s Side) bool {
		return s.Plan.Options().Semantics.Undeclared == resolve.UndeclaredAsk
	})
}

func (c *comparer) sides() []Side { return []Side{c.old, c.new} }

// globs lists the patterns with which rules of either side select calls of a kind.
func (c *comparer) globs(of func(m *policy.Match) []string, kinds ...resolve.Kind) []string {
	out := c.askedNames()
	for _, s := range c.sides() {
		for _, pol := range s.Plan.Policies() {
			for i := range pol.Rules {
				m := &pol.Rules[i].Match
				meets := func(k resolve.Kind) bool {
					return len(m.Kinds) == 0 ||
						slices.Contains(m.Kinds, k)
				}
				if slices.ContainsFunc(kinds, meets) {
					out = append(out, of(m)...)
					if m.Except != nil {
						out = append(out, of(m.Except.Match())...)
					}
				}
			}
		}
	}

	return out
}

// trusted lists the patterns of the servers and agents whose annotations either side believes.
func (c *comparer) trusted() []string {
	var out []string
	for _, s := range c.sides() {
		for p := s.Plan; p != nil; p = p.Options().Parent {
			out = append(out, p.Options().TrustedServers...)
		}
	}

	return out
}

func targetsOf(m *policy.Match) []string { return m.Targets }

func serversOf(m *policy.Match) []string { return m.Servers }

// each calls visit for every declared name. If other names are possible, it also calls visit with
// one name of each set that the globs distinguish.
func (c *comparer) each(kind resolve.Kind, declared, globs []string, open bool, what string,
	visit func(name, words string),
) {
	declared = slices.Compact(slices.Sorted(slices.Values(declared)))
	for _, name := range declared {
		visit(name, "")
	}
	if !open {
		return
	}
	plain := slices.DeleteFunc(slices.Clone(declared), func(s string) bool { return strings.Contains(s, "*") })
	others, ok := cells(append(plain, globs...))
	if !ok {
		c.changes = append(c.changes, Change{
			Kind:   string(kind),
			Tool:   everyOther,
			Aspect: outcomeAspect,
			Effect: Undecided,
			Why:    "the patterns of names that rules have are too many to tell apart",
		})
	}

	for _, other := range others {
		if !slices.Contains(declared, other.name) {
			visit(other.name, other.words(what))
		}
	}
}

func (c *comparer) tools() {
	var declared []string
	for _, s := range c.sides() {
		for i := range s.Plan.Agent().ActionSpace.LocalTools {
			declared = append(declared, s.Plan.Agent().ActionSpace.LocalTools[i].Alias)
		}
	}

	c.each(resolve.Tool, declared, c.globs(targetsOf, resolve.Tool), c.asksUndeclared(), "tools",
		func(name, words string) { c.target(resolve.Call{Kind: resolve.Tool, Tool: name}, which{name: words}) })
}

// containers lists the containers of both sides by alias. An alias that
// one side lacks has an empty list there.
func (c *comparer) containers(
	of func(s *schema.ActionSpace, add func(alias string, list *[]schema.ToolRef)),
) map[string][]named {
	out := map[string][]named{}
	for _, s := range c.sides() {
		of(&s.Plan.Agent().ActionSpace, func(alias string, list *[]schema.ToolRef) {
			out[alias] = append(out[alias], named{allowList(s, list)})
		})
	}

	return out
}

// allowList returns a list as a side reads it: an empty list may count as no list.
func allowList(s Side, list *[]schema.ToolRef) *[]schema.ToolRef {
	absent := s.Plan.Options().Semantics.EmptyAllowList == resolve.EmptyIsAbsent
	if absent && list != nil && len(*list) == 0 {
		return nil
	}
	return list
}

// within compares the tools of servers, or the skills of remote agents.
func (c *comparer) within(kind resolve.Kind, all map[string][]named) {
	var aliases []string
	for alias := range all {
		aliases = append(aliases, alias)
	}
	servers := append(c.globs(serversOf, kind, resolve.Delegation), c.trusted()...)
	if kind == resolve.Skill { // its agent is delegated to: another gate
		servers = append(servers, c.globs(targetsOf, resolve.Delegation)...)
	}
	globs, what := c.globs(targetsOf, kind), map[resolve.Kind]string{resolve.Skill: "skills"}[kind]
	if what == "" {
		what = "tools"
	}
	c.each(kind, aliases, servers, c.asksUndeclared(), "servers and agents", func(alias, container string) {
		var names []string
		open := c.asksUndeclared()
		for _, n := range all[alias] {
			open = open || n.list == nil
			if n.list == nil {
				continue
			}
			for i := range *n.list {
				names = append(names, (*n.list)[i].Name)
			}
		}

		if open && kind == resolve.MCPTool {
			names = slices.Concat(names, c.old.Offered[alias], c.new.Offered[alias])
		}
		c.each(kind, names, globs, open, what, func(name, these string) {
			call := resolve.Call{Kind: kind, Server: alias, Tool: name}
			if kind == resolve.Skill {
				call = resolve.Call{Kind: kind, Agent: alias, Skill: name}
			}

			c.target(call, which{name: these, container: container})
		})
	})
}

// delegations compares the agents to which the agent delegates. If an alias may be both local and
// remote, each kind that a call can state is a target of its own.
func (c *comparer) delegations() {
	kinds := map[string]map[resolve.Remote]bool{}
	declare := func(alias string, remote resolve.Remote) {
		if kinds[alias] == nil {
			kinds[alias] = map[resolve.Remote]bool{}
		}
		kinds[alias][remote] = true
	}
	for _, s := range c.sides() {
		space := &s.Plan.Agent().ActionSpace
		for i := range space.LocalAgents {
			declare(space.LocalAgents[i].Alias, resolve.RemoteNo)
		}
		for i := range space.RemoteAgents {
			declare(space.RemoteAgents[i].Alias, resolve.RemoteYes)
		}
	}

	var aliases []string
	for alias := range kinds {
		aliases = append(aliases, alias)
	}
	globs := slices.Concat(
		c.globs(targetsOf, resolve.Delegation), c.globs(serversOf, resolve.Delegation), c.trusted(),
	)
	c.each(resolve.Delegation, aliases, globs, c.asksUndeclared(), "agents", func(alias, words string) {
		c.delegation(alias, words, len(kinds[alias]) > 1 || c.asksUndeclared())
	})
}

// delegation compares one alias. With apart it is compared once for calls that don't state the kind
// and once for each kind.
func (c *comparer) delegation(alias, words string, apart bool) {
	readings := []resolve.Remote{resolve.RemoteUnstated}
	if apart {
		readings = append(readings, resolve.RemoteYes, resolve.RemoteNo)
	}
	for _, remote := range readings {
		stands := which{name: words}
		switch remote {
		case resolve.RemoteYes:
			stands.reading = "as a remote agent"
		case resolve.RemoteNo:
			stands.reading = "as a local agent"
		}

		c.target(resolve.Call{Kind: resolve.Delegation, Agent: alias, Remote: remote}, stands)
	}
}
