package condition

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/value"
)

// Reasons of an Observation. The values are part of the decision contract: new ones may be
// added, but existing ones never change.
const (
	WhyMatched         = "matched"
	WhyAlways          = "always"               // nothing is tested: no condition, no matcher, or the matcher {}
	WhyMissingArgument = "missing_argument"     // the argument is not there
	WhyNullArgument    = "null_argument"        // the argument is null
	WhyTypeMismatch    = "type_mismatch"        // the argument has a type that the test does not compare
	WhyRoundedNumber   = "rounded_number"       // a reader that rounds to doubles would get another result
	WhyBareKey         = "bare_key"             // a plain name although a path is required
	WhyNotAPath        = "not_a_path"           // a dotted key that is not a path, or not one that this use can read
	WhyNoParentHere    = "no_parent_here"       // a key that begins with `parent.`, although only arguments are read
	WhyUnreadableTest  = "unreadable_test"      // the test in the file is invalid
	WhyUnreadableText  = "unreadable_text"      // the text is not of the form that the test reads
	WhyElement         = "unknown_element"      // the test of some element of a list is unknown
	WhyCurrency        = "unknown_currency"     // the currency is missing, or not one of the test's
	WhyNoArguments     = "not_an_object"        // the arguments, or the parent's input, are not an object
	WhyNoParentInput   = "missing_parent_input" // the call has no parent's input
	WhyNoTime          = "missing_time"         // the moment of the call is not known
	WhyNoHistory       = "missing_history"      // the past calls are not known
	WhyHistory         = "unknown_history"      // a past call, or this one, lacks a value that the test compares
)

// Observation is one matcher of a group that asked.
type Observation struct {
	Group int        // index in Expr.Groups
	Key   string     // empty if the group has no matcher
	Test  string     // such as "gt 10000"
	Truth Truth      // True or Unknown
	Why   string     // one of the Why constants
	Seen  string     // the kind of value found, such as "string of 14 characters", never the value
	Range diag.Range // of the matcher, or of the group if it has none
	// Figures are the numbers of a test of past calls, or nil.
	Figures *Figures
}

// Explain evaluates the whole condition and lists, in the order of the file, every matcher of
// every group that is True or Unknown. Matchers with Takes are left out.
func (p *Program) Explain(v *View) (Truth, []Observation) {
	if len(p.groups) == 0 {
		o := Observation{Truth: True, Why: WhyAlways}
		if p.src != nil {
			o.Range = p.src.Range
		}
		return True, []Observation{o}
	}

	result, seen := False, []Observation(nil)
	for i, g := range p.groups {
		truth, observations := g.explain(i, &p.src.Groups[i], v)
		result = max(result, truth)
		seen = join(seen, observations)
	}
	return result, seen
}

// join appends b to a. If a is nil, it returns b without copying.
func join(a, b []Observation) []Observation {
	if a == nil {
		return b
	}
	return append(a, b...)
}

// GroupTruth is the truth of one group, and of each of its matchers in the order of the file.
type GroupTruth struct {
	Truth    Truth
	Matchers []Truth
}

// Truths evaluates the whole condition and every part of it, including False ones, in the order
// of the file.
func (p *Program) Truths(v *View) (Truth, []GroupTruth) {
	out := make([]GroupTruth, len(p.groups))
	for i, g := range p.groups {
		out[i] = GroupTruth{Truth: g.truth(v), Matchers: make([]Truth, len(g))}
		for j := range g {
			out[i].Matchers[g[j].src] = g[j].truth(v)
		}
	}

	return p.Eval(v), out
}

// Expr returns the compiled condition, or nil if it is always true.
func (p *Program) Expr() *Expr { return p.src }

