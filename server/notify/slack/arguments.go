package slack

import (
	"strconv"
	"strings"

	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/value"
)

// printer writes JSON documents as lines that are ready to show: one line for each member or
// item, in source order, with numbers spelled as in the source. Values at paths that a policy
// hides are replaced by a mark. The structure is kept.
type printer struct {
	lines  []string
	left   int  // lines that were not kept
	hidden bool // a value was replaced
	cut    bool // a value or a key was too long
}

const (
	maxKept   = 1000 // lines; many more than any message shows
	maxKey    = 600
	maxString = 2000
	maxIndent = 8
)

// document writes one JSON text of a call.
func (p *printer) document(name, text string, redact policy.Redaction) {
	p.line(0, name+":")
	doc, err := value.Parse([]byte(text), value.DefaultLimits())
	switch {
	case err != nil && redact.Hides(): // it can't be parsed, so the paths to hide can't be found
		p.hidden = true
		p.line(1, "(unreadable, and parts of it must be hidden)")
	case err != nil:
		p.line(1, p.short(text, maxString))
	default:
		p.value(1, "", doc, "", redact)
	}
}

func (p *printer) line(indent int, shown string) {
	if len(p.lines) == maxKept {
		p.left++
		return
	}
	p.lines = append(p.lines, strings.Repeat("  ", min(indent, maxIndent))+shown)
}

// short returns s, cut to the limit, and records whether it was cut.
func (p *printer) short(s string, limit int) string {
	shown, whole := safetext.CutSlack(s, limit)
	p.cut = p.cut || !whole
	return shown
}

// value writes a value, with the text before it on its first line and the text after it on its
// last.
func (p *printer) value(indent int, before string, v value.Value, after string, redact policy.Redaction) {
	switch {
	case v.Kind == value.Object && len(v.Members) > 0:
		p.line(indent, before+"{")
		for i, m := range v.Members {
			p.below(indent+1, p.quoted(m.Key, maxKey)+": ", m.Key, m.Value, comma(i, len(v.Members)), redact)
		}
		p.line(indent, "}"+after)
	case v.Kind == value.Array && len(v.Items) > 0:
		p.line(indent, before+"[")
		for i, item := range v.Items {
			p.below(indent+1, "", strconv.Itoa(i), item, comma(i, len(v.Items)), redact)
		}
		p.line(indent, "]"+after)
	case v.Kind == value.String:
		p.line(indent, before+p.quoted(v.Text, maxString)+after)
	default:
		p.line(indent, before+p.short(string(v.AppendJSON(nil)), maxString)+after)
	}
}

// below writes the value of one key or index, or a mark if the value must be hidden. The mark
// is not valid JSON, so no string can imitate it.
func (p *printer) below(
	indent int,
	before, segment string,
	v value.Value,
	after string,
	redact policy.Redaction,
) {
	deeper, hidden := redact.Step(segment)
	if hidden {
		p.hidden = true
		p.line(indent, before+"(hidden "+v.Kind.String()+")"+after)
		return
	}
	p.value(indent, before, v, after, deeper)
}

// quoted returns a JSON string. Its text is isolated within the quotes, so that right-to-left
// letters can't reorder the JSON around it.
func (p *printer) quoted(s string, limit int) string {
	text := string(value.Value{Kind: value.String, Text: s}.AppendJSON(nil))
	return `"` + p.short(text[1:len(text)-1], limit) + `"`
}

func comma(i, n int) string {
	if i == n-1 {
		return ""
	}
	return ","
}

// pack joins lines into texts of up to maxText characters, and returns up to most texts and the
// number of lines that don't fit.
func pack(lines []string, most int) (texts []string, left int) {
	for i, line := range lines {
		switch last := len(texts) - 1; {
		case last >= 0 && safetext.SlackLength(texts[last])+1+safetext.SlackLength(line) <= maxText:
			texts[last] += "\n" + line
		case len(texts) < most:
			texts = append(texts, line)
		default:
			return texts, len(lines) - i
		}
	}

	return texts, 0
}
