package condition

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// patternFault converts an error of parsePattern to a finding with a range inside of the
// pattern.
func patternFault(n *yamldoc.Node, err error) diag.Finding {
	f := diag.Finding{Rule: ruleRegex, Severity: diag.Error, Range: n.Range, Stops: true}
	var fault *syntax.Error
	if !errors.As(err, &fault) {
		f.Rule, f.Message = ruleRegexSize, err.Error()
		f.Expected = "a shorter pattern, or a list with in"
		return f
	}
	at, length := locate(n.Text, fault)
	f.Message = fmt.Sprintf("invalid pattern: %s %s", fault.Code, strconv.Quote(n.Text[at:at+length]))
	f.Expected = "a regular expression in RE2 syntax"
	switch fault.Code {
	case syntax.ErrInvalidRepeatSize, syntax.ErrLarge, syntax.ErrNestingDepth:
		f.Rule, f.Expected = ruleRegexSize, "at most 1000 repetitions and 1000 levels"
		if isBackwards(fault.Expr) {
			f.Rule, f.Expected = ruleRegex, "the smaller number first"
		}
	case syntax.ErrInvalidRepeatOp:
		f.Expected = "one repetition, or a group around the first: (?:x*)*"
	case syntax.ErrTrailingBackslash:
		f.Message, f.Expected = "invalid pattern: it ends in a backslash", `\\ for a backslash`
	}

	if d := foreign(n.Text[at:]); d.begins != "" {
		f.Rule = ruleRegexRE2
		f.Message = "pattern uses " + d.name + " " + d.begins
		f.Expected = d.instead
		length = len(d.begins)
	}

	f.Range = n.At(at, length)
	return f
}

// isBackwards recognizes {5,2}.
func isBackwards(repetition string) bool {
	var low, high int
	n, err := fmt.Sscanf(repetition, "{%d,%d}", &low, &high)
	return n == 2 && err == nil && high < low
}

// locate finds the part of the pattern that a syntax error is about. The error has only its
// text, which may occur several times; the tokens distinguish it from escaped and quoted
// occurrences.
func locate(pattern string, fault *syntax.Error) (at, length int) {
	tokens, open, stray := tokenize(pattern)
	text := fault.Expr
	switch {
	case fault.Code == syntax.ErrMissingParen && open >= 0:
		return open, 1
	case fault.Code == syntax.ErrUnexpectedParen && stray >= 0:
		return stray, 1
	case fault.Code == syntax.ErrTrailingBackslash:
		return len(pattern) - 1, 1
	case text == "(?P" && strings.Contains(pattern, "(?P="):
		text = "(?P="
	}

	for _, t := range tokens {
		if strings.HasPrefix(pattern[t.at:], text) {
			return t.at, len(text)
		}
	}
	at = max(0, strings.Index(pattern, text))
	return at, min(len(text), len(pattern)-at)
}

// construct is a feature of other regex dialects that RE2 lacks.
type construct struct{ begins, name, instead string }

// foreign returns the construct of another dialect at the beginning of rest, or the zero
// construct.
func foreign(rest string) construct {
	const (
		splitUp = "several matchers or groups, or exceptions with not_in: RE2 matches in linear time and does " +
			"not look around"
		writeOut    = "the text written out: RE2 matches in linear time and does not refer back"
		noBacktrack = ", as RE2 never backtracks"
	)
	for _, c := range []construct{
		{"(?=", "look-ahead", splitUp},
		{"(?!", "negative look-ahead", splitUp},
		{"(?<=", "look-behind", splitUp},
		{"(?<!", "negative look-behind", splitUp},
		{"(?>", "an atomic group", "(?:...)" + noBacktrack},
		{"(?#", "a comment", "a comment of YAML, after a #"},
		{"(?P=", "a back-reference", writeOut},
		{`\k`, "a back-reference", writeOut},
		{`\u`, "the escape", `\x{...} with the code point, as in \x{00e9}`},
		{`\c`, "the escape", `\x{...} with the code point, as in \x{0001}`},
		{`\Z`, "the escape", `$ or \z for the end of the text; it is also looked for before trailing white space`},
		{`\h`, "the escape", `[\t ] or \s`},
		{"*+", "a possessive repetition", "*" + noBacktrack},
		{"++", "a possessive repetition", "+" + noBacktrack},
		{"?+", "a possessive repetition", "?" + noBacktrack},
	} {
		if strings.HasPrefix(rest, c.begins) {
			return c
		}
	}

	if len(rest) > 1 && rest[0] == '\\' && rest[1] >= '1' && rest[1] <= '9' {
		return construct{rest[:2], "a back-reference", writeOut}
	}
	return construct{}
}

// patternAdvice warns about a valid pattern that may not mean what its author intended: once
// for each construct that ECMA-262 (JavaScript, JSON Schema) interprets differently, and for
// control characters.
func patternAdvice(n *yamldoc.Node) []diag.Finding {
	var list []diag.Finding
	if i := strings.IndexFunc(n.Text, isEscapeGoneWrong); i >= 0 {
		list = append(list, yamldoc.Warn(
			ruleRegexControl,
			n.At(i, 1),
			fmt.Sprintf("pattern holds the control character U+%04X", n.Text[i]),
			`a backslash for the regular expression: in double quotes \\b, in single quotes \b`,
		))
	}

	tokens, _, _ := tokenize(n.Text)
	told := map[string]bool{}
	for _, t := range tokens {
		severity, message, expected := unportable(n.Text[t.at:t.at+t.length], t.inClass)
		if message != "" && !told[message] {
			told[message] = true
			list = append(list, diag.Finding{
				Rule:     ruleRegexPortable,
				Severity: severity,
				Range:    n.At(t.at, t.length),
				Message:  message,
				Expected: expected,
			})
		}
	}

	return list
}

