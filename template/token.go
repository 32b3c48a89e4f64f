package template

import (
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/safetext"
)

// token is the author's text, or the name of a variable.
type token struct {
	text     string
	offset   int
	variable bool
}

// scanner splits a template into tokens and collects problems.
type scanner struct {
	src      string
	pos      int
	tokens   []token
	problems []Problem
}

func tokenize(src string) ([]token, []Problem) {
	s := &scanner{src: src}
	for s.pos < len(src) {
		s.step()
	}
	return s.tokens, s.problems
}

// step consumes the text up to the next pair of braces, or the braces at pos.
func (s *scanner) step() {
	rest := s.src[s.pos:]
	switch open, end := strings.Index(rest, "{{"), strings.Index(rest, "}}"); {
	case open == 0:
		s.tag()
	case end == 0:
		n := run(rest, '}')
		s.problem(ruleUnbalanced, s.pos, n, "closing braces without an opening pair",
			"remove them, or put a space between braces that belong to the text")
		s.take(n)
	default:
		s.take(first(open, end, len(rest)))
	}
}

// take turns the next n bytes into a text token.
func (s *scanner) take(n int) {
	text := s.src[s.pos : s.pos+n]
	s.invisible(text, s.pos)
	s.tokens = append(s.tokens, token{text: text, offset: s.pos})
	s.pos += n
}

// tag reads what begins with two or more opening braces at pos.
func (s *scanner) tag() {
	rest := s.src[s.pos:]
	opened := run(rest, '{')
	body := rest[opened:]
	end := strings.Index(body, "}}")
	if next := strings.Index(body, "{{"); end < 0 || next >= 0 && next < end {
		s.unbalanced(opened, "opening braces are never closed", "write a variable as {{name}}")
		return
	}
	body = body[:end]
	closed := run(rest[opened+end:], '}')
	switch {
	case opened > 3:
		s.unbalanced(opened+end+closed, "more than three opening braces", "write a variable as {{name}}")
	case closed < opened:
		s.unbalanced(
			opened+end+closed,
			"three opening braces but two closing ones",
			"write a variable as {{name}}",
		)
	case strings.Contains(body, "\n") && !isLogic(body):
		s.unbalanced(
			opened+end+opened,
			"the tag is not closed on its line",
			"write a variable as {{name}} on one line",
		)
	default:
		s.content(body, opened, opened+end+opened)
	}
}

// content handles the content of a well-formed tag of the given length.
func (s *scanner) content(body string, opened, length int) {
	name := trim(body)
	raw := opened == 3
	if !raw && strings.HasPrefix(name, "&") {
		raw, name = true, trim(name[1:])
	}
	switch {
	case name == "":
		s.problem(ruleEmptyTag, s.pos, length, "the tag is empty", "name a variable, such as {{tool_name}}")
		s.take(length)
	case !raw && isLogic(name):
		s.problem(
			ruleLogic,
			s.pos,
			length,
			logicWord(name)+" is not part of message templates; it is printed as it stands",
			"plain variables only; put the decision into `condition`",
		)
		s.take(length)
	case !validName(name):
		s.problem(ruleName, s.pos, length, "this is not the name of a variable; it is printed as it stands",
			"names joined by dots without spaces, such as {{tool_args.amount}}")
		s.take(length)
	default:
		s.emit(name, raw, length)
	}
}

// emit adds the variable of the tag at pos.
func (s *scanner) emit(name string, raw bool, length int) {
	if raw {
		s.problem(
			ruleRaw,
			s.pos,
			length,
			"braces or an ampersand for raw output change nothing: messages are plain text",
			"{{"+name+"}}",
		)
	}

	at := s.pos + strings.Index(s.src[s.pos:], name)
	s.tokens = append(s.tokens, token{text: name, offset: at, variable: true})
	s.pos += length
}

func (s *scanner) unbalanced(length int, message, expected string) {
	s.problem(ruleUnbalanced, s.pos, length, message, expected)
	s.take(length)
}

func (s *scanner) problem(rule string, offset, length int, message, expected string) {
	s.problems = append(s.problems, Problem{
		Code:     rule,
		Offset:   offset,
		Length:   length,
		Message:  message,
		Expected: expected,
		Severity: severityOf(rule),
	})
}

// invisible reports each character of the author's text that will be shown as an escape.
func (s *scanner) invisible(text string, base int) {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if !safetext.AuthorMay(r, n) && !strings.HasPrefix(text[i:], "\r\n") {
			s.problem(
				ruleInvisible,
				base+i,
				n,
				"the template contains the invisible character "+safetext.Author(text[i:i+n]),
				"remove it: it will be shown as this escape",
			)
		}

		i += n
	}
}

// isLogic reports whether a tag starts like one of mustache's other tags, including inheritance
// and pragmas.
func isLogic(tag string) bool { return logicWord(tag) != "" }

func logicWord(tag string) string {
	tag = strings.TrimSpace(tag)
	if tag == "" {
		return ""
	}
	switch tag[0] {
	case '#':
		return "a section"
	case '^':
		return "an inverted section"
	case '/':
		return "the end of a section"
	case '>':
		return "a partial"
	case '!':
		return "a comment"
	case '=':
		return "a change of delimiters"
	case '<', '$':
		return "inheritance"
	case '%':
		return "a pragma"
	}

	return ""
}

// validName reports whether name is an identifier, followed by dots and keys of visible
// characters except braces and white space.
func validName(name string) bool {
	segments := strings.Split(name, ".")
	if !isIdentifier(segments[0]) {
		return false
	}
	for _, key := range segments[1:] {
		if key == "" || strings.ContainsAny(key, " {}") || strings.ContainsFunc(key, safetext.Hidden) ||
			!utf8.ValidString(key) {
			return false
		}
	}

	return true
}

func isIdentifier(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}

	return s != ""
}

func emptyTemplate(text string) Problem {
	return Problem{
		Code:     ruleEmpty,
		Length:   len(text),
		Message:  "the message template is empty, so the default message is used",
		Expected: "some text, or leave the field out",
		Severity: diag.Warning,
	}
}

func tooLong(text string) Problem {
	return Problem{
		Code:     ruleTooLong,
		Length:   len(text),
		Message:  "the message template is longer than 16 KiB, so the default message is used",
		Expected: "a few sentences that a person reads before approving",
		Severity: diag.Error,
	}
}

func trim(s string) string { return strings.Trim(s, " \t") }

// run returns how often c is repeated at the start of s.
func run(s string, c byte) int { return len(s) - len(strings.TrimLeft(s, string(c))) }

// first returns the smaller of the indexes a and b, ignoring negative ones, or end.
func first(a, b, end int) int {
	if a >= 0 {
		end = a
	}
	if b >= 0 {
		end = min(b, end)
	}
	return end
}
