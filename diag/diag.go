// Package diag holds findings (diagnostics as values), the description
// of the rules that make them, and the renderers that print them: text
// with a caret, json, sarif, github, gitlab and junit. It knows no rule.
package diag

// Severity orders findings; the zero value is Info.
type Severity uint8

// The severities, least first.
const (
	Info Severity = iota
	Warning
	Error
)

// Position is a place in a text: line and column count from 1, columns
// in Unicode code points. The zero Position means "not known".
type Position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Range is the half-open stretch of text from Start up to End.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Related is another place that a finding refers to, such as an earlier
// definition.
type Related struct {
	File    string
	Range   Range
	Message string
}

// Finding is one diagnostic: a rule, a place, one short sentence, and
// what would have been right.
type Finding struct {
	Rule     string // stable kebab-case id, see RuleInfo
	Severity Severity
	File     string // filled by whoever knows the file; "" below that
	Range    Range
	Message  string // one short sentence, lower case, no full stop
	Expected string // what would have been accepted, or how to mend it; "" when Message says it
	Nearest  string // nearest known name, "" when none is near
	Related  []Related
	Stops    bool // an Error that stops the load: nothing may be decided from this file
}

// RuleInfo describes a rule: it is the source of `explain`, of
// docs/rules/ and of the SARIF rule table.
type RuleInfo struct {
	ID       string   // stable kebab-case
	Title    string   // one line, no full stop
	Severity Severity // default severity
	Why      string   // Markdown: why it matters and what to do instead
	Bad      string   // YAML that the rule reports ("" where a file cannot show it)
	Good     string   // YAML that it does not report
	Tools    string   // JSON list of tools that both are checked with; "" for none
	Spec     string   // section of the standard or of our design that it rests on
}
