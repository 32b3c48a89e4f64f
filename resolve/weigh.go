package resolve

import (
	"maps"
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
)

// Detail is the detail of an unconditional rule, as in Reason.
func (g *Gate) Detail() string { return g.rule.detail }

// Description is what the rule is for, as in Reason.
func (g *Gate) Description() string { return g.rule.about }

// Hint is the value that the rule wants of an annotation, which is one
// of Annotations.
func (g *Gate) Hint(annotation string) bool { return g.rule.match.Annotations[annotation] }

// says is what a rule makes of a call that it speaks about.
func (p *Plan) says(r *rule) Outcome {
	if p.denies(r.code) {
		return Deny
	}
	return Ask
}

// Weigh is Decide for those who count: it gives the outcome alone, and
// which of Target.Gates spoke, by their indexes, appended to
// spoke. Gates of a document that can't be read are left out, as in
// the reasons of Decide.
func (p *Plan) Weigh(c *Call, spoke []int) (Outcome, []int) {
	t := p.find(c)
	if t == nil {
		return Deny, spoke
	}
	v := p.views.Get().(*condition.View)
	defer p.views.Put(v)
	noArgs := p.readArgs(c, t, &v.Args) != nil
	noInput := p.readParent(c, t, &v.Parent) != nil
	outcome := Allow
	if len(p.stop) > 0 || noArgs || noInput {
		outcome = Deny
	}
	for i := range t.rules {
		r := &t.rules[i]
		unread := noArgs
		if t.gates[r.gate].kind == Delegation {
			unread = noInput
		}
		if !unread && r.truth(v) != condition.False && r.meets(c) {
			outcome = min(outcome, p.says(r))
			spoke = append(spoke, i)
		}
	}

	return outcome, spoke
}

// Targets lists what the agent's file declares, as calls without
// arguments, in the order of the file. Where a container has no
// allow-list, its tools or skills are unknown: it is listed with every
// pattern under which a policy names targets there, and with the name
// "*", which stands for all others. Since patterns are matched as names
// here, Gates of such a call are those that every call under the
// pattern meets.
func (p *Plan) Targets() []Call {
	space := &p.agent.ActionSpace
	var out []Call
	for i := range space.LocalTools {
		out = append(out, Call{Kind: Tool, Tool: space.LocalTools[i].Alias})
	}
	for i := range space.MCPServers {
		s := &space.MCPServers[i]
		for _, name := range p.names(p.servers[s.Alias], s.AllowedTools == nil) {
			out = append(out, Call{Kind: MCPTool, Server: s.Alias, Tool: name})
		}
	}

	for i := range space.LocalAgents {
		out = append(out, Call{
			Kind:   Delegation,
			Agent:  space.LocalAgents[i].Alias,
			Remote: RemoteNo,
		})
	}

	for i := range space.RemoteAgents {
		a := &space.RemoteAgents[i]
		out = append(out, Call{Kind: Delegation, Agent: a.Alias, Remote: RemoteYes})
		for _, name := range p.names(p.remotes[a.Alias], a.AllowedSkills == nil) {
			out = append(out, Call{Kind: Skill, Agent: a.Alias, Skill: name})
		}
	}

	return out
}

// names lists what is known of a container, in order.
func (p *Plan) names(c *container, open bool) []string {
	known := map[string]bool{}
	for name := range c.known {
		known[name] = true
	}
	open = open || len(known) == 0 && p.opt.Semantics.EmptyAllowList == EmptyIsAbsent
	for i := range p.layers {
		if open {
			c.named(p.layers[i].policies, known)
		}
	}
	delete(known, "*")
	out := slices.Sorted(maps.Keys(known))
	if open {
		out = append(out, "*")
	}
	return out
}

// named adds the patterns under which policies name targets of a
// container.
func (c *container) named(policies []*policy.Policy, known map[string]bool) {
	for _, pol := range policies {
		for i := range pol.Rules {
			for _, pattern := range pol.Rules[i].Match.Targets {
				if pol.Rules[i].Match.Target(c.kind, pattern, c.alias) {
					known[pattern] = true
				}
			}
		}
	}
}
