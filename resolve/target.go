package resolve

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/template"
	"github.com/assent-dev/assent/value"
)

// place names one gate: the called name and its container (MCP server or remote agent).
type place struct {
	kind      Kind
	container string // "" for local tools and local agents
	name      string
}

// target is a compiled target: the rules of all gates that a call meets, and the slots of its
// documents that they read.
type target struct {
	gates  []place // never empty; the call is shown as the first
	args   *value.Shape
	parent *value.Shape
	limits value.Limits // of the arguments
	// derived describes the facts to add to the arguments. It is nil if there are none.
	derived *Derived
	// standing says what standing approvals may leave open. It is nil if the owner declares nothing.
	standing *Standing
	rules    []rule // gate by gate
	pasts    bool   // a rule tests the past calls
}

// rule is one approval requirement or denial, compiled for one gate.
type rule struct {
	gate       int // in target.gates
	layer      int // of the agent chain whose file has it; of no meaning for a policy's
	source     Source
	policy, id string
	file       string
	at         diag.Range
	code       Code   // of an unconditional rule; otherwise empty
	detail     string // of an unconditional rule
	about      string // what it is for, in its author's words
	// when is the condition, and the arguments that a call must have (policy.Match.Takes). It is nil
	// if there are neither.
	when     *condition.Program
	tests    bool          // it has a condition
	use      condition.Use // of the condition
	speaks   speaks
	approval *schema.Approval   // nil: the rule has no template
	match    *policy.Match      // nil: meets every call of its gate
	except   *policy.Match      // nil: no annotations take a call out of the rule
	trusted  bool               // the hints of the servers of all gates are believed
	require  *policy.Require    // nil: nothing
	template *template.Template // nil: none
}

// speaks says for which truths of its condition a rule asks or denies.
type speaks uint8

const (
	inDoubt     speaks = iota // true and unknown
	ifTrue                    // only true
	ifUncertain               // only unknown
)

// meets reports whether the rule applies to the call: a policy may match annotations, which are
// known only for a call.
func (r *rule) meets(c *Call) bool {
	return (r.match == nil || r.match.Annotated(c.Annotations, r.trusted)) &&
		(r.except == nil || !r.except.Exempts(c.Annotations))
}

// truth evaluates the rule's condition on what a scan of the call found.
func (r *rule) truth(v *condition.View) condition.Truth {
	if r.when == nil {
		return condition.True
	}
	return r.when.Eval(v)
}

// silent reports whether the rule neither asks nor denies, given that it meets the call.
func (r *rule) silent(v *condition.View) bool {
	switch truth := r.truth(v); r.speaks {
	case ifTrue:
		return truth != condition.True
	case ifUncertain:
		return truth != condition.Unknown
	default:
		return truth == condition.False
	}
}

// builder gathers the rules of one target.
type builder struct {
	plan     *Plan
	compiler *condition.Compiler
	gates    []place
	rules    []rule
	met      map[*policy.Rule]bool // policy rules that an earlier gate has

	at    place // the gate that is being built
	layer int   // the agent whose file is being read
}

// build gathers every rule of every layer that can apply to the gates of a target. It never fails:
// an undeclared target gets a rule that denies it, in addition to all policy rules that match it.
func (p *Plan) build(gates ...place) *target {
	b := &builder{
		plan:     p,
		gates:    gates,
		met:      map[*policy.Rule]bool{},
		compiler: condition.NewCompiler(p.opt.Semantics.Conditions),
	}
	for i, at := range gates {
		b.at = at
		from := len(b.rules)
		for layer := range p.layers {
			b.layer = layer
			b.declared(p.layers[layer].agent)
			b.stray(p.layers[layer].agent)
		}
		b.governed()
		for j := range b.rules[from:] {
			b.rules[from+j].gate = i
		}
	}

	t := &target{
		gates:    gates,
		rules:    b.rules,
		limits:   p.argumentLimits(gates[0]),
		derived:  p.derived[gates[0]],
		standing: p.standings[gates[0]],
	}
	t.pasts = slices.ContainsFunc(b.rules, func(r rule) bool { return r.when != nil && len(r.when.PastTests()) > 0 })
	t.args, t.parent = b.compiler.Shapes()
	return t
}

// useOf returns the meaning of the keys in an approval of an agent's file.
func useOf(k Kind) condition.Use {
	switch k {
	case Skill:
		return condition.SkillArgs
	case Delegation:
		return condition.Delegation
	default:
		return condition.ToolArgs
	}
}

// declared adds the rules of one agent's file for the gate. An ancestor that does not declare the
// target adds none; the agent itself must declare it.
func (b *builder) declared(a *schema.Agent) {
	known := false
	switch b.at.kind {
	case Tool:
		known = b.localTool(a)
	case MCPTool:
		known = b.mcpTool(a)
	case Skill:
		known = b.skill(a)
	case Delegation:
		known = b.delegation(a)
	}

	if !known && !b.ancestor() && b.at == b.gates[0] { // the first gate of a call has said it already
		b.rules = append(b.rules, rule{
			source: FromActionSpace,
			file:   a.File,
			at:     spaceOf(a),
			code:   NotDeclared,
			detail: b.notDeclared(a),
		})
	}
}

