package approval

import (
	"slices"

	"github.com/assent-dev/assent/resolve"
)

// Rules are the rules that asked about a call, each once, ordered.
type Rules []Rule

// Rule names one rule: of a policy, or of an agent's file by its place.
type Rule struct {
	Source resolve.Source `json:"source"`
	Policy string         `json:"policy,omitempty"`
	Rule   string         `json:"rule,omitempty"`
}

// rulesOf names the rules that asked.
func rulesOf(d *resolve.Decision) Rules {
	var out Rules
	for _, x := range d.Reasons {
		rule := Rule{Source: x.Source, Policy: x.Policy, Rule: x.Rule}
		if !slices.Contains(out, rule) {
			out = append(out, rule)
		}
	}

	return out
}

// include reports whether all of others are among the rules.
func (r Rules) include(others Rules) bool {
	return !slices.ContainsFunc(others, func(o Rule) bool { return !slices.Contains(r, o) })
}

// facts are the rules as the ledger keeps them.
func (r Rules) facts() []any {
	return facts(r, func(x Rule) any {
		return map[string]any{
			"source": string(x.Source),
			"policy": x.Policy,
			"rule":   x.Rule,
		}
	})
}
