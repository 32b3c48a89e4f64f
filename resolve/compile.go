package resolve

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// Options are the runtime owner's choices for a plan. The zero value is
// the default.
type Options struct {
	Semantics Semantics
	// Limits bounds the arguments of a call. MaxValues is DefaultValues
	// unless it says otherwise. FoldKeys is always on, see
	// CaseSensitive.
	Limits value.Limits
	// CaseSensitive names the targets whose arguments may have keys that differ only in case: "tool
	// pay", "mcp_tool broker/sell", "skill payments/refund", "delegation clerk". For all others
	// such arguments are unreadable, since many tools treat the two keys as one. Under a Parent,
	// the parent must name the target too.
	CaseSensitive []string
	// Derived lists the arguments from which facts are derived for conditions. Under a Parent, the
	// parent must have the same entry.
	Derived []Derived
	// Grants says what standing approvals of targets may leave open. Under a Parent, the parent must have
	// the same entry.
	Grants []Standing
	// TrustValues declares that Call.Values come from a JSON decoder that accepts only JSON types,
	// no NaN and no invalid UTF-8, and that no object in them has keys that differ only in case.
	// Before a call is allowed, only the values that conditions read are then checked; all of them
	// are still checked if the call asks or is bound.
	TrustValues bool
	// AgentAlias is the alias under which the agent runs, for messages. If it is empty, messages
	// use metadata.id.
	AgentAlias string
	// Parent is the plan of the agent that delegates to this one. Its approvals, allow-lists,
	// policies, limits and Semantics apply here too, and AllowTimeoutApprove must be set in both: a
	// child can only tighten (Agent Format, tighten_only_invariant).
	Parent *Plan
	// AllowTimeoutApprove lets policies approve by timeout. Without it
	// such a fallback is read as deny.
	AllowTimeoutApprove bool
	// ReplacePermissions lets a call that the rules allow run in a coding
	// agent without the agent's own permission check. Without it a hook
	// has no opinion about such a call, and the agent may still ask.
	ReplacePermissions bool
	// TrustedServers names the MCP servers and remote agents whose annotations are trusted, by
	// globs over their aliases. Hints of all others can make a rule match a call, but not exempt a
	// call from a rule.
	TrustedServers []string
	// Configuration is the digest that decisions name, see Decision.Configuration. It is not part
	// of the plan's version, because each setting that changes decisions is part of the version
	// itself.
	Configuration string
}

// UnresolvedError lists the required policies that are missing, or contains the error of the
// registry. The plan that is returned with it is usable and denies every call.
type UnresolvedError struct {
	Refs     []string
	Registry error // nil unless the registry itself failed
}

// Error names what is missing.
func (e *UnresolvedError) Error() string {
	if e.Registry != nil {
		return fmt.Sprintf("the policy registry can't be read: %v", e.Registry)
	}
	return "required policies are not resolved: " + strings.Join(e.Refs, ", ")
}

// Unwrap returns the registry's error.
func (e *UnresolvedError) Unwrap() error { return e.Registry }

// DefaultValues is the number of JSON values that the arguments of a call may have, unless
// Options.Limits sets another. No person can review so many values, and each takes some 500 bytes
// of memory while a message is rendered.
const DefaultValues = 50_000

// Plan is an agent compiled with its policies. It is immutable and safe
// for concurrent use.
type Plan struct {
	agent    *schema.Agent
	alias    string
	opt      Options
	layers   []layer // this agent first, then its parents
	stop     []Reason
	findings []diag.Finding
	version  value.Digest
	bindHead []byte // what all bindings have in common
	bindPlan []byte

	caseSensitive map[place]bool      // see Options.CaseSensitive
	derived       map[place]*Derived  // see Options.Derived
	standings     map[place]*Standing // see Options.Grants

	tools     map[string]*target
	servers   map[string]*container
	remotes   map[string]*container
	delegates map[string]delegate
	views     sync.Pool // of *condition.View
}

