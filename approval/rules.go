package approval

import (
	"slices"

	"github.com/assent-dev/assent/resolve"
)

// Rules are the rules that asked about a call, without duplicates.
type Rules []Rule

// Rule identifies one rule: by the name in its policy, or by its position in the agent's file.
type Rule struct {
	Source resolve.Source `json:"source"`
	Policy string         `json:"policy,omitempty"`
	Rule   string         `json:"rule,omitempty"`
}

// rulesOf returns the rules that asked.
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

// include reports whether r contains all of others.
func (r Rules) include(others Rules) bool {
	return !slices.ContainsFunc(others, func(o Rule) bool { return !slices.Contains(r, o) })
}

// facts returns the rules in the form that the ledger stores.
func (r Rules) facts() []any {
	return facts(r, func(x Rule) any {
		return map[string]any{
			"source": string(x.Source),
			"policy": x.Policy,
			"rule":   x.Rule,
		}
	})
}
