package template

import (
	"embed"

	"github.com/assent-dev/assent/diag"
)

const (
	ruleLogic      = "template-logic"
	ruleUnbalanced = "template-unbalanced"
	ruleEmptyTag   = "template-empty-tag"
	ruleName       = "template-name"
	ruleRaw        = "template-raw-variable"
	ruleEmpty      = "template-empty"
	ruleTooLong    = "template-too-long"
	ruleInvisible  = "template-invisible-character"
)

// severityOf returns the severity of a tokenizer's problem.
func severityOf(rule string) diag.Severity {
	if rule == ruleRaw || rule == ruleInvisible {
		return diag.Warning
	}
	return diag.Error
}

//go:embed rules/*.md
var pages embed.FS

// Rules describes the rule ids that Parse uses as Problem.Code.
func Rules() []diag.RuleInfo {
	return diag.Pages(pages,
		ruleLogic,
		ruleUnbalanced,
		ruleEmptyTag,
		ruleName,
		ruleRaw,
		ruleEmpty,
		ruleTooLong,
		ruleInvisible,
	)
}