// layer is one agent of the delegation chain with the policies that
// apply to it.
type layer struct {
	agent    *schema.Agent
	policies []*policy.Policy
}

// Compile resolves the agent's policies and prepares every declared
// target. A nil registry holds no policies.
//
// When a required policy is missing or the registry can't be read,
// Compile returns a plan that denies every call together with an
// *UnresolvedError. Every other error comes without a plan.
func Compile(agent *schema.Agent, registry policy.Registry, opt Options) (*Plan, error) {
	if agent == nil {
		return nil, errors.New("no agent to compile: the file has findings that stop the load")
	}
	if opt.Parent != nil {
		opt.Semantics = opt.Parent.opt.Semantics
		opt.AllowTimeoutApprove = opt.AllowTimeoutApprove && opt.Parent.opt.AllowTimeoutApprove
	}
	if opt.Limits.MaxValues == 0 {
		opt.Limits.MaxValues = DefaultValues
	}
	p := &Plan{agent: agent, alias: opt.AgentAlias, opt: opt}
	if p.alias == "" {
		p.alias = agent.Metadata.ID
	}
	p.views.New = func() any { return &condition.View{} }
	var err error
	if p.caseSensitive, err = caseSensitive(opt); err != nil {
		return nil, err
	}
	if p.derived, err = derivations(opt); err != nil {
		return nil, err
	}
	if p.standings, err = standings(opt); err != nil {
		return nil, err
	}
	own, unresolved := p.resolvePolicies(registry)
	p.layers = []layer{own}
	if opt.Parent != nil {
		p.layers = append(p.layers, opt.Parent.layers...)
		p.stop = append(p.stop, opt.Parent.stop...)
	}
	p.version = p.computeVersion()
	p.bindHead, p.bindPlan = bindHead(&agent.Metadata), bindPlan(p.version)
	p.prepare()
	return p, unresolved
}

// caseSensitive reads Options.CaseSensitive.
func caseSensitive(opt Options) (map[place]bool, error) {
	all := make(map[place]bool, len(opt.CaseSensitive))
	for _, name := range opt.CaseSensitive {
		at, err := parsePlace(name)
		if err != nil {
			return nil, fmt.Errorf("case-sensitive arguments: %w", err)
		}
		if opt.Parent == nil || opt.Parent.caseSensitive[at] {
			all[at] = true
		}
	}

	return all, nil
}

// CheckTarget reports what is wrong with a name in Options.CaseSensitive.
func CheckTarget(name string) error {
	_, err := parsePlace(name)
	return err
}

// parsePlace parses the name of a target: its kind, a space, its container and a slash if it has
// one, and its name.
func parsePlace(name string) (place, error) {
	kind, rest, _ := strings.Cut(name, " ")
	container, inside, contained := strings.Cut(rest, "/")
	at := place{kind: Kind(kind), name: rest}
	switch at.kind {
	case Tool, Delegation:
		contained = true
	case MCPTool, Skill:
		at.container, at.name = container, inside
		contained = contained && container != ""
	default:
		contained = false
	}

	if !contained || at.name == "" {
		return place{}, fmt.Errorf(
			"%q is no target, expected one such as \"tool pay\", \"mcp_tool broker/sell\", \"skill "+
				"payments/refund\" or \"delegation clerk\"",
			name,
		)
	}

	return at, nil
}

// Findings returns the findings of compiling: policies that are missing, advisory or weakened. They
// never loosen a decision.
func (p *Plan) Findings() []diag.Finding { return p.findings }

// Configuration returns Options.Configuration.
func (p *Plan) Configuration() string { return p.opt.Configuration }

// TimeoutApproves reports whether a policy may approve by timeout here.
func (p *Plan) TimeoutApproves() bool { return p.opt.AllowTimeoutApprove }

// Version identifies the agent, policies and semantics that this plan
// was compiled from.
func (p *Plan) Version() string { return p.version.String() }

