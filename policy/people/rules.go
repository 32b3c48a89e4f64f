package people

import "github.com/assent-dev/assent/diag"

// The rules of this package. Ids are stable. Findings about the shape of a document have ids of
// package schema, and findings about its YAML have ids of internal/yamldoc.
const (
	ruleForeign            = "people-not-a-directory"
	ruleUnsupportedVersion = "people-unsupported-version"
	ruleNewerVersion       = "people-newer-version"
	ruleName               = "people-unusable-name"
	ruleDuplicate          = "people-duplicate-name"
	ruleUnknownGroup       = "people-unknown-group"
)

const (
	spec  = "docs/contracts/people.md"
	begin = "schema_version: \"1.0.0\"\n"
	alice = begin + "people:\n  - {id: alice@example.com, groups: [risk]}\n"
)

// Rules describes the rules whose findings only this package creates.
func Rules() []diag.RuleInfo {
	return []diag.RuleInfo{
		{
			ID:       ruleForeign,
			Title:    "The document is no directory of people",
			Severity: diag.Error,
			Spec:     spec,
			Why: "A directory has a list `people`. Without it no one could answer, and a file of another kind " +
				"would go unnoticed.",
			Bad:  "users:\n  - alice@example.com\n",
			Good: alice,
		},
		{
			ID:       ruleUnsupportedVersion,
			Title:    "The directory's major version is not known",
			Severity: diag.Error,
			Spec:     spec,
			Why: "A new major version may change what a field means, and the wrong people might answer. Use an " +
				"assent that knows the version.",
			Bad:  "schema_version: \"2.0.0\"\npeople: []\n",
			Good: alice,
		},
		{
			ID:       ruleNewerVersion,
			Title:    "The directory is of a newer minor version",
			Severity: diag.Warning,
			Spec:     spec,
			Why: "A minor version only adds fields. The fields that assent knows are read; a field that the newer " +
				"version adds is refused, never skipped.",
			Bad:  "schema_version: \"1.7.0\"\npeople: []\n",
			Good: alice,
		},
		{
			ID:       ruleName,
			Title:    "A name can't be used",
			Severity: diag.Error,
			Spec:     spec,
			Why: "Channels find people by these names, so each must name one human: visible characters only, a mail " +
				"address of the usual form, " +
				"an id after its scheme, and none of the names that software gives to those it doesn't know, such " +
				"as `anonymous`.",
			Bad:  begin + "people:\n  - {id: anonymous}\n",
			Good: alice,
		},
		{
			ID:       ruleDuplicate,
			Title:    "A name belongs to two people",
			Severity: diag.Error,
			Spec:     spec,
			Why: "Two people with one name could vote for each other, and one human under two ids could fill two " +
				"seats. Mail addresses and plain " +
				"names are compared without case. Give each human one entry, with all of their names in `also`.",
			Bad:  begin + "people:\n  - {id: alice@example.com}\n  - {id: a.doe, also: [Alice@example.com]}\n",
			Good: begin + "people:\n  - {id: alice@example.com, also: [a.doe]}\n",
		},
		{
			ID:       ruleUnknownGroup,
			Title:    "A group is not on the list",
			Severity: diag.Error,
			Spec:     spec,
			Why: "If the file lists its `groups`, a misspelt group is found here, and not only when a request " +
				"has no approvers.",
			Bad:  alice + "groups:\n  risks: {}\n",
			Good: alice + "groups:\n  risk: {description: People who judge large trades.}\n",
		},
	}
}
