package approval

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// Ground is one rule that asked, described for the people who are asked.
type Ground struct {
	Rule  string   // the rule's source: "policy acme.trade-controls, rule large-trades"
	About string   // the rule's description by its author; may be empty
	Words []string // why it asked, one sentence for each group of tests; may contain values of the call
	Where string   // position in a file; may be empty
}

// Grounds returns the rules that asked about the current call. They contain no values that a policy
// hides.
func (r *Request) Grounds() []Ground {
	cur := r.Current()
	s := newSeen(&cur.Call, r.Arguments())
	out := make([]Ground, len(cur.Decision.Reasons))
	for i, x := range cur.Decision.Reasons {
		out[i] = Ground{Rule: ruleWords(x), About: x.Description, Words: s.words(x)}
		if x.File != "" {
			out[i].Where = x.File + ":" + strconv.Itoa(x.Line)
		}
	}

	return out
}

func ruleWords(x resolve.Reason) string {
	switch x.Source {
	case resolve.FromPolicy:
		return "policy " + x.Policy + ", rule " + x.Rule
	case resolve.FromAgent, resolve.FromServer, resolve.FromActionSpace:
		return "the agent's file, " + cmp.Or(x.Rule, "action_space")
	case FromAsker:
		return "whoever asks, though the rules allow the call"
	}

	return string(x.Source)
}

// seen holds the values that the tests of a rule read.
type seen struct {
	args, parent value.Value
	hidden       policy.Arguments
}

func newSeen(c *resolve.Call, hidden policy.Arguments) seen {
	s := seen{hidden: hidden}
	if doc, err := value.Parse(c.Args, value.DefaultLimits()); err == nil {
		s.args = doc
	}
	if doc, err := value.Parse(c.ParentInput, value.DefaultLimits()); err == nil {
		s.parent = doc
	}

	return s
}

// words describes why a rule asked. Tests of one group are joined into one sentence, because all of
// them had to match.
func (s seen) words(x resolve.Reason) []string {
	if len(x.Matchers) == 0 {
		return []string{cmp.Or(x.Detail, "it always asks")}
	}
	var out []string
	last := -1
	for _, m := range x.Matchers {
		if m.Key == "" {
			out = append(out, "it asks about every call")
			continue
		}
		words := s.test(m)
		if m.Group == last {
			out[len(out)-1] += "; and " + words
			continue
		}
		out, last = append(out, words), m.Group
	}

	return out
}

// test describes the result of one test, for example "amount is 25,000, above 10,000".
func (s seen) test(m resolve.Matcher) string {
	if m.Key == "history" {
		return pastWords(m)
	}
	wanted := testWords(m.Test)
	shown, found := s.value(m.Key)
	switch {
	case m.Truth == "true" && m.Test == "":
		return m.Key + " is there"
	case m.Truth == "true" && found && wanted == "equal to "+shown:
		return m.Key + " is " + shown
	case m.Truth == "true" && found:
		return m.Key + " is " + shown + ", " + wanted
	case m.Truth == "true":
		return m.Key + " is " + wanted
	}

	unknown := strings.ReplaceAll(m.Why, "_", " ")
	switch m.Why {
	case "missing_argument":
		unknown = "is missing"
	case "null_argument":
		unknown = "is null"
	case "type_mismatch":
		unknown = "is of another type (" + m.Seen + ")"
	case "rounded_number":
		unknown = "has more digits than many tools read"
	case "unreadable_text":
		unknown = "is not readable as an address or a path of that kind"
	case "unknown_element":
		unknown = "has an element that can't be compared"
	case "unknown_currency":
		unknown = "is in a currency that is missing or not listed"
	default:
		return m.Key + " can't be tested: " + unknown
	}

	if wanted == "" {
		return m.Key + " " + unknown
	}

	return m.Key + " " + unknown + ", so nobody can tell whether it is " + wanted
}

