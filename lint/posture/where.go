package posture

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/value"
)

// ParseWhere reads the tests that a query is about. All of them must
// hold:
//
//	tests = test { "," test }
//	test  = name operator value
//	name  = letters, digits and _ . - [ ] | text in double quotes
//	value = number | true | false | word | text in double quotes
//
// The operators are = != < <= > >= and ~, which takes a pattern. A word
// is made of letters, the digits 0 to 9 and _ . / : @ + - and does not begin like a
// number; any other text needs quotes. A pattern needs them if it has a
// space, a comma or a quote. Nothing else is read, because a misread
// query would prove something else than its author asked. Errors give
// the column, counted in characters from 1.
func ParseWhere(text string) (*condition.Expr, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	s := whereScanner{text: text}
	var g condition.Group
	for {
		m, err := s.test()
		if err != nil {
			return nil, err
		}
		g.Matchers = append(g.Matchers, m)
		if s.space(); s.at == len(s.text) {
			return &condition.Expr{Groups: []condition.Group{g}}, nil
		}
		if !s.skip(",") {
			return nil, s.betweenTests()
		}
	}
}

// whereScanner reads text from the offset at.
type whereScanner struct {
	text string
	at   int
}

var (
	plainName   = pattern.Of(`^[\pL\pN_$][\pL\pN_$.\[\]-]*`)
	plainWord   = pattern.Of(`^[\pL0-9_./:@+-]+$`)
	likeNumber  = pattern.Of(`^[+-]?\.?[0-9]`)
	likeKeyword = pattern.Of(`^(?i:true|false|null|none|nil|undefined|[+-]?(nan|inf|infinity))$`)
)

func (s *whereScanner) rest() string { return s.text[s.at:] }

func (s *whereScanner) space() {
	s.at += len(s.rest()) - len(strings.TrimLeft(s.rest(), " \t\r\n"))
}

func (s *whereScanner) skip(prefix string) bool {
	found := strings.HasPrefix(s.rest(), prefix)
	if found {
		s.at += len(prefix)
	}
	return found
}

func (s *whereScanner) failure(format string, args ...any) error {
	return fmt.Errorf("column %d: %s", utf8.RuneCountInString(s.text[:s.at])+1, fmt.Sprintf(format, args...))
}

func (s *whereScanner) test() (m condition.Matcher, err error) {
	if m.Key, err = s.name(); err != nil {
		return m, err
	}
	op, err := s.operator()
	if err != nil {
		return m, err
	}
	operand, err := s.operand(op)
	m.Tests = []condition.Test{{Op: op, Operand: operand}}
	return m, err
}

func (s *whereScanner) name() (string, error) {
	s.space()
	if strings.HasPrefix(s.rest(), `"`) {
		name, err := s.quoted()
		if err == nil && name == "" {
			err = s.failure("expected the name of an argument, found an empty text")
		}
		return name, err
	}
	name := plainName().FindString(s.rest())
	if name == "" {
		return "", s.failure("expected a test such as amount>50000, found %s", s.found())
	}
	for _, prefix := range []string{"tool_args.", "skill_args.", "$."} {
		if argument, ok := strings.CutPrefix(name, prefix); ok {
			return "", s.failure("arguments are named without %s; write %s, or %q in quotes if that is the name",
				prefix, argument, name)
		}
	}
	s.at += len(name)
	return name, nil
}

// whereOperators are tried in this order, so longer ones come first. For a common misspelling, the
// entry has the correct operator as advice.
func whereOperators() []struct {
	sign  string
	op    condition.Op
	right string
} {
	return []struct {
		sign  string
		op    condition.Op
		right string
	}{
		{"===", "", "="}, {"==", "", "="}, {"=>", "", ">="}, {"=<", "", "<="}, {"=~", "", "~"}, {"=!", "", "!="},
		{"<>", "", "!="}, {"<<", "", "<"}, {">>", "", ">"}, {"!==", "", "!="}, {":=", "", "="},
		{"≤", "", "<="}, {"≥", "", ">="}, {"≠", "", "!="}, {"＝", "", "="},
		{"!=", condition.Ne, ""}, {"<=", condition.Lte, ""}, {">=", condition.Gte, ""},
		{"<", condition.Lt, ""}, {">", condition.Gt, ""}, {"~", condition.Pattern, ""}, {"=", condition.Eq, ""},
	}
}

