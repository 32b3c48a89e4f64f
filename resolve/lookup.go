package resolve

import (
	"sync"
	"sync/atomic"

	"github.com/assent-dev/assent/schema"
)

// container is an MCP server or a remote agent. Its listed names are prepared when the plan is compiled. Names that only
// calls bring up (a server without allow-list) are prepared on first sight and kept, up to a bound, since callers choose
// them.
type container struct {
	kind  Kind
	alias string
	known map[string]gates
	seen  sync.Map // name → gates
	count atomic.Int32
}

// Bounds on the names kept per container beyond those in the file: how many, and how long in bytes.
const (
	maxSeen     = 4096
	maxSeenName = 256
)

// delegate are the gates of one agent alias, by what the call says it is.
type delegate struct{ local, remote gates }

// prepare compiles every target that the file names, so that deciding starts with one look-up.
func (p *Plan) prepare() {
	space := &p.agent.ActionSpace
	p.tools = make(map[string]gates, len(space.LocalTools))
	for i := range space.LocalTools {
		p.tools[space.LocalTools[i].Alias] = p.gatesOf(place{kind: Tool, name: space.LocalTools[i].Alias})
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
		p.delegates[alias] = delegate{local: p.gatesOf(place{kind: Delegation, name: alias})}
	}
	for i := range space.RemoteAgents {
		a := &space.RemoteAgents[i]
		p.remotes[a.Alias] = p.contain(Skill, a.Alias, a.AllowedSkills)
		d := p.delegates[a.Alias]
		d.remote = p.gatesOf(place{kind: Delegation, container: a.Alias, name: a.Alias})
		p.delegates[a.Alias] = d
	}
}

func (p *Plan) contain(kind Kind, alias string, listed *[]schema.ToolRef) *container {
	c := &container{kind: kind, alias: alias, known: map[string]gates{}}
	if listed != nil {
		for _, e := range *listed {
			c.known[e.Name] = p.gatesOf(place{kind: kind, container: alias, name: e.Name})
		}
	}
	return c
}

// gatesOf compiles the gates of one place. A skill has two: its own and its agent's.
func (p *Plan) gatesOf(at place) gates {
	first := p.build(at, nil)
	if at.kind != Skill {
		return gates{first: first.target()}
	}
	second := p.build(place{kind: Delegation, container: at.container, name: at.container}, first)
	return gates{first: first.target(), second: second.target()}
}

// find returns the gates of a call.
func (p *Plan) find(c *Call) gates {
	switch c.Kind {
	case Tool:
		if g, ok := p.tools[c.Tool]; ok {
			return g
		}
		return p.gatesOf(place{kind: Tool, name: c.Tool})
	case MCPTool:
		return p.within(p.servers[c.Server], place{kind: MCPTool, container: c.Server, name: c.Tool})
	case Skill:
		return p.within(p.remotes[c.Agent], place{kind: Skill, container: c.Agent, name: c.Skill})
	case Delegation:
		return p.delegate(c)
	default:
		return gates{}
	}
}

func (p *Plan) within(c *container, at place) gates {
	if c == nil {
		return p.gatesOf(at)
	}
	if g, ok := c.known[at.name]; ok {
		return g
	}
	if g, ok := c.seen.Load(at.name); ok {
		return g.(gates)
	}
	g := p.gatesOf(at)
	if len(at.name) <= maxSeenName && c.count.Add(1) <= maxSeen {
		c.seen.Store(at.name, g)
	}
	return g
}

// delegate returns the gates of a delegation. An alias declared both local and remote and not told apart meets both; one
// declared the other way than the call says is not declared.
func (p *Plan) delegate(c *Call) gates {
	d := p.delegates[c.Agent]
	switch {
	case c.Remote == RemoteYes && d.remote.first != nil:
		return d.remote
	case c.Remote == RemoteYes:
		return p.gatesOf(place{kind: Delegation, container: c.Agent, name: c.Agent})
	case c.Remote == RemoteUnstated && d.local.first == nil && d.remote.first != nil:
		return d.remote
	case d.local.first == nil:
		return p.gatesOf(place{kind: Delegation, name: c.Agent})
	case c.Remote == RemoteUnstated && d.remote.first != nil:
		return gates{first: d.local.first, second: d.remote.first}
	default:
		return d.local
	}
}
