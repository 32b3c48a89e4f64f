package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/value"
)

// caseDodged reports lists of commands that a call can avoid with another spelling.
func caseDodged(p *lint.Pass) {
	for c, m := range p.Matchers() {
		if c.Asks() {
			judgeCaseDodged(p, m)
		}
	}
}

func judgeCaseDodged(p *lint.Pass, m *condition.Matcher) {
	for _, t := range m.Tests {
		word, fix := "", "not_in with the commands that need no approval"
		expression, searches := t.Expression()
		switch {
		case searches:
			word, fix = inPattern(
				expression,
			), "both letters, such as [Dd][Rr][Oo][Pp], or a list of what needs no approval"
		case !t.Negative():
			word = dodged(t.Operands())
		}

		if word != "" {
			p.Report(
				t.Range,
				fmt.Sprintf("%q does not match %q, which the tool may run as well", word, strings.ToLower(word)),
				lint.Expected(fix),
			)
			return
		}
	}
}

// dodged returns one of the commands in a list, if all of its values are commands in capitals.
func dodged(list []condition.Scalar) string {
	word := ""
	for _, s := range list {
		if s.Kind != value.String || !command(s.Text) {
			return ""
		}
		word = s.Text
	}

	return word
}

// inPattern returns a command that a pattern contains in capitals only.
func inPattern(pattern string) string {
	if strings.Contains(pattern, "(?i") {
		return ""
	}
	plain := escape.ReplaceAllString(pattern, " ")
	for _, word := range strings.FieldsFunc(plain, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if command(word) && !strings.Contains(plain, strings.ToLower(word)) {
			return word
		}
	}
	return ""
}

// escape matches an escape in a pattern, because its letter isn't text.
var escape = regexp.MustCompile(`\\.`)

// command reports whether a word is an SQL or HTTP command in capitals. Words that are also
// common elsewhere are left out.
func command(s string) bool {
	return slices.Contains(commands, s)
}

var commands = strings.Fields("SELECT INSERT UPDATE DELETE DROP TRUNCATE ALTER CREATE GRANT REVOKE MERGE UPSERT EXEC " +
	"GET HEAD POST PUT PATCH OPTIONS")
