package lint

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint/catalog"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
)

// Fleet contains the calls that the agents of a run can make, for rules about the policies that are
// checked together with them.
type Fleet struct {
	subjects []Subject
	files    map[string][]string // by the id of the agent
}

// NewFleet returns a fleet of the given agents. It skips nil entries, which are agents that did not
// load.
func NewFleet(subjects []*Subject) *Fleet {
	f := Fleet{files: map[string][]string{}}
	for _, s := range subjects {
		if s == nil {
			continue
		}
		f.files[s.Metadata.ID] = append(f.files[s.Metadata.ID], s.File)
		if !s.named {
			f.subjects = append(f.subjects, *s)
		}
	}
	return &f
}

// Subject is one agent of a fleet, as policies see it.
type Subject struct {
	Metadata schema.Metadata
	File     string
	Input    map[string][]string // the texts that its interface lists, see InputValues
	Nested   bool                // it has sub-agents in files, whose calls carry other inputs
	hosts    []host
	refs     []string
	servers  []string // aliases of MCP servers
	used     Catalogs // those that concern some of its tools, or may
	calls    []call
	catalogs Catalogs
	open     bool // it has sub-agents whose calls are unknown
	named    bool // only its file and id are known
}

// host is an MCP server of a subject, with its alias and server_ref.
type host struct{ alias, ref string }

// call is one sort of call that a subject, or a sub-agent that runs
// under its policies, can make.
type call struct {
	kind           policy.Kind
	target, server string
	ref            string        // server_ref of an MCP server
	anyTarget      bool          // of a server or remote agent without allow-list
	tool           *catalog.Tool // nil when no catalogue has it
}

// meets reports whether a match may apply to the call, whatever its
// annotations are.
func (c *call) meets(m *policy.Match) bool {
	called := policy.Called{Kind: c.kind, Target: c.target, Server: c.server, ServerRef: c.ref}
	if len(m.Takes) > 0 && c.kind == policy.Delegation {
		return false
	}
	if c.anyTarget {
		m = &policy.Match{Kinds: m.Kinds, Servers: m.Servers, ServerRefs: m.ServerRefs, Except: m.Except}
	}
	return m.Target(called) && !c.excepted(m.Except, called)
}

// excepted reports whether an exception takes the call out of a rule for every agent, whatever its
// annotations are.
func (c *call) excepted(e *policy.Except, called policy.Called) bool {
	return e != nil && e.Agents == nil && len(e.Annotations)+len(e.Takes) == 0 &&
		!(c.anyTarget && len(e.Targets) > 0) && e.Match().Target(called)
}

// NewSubject parses an agent and its sub-agents, which run under its policies. It returns nil if
// the agent does not load. A server without an allow-list has the tools that its catalogue lists.
func NewSubject(file string, src []byte, files *Files, catalogs Catalogs) *Subject {
	agent, _ := schema.Parse(file, src)
	if agent == nil {
		return nil
	}
	s := &Subject{
		Metadata: agent.Metadata,
		File:     file,
		Input:    InputValues(agent.Interface.Input),
		Nested:   agent.HasFileAgents(),
		catalogs: catalogs,
	}
	for _, ref := range agent.Constraints.Policies {
		s.refs = append(s.refs, ref.Ref)
	}
	s.take(agent)
	if agent.HasFileAgents() {
		s.takeBelow(agent, files)
	}
	return s
}

// NewNamed returns a subject of which only the file and the agent's id are known. It returns nil if the
// file has no id.
func NewNamed(file string, src []byte) *Subject {
	doc, _ := yamldoc.Parse(file, src, yamldoc.Limits{})
	if doc == nil {
		return nil
	}
	id := doc.Root.Get("metadata").Get("id")
	if id == nil || id.Kind != yamldoc.String {
		return nil
	}
	return &Subject{File: file, Metadata: schema.Metadata{ID: strings.Clone(id.Text)}, named: true}
}

// takeBelow adds the calls that the sub-agents can make, if all of them can be read.
func (s *Subject) takeBelow(agent *schema.Agent, files *Files) {
	if files == nil {
		s.open = true
		return
	}
	graph, _ := agent.LoadGraph(files.FS, files.Path)
	if graph == nil {
		s.open = true
		return
	}
	for _, m := range graph.Members[1:] {
		if m.Agent == nil {
			s.open = true
			continue
		}
		s.take(m.Agent)
	}
}

