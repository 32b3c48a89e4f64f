package plans_test

import (
	"testing"

	"github.com/assent-dev/assent/server/plans"
)

// TestRulesOfAnUnusableAgentCountOn: while an agent can't be used, what its rules count of other agents
// is still recorded.
func TestRulesOfAnUnusableAgentCountOn(t *testing.T) {
	agents := write(t, map[string]string{"a.agf.yaml": agent("a", ""), "b.agf.yaml": agent("b", "")})
	policies := write(t, map[string]string{"p.policy.yaml": `schema_version: "1.1.0"
policy_ref: p
description: For tests.
applies: implicit
agents: {ids: [a]}
rules:
  - id: many
    match: {targets: [act]}
    when: {history: [{within: 1h, count: {gt: 1}}]}
    deny: many
`})
	p := load(t, plans.Config{Agents: []string{agents}, Policies: []string{policies}, DenyBroken: true})
	if p.Past("") == nil {
		t.Fatal("no rule counts")
	}
	reloaded(t, p, agents, map[string]string{"a.agf.yaml": "schema_version: ["})
	if p.Past("") == nil {
		t.Error("the rules of an agent that can't be used count nothing")
	}
}
