package policytest

import "github.com/assent-dev/assent/diag"

// The rules of this package. Ids are stable. The shape of a document is
// judged with the ids of package schema, its YAML with those of
// internal/yamldoc.
const (
	ruleForeign            = "tests-not-a-test-file"
	ruleUnsupportedVersion = "tests-unsupported-version"
	ruleNewerVersion       = "tests-newer-version"
	ruleCase               = "tests-unusable-case"
)

const (
	spec  = "docs/contracts/tests.md"
	begin = "schema_version: \"1.0.0\"\nagent: agent.agf.yaml\n"
	good  = begin + "calls:\n  - name: quotes are free\n    call: {kind: tool, tool: quote}\n" +
		"    expect: {outcome: allow}\n"
)

// Rules describes every rule whose findings this package makes on its own.
func Rules() []diag.RuleInfo {
	return []diag.RuleInfo{
		{
			ID:       ruleForeign,
			Title:    "The document is no test file",
			Severity: diag.Error,
			Spec:     spec,
			Why: "A test file has `calls`, `never`, `always` or `people_cases`. A file without them tests nothing, and a file that was " +
				"meant to be another one would go unnoticed.",
			Bad:  "policy_ref: acme.trades\nrules: []\n",
			Good: good,
		},
		{
			ID:       ruleUnsupportedVersion,
			Title:    "The test file's major version is not known",
			Severity: diag.Error,
			Spec:     spec,
			Why: "A new major version may change what a field means, and a test might pass that should not. Use an " +
				"agf-validate that knows the version.",
			Bad:  "schema_version: \"2.0.0\"\nagent: agent.agf.yaml\ncalls: []\n",
			Good: good,
		},
		{
			ID:       ruleNewerVersion,
			Title:    "The test file is of a newer minor version",
			Severity: diag.Warning,
			Spec:     spec,
			Why: "A minor version only adds fields. The fields that assent knows are read; a field that the newer " +
				"version adds is refused, never skipped.",
			Bad:  "schema_version: \"1.7.0\"\nagent: agent.agf.yaml\ncalls: []\n",
			Good: good,
		},
		{
			ID:       ruleCase,
			Title:    "A test can't be run",
			Severity: diag.Error,
			Spec:     spec,
			Why: "A test needs a unique name, a call that `assent decide` would accept, valid tests in `where`, and, if " +
				"people vote, a people.yaml and times in ascending order. A test that is skipped would count as passed.",
			Bad:  begin + "calls:\n  - name: no such kind\n    call: {kind: tol, tool: quote}\n    expect: {outcome: allow}\n",
			Good: good,
		},
	}
}
