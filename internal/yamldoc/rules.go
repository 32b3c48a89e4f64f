package yamldoc

import "github.com/assent-dev/assent/diag"

// The rules of this package.
const (
	ruleSyntax       = "yaml-syntax"
	ruleEncoding     = "yaml-encoding"
	ruleCharacter    = "yaml-character"
	ruleHidden       = "yaml-hidden-character"
	ruleEmpty        = "yaml-empty"
	ruleTooLarge     = "yaml-too-large"
	ruleTooDeep      = "yaml-too-deep"
	ruleDocuments    = "yaml-documents"
	ruleVersion      = "yaml-version"
	ruleDuplicateKey = "yaml-duplicate-key"
	ruleKey          = "yaml-key"
	ruleMergeKey     = "yaml-merge-key"
	ruleTag          = "yaml-tag"
	ruleAlias        = "yaml-alias"
	ruleNumber       = "yaml-number"
	ruleBool11       = "yaml-11-bool"
	ruleNumber11     = "yaml-11-number"
	ruleDate11       = "yaml-11-date"
	ruleSpecial      = "yaml-11-special"
)

const spec = "YAML 1.2.2, core schema"

// Rules describes every rule that Parse may report, in the order of their ids.
func Rules() []diag.RuleInfo {
	return []diag.RuleInfo{
		{
			ID: ruleBool11, Title: "text that YAML 1.1 reads as true or false", Severity: diag.Warning, Spec: spec,
			Why: "In YAML 1.2 only `true` and `false` are booleans; `yes`, `no`, `on`, `off` are text. Readers of YAML 1.1 " +
				"(PyYAML among them) make booleans of them, so `approval: yes` is an approval for one and an error for " +
				"the other, and the country `NO` becomes `false`. Write `true` or `false`, or put text in quotes.",
			Bad:  "country: NO\n",
			Good: "country: \"NO\"\n",
		},
		{
			ID: ruleDate11, Title: "text that YAML 1.1 reads as a date", Severity: diag.Warning, Spec: spec,
			Why: "YAML 1.2 has no dates, YAML 1.1 has: an unquoted `2026-01-31` is text for one reader and a date object for " +
				"another, which then equals no text. Put it in quotes.",
			Bad:  "version: 2026-01-31\n",
			Good: "version: \"2026-01-31\"\n",
		},
		{
			ID: ruleNumber11, Title: "a scalar that is another number, or none, in YAML 1.1", Severity: diag.Warning, Spec: spec,
			Why: "`0777` is 777 in YAML 1.2 and 511 in YAML 1.1, `1_000` is text in 1.2 and a thousand in 1.1, `12:30` is text " +
				"in 1.2 and 750 in 1.1, `1e4` is a number in 1.2 and text in 1.1. A threshold that two programs read " +
				"differently is no threshold. Write plain digits, or quotes where text is meant.",
			Bad:  "amount: {gt: 1_000}\n",
			Good: "amount: {gt: 1000}\n",
		},
		{
			ID: ruleSpecial, Title: "text that YAML 1.1 gives a special meaning", Severity: diag.Warning, Spec: spec,
			Why:  "An unquoted `=` or `<<` is text in YAML 1.2 and a marker in YAML 1.1, which many readers refuse. Put it in quotes.",
			Bad:  "operation: =\n",
			Good: "operation: \"=\"\n",
		},
		{
			ID: ruleAlias, Title: "an alias that leads nowhere or too far", Severity: diag.Error, Spec: spec,
			Why: "Aliases repeat a value that an anchor names. A few lines of them can stand for billions of values, and an " +
				"anchor that contains itself never ends, so both are refused, as is an alias without an anchor. An approval " +
				"should read the way it looks: prefer to write values out.",
			Bad:  "steps: &again\n  - *again\n",
			Good: "steps:\n  - review\n",
		},
		{
			ID: ruleCharacter, Title: "a character that YAML forbids or reads in two ways", Severity: diag.Error, Spec: "YAML 1.2.2, 5.1",
			Why: "Control characters can hide text from the person who reviews the file, and the line breaks U+0085, U+2028 " +
				"and U+2029 end a line for some readers only. Where you need one, write its escape in double quotes.",
			Good: "separator: \"\\u2028\"\n",
		},
		{
			ID: ruleDocuments, Title: "more than one document in a file", Severity: diag.Error, Spec: spec,
			Why: "Many readers take the first document and drop the rest without a word, so rules after a second `---` are not " +
				"in force. Put each document in a file of its own.",
			Bad:  "name: first\n---\nname: second\n",
			Good: "name: first\n",
		},
		{
			ID: ruleDuplicateKey, Title: "a key that stands twice", Severity: diag.Error, Spec: "YAML 1.2.2, 3.2.1.3",
			Why: "Keys of a mapping are unique. Of two equal keys some readers take the first, some the last, some none: which " +
				"approval applies would be a matter of luck. Keep one.",
			Bad:  "approval: true\napproval: false\n",
			Good: "approval: true\n",
		},
		{
			ID: ruleEmpty, Title: "a file without a document", Severity: diag.Error, Spec: spec,
			Why: "An empty file, or one of comments only, says nothing. It is refused so that a truncated file is not taken for " +
				"one without rules.",
			Good: "schema_version: \"1.0.0\"\n",
		},
		{
			ID: ruleEncoding, Title: "a file that is not UTF-8", Severity: diag.Error, Spec: spec,
			Why: "The text must be UTF-8, with or without a byte order mark. Other encodings, and broken bytes, are read " +
				"differently by different programs. Save the file as UTF-8.",
			Good: "name: Zoë\n",
		},
		{
			ID: ruleHidden, Title: "an invisible character that reorders the line", Severity: diag.Warning, Spec: spec,
			Why: "Bidirectional marks make an editor show a line in another order than programs read it, which can hide a " +
				"condition inside what looks like a comment. Remove the character, or write its escape in double quotes.",
			Bad:  "name: \u202eabc\n",
			Good: "name: \"\\u202eabc\"\n",
		},
		{
			ID: ruleKey, Title: "a key that is not plain text", Severity: diag.Error, Spec: spec,
			Why: "Keys are names. An unquoted `1`, `true`, `on` or date is a number, boolean or date for some readers, and a " +
				"rule stored under it is never found. Put such a key in quotes; keys cannot be lists, mappings or aliases.",
			Bad:  "args_match:\n  on: true\n",
			Good: "args_match:\n  \"on\": true\n",
		},
		{
			ID: ruleMergeKey, Title: "a merge key", Severity: diag.Error, Spec: spec,
			Why: "`<<` copied fields from another mapping in YAML 1.1 and is no longer part of YAML. Readers that know it and " +
				"readers that do not see different approvals. Write the fields out.",
			Bad:  "base: &base {approval: true}\ntool:\n  <<: *base\n",
			Good: "tool:\n  approval: true\n",
		},
		{
			ID: ruleNumber, Title: "a number that programs cannot hold", Severity: diag.Error, Spec: "docs/design/001-semantics.md",
			Why: "Numbers beyond the range of a double become infinite or zero in most programs, so a comparison with them means " +
				"different things in different places. Long numbers within the range are exact and fine.",
			Bad:  "amount: {gt: 1e400}\n",
			Good: "amount: {gt: 100000000000000000000000000001}\n",
		},
		{
			ID: ruleSyntax, Title: "text that is not YAML", Severity: diag.Error, Spec: "YAML 1.2.2",
			Why: "The file cannot be read. The finding points at the first line that does not fit and says what is usually " +
				"meant: indentation, a missing quote or bracket, a colon inside unquoted text.",
			Bad:  "message: Pay: now?\n",
			Good: "message: \"Pay: now?\"\n",
		},
		{
			ID: ruleTag, Title: "a tag that changes a type", Severity: diag.Error, Spec: spec,
			Why: "A tag such as `!!str` tells some readers to take a value for another type, and is ignored by others. Write the " +
				"value in the form of its type: quotes for text, digits for a number. Tags of other kinds are refused too.",
			Bad:  "amount: !!str 1000\n",
			Good: "amount: \"1000\"\n",
		},
		{
			ID: ruleTooDeep, Title: "nesting too deep", Severity: diag.Error, Spec: spec,
			Why:  "No honest document nests this far; programs that read it may run out of memory.",
			Good: "steps: [review]\n",
		},
		{
			ID: ruleTooLarge, Title: "a file too large", Severity: diag.Error, Spec: spec,
			Why:  "The file is larger, or holds more values, than any agent or policy needs. It is refused before it costs time.",
			Good: "steps: [review]\n",
		},
		{
			ID: ruleVersion, Title: "a request for another YAML version", Severity: diag.Warning, Spec: spec,
			Why: "The file is read as YAML 1.2 whatever its `%YAML` line says; `yes` is text, `0777` is 777. Remove the line or " +
				"write 1.2.",
			Bad:  "%YAML 1.1\n---\nname: a\n",
			Good: "%YAML 1.2\n---\nname: a\n",
		},
	}
}
