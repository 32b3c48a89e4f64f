package rules

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
)

// conditionMixedKinds reports policy conditions that meet calls of kinds that they can't test.
func conditionMixedKinds(p *lint.Pass) {
	for i := range p.Policy.Rules {
		if r := &p.Policy.Rules[i]; !r.Denies && r.Approval != nil && r.Condition() != nil {
			judgeConditionMixedKinds(p, r)
		}
	}
}

// sort is a group of call kinds for which a condition reads the same documents.
type sort struct {
	use     condition.Use
	lacks   string // message, with the key and the rule
	instead string
}

// sorts lists the sorts of calls that a match meets. It returns none if the author clearly
// meant one sort. A match that has targets but no kinds is skipped, because its targets may all
// be tools.
func sorts(m *policy.Match) []sort {
	meets := func(k policy.Kind) bool { return len(m.Kinds) == 0 || slices.Contains(m.Kinds, k) }
	if len(m.Kinds) == 0 && len(m.Targets) > 0 || len(m.Kinds) == 1 {
		return nil
	}
	var all []sort
	if meets(policy.Tool) && len(m.Servers) == 0 || meets(policy.MCPTool) {
		all = append(
			all,
			sort{
				condition.ToolArgs,
				"the call of a tool carries no %q, so rule %q asks about every one",
				"match: {kinds: [delegation]}",
			},
		)
	}

	if meets(policy.Skill) {
		all = append(all, sort{use: condition.Governance})
	}
	if meets(policy.Delegation) {
		all = append(
			all,
			sort{condition.Delegation, "a delegation has no argument %q, so rule %q asks about every one",
				"match: {kinds: [tool, mcp_tool, skill]}, and a rule of its own for delegation"},
		)
	}

	return all
}

// judgeConditionMixedKinds reports a rule that can let calls of one sort through, but none of
// another sort, because that sort lacks a tested key.
func judgeConditionMixedKinds(p *lint.Pass, r *policy.Rule) {
	all := sorts(&r.Match)
	through := make([]condition.Verdict, len(all))
	for i := range all {
		through[i], _ = p.Analyzer(all[i].use).CanBeFalse(r.Condition())
	}
	if !slices.Contains(through, condition.Yes) {
		return
	}
	for i, s := range all {
		if m := unread(s.use, r.Condition()); m != nil && through[i] == condition.No {
			p.Report(m.KeyRange, fmt.Sprintf(s.lacks, m.Key, r.ID), lint.Expected(s.instead))
			return
		}
	}
}

// unread returns the first matcher whose key names nothing in a use, or nil.
func unread(use condition.Use, e *condition.Expr) *condition.Matcher {
	for _, g := range e.Groups {
		for i := range g.Matchers {
			if _, fault := condition.Places(use, g.Matchers[i].Key); fault != "" && !g.Matchers[i].IsFact() {
				return &g.Matchers[i]
			}
		}
	}

	return nil
}