// Limits returns the strictest budget and limits of this agent and its
// parents (Agent Format, constraints).
func (p *Plan) Limits() (schema.Budget, schema.Limits) {
	var b schema.Budget
	var l schema.Limits
	for _, layer := range p.layers {
		c := &layer.agent.Constraints
		b.MaxTokenUsage = least(b.MaxTokenUsage, c.Budget.MaxTokenUsage)
		b.MaxDurationSeconds = least(b.MaxDurationSeconds, c.Budget.MaxDurationSeconds)
		l.MaxLLMCalls = least(l.MaxLLMCalls, c.Limits.MaxLLMCalls)
		l.MaxToolCalls = least(l.MaxToolCalls, c.Limits.MaxToolCalls)
		l.MaxDelegationDepth = least(l.MaxDelegationDepth, c.Limits.MaxDelegationDepth)
	}

	return b, l
}

func least(a, b *int64) *int64 {
	if a == nil || (b != nil && *b < *a) {
		return b
	}
	return a
}

// resolvePolicies makes the agent's own layer: what it names, then what
// the runtime owner applies by selector.
func (p *Plan) resolvePolicies(registry policy.Registry) (layer, error) {
	own := layer{agent: p.agent}
	if registry == nil {
		registry, _ = policy.NewSet() // none can't be refused
	}
	if err := registry.Err(); err != nil {
		unreadable := &UnresolvedError{Registry: err}
		p.addStop("", unreadable.Error(), diag.Range{})
		return own, unreadable
	}
	missing := p.namedPolicies(registry, &own)
	for _, pol := range registry.Implicit() {
		if pol.Agents.Match(&p.agent.Metadata) {
			own.policies = append(own.policies, pol)
		}
	}
	own.policies = byRef(own.policies)
	p.noteTimeouts(own.policies)
	if missing != nil {
		return own, &UnresolvedError{Refs: missing}
	}
	return own, nil
}

// namedPolicies adds the policies that the agent names, and returns the
// required ones that are not there, which stop it.
func (p *Plan) namedPolicies(registry policy.Registry, own *layer) (missing []string) {
	for _, ref := range p.agent.Constraints.Policies {
		pol, ok := registry.Policy(ref.Ref)
		switch {
		case ok && pol != nil:
			own.policies = append(own.policies, pol)
			p.noteSelector(ref, pol)
		case ref.Required:
			missing = append(missing, ref.Ref)
			p.addStop(ref.Ref, "the required policy "+ref.Ref+" is not in the registry", ref.Range)
		default:
			p.findings = append(p.findings, diag.Finding{
				Rule:     "policy-advisory-missing",
				Severity: diag.Warning,
				File:     p.agent.File,
				Range:    ref.Range,
				Message: fmt.Sprintf(
					"the advisory policy %s is not in the registry: decisions are made without it",
					ref.Ref,
				),
			})
		}
	}

	return missing
}

// noteSelector reports a policy that applies to an agent although its selector excludes it.
func (p *Plan) noteSelector(ref schema.PolicyRef, pol *policy.Policy) {
	if !pol.Agents.Match(&p.agent.Metadata) {
		p.findings = append(p.findings, diag.Finding{
			Rule:     "policy-selector-overridden",
			Severity: diag.Info,
			File:     p.agent.File,
			Range:    ref.RefRange,
			Message: fmt.Sprintf(
				"%s applies because it is named here, although its own selector leaves this agent out",
				ref.Ref,
			),
		})
	}
}

// noteTimeouts reports the policies whose approval by timeout is ignored.
func (p *Plan) noteTimeouts(policies []*policy.Policy) {
	for _, pol := range policies {
		for i := range pol.Rules {
			if r := &pol.Rules[i]; p.requirement(&r.Require) != &r.Require {
				p.findings = append(p.findings, diag.Finding{
					Rule:     "policy-timeout-refused",
					Severity: diag.Warning,
					File:     pol.File,
					Range:    r.Range,
					Message: fmt.Sprintf(
						"rule %s approves by timeout, which is read as deny: the runtime owner has not opted in",
						r.ID,
					),
				})
			}
		}
	}
}

