package resolve

import (
	"sync"
	"sync/atomic"

	"github.com/assent-dev/assent/schema"
)

// container is an MCP server or a remote agent. Its listed names are
// prepared when the plan is compiled. Names that only calls bring up (a
// server without allow-list) are prepared on first sight and kept, up
// to a bound, since callers choose them.
type container struct {
	kind  Kind
	alias string
	ref   string // server_ref of an MCP server
	known map[string]*target
	seen  sync.Map // name → *target
	count atomic.Int32
}

// Bounds on the names kept per container beyond those in the file: how
// many, and how long in bytes.
const (
	maxSeen     = 4096
	maxSeenName = 256
)

// delegate holds the targets of an agent alias, for each kind that a call may state. A target is
// nil if the alias is not declared as that kind.
type delegate struct{ local, remote, both *target }

// prepare compiles every target that the file names, so that deciding
// starts with one look-up.
func (p *Plan) prepare() {
	space := &p.agent.ActionSpace
	p.tools = make(map[string]*target, len(space.LocalTools))
	for i := range space.LocalTools {
		p.tools[space.LocalTools[i].Alias] = p.build(localTool(space.LocalTools[i].Alias))
	}
	p.servers = make(map[string]*container, len(space.MCPServers))
	for i := range space.MCPServers {
		s := &space.MCPServers[i]
		p.servers[s.Alias] = p.contain(MCPTool, s.Alias, s.AllowedTools)
	}
	p.remotes = make(map[string]*container, len(space.RemoteAgents))
	p.delegates = map[string]delegate{}
	for i := range space.LocalAgents {
		alias := space.LocalAgents[i].Alias
		p.delegates[alias] = delegate{local: p.build(localAgent(alias))}
	}
	for i := range space.RemoteAgents {
		a := &space.RemoteAgents[i]
		p.remotes[a.Alias] = p.contain(Skill, a.Alias, a.AllowedSkills)
		d := p.delegates[a.Alias]
		d.remote = p.build(remoteAgentPlace(a.Alias))
		if d.local != nil {
			d.both = p.build(localAgent(a.Alias), remoteAgentPlace(a.Alias))
		}
		p.delegates[a.Alias] = d
	}
}

func localTool(name string) place { return place{kind: Tool, name: name} }

func localAgent(alias string) place { return place{kind: Delegation, name: alias} }

func remoteAgentPlace(alias string) place {
	return place{kind: Delegation, container: alias, name: alias}
}

func (p *Plan) contain(kind Kind, alias string, listed *[]schema.ToolRef) *container {
	c := &container{
		kind:  kind,
		alias: alias,
		known: map[string]*target{},
	}
	if s := mcpServer(p.agent, alias); kind == MCPTool && s != nil {
		c.ref = s.ServerRef
	}
	if listed != nil {
		for _, e := range *listed {
			c.known[e.Name] = p.inContainer(place{
				kind:      kind,
				container: alias,
				name:      e.Name,
			})
		}
	}

	return c
}

// inContainer compiles a tool of a server or a skill. A skill has two
// gates: its own and its agent's.
func (p *Plan) inContainer(at place) *target {
	if at.kind == Skill {
		return p.build(at, remoteAgentPlace(at.container))
	}
	return p.build(at)
}

// find returns the target of a call, or nil if the call has no known kind.
func (p *Plan) find(c *Call) *target {
	switch c.Kind {
	case Tool:
		if t, ok := p.tools[c.Tool]; ok {
			return t
		}
		return p.build(localTool(c.Tool))
	case MCPTool:
		return p.within(p.servers[c.Server], place{
			kind:      MCPTool,
			container: c.Server,
			name:      c.Tool,
		})
	case Skill:
		return p.within(p.remotes[c.Agent], place{
			kind:      Skill,
			container: c.Agent,
			name:      c.Skill,
		})
	case Delegation:
		return p.delegate(c)
	default:
		return nil
	}
}

func (p *Plan) within(c *container, at place) *target {
	if c == nil {
		return p.inContainer(at)
	}
	if t, ok := c.known[at.name]; ok {
		return t
	}
	if t, ok := c.seen.Load(at.name); ok {
		return t.(*target)
	}
	t := p.inContainer(at)
	if len(at.name) <= maxSeenName && c.count.Add(1) <= maxSeen {
		c.seen.Store(at.name, t)
	}
	return t
}

// delegate returns the target of a delegation. If the alias is declared both local and remote and
// the call doesn't state which, the gates of both apply. An alias declared only as the other kind
// counts as undeclared.
func (p *Plan) delegate(c *Call) *target {
	d := p.delegates[c.Agent]
	known, unknown := d.local, localAgent(c.Agent)
	switch {
	case c.Remote == RemoteYes:
		known, unknown = d.remote, remoteAgentPlace(c.Agent)
	case c.Remote == RemoteUnstated && d.both != nil:
		known = d.both
	case c.Remote == RemoteUnstated && d.local == nil:
		known = d.remote
	}

	if known == nil {
		return p.build(unknown)
	}
	return known
}