func (s *whereScanner) operator() (condition.Op, error) {
	s.space()
	for _, known := range whereOperators() {
		if !strings.HasPrefix(s.rest(), known.sign) {
			continue
		}
		if known.right != "" {
			return "", s.failure("%q is not an operator; write %q", known.sign, known.right)
		}
		s.at += len(known.sign)
		return known.op, nil
	}
	if strings.HasPrefix(s.rest(), "!~") {
		return "", s.failure(`"!~" is not an operator: no operator finds texts that a pattern does not match`)
	}
	return "", s.failure("expected one of = != < <= > >= ~, found %s", s.found())
}

func (s *whereScanner) operand(op condition.Op) (condition.Scalar, error) {
	s.space()
	start := s.at
	text, quoted := "", strings.HasPrefix(s.rest(), `"`)
	if quoted {
		var err error
		if text, err = s.quoted(); err != nil {
			return condition.Scalar{}, err
		}
	} else {
		text = s.rest()
		if end := strings.IndexAny(text, ", \t\r\n"); end >= 0 {
			text = text[:end]
		}
		s.at += len(text)
	}

	end := s.at
	s.at = start // where a failure is
	operand, err := s.scalar(text, quoted, op)
	if err == nil {
		s.at = end
	}
	return operand, err
}

// scalar reads the value of a test, which must fit its operator.
func (s *whereScanner) scalar(text string, quoted bool, op condition.Op) (condition.Scalar, error) {
	n, notNumber := value.ParseNum(text)
	isNumber := !quoted && notNumber == nil
	switch {
	case text == "" && !quoted:
		return condition.Scalar{}, s.failure(`expected a value; write "" for an empty text`)
	case op == condition.Lt || op == condition.Lte || op == condition.Gt || op == condition.Gte:
		if !isNumber {
			return condition.Scalar{}, s.failure("%q is not a number, and only numbers have an order", text)
		}
		return condition.Scalar{Kind: value.Number, Num: n}, nil
	case op == condition.Pattern:
		return s.pattern(text, quoted)
	case quoted:
		return condition.Scalar{Kind: value.String, Text: text}, nil
	case isNumber:
		return condition.Scalar{Kind: value.Number, Num: n}, nil
	case text == "true", text == "false":
		return condition.Scalar{Kind: value.Bool, Bool: text == "true"}, nil
	case likeKeyword().MatchString(text), likeNumber().MatchString(text):
		return condition.Scalar{}, s.failure(`%s is neither a number nor true or false; if it is a text, write "%s"`, text, text)
	case !plainWord().MatchString(text):
		return condition.Scalar{}, s.failure("a text that is not a plain word needs double quotes, found %s", s.found())
	}
	return condition.Scalar{Kind: value.String, Text: text}, nil
}

func (s *whereScanner) pattern(text string, quoted bool) (condition.Scalar, error) {
	ambiguous := strings.ContainsAny(text, "\"'`") || strings.Contains(text, "&&") ||
		strings.IndexAny(text, "=<>!~") == 0
	if !quoted && ambiguous {
		return condition.Scalar{}, s.failure("this pattern needs double quotes, found %s", s.found())
	}
	if err := condition.CheckPattern(text); err != nil {
		return condition.Scalar{}, fmt.Errorf("%w: %w", s.failure("the pattern"), err)
	}
	return condition.Scalar{Kind: value.String, Text: text}, nil
}

// quoted reads a JSON string.
func (s *whereScanner) quoted() (string, error) {
	end := 1
	for end < len(s.rest()) && s.rest()[end] != '"' {
		if s.rest()[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(s.rest()) {
		return "", s.failure("the closing quote is missing")
	}
	text, sound := jsonmsg.ReadString([]byte(s.rest()[:end+1]))
	if !sound {
		return "", s.failure("this text is not a JSON string")
	}
	s.at += end + 1
	return text, nil
}

// betweenTests returns an error for text that was found where a comma was expected.
func (s *whereScanner) betweenTests() error {
	found := s.found()
	switch word := strings.ToLower(found); {
	case strings.HasPrefix(word, "&"), word == "and":
		return s.failure(`%s does not join tests; write a comma, as in amount>500,currency=EUR`, found)
	case strings.HasPrefix(word, "|"), word == "or":
		return s.failure(`%s does not join tests: all tests have to hold; ask one question for each alternative`, found)
	}
	return s.failure(`expected a comma or the end, found %s; a text with spaces needs double quotes`, found)
}

// found returns the next word, for a message.
func (s *whereScanner) found() string {
	fields := strings.Fields(s.rest())
	if len(fields) == 0 {
		return "the end"
	}
	return fields[0]
}
