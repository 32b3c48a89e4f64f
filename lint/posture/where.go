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
//	test  = path operator value | path "exists" | path "missing"
//	value = number | true | false | word | text in double quotes
//
// A path has any characters except white space, commas, quotes and = ! < > ~, or it is a JSON
// string. The operators are = != < <= > >=, ~ for a pattern and !~ for texts that a pattern does not
// match. Numbers and quoted texts are those of JSON. A word begins with an ASCII letter or _ and has
// only ASCII letters, digits and _ . @ / + -. Any other text and any other pattern needs quotes.
// Nothing else is read, because a misread query would prove something else than its author asked.
// Errors give the column, counted in characters from 1, and the nearest correct form.
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
	plainName   = pattern.Of(`^[^\s\pZ,"'\x60=!<>~≤≥≠＝]+`)
	plainWord   = pattern.Of(`^[A-Za-z_][A-Za-z0-9_.@/+-]*$`)
	presences   = pattern.Of(`^(?i:(exists|missing))(?:[,\s]|$)`)
	nearNumber  = pattern.Of(`^([+-]?)0*([0-9]*)(\.[0-9]*)?$`)
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
	if test, found, err := s.presence(); found {
		m.Tests = []condition.Test{test}
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

// presence reads the word after a path that tests whether the argument is there.
func (s *whereScanner) presence() (condition.Test, bool, error) {
	s.space()
	word := ""
	if match := presences().FindStringSubmatch(s.rest()); match != nil {
		word = match[1]
	}
	test := condition.Test{Op: condition.Exists, Operand: condition.Scalar{Kind: value.Bool, Bool: word == "exists"}}
	if lower := strings.ToLower(word); word != lower {
		return test, true, s.failure("%s is no operator; write %s", word, lower)
	}
	s.at += len(word)
	return test, word != "", nil
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
		text := "expected a test such as amount>50000, found %s"
		if s.rest() == "" && strings.Contains(s.text, ",") {
			text += "; leave out the last comma"
		}
		return "", s.failure(text, s.found())
	}
	for _, join := range []string{"&&", "||"} {
		if strings.Contains(name, join) {
			return "", s.failure(`%s does not join tests; write a comma, as in amount>500,currency=EUR`, join)
		}
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
		{"!=~", "", "!~"}, {"!~=", "", "!~"}, {"~~", "", "~"}, {"~=", "", "~"}, {"≤", "", "<="}, {"≥", "", ">="},
		{"≠", "", "!="}, {"＝", "", "="},
		{"!=", condition.Ne, ""}, {"!~", condition.NotPattern, ""},
		{"<=", condition.Lte, ""}, {">=", condition.Gte, ""},
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
	return "", s.failure("expected one of = != < <= > >= ~ !~, exists or missing, found %s", s.found())
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
	case text == "null" && !quoted:
		return condition.Scalar{}, s.failure(`no test compares with null; write missing, as in "amount missing"`)
	case !quoted && strings.HasPrefix(text, "'"):
		text, _, _ = strings.Cut(s.rest()[1:], "'")
		return condition.Scalar{}, s.failure("a text needs double quotes; write %s", quotedText(text))
	case op == condition.Lt || op == condition.Lte || op == condition.Gt || op == condition.Gte:
		if isNumber {
			return condition.Scalar{Kind: value.Number, Num: n}, nil
		}
		right := "a number, as in amount>500"
		if near := numberLike(text); near != "" {
			right = near
		}
		return condition.Scalar{}, s.failure("%q is not a number, and only numbers have an order; write %s", text, right)
	case op == condition.Pattern, op == condition.NotPattern:
		return s.pattern(text, quoted)
	case quoted:
		return condition.Scalar{Kind: value.String, Text: text}, nil
	case isNumber:
		return condition.Scalar{Kind: value.Number, Num: n}, nil
	case text == "true", text == "false":
		return condition.Scalar{Kind: value.Bool, Bool: text == "true"}, nil
	case likeKeyword().MatchString(text), likeNumber().MatchString(text):
		right := ""
		if near := numberLike(text); near != "" {
			right = "write " + near + "; "
		}
		return condition.Scalar{}, s.failure(
			"%s is neither a number nor true or false; %sif it is a text, write %s", text, right, quotedText(text))
	case !plainWord().MatchString(text):
		return condition.Scalar{}, s.failure(
			"a text that is not a plain word needs double quotes, found %s; write %s", s.found(), quotedText(text))
	}
	return condition.Scalar{Kind: value.String, Text: text}, nil
}

// quotedText returns a text as JSON, the form in which every text may be given.
func quotedText(text string) string {
	return string(value.Value{Kind: value.String, Text: text}.AppendJSON(nil))
}

// numberLike returns the JSON number that a text such as 01, +5 or .5 seems to mean, or an empty
// string.
func numberLike(text string) string {
	match := nearNumber().FindStringSubmatch(text)
	if match == nil || !strings.ContainsAny(text, "0123456789") {
		return ""
	}
	whole, fraction := match[2], strings.TrimSuffix(match[3], ".")
	if whole == "" {
		whole = "0"
	}
	return strings.TrimPrefix(match[1], "+") + whole + fraction
}

func (s *whereScanner) pattern(text string, quoted bool) (condition.Scalar, error) {
	if !quoted && (text == "true" || text == "false" || !plainWord().MatchString(text)) {
		return condition.Scalar{}, s.failure(
			"this pattern needs double quotes, found %s; write %s", s.found(), quotedText(text))
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
