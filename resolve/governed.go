package resolve

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
)

// governed adds the policy rules of all layers that meet the place,
// sorted by policy_ref, then position.
func (b *builder) governed() {
	for _, pol := range b.plan.Policies() {
		for i := range pol.Rules {
			if r := &pol.Rules[i]; b.concerns(r) {
				b.policyRule(pol, r)
			}
		}
	}
}

// concerns reports whether a policy rule meets the gate. Its condition
// sees the whole call at any gate, so a call of two gates meets it
// once, at the first that it fits.
func (b *builder) concerns(r *policy.Rule) bool {
	if b.met[r] || !r.Match.Target(b.called(b.at)) || !b.takes(r.Match.Takes) {
		return false
	}
	b.met[r] = true
	return true
}

// called returns what a rule can match at a gate.
func (b *builder) called(at place) policy.Called {
	out := policy.Called{Kind: at.kind, Target: at.name, Server: at.container}
	if at.kind == MCPTool {
		if s := mcpServer(b.plan.agent, at.container); s != nil {
			out.ServerRef = s.ServerRef
		}
	}
	return out
}

// takes reports whether a call can have all arguments with these names. A delegation has no
// arguments, and facts that are derived are none.
func (b *builder) takes(names []string) bool {
	if len(names) == 0 {
		return true
	}
	derived := b.plan.derived[b.gates[0]]
	return b.gates[0].kind != Delegation && (derived == nil || !slices.Contains(names, derived.As))
}

// excepted reports whether an exception takes every call of the target out of a rule. If that
// depends on the annotations of the call, it returns the match that they must have.
//
// An exception is like a rule of its own: a call is taken out if a rule with these fields would meet
// it. A call of an alias that is both a local and a remote agent is taken out only if it is as both.
// Arguments never take a call out, since anyone can add one.
func (b *builder) excepted(e *policy.Except) (always bool, annotated *policy.Match) {
	if e == nil || len(e.Takes) > 0 || !e.Agents.Match(&b.plan.agent.Metadata) {
		return false, nil
	}
	m := e.Match()
	if len(m.Annotations) > 0 && !b.trusted() {
		return false, nil
	}
	fits := func(at place) bool { return m.Target(b.called(at)) }
	both := b.gates[0].kind == Delegation
	switch {
	case both && slices.ContainsFunc(b.gates, func(at place) bool { return !fits(at) }),
		!both && !slices.ContainsFunc(b.gates, fits):
		return false, nil
	case len(m.Annotations) > 0:
		return false, m
	}

	return true, nil
}

// governance returns the meaning of the keys in a policy's condition. A pure delegation has no
// arguments to read.
func governance(gates []place) condition.Use {
	if gates[0].kind == Delegation {
		return condition.Delegation
	}
	return condition.Governance
}

// trusted reports whether the hints of all MCP servers and remote agents among the gates are
// believed.
func (b *builder) trusted() bool {
	return !slices.ContainsFunc(
		b.gates,
		func(g place) bool { return g.container != "" && !b.plan.Trusts(g.container) },
	)
}

func (b *builder) policyRule(pol *policy.Policy, r *policy.Rule) {
	always, annotated := b.excepted(r.Match.Except)
	if always {
		return
	}
	frame := rule{
		source: FromPolicy,
		policy: pol.Ref,
		id:     r.ID,
		file:   pol.File,
		at:     r.Range,
		about:  r.Description,
		use:    governance(b.gates),
		except: annotated,
	}
	if len(r.Match.Annotations) > 0 {
		frame.match = &r.Match
		frame.trusted = b.trusted()
	}
	r = b.inContext(r)
	if r.Denies {
		b.denial(r, frame)
	}
	if r.Approval == nil {
		return
	}
	frame.require = b.plan.requirement(&r.Require)
	frame.shows(r.Approval)
	b.add(frame, r.Condition(), r.Match.Takes...)
}

// inContext returns a rule whose tests of past calls name what they read of the target and of the
// agent's file, so that plans of different files are not taken for equal.
func (b *builder) inContext(r *policy.Rule) *policy.Rule {
	past := func(m condition.Matcher) bool { return m.History != nil }
	if r.When == nil || !slices.ContainsFunc(r.When.Groups, func(g condition.Group) bool {
		return slices.ContainsFunc(g.Matchers, past)
	}) {
		return r
	}
	context := fmt.Sprintf(" of agent %q", b.plan.agent.Metadata.ID)
	for i := range b.plan.agent.ActionSpace.MCPServers {
		s := &b.plan.agent.ActionSpace.MCPServers[i]
		context += fmt.Sprintf(" %q %q", s.Alias, s.ServerRef)
	}
	out := *r
	when := *r.When
	when.Groups = slices.Clone(when.Groups)
	for i := range when.Groups {
		matchers := slices.Clone(when.Groups[i].Matchers)
		for j := range matchers {
			if past(matchers[j]) {
				h := *matchers[j].History
				if slices.Contains(h.By, "agent") || h.Of != nil && len(h.Of.ServerRefs) > 0 {
					h.Context = context
				}
				h.Self = condition.True
				selects := func(at place) bool { return matchOf(h.Of).Target(b.called(at)) }
				if h.Of != nil && !slices.ContainsFunc(b.gates, selects) {
					h.Self = condition.False
				}
				matchers[j].History = &h
			}
		}
		when.Groups[i].Matchers = matchers
	}
	out.When = &when
	return &out
}

// denial adds a rule that denies. If the author wants people to be asked about calls for which the
// condition is unknown, it adds another rule that asks about them.
func (b *builder) denial(r *policy.Rule, frame rule) {
	frame.detail = r.Deny
	deny := frame
	deny.code = Denied
	if r.Unknown == policy.DoubtAsks {
		deny.speaks = ifTrue
		doubt := frame
		doubt.speaks, doubt.code = ifUncertain, ConditionUnknown
		doubt.require = b.plan.requirement(&r.Require)
		b.add(doubt, r.When, r.Match.Takes...)
	}
	b.add(deny, r.When, r.Match.Takes...)
}

// requirement returns the requirements of a policy, without approval by timeout unless the owner
// allows it.
func (p *Plan) requirement(r *policy.Require) *policy.Require {
	if r.OnTimeout != policy.TimeoutApprove || p.opt.AllowTimeoutApprove {
		return r
	}
	tightened := *r
	tightened.OnTimeout = policy.TimeoutDeny
	return &tightened
}

// Trusts reports whether the hints of an MCP server or a remote agent
// are believed, here and in every agent that delegates to this one.
func (p *Plan) Trusts(server string) bool {
	named := slices.ContainsFunc(p.opt.TrustedServers, func(pattern string) bool {
		return policy.Glob(pattern, server)
	})

	return named && (p.opt.Parent == nil || p.opt.Parent.Trusts(server))
}
