package resolve

import (
	"embed"

	"github.com/assent-dev/assent/diag"
)

//go:embed rules/*.md
var pages embed.FS

// Rules describes the findings of Plan.Findings.
func Rules() []diag.RuleInfo {
	return diag.Pages(pages,
		"policy-unresolved",
		"policy-advisory-missing",
		"policy-selector-overridden",
		"policy-timeout-refused",
	)
}
