package lint

import (
	"slices"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
)

// Fleet is what the agents of a run can call, for rules about the
// policies that are checked together with them.
type Fleet struct{ subjects []Subject }

// NewFleet makes a fleet. Agents that did not load, which are nil, are
// left out.
func NewFleet(subjects []*Subject) *Fleet {
	var f Fleet
	for _, s := range subjects {
		if s != nil {
			f.subjects = append(f.subjects, *s)
		}
	}
	return &f
}

// Subject is one agent of a fleet, as policies see it.
type Subject struct {
	Metadata schema.Metadata
	refs     []string
	calls    []call
	open     bool // it has sub-agents whose calls nobody knows here
}

// call is one sort of call that a subject, or a sub-agent that runs
// under its policies, can make.
type call struct {
	kind           policy.Kind
	target, server string
	anyTarget      bool // of a server or remote agent without allow-list
}

// NewSubject parses an agent, and its sub-agents, which run under its
// policies. It is nil when the agent does not load.
func NewSubject(file string, src []byte, files *Files) *Subject {
	agent, _ := schema.Parse(file, src)
	if agent == nil {
		return nil
	}
	s := &Subject{Metadata: agent.Metadata}
	for _, ref := range agent.Constraints.Policies {
		s.refs = append(s.refs, ref.Ref)
	}
	s.take(agent)
	if agent.HasFileAgents() {
		s.takeBelow(agent, files)
	}
	return s
}

// takeBelow takes in what the sub-agents can call, as far as all of
// them can be read.
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

// take adds what one file lets its agent call.
func (s *Subject) take(a *schema.Agent) {
	space := &a.ActionSpace
	for _, t := range space.LocalTools {
		s.calls = append(s.calls, call{kind: policy.Tool, target: t.Alias})
	}
	for _, m := range space.MCPServers {
		s.contained(policy.MCPTool, m.Alias, m.AllowedTools)
	}
	for _, l := range space.LocalAgents {
		s.calls = append(s.calls, call{kind: policy.Delegation, target: l.Alias})
		s.open = s.open || l.SourceType != "file"
	}
	for _, r := range space.RemoteAgents {
		s.contained(policy.Skill, r.Alias, r.AllowedSkills)
		s.calls = append(s.calls, call{
			kind:   policy.Delegation,
			target: r.Alias,
			server: r.Alias,
		})
	}
}

func (s *Subject) contained(kind policy.Kind, server string, listed *[]schema.ToolRef) {
	if listed == nil {
		s.calls = append(s.calls, call{
			kind:      kind,
			server:    server,
			anyTarget: true,
		})
	}

	for _, e := range Entries(listed) {
		s.calls = append(s.calls, call{
			kind:   kind,
			server: server,
			target: e.Name,
		})
	}
}

// Meets reports whether some call of the subject may meet a match,
// whatever its annotations are.
func (s *Subject) Meets(m *policy.Match) bool {
	return s.open || slices.ContainsFunc(s.calls, func(c call) bool {
		if !c.anyTarget {
			return m.Target(c.kind, c.target, c.server)
		}
		return (&policy.Match{Kinds: m.Kinds, Servers: m.Servers}).Target(c.kind, "", c.server)
	})
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
