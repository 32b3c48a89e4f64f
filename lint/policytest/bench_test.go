package policytest

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assent-dev/assent/internal/must"
)

// hundred returns an agent of a hundred tools with ten policies, and the
// tests that are made for it.
func hundred(t testing.TB, tools int) *Suite {
	t.Helper()
	var agent, refs strings.Builder
	for i := range tools {
		fmt.Fprintf(&agent, `
    - alias: tool_%d
      approval:
        message_template: "Use tool %d for {{tool_args.amount}}?"
        condition:
          - args_match: {amount: {gt: %d}, currency: {in: [USD, EUR]}}
          - args_match: {urgent: true}`, i, i, 100+i)
	}

	files := memory{}
	for i := range min(tools, 10) {
		fmt.Fprintf(&refs, "{policy_ref: p%d}, ", i)
		text := fmt.Sprintf(`schema_version: "1.0.0"
policy_ref: p%d
rules:
  - id: large
    match: {targets: ["tool_*%d"]}
    approval: {condition: {args_match: {amount: {gte: 1000}}}}
    require: {stages: [{group: risk, people: 2}], within: 30m}
`, i, i)
		files[fmt.Sprintf("policies/p%d.policy.yaml", i)] = &fstest.MapFile{Data: []byte(text)}
	}

	files["a.agf.yaml"] = &fstest.MapFile{Data: []byte(`schema_version: "1.0.0"
metadata: {id: desk, name: D, version: "1.0.0", description: D}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: T., model: any}}
constraints: {governance_policies: [` + strings.TrimSuffix(refs.String(), ", ") + `]}
action_space:
  local_tools:` + agent.String() + "\n")}
	h := Header{Agent: "a.agf.yaml", Policies: []string{"policies"}}
	b, err := h.Build(".", files)
	must.Do(t, err)
	text, err := Create(h, b)
	must.Do(t, err)
	f, b := prepared(t, "made.test.yaml", text, files)
	w, err := Load(f, files)
	must.Do(t, err)

	return &Suite{Files: []*File{f}, World: w, Built: b}
}

// BenchmarkMutate changes an agent of 100 tools with 10 policies, whose
// tests were made for it.
func BenchmarkMutate(b *testing.B) {
	suite := hundred(b, 100)
	b.ResetTimer()
	for b.Loop() {
		s := Mutate([]*Suite{suite})
		b.ReportMetric(float64(s.Killed+len(s.Survivors)), "changes")
		b.ReportMetric(float64(s.Percent()), "percent")
	}
}