// ancestor reports whether the file that is being read is a parent's.
func (b *builder) ancestor() bool { return b.layer > 0 }

func (b *builder) localTool(a *schema.Agent) bool {
	for i := range a.ActionSpace.LocalTools {
		if t := &a.ActionSpace.LocalTools[i]; t.Alias == b.at.name {
			b.misspelt(a, "local_tools."+t.Alias, t.Misspelt)
			b.approval(a, FromAgent, "local_tools."+t.Alias, t.Approval)
			return true
		}
	}

	return false
}

func (b *builder) delegation(a *schema.Agent) bool {
	if b.at.container == "" {
		for i := range a.ActionSpace.LocalAgents {
			if l := &a.ActionSpace.LocalAgents[i]; l.Alias == b.at.name {
				b.misspelt(a, "local_agents."+l.Alias, l.Misspelt)
				b.approval(a, FromAgent, "local_agents."+l.Alias, l.Approval)
				return true
			}
		}

		return false
	}

	r := remoteAgent(a, b.at.container)
	if r == nil {
		return false
	}
	b.misspelt(a, "remote_agents."+r.Alias, r.Misspelt)
	if !b.replaced(r) {
		b.approval(a, FromAgent, "remote_agents."+r.Alias, r.Approval)
	}
	return true
}

// replaced reports whether the owner's settings let the called skill's own approval replace its
// agent's. This affects approvals in the same file only: policies and a parent's approval still
// apply.
func (b *builder) replaced(r *schema.RemoteAgent) bool {
	called := b.gates[0]
	if b.plan.opt.Semantics.RemoteApproval != SkillReplaces || called.kind != Skill || r.AllowedSkills == nil {
		return false
	}
	return slices.ContainsFunc(*r.AllowedSkills, func(e schema.ToolRef) bool {
		return e.Name == called.name && e.Approval != nil
	})
}

// mcpTool adds the server's rules. A child's server is the parent's
// when they share the server_ref, or the alias.
func (b *builder) mcpTool(a *schema.Agent) bool {
	known := false
	for i := range a.ActionSpace.MCPServers {
		s := &a.ActionSpace.MCPServers[i]
		if s.Alias != b.at.container && (!b.ancestor() || !b.sameServer(s)) {
			continue
		}
		known = true
		b.misspelt(a, "mcp_servers."+s.Alias, s.Misspelt)
		b.listed(a, list{
			alias:    s.Alias,
			id:       "mcp_servers." + s.Alias,
			what:     "tool",
			entries:  s.AllowedTools,
			at:       s.AllowedRange,
			misspelt: s.MisspeltAllow,
			unread:   s.MisspeltLists,
			blanket:  s.Approval,
		})
	}

	return known
}

func (b *builder) sameServer(s *schema.MCPServer) bool {
	own := mcpServer(b.plan.agent, b.at.container)
	return own != nil && own.ServerRef != "" && own.ServerRef == s.ServerRef
}

func (b *builder) skill(a *schema.Agent) bool {
	r := remoteAgent(a, b.at.container)
	if r == nil {
		return false
	}
	// The agent-level approval is a gate of its own and not a default: skills inherit nothing from
	// it.
	b.listed(a, list{
		alias:    r.Alias,
		id:       "remote_agents." + r.Alias,
		what:     "skill",
		entries:  r.AllowedSkills,
		at:       r.AllowedRange,
		misspelt: r.MisspeltAllow,
		unread:   r.MisspeltLists,
	})
	return true
}

// list is an allow-list with the blanket approval that its entries inherit.
type list struct {
	alias    string
	id       string
	what     string // "tool" or "skill", for sentences
	entries  *[]schema.ToolRef
	at       diag.Range
	misspelt *yamldoc.Node // the list under its old name, nil: none
	unread   []schema.MisspeltList
	blanket  *schema.Approval
}

// listed adds the rules of every entry that names the place: the
// strictest of several wins because all are added.
func (b *builder) listed(a *schema.Agent, l list) {
	entries := l.entries
	if entries != nil && len(*entries) == 0 && b.plan.opt.Semantics.EmptyAllowList == EmptyIsAbsent {
		entries = nil
	}
	b.unread(a, l, entries == nil)
	if entries == nil {
		if l.misspelt != nil {
			b.rules = append(
				b.rules,
				rule{
					source: FromActionSpace,
					id:     l.id,
					file:   a.File,
					at:     l.misspelt.Range,
					code:   AllowListMisspelt,
					detail: "the allow-list stands under its old name, allow_" + l.what +
						"s, which is ignored: every " + l.what + " asks",
				},
			)
		}

		b.approval(a, FromServer, l.id, l.blanket)
		return
	}

	found := false
	for i := range *entries {
		e := &(*entries)[i]
		if e.Name != b.at.name {
			continue
		}
		found = true
		b.misspelt(a, l.id+"."+e.Name, e.Misspelt)
		if e.Approval == nil {
			b.approval(a, FromServer, l.id, l.blanket)
		} else {
			b.approval(a, FromAgent, l.id+"."+e.Name, e.Approval)
		}
	}

	if !found {
		b.rules = append(b.rules, rule{
			source: FromActionSpace,
			id:     l.id,
			file:   a.File,
			at:     l.at,
			code:   NotAllowed,
			detail: b.notAllowed(l),
		})
	}
}