// explain returns the truth of a group, and its observations unless it is False.
func (g group) explain(at int, src *Group, v *View) (Truth, []Observation) {
	if len(g) == 0 {
		return True, []Observation{{Group: at, Truth: True, Why: WhyAlways, Range: src.Range}}
	}

	result := g.truth(v)
	if result == False {
		return False, nil
	}
	observations := make([]Observation, len(g))
	for i := range g {
		if g[i].takes != "" {
			continue
		}
		m := &src.Matchers[g[i].src]
		if g[i].past != nil {
			r := g[i].past.look(v)
			o := Observation{at, m.Key, g[i].shown, r.Truth, r.Why, "", m.Range, r.Figures}
			if r.Figures != nil {
				o.Seen = r.Figures.String()
			}
			observations[g[i].src] = o
			continue
		}
		truth, why, seen := g[i].look(v)
		observations[g[i].src] = Observation{at, m.Key, g[i].shown, truth, why, seen, m.Range, nil}
	}
	observations = slices.DeleteFunc(observations, func(o Observation) bool { return o.Why == "" })
	if len(observations) == 0 {
		observations = append(observations, Observation{Group: at, Truth: True, Why: WhyAlways, Range: src.Range})
	}
	return result, observations
}

// look is like truth, and also returns the reason and the kind of the value that decided.
func (m *matcher) look(v *View) (truth Truth, why, seen string) {
	switch {
	case m.time == nil:
	case v.At.IsZero():
		return Unknown, WhyNoTime, ""
	default:
		return m.time.truth(v.At), WhyMatched, v.At.In(m.time.Window.zone).Format("Mon 2006-01-02 15:04")
	}
	doc := m.document(v)
	switch {
	case m.slot < 0:
		return Unknown, m.fault, ""
	case m.parent && doc.Top == value.Absent:
		return Unknown, WhyNoParentInput, "missing"
	case !m.readable(doc):
		return Unknown, WhyNoArguments, doc.Top.String()
	}

	s := &doc.Slots[m.slot]
	if m.nested >= 0 {
		if n := &doc.Slots[m.nested]; s.Kind == value.Absent ||
			n.Kind != value.Absent && all(m.tests, n, v) > all(m.tests, s, v) {
			s = n
		}
	}

	return all(m.tests, s, v), whyOf(m.tests, s, v), classOf(s)
}

// whyOf returns the reason for the first test that is Unknown, or WhyMatched.
func whyOf(tests []test, s *value.Slot, v *View) string {
	if len(tests) == 0 {
		return WhyAlways
	}
	i := slices.IndexFunc(tests, func(t test) bool { return t.truth(s, v) == Unknown })
	switch {
	case i < 0:
		return WhyMatched
	case tests[i].unreadable:
		return WhyUnreadableTest
	case s.Kind == value.Absent:
		return WhyMissingArgument
	case s.Kind == value.Null:
		return WhyNullArgument
	case s.Kind == value.Number && tests[i].money != nil:
		return tests[i].money.why(v)
	case s.Kind == value.Number && tests[i].numbers != nil:
		return WhyRoundedNumber
	case s.Kind == value.String && tests[i].texts != nil:
		return WhyUnreadableText
	case s.Kind == value.Array && tests[i].compounds != nil:
		return WhyElement
	}

	return WhyTypeMismatch
}

// classOf returns the kind of a value without the value.
func classOf(s *value.Slot) string {
	switch s.Kind {
	case value.Absent:
		return "missing"
	case value.String:
		n := utf8.RuneCountInString(s.Text)
		if n == 1 {
			return "string of 1 character"
		}
		return "string of " + strconv.Itoa(n) + " characters"
	}

	return s.Kind.String()
}

// describe formats a matcher's tests as in a file.
func describe(m *Matcher) string {
	if m.IsFact() {
		return m.FactText()
	}
	parts := make([]string, len(m.Tests))
	for i := range m.Tests {
		parts[i] = m.Tests[i].String()
	}
	return strings.Join(parts, " and ")
}

// String returns the scalar as JSON.
func (s *Scalar) String() string {
	switch s.Kind {
	case value.Bool:
		return strconv.FormatBool(s.Bool)
	case value.Number:
		return s.Num.String()
	}

	return strconv.Quote(s.Text)
}
