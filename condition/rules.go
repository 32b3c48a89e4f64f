package condition

import (
	"embed"
	"strings"

	"github.com/assent-dev/assent/diag"
)

// Ids of the rules that Parse reports.
const (
	ruleShape         = "condition-shape"
	ruleOperand       = "operand-invalid"
	ruleUnit          = "currency-without-unit"
	ruleCode          = "currency-unknown"
	ruleRegex         = "regex-invalid"
	ruleRegexRE2      = "regex-not-re2"
	ruleRegexSize     = "regex-too-large"
	ruleRegexControl  = "regex-control-character"
	ruleRegexPortable = "regex-unportable"
)

// These are the rules that ParseWhen reports. Package policy describes them.
const (
	ruleTime    = "policy-time-window"
	ruleHistory = "policy-history"
)

//go:embed rules/*.md
var pages embed.FS

// Rules describes every rule that Parse may report, in the order of their ids.
func Rules() []diag.RuleInfo {
	infos := diag.Pages(pages,
		ruleShape,
		ruleCode,
		ruleUnit,
		ruleOperand,
		ruleRegexControl,
		ruleRegex,
		ruleRegexRE2,
		ruleRegexSize,
		ruleRegexPortable,
	)
	for i := range infos {
		infos[i].Why = strings.ReplaceAll(infos[i].Why, "{{operators}}", OperatorList(AgentFormat))
	}
	return infos
}
