package resolve

import (
	"maps"
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
)

// Detail returns the detail of an unconditional rule, as in Reason.
func (g *Gate) Detail() string { return g.rule.detail }

// Description returns the purpose of the rule, as in Reason.
func (g *Gate) Description() string { return g.rule.about }

// Hint returns the value that the rule requires of an annotation. It returns false if the rule
// requires none.
func (g *Gate) Hint(annotation string) (hint, required bool) {
	if g.rule.match == nil {
		return false, false
	}
	hint, required = g.rule.match.Annotations[annotation]
	return hint, required
}

// Excepted returns the annotations with which the rule does not meet a call, or nil.
func (g *Gate) Excepted() map[string]bool {
	if g.rule.except == nil {
		return nil
	}
	return g.rule.except.Annotations
}

// says returns the outcome of a rule for a call that it applies to.
func (p *Plan) says(r *rule) Outcome {
	if p.denies(r.code) {
		return Deny
	}
	return Ask
}

// Weigh is a variant of Decide for statistics. It returns only the outcome, and the indexes in
// Target.Gates of the rules that asked or denied, appended to spoke. Like Decide, it omits gates
// whose document can't be read.
func (p *Plan) Weigh(c *Call, spoke []int) (Outcome, []int) {
	t := p.find(c)
	if t == nil {
		return Deny, spoke
	}
	v := p.views.Get().(*condition.View)
	v.At, v.Past = c.At, p.history(c, t)
	defer p.release(v)
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
		if !unread && !r.silent(v) && r.meets(c) {
			outcome = min(outcome, p.says(r))
			spoke = append(spoke, i)
		}
	}

	return outcome, spoke
}

// Targets lists the targets that the agent's file declares, as calls without arguments, in the
// order of the file. A container without an allow-list has unknown tools or skills. It is listed
// with every pattern under which a policy names targets there, and with the name "*" for all
// others. Patterns are treated as names here, so the Gates of such a call are those that every call
// under the pattern meets.
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
			m := &pol.Rules[i].Match
			patterns := m.Targets
			if m.Except != nil {
				patterns = slices.Concat(patterns, m.Except.Targets)
			}
			for _, pattern := range patterns {
				if m.Target(policy.Called{Kind: c.kind, Target: pattern, Server: c.alias, ServerRef: c.ref}) {
					known[pattern] = true
				}
			}
		}
	}
}
