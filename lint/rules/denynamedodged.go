package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// denyNameDodged reports servers with tools that a policy denies by name, if another spelling
// of the name gets past the denial.
func denyNameDodged(p *lint.Pass) {
	var plan *resolve.Plan // compiled when a server needs it
	for _, s := range p.Agent.ActionSpace.MCPServers {
		if s.AllowedTools != nil {
			continue
		}
		for _, d := range denials(p, &s) {
			if plan == nil {
				var err error
				if plan, err = p.Plan(); err != nil {
					return // a required policy is missing, so every call is denied
				}
			}

			if reportDenyNameDodged(p, plan, &s, d) {
				break
			}
		}
	}
}

// denial is a name that a policy's rule denies.
type denial struct {
	policy *policy.Policy
	rule   *policy.Rule
	name   string
}

// denials lists the names on a server that the agent's policies deny, one name for each
// pattern.
func denials(p *lint.Pass, s *schema.MCPServer) []denial {
	var all []denial
	for _, pol := range p.Policies() {
		for i := range pol.Rules {
			r := &pol.Rules[i]
			if !r.Denies || r.When != nil {
				continue
			}
			for _, pattern := range r.Match.Targets {
				name := strings.ReplaceAll(pattern, "*", "x")
				if strings.Trim(pattern, "*") != "" && r.Match.Target(policy.Called{
					Kind: policy.MCPTool, Target: name, Server: s.Alias, ServerRef: s.ServerRef,
				}) {
					all = append(all, denial{pol, r, name})
				}
			}
		}
	}

	return all
}

// reportDenyNameDodged reports a denial that doesn't apply to the name in upper or lower case.
func reportDenyNameDodged(p *lint.Pass, plan *resolve.Plan, s *schema.MCPServer, d denial) bool {
	call := func(name string) resolve.Outcome {
		return plan.Decide(&resolve.Call{
			Kind:   resolve.MCPTool,
			Server: s.Alias,
			Tool:   name,
		}).Outcome
	}
	spellings := []string{strings.ToUpper(d.name), strings.ToLower(d.name)}
	i := slices.IndexFunc(
		spellings,
		func(name string) bool { return name != d.name && call(name) == resolve.Allow },
	)
	if i < 0 || call(d.name) != resolve.Deny {
		return false
	}
	p.Report(
		s.AliasRange,
		fmt.Sprintf(
			"policy %s denies %q here, and lets %q through without a question",
			d.policy.Ref,
			d.name,
			spellings[i],
		),
		lint.Expected("allowed_tools with the tools that the agent needs"),
		lint.Within(d.policy.File, d.rule.Range, "denied here"),
	)
	return true
}
