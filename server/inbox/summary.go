package inbox

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// summary describes a call in one line: the beginnings of its values, with their names. Lists and
// titles show it. It never counts as showing the call.
type summary struct {
	Fields []summaryField
	More   int // number of values that are left out
}

// summaryField is one value with its name.
type summaryField struct {
	Key    safetext.Shown
	Value  safetext.Shown
	Hidden bool // hidden by a policy
}

// The limits of a summary.
const (
	mostFields = 8
	longField  = 48  // characters of one value
	longLine   = 160 // characters of all values
)

// Spoken returns the summary as plain text, for titles and attributes.
func (s summary) Spoken() string {
	var out []string
	for _, f := range s.Fields {
		out = append(out, strings.TrimSpace(f.Key.Spoken()+" "+f.Value.Spoken()))
	}
	if s.More > 0 {
		out = append(out, "and "+safetext.Count(s.More)+" more")
	}

	return strings.Join(out, ", ")
}

// summarize returns the summary of a call. For a delegation without arguments it uses the input of
// the delegating agent.
func summarize(c *resolve.Call, hidden policy.Arguments) summary {
	text, at := c.Args, hidden.Redaction()
	if c.Kind == resolve.Delegation && len(c.ParentInput) != 0 && (len(text) == 0 || string(text) == "{}") {
		text, at = c.ParentInput, hidden.ParentRedaction()
	}
	if len(text) == 0 {
		return summary{Fields: []summaryField{{Value: pageWords("arguments no longer kept")}}}
	}
	doc, err := value.Parse([]byte(text), value.Limits{MaxValues: mostValues})
	if tooLarge(err) {
		return summary{Fields: []summaryField{{Value: pageWords(safetext.Count(len(text)) + " bytes of arguments")}}}
	}
	if err != nil {
		return summary{Fields: []summaryField{{Value: pageWords("arguments that can’t be read")}}}
	}
	s := summarizer{left: longLine}
	s.value(nil, doc, at)
	if len(s.out.Fields) == 0 {
		s.out.Fields = []summaryField{{Value: pageWords("without arguments")}}
	}

	return s.out
}

// pageWords returns text of the page itself.
func pageWords(text string) safetext.Shown {
	return safetext.Shown{Pieces: []safetext.Piece{{Class: safetext.PieceNote, Text: text}}}
}

// summarizer collects fields until the limits are reached.
type summarizer struct {
	out  summary
	left int // characters
}

// value adds a value, or the contents of an object or list.
func (s *summarizer) value(path []string, v value.Value, at policy.Redaction) {
	switch {
	case v.Kind == value.Object && len(v.Members) > 0:
		s.object(path, v, at)
	case v.Kind == value.Array && len(v.Items) > 1, len(path) > 0 && v.Kind == value.Array:
		s.add(path, safetext.Shown{Pieces: []safetext.Piece{{Text: items(len(v.Items))}}}, false)
	case v.Kind == value.Array, v.Kind == value.Object:
	case v.Kind == value.String:
		s.add(path, begin(v.Text), false)
	default:
		s.add(
			path,
			safetext.Shown{Pieces: []safetext.Piece{{Text: approval.GroupDigits(string(v.AppendJSON(nil)))}}},
			false,
		)
	}
}

func items(n int) string {
	if n == 1 {
		return "[1 item]"
	}

	return "[" + safetext.Count(n) + " items]"
}

func (s *summarizer) object(outer []string, v value.Value, at policy.Redaction) {
	amount, currency := money(v, at)
	for i, m := range v.Members {
		path := append(outer, m.Key)
		below, hidden := at.Step(m.Key)
		switch {
		case hidden:
			s.add(path, safetext.Shown{}, true)
		case i == amount:
			text := approval.GroupDigits(string(m.Value.AppendJSON(nil))) + " " + v.Members[currency].Value.Text
			s.add(path, safetext.Shown{Pieces: []safetext.Piece{{Text: text}}}, false)
		case amount >= 0 && i == currency:
		default:
			s.value(path, m.Value, below)
		}
	}
}

// money returns the indexes of an amount and its currency in an object, so that they are shown
// together. It returns -1 if there are none.
func money(v value.Value, at policy.Redaction) (amount, currency int) {
	amount, currency = -1, -1
	for i, m := range v.Members {
		_, hidden := at.Step(m.Key)
		switch {
		case hidden:
		case strings.EqualFold(m.Key, "amount") && m.Value.Kind == value.Number:
			amount = i
		case strings.EqualFold(m.Key, "currency") && currencyCode(m.Value):
			currency = i
		}
	}

	if amount < 0 || currency < 0 {
		return -1, -1
	}

	return amount, currency
}

// currencyCode reports whether a value is written like a currency code: three capital letters.
func currencyCode(v value.Value) bool {
	return v.Kind == value.String && len(v.Text) == 3 && strings.Trim(v.Text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

func (s *summarizer) add(path []string, text safetext.Shown, hidden bool) {
	if len(s.out.Fields) == mostFields || s.left <= 0 {
		s.out.More++
		return
	}
	f := summaryField{Value: text, Hidden: hidden}
	if len(path) > 0 {
		f.Key = begin(strings.Join(path, "."))
	}
	s.left -= utf8.RuneCountInString(f.Key.Spoken()+f.Value.Spoken()) + 2
	s.out.Fields = append(s.out.Fields, f)
}

// begin returns the beginning of a text, on one line.
func begin(text string) safetext.Shown {
	line, _, more := strings.Cut(text, "\n")
	line, cut := safetext.Head(line, longField)
	out := safetext.Inspect(line, safetext.Form{})
	if text == "" {
		out = pageWords("empty")
	}
	if more || cut {
		out.Pieces = append(out.Pieces, safetext.Piece{Class: safetext.PieceMark, Text: "…"})
	}

	return out
}

// name returns the target of a call without its kind: "wire", "broker/sell".
func name(c *resolve.Call) string {
	return strings.TrimPrefix(c.Target(), string(c.Kind)+" ")
}

// kindWords describes the kind of the target.
func kindWords(c *resolve.Call) string {
	switch c.Kind {
	case resolve.MCPTool:
		return "tool of MCP server " + c.Server
	case resolve.Skill:
		return "skill of remote agent " + c.Agent
	case resolve.Delegation:
		return "delegation to an agent"
	case resolve.Tool:
		return "local tool"
	}

	return strconv.Quote(string(c.Kind))
}
