package lint_test

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
)

// TestEveryDocumentOfAFileIsLookedAt checks that a second document stops the load, and that the
// mistakes in both are reported.
func TestEveryDocumentOfAFileIsLookedAt(t *testing.T) {
	const agent = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades, lables: {a: b}}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
`
	const policy = `---
schema_version: "1.0.0"
policy_ref: acme.p
aplies: implicit
rules: [{id: one, match: {kinds: [tool]}, approval: {condition: {args_match: {amount: {gt: 10, lt: 5}}}}}]
`
	const people = `---
people: []
`
	w := lint.New(rules.All(), lint.Options{}).Worker()
	want := []string{
		"2 warning unknown-field",
		"5 error yaml-documents",
		"8 error unknown-field",
		"9 error condition-unsatisfiable",
		"10 error yaml-documents",
		"11 error missing-field",
		"12 error yaml-documents",
		"14 warning unknown-field",
	}
	text := agent + policy + people + "---\n" + agent
	expect(t, "as an agent", said(w.Agent("a.agf.yaml", []byte(text), nil).Findings), want...)
	expect(t, "as a policy", said(w.Policy("a.policy.yaml", []byte(text)).Findings), want...)

	many := strings.Repeat("---\na: 1\n", 10_000)
	if found := w.Agent("a.agf.yaml", []byte(many), nil).Findings; len(found) > 100 {
		t.Errorf("%d findings of one file", len(found))
	}
}