// isEscapeGoneWrong reports the results of YAML's \0 \a \b \v \f \e in double quotes.
func isEscapeGoneWrong(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' }

// unportable describes how ECMA-262 interprets a token differently. The message is empty if it
// does not.
func unportable(token string, inClass bool) (severity diag.Severity, message, expected string) {
	severity = diag.Warning
	switch {
	case strings.HasPrefix(token, "(?P<"):
		return severity, "JavaScript refuses (?P<", "(?:...), as a condition has no use for names"
	case strings.HasPrefix(token, "(?") && token != "(?:" && token != "(?<":
		return severity, "JavaScript refuses or limits the inline flags " +
			token, "classes such as [Dd][Rr][Oo][Pp] where other tools read the file too"
	case strings.HasPrefix(token, "[:"):
		return severity, "JavaScript reads " + token + " as single characters", "a range such as a-z"
	case token == "[]" || token == "[^]":
		return severity, "JavaScript reads " + token + " as a class of its own", `[\]...] with the bracket escaped`
	case token == `\A`:
		return severity, `JavaScript reads \A as the letter A`, "^"
	case token == `\z`:
		return severity, `JavaScript reads \z as the letter z`, "$"
	case token == `\Q` || token == `\E`:
		return severity, `JavaScript does not quote between \Q and \E`, "a backslash before each special character"
	case token == `\a`:
		return severity, `JavaScript reads \a as the letter a`, `\x07`
	case strings.HasPrefix(token, `\x{`):
		return severity, `JavaScript reads \x{...} as x repeated, unless it is in Unicode mode`, "the character itself"
	case strings.HasPrefix(token, `\p`), strings.HasPrefix(token, `\P`):
		return severity, "JavaScript knows " + token + " in Unicode mode only", "a range of characters"
	case len(token) > 1 && token[0] == '\\' && token[1] >= '0' && token[1] <= '7':
		return severity, "JavaScript may read " + token + " as a back-reference", `\x and two hexadecimal digits`
	case token == `\s` || token == `\S`:
		return diag.Info, token + ` knows only ASCII white space here; JavaScript also takes \v and Unicode spaces ` +
				`for it`,
			`[\s\v\pZ] to take them in`
	}

	return severity, "", ""
}

// token is an escape, the start of a group, the start of an unusual class, or a repetition.
type token struct {
	at, length int
	inClass    bool
}

// tokenize finds the tokens of a pattern, which may be invalid. open is the offset of the last
// unclosed "(", stray that of the first unopened ")"; each is -1 if there is none.
func tokenize(pattern string) (tokens []token, open, stray int) {
	var groups []int
	stray = -1
	inClass := false
	for i := 0; i < len(pattern); {
		t := token{i, tokenLength(pattern[i:], inClass), inClass}
		switch c := pattern[i]; {
		case strings.HasPrefix(pattern[i:], `\Q`) && !inClass:
			tokens = append(tokens, token{i, 2, false})
			if end := strings.Index(pattern[i:], `\E`); end >= 0 {
				i += end + 2
				continue
			}
			i = len(pattern)
			continue
		case inClass:
			inClass = c != ']'
		case c == '[':
			inClass = true
		case c == '(' && pattern[i+t.length-1] == ')': // (?i) is not a group
		case c == '(':
			groups = append(groups, i)
		case c == ')' && len(groups) == 0 && stray < 0:
			stray = i
		case c == ')' && len(groups) > 0:
			groups = groups[:len(groups)-1]
		}

		if t.length > 1 || strings.IndexByte("*+?{[(", pattern[i]) >= 0 {
			tokens = append(tokens, t)
		}
		i += t.length
	}

	open = -1
	if len(groups) > 0 {
		open = groups[len(groups)-1]
	}
	return tokens, open, stray
}

// tokenLength returns the length of the token at the start of rest, 1 for an ordinary byte.
func tokenLength(rest string, inClass bool) int {
	switch {
	case rest[0] == '\\':
		return escapeLength(rest)
	case inClass:
		if end := strings.Index(rest, ":]"); strings.HasPrefix(rest, "[:") && end > 0 {
			return end + 2
		}
	case strings.HasPrefix(rest, "[^]"):
		return 3
	case strings.HasPrefix(rest, "[]"):
		return 2
	case strings.HasPrefix(rest, "(?P<"):
		return 4
	case strings.HasPrefix(rest, "(?<"):
		return 3
	case strings.HasPrefix(rest, "(?"):
		if end := strings.IndexAny(rest, ":)"); end > 0 {
			return end + 1
		}
	}

	return 1
}

func escapeLength(rest string) int {
	if len(rest) == 1 {
		return 1
	}
	c := rest[1]
	if end := strings.IndexByte(rest, '}'); len(rest) > 2 && rest[2] == '{' && end > 0 &&
		strings.IndexByte("xpP", c) >= 0 {
		return end + 1
	}
	n := 2
	switch {
	case c == 'p' || c == 'P':
		n = 3
	case c >= '0' && c <= '7':
		for n < len(rest) && n < 4 && rest[n] >= '0' && rest[n] <= '7' {
			n++
		}
	}

	return min(n, len(rest))
}
