// Package diag defines findings (diagnostics as values), the descriptions of rules, and writers
// for findings: text with a caret, json, sarif, github, gitlab and junit. It has no rules of
// its own.
package diag

// Severity is the severity of a finding. The zero value is Info.
type Severity uint8

// The severities, in ascending order.
const (
	Info Severity = iota
	Warning
	Error
)

// Position is a place in a text: line and column count from 1, columns in Unicode code points.
// The zero Position means that it is not known.
type Position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Range is the half-open part of a text from Start up to End.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Related is another place that a finding refers to, such as an earlier definition.
type Related struct {
	File    string
	Range   Range
	Message string
}

// Finding is one diagnostic: a rule, a place, one short sentence, and what was expected.
type Finding struct {
	Rule     string // stable kebab-case id, see RuleInfo
	Severity Severity
	File     string // may be empty in packages that don't know the file
	Range    Range
	Message  string // one short sentence, lower case, no full stop
	Expected string // what would be accepted, or how to fix it; empty if Message says it
	Nearest  string // nearest known name; may be empty
	Related  []Related
	Stops    bool // an Error that stops the load: nothing may be decided from this file
}

// RuleInfo describes a rule. It is the source of `explain`, of docs/rules/ and of the SARIF
// rule table.
type RuleInfo struct {
	ID       string   // stable kebab-case
	Title    string   // one line, no full stop
	Severity Severity // default severity
	Why      string   // Markdown: why it matters and what to do instead
	Bad      string   // YAML that the rule reports; empty if a file can't show it
	Good     string   // YAML that it does not report
	Tools    string   // JSON list of tools for checking both; may be empty
	Spec     string   // section of the standard or of our design that the rule is based on
}
