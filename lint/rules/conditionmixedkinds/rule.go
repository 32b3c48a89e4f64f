// Package conditionmixedkinds reports policy conditions that meet calls of kinds that they can't test.
package conditionmixedkinds

import (
	_ "embed"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
)

//go:embed bad.policy.yaml
var bad string

//go:embed good.policy.yaml
var good string

// Rule returns the rule.
func Rule() lint.Rule {
	return lint.Rule{
		RuleInfo: diag.RuleInfo{
			ID: "condition-mixed-kinds", Title: "A policy's condition meets calls that it can't test", Severity: diag.Warning,
			Why: "Conditions test the arguments of tools and skills by name, and the input of a delegation by path. A rule that meets both kinds of calls has keys that one of them never has; " +
				"what can't be tested asks, so every delegation (or every call) of the agents that the policy governs goes to a person. " +
				"Say which kinds are meant, and give the others a rule of their own.",
			Bad: lint.Sample(bad), Good: lint.Sample(good), Spec: "docs/contracts/policy.md",
		},
		Policy: check,
	}
}

func check(p *lint.Pass) {
	for i := range p.Policy.Rules {
		r := &p.Policy.Rules[i]
		if r.Denies || r.Approval == nil || r.Approval.Condition == nil || !mixed(&r.Match) {
			continue
		}
		if key := firstKey(r.Approval.Condition); key != nil {
			report(p, r.ID, key)
		}
	}
}

// mixed tells whether a rule meets delegations and other calls. One without kinds that has targets is left alone: they may name
// tools only.
func mixed(m *policy.Match) bool {
	if len(m.Kinds) == 0 {
		return len(m.Targets) == 0
	}
	return slices.Contains(m.Kinds, policy.Delegation) && slices.ContainsFunc(m.Kinds, func(k policy.Kind) bool { return k != policy.Delegation })
}

func firstKey(e *condition.Expr) *condition.Matcher {
	for _, g := range e.Groups {
		for i := range g.Matchers {
			if !lint.Idle(&g.Matchers[i]) {
				return &g.Matchers[i]
			}
		}
	}
	return nil
}

func report(p *lint.Pass, id string, m *condition.Matcher) {
	if _, fault := condition.Places(condition.Delegation, m.Key); fault != "" {
		p.Report(m.KeyRange, fmt.Sprintf("a delegation has no argument %q, so rule %q asks about every one", m.Key, id),
			lint.Expected("match: {kinds: [tool, mcp_tool, skill]}, and a rule of its own for delegation"))
		return
	}
	p.Report(m.KeyRange, fmt.Sprintf("only a delegation has %q, so rule %q asks about every other call", m.Key, id),
		lint.Expected("match: {kinds: [delegation]}"))
}
