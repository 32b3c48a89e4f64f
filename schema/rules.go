package schema

import (
	"embed"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
)

// The rules of this package. Ids are stable.
const (
	ruleMissingField       = "missing-field"
	ruleWrongType          = "wrong-type"
	ruleInvalidValue       = "invalid-value"
	ruleUnknownOperator    = "unknown-operator"
	ruleNonFinite          = "non-finite-number"
	ruleUnknownField       = "unknown-field"
	ruleRenamedField       = "renamed-field"
	ruleMisplaced          = "approval-misplaced"
	ruleUnreadList         = "tool-list-unread"
	ruleDuplicateAlias     = "duplicate-alias"
	ruleUnsupportedVersion = "unsupported-schema-version"
	ruleNewerVersion       = "newer-schema-version"
	ruleUnknownPolicy      = "unknown-execution-policy"
	ruleUnknownAgent       = "unknown-agent"
	ruleInvalidPath        = "invalid-path"
	ruleUnknownSource      = "unknown-path-source"
	ruleStrayIteration     = "stray-iteration"
	ruleBatchIteration     = "batch-without-iteration"
	ruleIdleOutput         = "output-of-idle-agent"
	ruleKeywordClash       = "output-keyword-clash"
	ruleUnreadable         = "unreadable-file"
	ruleMissingAgent       = "missing-sub-agent"
	ruleOutside            = "sub-agent-outside"
	ruleTooDeep            = "sub-agents-too-deep"
	ruleCycle              = "sub-agent-cycle"
	ruleDelegationDepth    = "delegation-depth"
)

// MissingField is the rule of fields that must be there.
const MissingField = ruleMissingField

// UnknownField is the rule of fields that the standard does not know;
// the only one that `--strict` raises.
const UnknownField = ruleUnknownField

// IsGraphRule reports whether findings of the rule come from
// LoadGraph's links rather than from one file alone.
func IsGraphRule(id string) bool {
	switch id {
	case ruleUnreadable, ruleMissingAgent, ruleOutside, ruleTooDeep, ruleCycle, ruleDelegationDepth:
		return true
	}
	return false
}

//go:embed rules/*.md
var pages embed.FS

// Rules describes every rule whose findings this package makes on its
// own; those of the YAML reader, of conditions and of templates are
// described by their packages.
func Rules() []diag.RuleInfo {
	infos := diag.Pages(pages,
		ruleMissingField,
		ruleWrongType,
		ruleInvalidValue,
		ruleUnknownOperator,
		ruleNonFinite,
		ruleUnknownField,
		ruleRenamedField,
		ruleMisplaced,
		ruleUnreadList,
		ruleUnsupportedVersion,
		ruleNewerVersion,
		ruleDuplicateAlias,
		ruleUnknownPolicy,
		ruleUnknownAgent,
		ruleInvalidPath,
		ruleUnknownSource,
		ruleStrayIteration,
		ruleBatchIteration,
		ruleIdleOutput,
		ruleKeywordClash,
		ruleUnreadable,
		ruleMissingAgent,
		ruleOutside,
		ruleTooDeep,
		ruleCycle,
		ruleDelegationDepth,
	)
	for i := range infos {
		infos[i].Why = strings.ReplaceAll(infos[i].Why, "{{operators}}", condition.OperatorList(condition.AgentFormat))
	}
	return infos
}
