package lint

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// The rules of references; they are described in package resolve.
const (
	ruleUnresolved         = "policy-unresolved"
	ruleAdvisoryMissing    = "policy-advisory-missing"
	ruleSelectorOverridden = "policy-selector-overridden"
)

// references reports the policies that the agent names and the registry lacks, and those that apply
// although their own selector excludes the agent. The ids are those of resolve, which reports the
// same for a plan; here no plan needs to be compiled.
func (p *Pass) references() []diag.Finding {
	if p.Registry == nil {
		return nil
	}
	var found []diag.Finding
	for _, ref := range p.Agent.Constraints.Policies {
		pol, ok := p.Registry.Policy(ref.Ref)
		f := diag.Finding{File: p.file, Range: ref.RefRange}
		switch {
		case !ok && p.unread(ref.Ref):
			continue
		case !ok && ref.Required:
			f.Rule, f.Severity = ruleUnresolved, diag.Error
			f.Message = fmt.Sprintf("required policy %q is not in the registry, so every call is denied", ref.Ref)
			f.Expected, f.Nearest = "the policy_ref of a policy that was given", p.nearestPolicy(ref.Ref)
		case !ok:
			f.Rule, f.Severity = ruleAdvisoryMissing, diag.Warning
			f.Message = fmt.Sprintf(
				"advisory policy %q is not in the registry, so decisions are made without it",
				ref.Ref,
			)
			f.Expected, f.Nearest = "the policy_ref of a policy that was given", p.nearestPolicy(ref.Ref)
		case !pol.Agents.Match(&p.Agent.Metadata) && !p.partial:
			f.Rule, f.Severity = ruleSelectorOverridden, diag.Info
			f.Message = fmt.Sprintf(
				"%q applies because it is named here, although its own selector leaves this agent out",
				ref.Ref,
			)
		default:
			continue
		}

		found = append(found, f)
	}

	return found
}

// unread reports whether a policy may be one of the broken ones.
func (p *Pass) unread(ref string) bool {
	unread := p.worker.linter.opt.Unread
	return slices.Contains(unread, ref) || slices.Contains(unread, "")
}

// Policies lists the policies that apply to the agent, as far as the
// registry holds them.
func (p *Pass) Policies() []*policy.Policy {
	if p.Registry == nil {
		return nil
	}
	var all []*policy.Policy
	for _, ref := range p.Agent.Constraints.Policies {
		if pol, ok := p.Registry.Policy(ref.Ref); ok && !slices.Contains(all, pol) {
			all = append(all, pol)
		}
	}
	for _, pol := range p.Registry.Implicit() {
		if pol.Agents.Match(&p.Agent.Metadata) && !slices.Contains(all, pol) {
			all = append(all, pol)
		}
	}
	return all
}

// Plan compiles the agent with its policies. It returns an error if a required policy is missing.
func (p *Pass) Plan() (*resolve.Plan, error) {
	opt := p.worker.linter.opt.Owner
	opt.Semantics = p.worker.linter.opt.Semantics
	plan, err := resolve.Compile(p.Agent, p.Registry, opt)
	if err != nil {
		return nil, fmt.Errorf("compile the agent: %w", err)
	}
	return plan, nil
}

// nearestPolicy looks among the policies of a registry that can list them.
func (p *Pass) nearestPolicy(ref string) string {
	var known []string
	if set, ok := p.Registry.(interface{ Policies() []*policy.Policy }); ok {
		for _, pol := range set.Policies() {
			known = append(known, pol.Ref)
		}
	}
	return diag.Nearest(ref, known)
}
