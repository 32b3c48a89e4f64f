package hold_test

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	musthave "github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

const countedAgent = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Counts., namespace: acme}
interface:
  input: {type: object, properties: {q: {type: string}}, required: [q]}
  output: {type: object, properties: {a: {type: string}}, required: [a]}
constraints:
  budget: {max_token_usage: 1000, max_duration_seconds: 10}
  limits: {max_llm_calls: 5, max_tool_calls: 5}
  governance_policies: [{policy_ref: acme.counted}]
action_space:
  local_tools:
    - {alias: read, description: nothing counts it}
    - {alias: counted, description: another rule counts it}
    - {alias: capped, description: denied after some calls}
    - {alias: both, description: denied at night too}
    - {alias: asked, description: asks always, approval: true}
execution_policy: {id: agf.react, config: {model: m, instructions: "Test."}}
`

const countedPolicy = `schema_version: "1.1.0"
policy_ref: acme.counted
description: Counts.
rules:
  - id: cap
    match: {targets: [capped]}
    when: {history: [{of: {targets: [counted]}, within: 1h, count: {gt: 3}}]}
    deny: No.
  - {id: ask-capped, match: {targets: [asked]}, when: {history: [{within: 1h, count: {gt: 3}}]}, approval: true}
  - {id: cap-both, match: {targets: [both]}, when: {history: [{within: 1h, count: {gt: 3}}]}, deny: No.}
  - {id: late, match: {targets: [both]}, when: {time: {during: {hours: ["00:00-06:00"], zone: UTC}}}, deny: Sleep.}
`

// TestOnlyTheServiceKnowsThePast: a runtime presents every call that rules count, and denies a call itself only
// if the rules deny it whatever ran before.
func TestOnlyTheServiceKnowsThePast(t *testing.T) {
	agent, findings := schema.Parse("desk.agf.yaml", []byte(countedAgent))
	if agent == nil {
		t.Fatal(findings)
	}
	registry, _ := policy.LoadFS(fstest.MapFS{"p.policy.yaml": {Data: []byte(countedPolicy)}}, "policies")
	plan := musthave.Get(resolve.Compile(agent, registry, resolve.Options{}))(t)
	noon := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		tool  string
		hours time.Duration
		args  string
		want  resolve.Outcome
	}{
		"nothing counts it":     {"read", 0, `{}`, resolve.Allow},
		"another rule does":     {"counted", 0, `{}`, resolve.Ask},
		"a rule denies it":      {"capped", 0, `{}`, resolve.Ask},
		"two rules may":         {"both", 0, `{}`, resolve.Ask},
		"one of them does":      {"both", -8, `{}`, resolve.Deny},
		"it asks anyway":        {"asked", 0, `{}`, resolve.Ask},
		"unreadable arguments":  {"capped", 0, `{"a":1,"a":2}`, resolve.Deny},
		"undeclared":            {"other", 0, `{}`, resolve.Deny},
		"unreadable, uncounted": {"read", 0, `[`, resolve.Deny},
	} {
		call := &resolve.Call{Kind: resolve.Tool, Tool: c.tool, Args: resolve.Raw(c.args), HistoryKnown: true}
		d := hold.Decide(plan, call, noon.Add(c.hours*time.Hour))
		if d.Outcome != c.want {
			t.Errorf("%s: got %v, want %v", name, d, c.want)
		}
		if binding, err := plan.Bind(call); d.Outcome == resolve.Ask && (err != nil || d.Binding != binding) {
			t.Errorf("%s: it is bound to %q, want %q, %v", name, d.Binding, binding, err)
		}
	}
}