// unread adds a rule that asks for each list of tools or skills with a misspelt name, because such
// a list restricts nothing. A misspelt allow-list is ignored if there is also a readable one.
func (b *builder) unread(a *schema.Agent, l list, unlisted bool) {
	for _, u := range l.unread {
		if !u.Denies && !unlisted {
			continue
		}
		b.rules = append(b.rules, rule{
			source: FromActionSpace,
			id:     l.id,
			file:   a.File,
			at:     u.Range,
			code:   AllowListMisspelt,
			detail: fmt.Sprintf(
				"the agent's file has a list of %ss under the unknown field %s, which restricts nothing: every %s of %s "+
					"asks until it is fixed",
				l.what, quote(u.Field), l.what, l.id,
			),
		})
	}
}

// misspelt adds a rule that asks for each field of an entry that looks like a misspelt gate.
func (b *builder) misspelt(a *schema.Agent, id string, gates []schema.MisspeltGate) {
	for _, g := range gates {
		b.misspeltGate(a, id, g, "every call of "+id)
	}
}

// stray does the same for fields outside of the entries: those meant for the target of the call,
// and those meant for all calls.
func (b *builder) stray(a *schema.Agent) {
	if len(a.Strays) == 0 || b.at != b.gates[0] {
		return
	}
	for _, g := range a.Strays[""] {
		b.misspeltGate(a, "", g, "every call")
	}
	done := map[string]bool{"": true}
	for _, name := range []string{b.at.container, b.at.name} {
		key := schema.StrayKey(name)
		if done[key] {
			continue
		}
		done[key] = true
		for _, g := range a.Strays[key] {
			b.misspeltGate(a, "", g, "every call of "+quote(name))
		}
	}
}

func (b *builder) misspeltGate(a *schema.Agent, id string, g schema.MisspeltGate, calls string) {
	b.rules = append(b.rules, rule{
		source: FromActionSpace,
		id:     id,
		file:   a.File,
		at:     g.Range,
		code:   ApprovalMisspelt,
		detail: fmt.Sprintf(
			"the agent's file has an approval that is not read, the unknown field %s: %s asks until it is fixed",
			quote(g.Field), calls,
		),
	})
}

// approval adds one approval of an agent's file, if it can ask.
func (b *builder) approval(a *schema.Agent, source Source, id string, ap *schema.Approval) {
	if ap == nil || ap.Form == schema.Never {
		return
	}
	b.ask(useOf(b.at.kind), ap, rule{
		source:  source,
		id:      id,
		file:    a.File,
		layer:   b.layer,
		at:      ap.Range,
		require: b.plan.standings[b.gates[0]].requirement(),
	})
}

// ask adds a rule that asks, with the condition and template of its
// approval.
func (b *builder) ask(use condition.Use, ap *schema.Approval, r rule) {
	r.use = use
	r.shows(ap)
	if ap.Form == schema.Conditional {
		b.add(r, ap.Condition)
	} else {
		b.add(r, nil)
	}
}

// shows sets the approval whose template the rule shows.
func (r *rule) shows(ap *schema.Approval) {
	r.approval = ap
	if ap.Template != nil && !ap.Template.Parsed.Omitted() {
		r.template = ap.Template.Parsed
	}
}

// add adds a rule with a condition, for calls with these arguments. A nil condition holds for every
// call.
func (b *builder) add(r rule, when *condition.Expr, takes ...string) {
	if when == nil && r.code == "" {
		r.code, r.detail = Always, "approval is always required"
	}
	r.tests = when != nil
	if len(takes) > 0 {
		when = condition.And(condition.Takes(takes), when)
	}
	if when != nil {
		r.when = b.compiler.Add(r.use, when)
	}
	b.rules = append(b.rules, r)
}

// spaceOf returns the range of the action space, or of the whole file if there is none.
func spaceOf(a *schema.Agent) diag.Range {
	if n := a.Doc.Root.Get("action_space"); n != nil {
		return n.Range
	}
	return a.Doc.Root.Range
}

func mcpServer(a *schema.Agent, alias string) *schema.MCPServer {
	for i := range a.ActionSpace.MCPServers {
		if s := &a.ActionSpace.MCPServers[i]; s.Alias == alias {
			return s
		}
	}
	return nil
}

func remoteAgent(a *schema.Agent, alias string) *schema.RemoteAgent {
	for i := range a.ActionSpace.RemoteAgents {
		if r := &a.ActionSpace.RemoteAgents[i]; r.Alias == alias {
			return r
		}
	}
	return nil
}
