package policy

import (
	"embed"

	"github.com/assent-dev/assent/diag"
)

// These are the rules of this package. Ids are stable. Findings about the shape of a document have
// the ids of package schema (missing-field, wrong-type, invalid-value, unknown-field,
// unknown-operator, non-finite-number); those about YAML, conditions and templates have the ids of
// the packages that read them.
const (
	ruleForeign            = "not-a-policy"
	ruleUnsupportedVersion = "policy-unsupported-version"
	ruleNewerVersion       = "policy-newer-version"
	ruleApprovalFalse      = "policy-approval-false"
	ruleNoEffect           = "policy-rule-without-effect"
	ruleNoReason           = "policy-deny-without-reason"
	ruleDuration           = "policy-duration"
	ruleNoRules            = "policy-without-rules"
	ruleDuplicateRule      = "policy-duplicate-rule"
	ruleDuplicateStage     = "policy-duplicate-stage"
	ruleBesideDeny         = "policy-idle-beside-deny"
	ruleWhen               = "policy-when"
	ruleReason             = "policy-reason-pattern"
	ruleTime               = "policy-time-window" // reported by package condition
	ruleHistory            = "policy-history"     // reported by package condition
	ruleNeverMeets         = "policy-servers-of-local-tools"
	ruleIdleExcept         = "policy-idle-exception"
	ruleUnknownHint        = "policy-unknown-annotation"
	RuleTimeoutApproves    = "timeout-approves" // exported: the owner may allow it
	ruleToNobody           = "policy-escalates-to-nobody"
	ruleToLookers          = "policy-escalates-to-look"
	ruleNoDeadline         = "policy-timeout-without-deadline"
	ruleLate               = "policy-late-escalation"
	ruleShowsRedacted      = "policy-message-shows-redacted"
	ruleDuplicateRef       = "policy-duplicate-ref"
	ruleUnreadable         = "policy-unreadable"
	ruleFileName           = "policy-file-name"
	ruleNoneFound          = "policy-none-found"
)

// These are the findings of the HTTP registry. They are here so that one table describes every
// registry.
const (
	// RuleUnavailable means that an HTTP registry has no good copy that is recent enough.
	RuleUnavailable = "policy-registry-unavailable"
	// RuleBundle means that an HTTP registry sent an invalid bundle.
	RuleBundle = "policy-bundle"
	// RuleStale means that an HTTP registry uses its last good copy.
	RuleStale = "policy-registry-stale"
)

//go:embed rules/*.md
var pages embed.FS

// Rules describes every rule whose findings this package and policyhttp
// make on their own.
func Rules() []diag.RuleInfo {
	return diag.Pages(pages,
		ruleForeign,
		ruleUnsupportedVersion,
		ruleNewerVersion,
		ruleNoRules,
		ruleApprovalFalse,
		ruleNoEffect,
		ruleNoReason,
		ruleDuplicateRule,
		ruleBesideDeny,
		ruleWhen,
		ruleReason,
		ruleTime,
		ruleHistory,
		ruleNeverMeets,
		ruleIdleExcept,
		ruleUnknownHint,
		ruleDuration,
		ruleDuplicateStage,
		RuleTimeoutApproves,
		ruleToNobody,
		ruleToLookers,
		ruleNoDeadline,
		ruleLate,
		ruleShowsRedacted,
		ruleDuplicateRef,
		ruleUnreadable,
		ruleFileName,
		ruleNoneFound,
		RuleUnavailable,
		RuleBundle,
		RuleStale,
	)
}
