package condition

import "github.com/assent-dev/assent/diag"

// The rules that Parse reports.
const (
	ruleShape         = "condition-shape"
	ruleRegex         = "regex-invalid"
	ruleRegexRE2      = "regex-not-re2"
	ruleRegexSize     = "regex-too-large"
	ruleRegexControl  = "regex-control-character"
	ruleRegexPortable = "regex-unportable"
)

// Rules describes every rule that Parse may report, in the order of their ids.
func Rules() []diag.RuleInfo {
	return []diag.RuleInfo{
		{
			ID: ruleShape, Title: "a condition that is not built like one", Severity: diag.Error,
			Spec: "Agent Format, HITL, ConditionGroup",
			Why: "A condition is a group with `args_match`, or a list of such groups, of which one has to match. Each key of " +
				"`args_match` has a string, number or boolean to equal, or operators, each with what it compares: " +
				OperatorList() + ". There are no other operators, and numbers are finite, as JSON arguments are. Anything " +
				"else would leave open what has to match, so the file is refused.",
			Bad:  "condition:\n  args_match:\n    currency: [EUR, USD]\n",
			Good: "condition:\n  args_match:\n    currency: {in: [EUR, USD]}\n",
		},
		{
			ID: ruleRegexControl, Title: "a control character in a pattern", Severity: diag.Warning,
			Spec: "Agent Format, HITL, matchers; YAML 1.2 §5.7",
			Why: "In double quotes YAML reads `\\b` as a backspace before the pattern is read, so `\"\\bDROP\\b\"` looks for two " +
				"backspaces and never asks. Single quotes leave backslashes alone.",
			Bad:  "args_match:\n  query: {pattern: \"\\bDROP\\b\"}\n",
			Good: "args_match:\n  query: {pattern: '\\bDROP\\b'}\n",
		},
		{
			ID: ruleRegex, Title: "a pattern that is no regular expression", Severity: diag.Error,
			Spec: "Agent Format, HITL, matchers",
			Why: "The standard's schema takes any text as a `pattern`. One that cannot be read can match nothing, and a gate " +
				"that never matches is open, so the file is refused.",
			Bad:  "args_match:\n  query: {pattern: 'DROP ('}\n",
			Good: "args_match:\n  query: {pattern: 'DROP \\('}\n",
		},
		{
			ID: ruleRegexRE2, Title: "a pattern of another regex dialect", Severity: diag.Error,
			Spec: "docs/design/001-semantics.md, regex dialect: RE2",
			Why: "Patterns are RE2: they match in time proportional to the text, whatever a model sends. So there are no " +
				"look-ahead, look-behind, back-references, atomic groups or possessive repetitions. Split the test over " +
				"several matchers (all must hold) or groups (one must), or list exceptions with `not_in`.",
			Bad:  "args_match:\n  path: {pattern: '^/(?!tmp/)'}\n",
			Good: "args_match:\n  path: {pattern: '^/([^t]|t[^m]|tm[^p]|tmp[^/])'}\n",
		},
		{
			ID: ruleRegexSize, Title: "a pattern that is too large", Severity: diag.Error,
			Spec: "docs/design/001-semantics.md, regex dialect; our bounds",
			Why: "Nested repetitions such as `(x{1000}){1000}` describe machines of millions of steps in a few characters. A " +
				"pattern may have 8 KiB, 1,000 groups and 10,000 steps once its repetitions are written out. For long lists " +
				"of words use `in`.",
			Bad:  "args_match:\n  id: {pattern: '^(x{1000}){1000}$'}\n",
			Good: "args_match:\n  id: {pattern: '^x+$'}\n",
		},
		{
			ID: ruleRegexPortable, Title: "a pattern that other readers understand otherwise", Severity: diag.Warning,
			Spec: "docs/design/001-semantics.md, regex dialect: RE2 and ECMA-262",
			Why: "The standard says \"regex match\" and no dialect. Here patterns are RE2; a tool in JavaScript refuses or reads " +
				"otherwise inline flags, `\\A`, `\\z`, `\\pL`, POSIX classes and some more, so the same file would gate different " +
				"calls. Write what both read alike.",
			Bad:  "args_match:\n  query: {pattern: '\\Adrop'}\n",
			Good: "args_match:\n  query: {pattern: '^drop'}\n",
		},
	}
}