// take adds the calls that one file lets its agent make.
func (s *Subject) take(a *schema.Agent) {
	space := &a.ActionSpace
	s.uses(space)
	offered, _ := s.catalogs.Local(space)
	for _, t := range space.LocalTools {
		s.calls = append(s.calls, call{
			kind:   policy.Tool,
			target: t.Alias,
			tool:   LocalTool(offered, &t),
		})
	}

	for _, m := range space.MCPServers {
		s.servers = append(s.servers, m.Alias)
		s.hosts = append(s.hosts, host{m.Alias, m.ServerRef})
		first := len(s.calls)
		s.offered(space, &m)
		for i := range s.calls[first:] {
			s.calls[first+i].ref = m.ServerRef
		}
	}
	for _, l := range space.LocalAgents {
		s.calls = append(s.calls, call{kind: policy.Delegation, target: l.Alias})
		s.open = s.open || l.SourceType != "file"
	}
	for _, r := range space.RemoteAgents {
		s.contained(policy.Skill, r.Alias, r.AllowedSkills)
		s.calls = append(s.calls, call{kind: policy.Delegation, target: r.Alias, server: r.Alias})
	}
}

// offered adds the tools of a server.
func (s *Subject) offered(space *schema.ActionSpace, m *schema.MCPServer) {
	tools, known := s.catalogs.Server(space, m.Alias)
	if !known {
		s.contained(policy.MCPTool, m.Alias, m.AllowedTools)
		return
	}
	add := func(name string) {
		s.calls = append(s.calls, call{
			kind:   policy.MCPTool,
			server: m.Alias,
			target: name,
			tool:   Tool(tools, name),
		})
	}
	for _, e := range Entries(m.AllowedTools) {
		add(e.Name)
	}
	if m.AllowedTools == nil {
		for _, t := range tools {
			add(t.Name)
		}
	}
}

func (s *Subject) contained(kind policy.Kind, server string, listed *[]schema.ToolRef) {
	if listed == nil {
		s.calls = append(s.calls, call{kind: kind, server: server, anyTarget: true})
	}

	for _, e := range Entries(listed) {
		s.calls = append(s.calls, call{kind: kind, server: server, target: e.Name})
	}
}

// Meets reports whether some call of the subject may meet a match,
// whatever its annotations are.
func (s *Subject) Meets(m *policy.Match) bool {
	return s.open || slices.ContainsFunc(s.calls, func(c call) bool { return c.meets(m) })
}

// Names lists the targets and the servers that the subject's files name.
func (s *Subject) Names() (targets, servers []string) {
	for _, c := range s.calls {
		if !c.anyTarget {
			targets = append(targets, c.target)
		}
		if c.server != "" {
			servers = append(servers, c.server)
		}
	}

	return targets, servers
}

// Servers lists the aliases of the MCP servers of all agents.
func (f *Fleet) Servers() []string {
	var all []string
	for _, s := range f.subjects {
		all = append(all, s.servers...)
	}
	return all
}

// Twins lists the files of other agents that have the id of an agent.
func (f *Fleet) Twins(id, file string) []string {
	return slices.DeleteFunc(slices.Clone(f.files[id]), func(other string) bool { return other == file })
}

// Elsewhere finds a server that a match names by its alias, and that one
// of the agents governed by the policy calls by another alias, under
// which the match meets none of its calls.
func (f *Fleet) Elsewhere(p *policy.Policy, m *policy.Match) (agent, alias, ref string, found bool) {
	named := map[string]bool{}
	meets := func(alias string) bool {
		return slices.ContainsFunc(m.Servers, func(glob string) bool { return policy.Glob(glob, alias) })
	}
	for _, s := range f.subjects {
		for _, h := range s.hosts {
			if h.ref != "" && meets(h.alias) {
				named[h.ref] = true
			}
		}
	}
	for _, s := range f.Governed(p) {
		for _, h := range s.hosts {
			if named[h.ref] && !meets(h.alias) && s.under(m, h.alias) && !namesServer(p, h.alias) {
				return s.Metadata.ID, h.alias, h.ref, true
			}
		}
	}
	return "", "", "", false
}

// under reports whether the match would match a call of a server with that alias.
func (s *Subject) under(m *policy.Match, alias string) bool {
	other := *m
	other.Servers = []string{alias}
	return s.Meets(&other)
}

// namesServer reports whether some rule of the policy meets a server by name.
func namesServer(p *policy.Policy, alias string) bool {
	return slices.ContainsFunc(p.Rules, func(r policy.Rule) bool {
		return slices.ContainsFunc(r.Match.Servers, func(glob string) bool { return policy.Glob(glob, alias) })
	})
}

// Idle returns the catalogues that concern no tool of any agent.
func (f *Fleet) Idle(c Catalogs) Catalogs {
	return slices.DeleteFunc(slices.Clone(c), func(list *catalog.Catalog) bool {
		return slices.ContainsFunc(f.subjects, func(s Subject) bool { return slices.Contains(s.used, list) })
	})
}

// Subjects lists all agents of the fleet.
func (f *Fleet) Subjects() []Subject { return f.subjects }

// Governed lists the agents that a policy applies to: those that name
// it, and, of an implicit one, those that it selects.
func (f *Fleet) Governed(p *policy.Policy) []Subject {
	var all []Subject
	for _, s := range f.subjects {
		if slices.Contains(s.refs, p.Ref) || p.Applies == policy.Implicit && p.Agents.Match(&s.Metadata) {
			all = append(all, s)
		}
	}
	return all
}