// pastWords describes the result of a test of past calls: "sum of amount over ran in 24h: 18,400 EUR used,
// 2,500 more with this call, above 20,000".
func pastWords(m resolve.Matcher) string {
	f := m.History
	if f == nil {
		return "history (" + m.Test + ") can't be tested: " + strings.ReplaceAll(m.Why, "_", " ")
	}
	number := func(text string) string { return testWords("equals " + text) }
	what := m.Test
	if f.Bound != "" {
		what = strings.TrimSuffix(what, " "+f.Bound)
	}
	out := what + ": " + strings.TrimPrefix(number(f.Used), "equal to ")
	if f.Currency != "" {
		out += " " + f.Currency
	}
	if f.This != "" {
		out += "; this call " + strings.TrimPrefix(number(f.This), "equal to ")
	}
	if f.Bound != "" {
		out += "; it must not be " + testWords(f.Bound)
	}
	if m.Truth != "true" {
		out += "; some values are not known"
	}
	return out
}

// longestSeen is the largest number of characters of a text that is repeated in a sentence.
const longestSeen = 60

// value returns the text of the value that a condition's key refers to. It returns false unless
// that is one short value that may be shown.
func (s seen) value(key string) (string, bool) {
	doc := s.args
	path := key
	at := s.hidden.Redaction()
	if rest, inParent := strings.CutPrefix(key, "parent.input."); inParent {
		doc = s.parent
		path = rest
		at = s.hidden.ParentRedaction()
	}
	if _, hidden := at.At(splitPath(path)...); hidden {
		return "", false
	}
	v, found := doc.Lookup(path)
	if !found || twofold(doc, path) {
		return "", false
	}
	switch v.Kind {
	case value.Number:
		return GroupDigits(string(v.AppendJSON(nil))), true
	case value.String:
		return strconv.Quote(v.Text), utf8.RuneCountInString(v.Text) <= longestSeen
	case value.Bool:
		return strconv.FormatBool(v.Bool), true
	}

	return "", false
}

// twofold reports whether a dotted key refers to two values: one with the whole key as its name,
// and one along the key's segments.
func twofold(doc value.Value, key string) bool {
	first, rest, dotted := strings.Cut(key, ".")
	if _, whole := doc.Get(key); !dotted || !whole {
		return false
	}
	below, ok := doc.Get(first)
	if ok {
		_, ok = below.Lookup(rest)
	}

	return ok
}

// testWords translates the tests of a matcher from the spelling in a decision into words. It
// returns unknown tests unchanged.
func testWords(test string) string {
	var out []string
	for test != "" {
		op, rest, _ := strings.Cut(test, " ")
		operand, next, ok := cutOperand(rest)
		words := condition.Op(op).InReasons()
		if !ok || words == "" {
			return test
		}
		if inner, whole := strings.CutPrefix(operand, "("); whole && !strings.HasPrefix(inner, "where ") {
			operand = "(" + testWords(strings.TrimSuffix(inner, ")")) + ")"
		}
		out, test = append(out, words+" "+operand), next
	}

	return strings.Join(out, " and ")
}

// cutOperand cuts the operand off the front of the text: a quoted text, a number, a boolean, a list of
// them, or tests in parentheses.
func cutOperand(text string) (operand, rest string, ok bool) {
	const and = " and "
	end := 0
	inList := strings.HasPrefix(text, "[")
	open := 0 // parentheses
	for end < len(text) {
		switch c := text[end]; {
		case c == '"':
			quoted, err := strconv.QuotedPrefix(text[end:])
			if err != nil {
				return "", "", false
			}
			end += len(quoted)
			continue
		case c == ']':
			inList = false
		case c == '(':
			open++
		case c == ')':
			open--
		case c == ' ' && !inList && open == 0 && strings.HasPrefix(text[end:], and):
			return GroupDigits(text[:end]), text[end+len(and):], true
		}

		end++
	}

	return GroupDigits(text), "", text != "" && !inList && open == 0
}

// GroupDigits inserts thousands separators into a number with five or more digits before its
// decimal point. It returns everything else unchanged, including numbers with exponents and texts
// that are not numbers.
func GroupDigits(number string) string {
	return groupFrom(number, 5)
}

// groupFrom inserts separators into numbers with at least this many digits before their decimal
// point.
func groupFrom(number string, least int) string {
	digits := strings.TrimPrefix(number, "-")
	sign := number[:len(number)-len(digits)]
	whole, fraction, point := strings.Cut(digits, ".")
	if len(whole) < least || strings.Trim(whole+fraction, "0123456789") != "" {
		return number
	}

	var b strings.Builder
	b.WriteString(sign)
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}

	if point {
		fmt.Fprintf(&b, ".%s", fraction)
	}

	return b.String()
}