// addStop makes the plan deny every call for this reason, and adds a finding.
func (p *Plan) addStop(ref, detail string, at diag.Range) {
	p.stop = append(p.stop, Reason{
		Source:  FromPolicy,
		Policy:  ref,
		Code:    PolicyUnresolved,
		Detail:  detail,
		outcome: Deny,
		File:    p.agent.File,
		Line:    at.Start.Line,
		Column:  at.Start.Column,
	})
	p.findings = append(p.findings, diag.Finding{
		Rule:     "policy-unresolved",
		Severity: diag.Error,
		File:     p.agent.File,
		Range:    at,
		Message:  detail,
		Expected: "every call is denied until the policy is there",
	})
}

// byRef sorts policies by their reference and drops repetitions, so
// that neither order nor repetition in files matters.
func byRef(policies []*policy.Policy) []*policy.Policy {
	slices.SortStableFunc(policies, func(a, b *policy.Policy) int {
		return cmp.Or(strings.Compare(a.Ref, b.Ref), bytes.Compare(a.Digest[:], b.Digest[:]))
	})
	return slices.CompactFunc(policies, func(a, b *policy.Policy) bool {
		return a.Ref == b.Ref && a.Digest == b.Digest
	})
}

// computeVersion digests everything that a decision rests on.
func (p *Plan) computeVersion() value.Digest {
	text := []byte("assent plan 1\n")
	for _, l := range p.layers {
		text = appendNode(text, l.agent.Doc.Root)
		text = fmt.Appendf(text, "\nsemantics %+v\n", p.opt.Semantics)
		for _, pol := range l.policies {
			text = append(text, pol.Ref+" "+pol.Digest.String()+"\n"...)
		}
	}

	for _, r := range p.stop {
		text = append(text, "stop "+r.Detail+"\n"...)
	}
	for _, at := range slices.SortedFunc(maps.Keys(p.caseSensitive), comparePlaces) {
		text = fmt.Appendf(text, "case-sensitive %q %q %q\n", at.kind, at.container, at.name)
	}
	for _, at := range slices.SortedFunc(maps.Keys(p.derived), comparePlaces) {
		text = fmt.Appendf(text, "derived %q %q %q: %s\n", at.kind, at.container, at.name, p.derived[at].text())
	}
	for _, at := range slices.SortedFunc(maps.Keys(p.standings), comparePlaces) {
		text = fmt.Appendf(text, "grants %q %q %q: %s\n", at.kind, at.container, at.name, p.standings[at].text())
	}
	text = append(text, "timeout-approve "+strconv.FormatBool(p.opt.AllowTimeoutApprove)...)
	if len(p.opt.TrustedServers) > 0 {
		text = fmt.Appendf(text, "\ntrusted %q\n", slices.Sorted(slices.Values(p.opt.TrustedServers)))
	}

	for level, at := 1, p.opt.Parent; at != nil; level, at = level+1, at.opt.Parent {
		if len(at.opt.TrustedServers) > 0 {
			text = fmt.Appendf(
				text,
				"\nparent %d trusts %q\n",
				level,
				slices.Sorted(slices.Values(at.opt.TrustedServers)),
			)
		}
	}

	return value.SumCanonical(text)
}

func comparePlaces(a, b place) int {
	return cmp.Or(
		cmp.Compare(a.kind, b.kind),
		cmp.Compare(a.container, b.container),
		cmp.Compare(a.name, b.name),
	)
}

// appendNode writes a YAML node so that different documents give
// different text; comments and layout leave no trace.
func appendNode(dst []byte, n *yamldoc.Node) []byte {
	dst = append(strconv.AppendInt(dst, int64(n.Kind), 10), strconv.Quote(n.Text)...)
	dst = append(dst, '(')
	for _, item := range n.Items {
		dst = appendNode(dst, item)
	}
	for _, f := range n.Fields {
		dst = appendNode(appendNode(dst, f.Key), f.Value)
	}
	return append(dst, ')')
}
