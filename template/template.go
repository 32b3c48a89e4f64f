// Package template renders the message that asks a person to approve a call (Agent Format,
// HITL, "Message templates").
//
// A template is text with {{variables}}, without logic, partials or a second pass. Parse
// reports all other mustache syntax with its position, and it is printed unchanged. Values come
// from the agent, so they are escaped by Escape: nothing in them can start a line, reorder text
// or be invisible.
package template

import (
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/safetext"
)

// MaxLength is the maximum length of a template in bytes. For a longer template, Render uses
// the default message.
const MaxLength = 16 << 10

// Template is a parsed message template. It is immutable and safe for concurrent use. A nil
// Template renders the default message.
type Template struct {
	omitted bool // empty, only white space, or too long: the default message is used
	parts   []part
	vars    []variable
	refs    []Ref
	limit   int // maximum of characters for one value
}

// part is a part of the message: the author's text, which is safe to show, or one variable.
type part struct {
	text string
	vari int // index into Template.vars; -1 for text
}

// variable is one distinct name of a template.
type variable struct {
	name string
	ref  reference
}

// Ref is one use of a variable, with the position of its name in the template's text.
type Ref struct {
	Name           string // such as tool_args.order.amount
	Offset, Length int
}

// Problem is something in a template that does not do what its author probably intended. Code
// is a rule id, see Rules. Offset and Length are its position in bytes in the template's text.
type Problem struct {
	Code           string
	Offset, Length int
	Message        string
	Expected       string
	Severity       diag.Severity
}

// Parse parses a template. It never returns nil: anything but plain variables is reported and
// printed unchanged.
func Parse(text string) (*Template, []Problem) {
	switch {
	case strings.TrimSpace(text) == "":
		return &Template{omitted: true}, []Problem{emptyTemplate(text)}
	case len(text) > MaxLength:
		return &Template{omitted: true}, []Problem{tooLong(text)}
	}

	tokens, problems := tokenize(text)
	t := &Template{}
	t.assemble(tokens)
	return t, problems
}

// Omitted reports whether the template has no text, so that the default message (or another
// rule's template) is used.
func (t *Template) Omitted() bool { return t == nil || t.omitted }

// Refs returns every use of a variable, in order.
func (t *Template) Refs() []Ref {
	if t == nil {
		return nil
	}
	return t.refs
}

// Key returns a text that is equal for templates that render the same messages: spaces in a tag
// and a third brace have no effect. It is empty if the template is omitted.
func (t *Template) Key() string {
	if t.Omitted() {
		return ""
	}
	var b strings.Builder
	for _, p := range t.parts {
		if p.vari < 0 {
			b.WriteString(p.text)
		} else {
			b.WriteString("\x00" + t.vars[p.vari].name + "\x00") // text contains no NUL, see safetext.Author
		}
	}

	return b.String()
}

// assemble converts tokens to parts. Adjacent texts become one part, and a name that is used
// twice becomes one variable.
func (t *Template) assemble(tokens []token) {
	index := map[string]int{}
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			t.parts = append(t.parts, part{text: safetext.Author(text.String()), vari: -1})
			text.Reset()
		}
	}
	for _, tok := range tokens {
		if !tok.variable {
			text.WriteString(tok.text)
			continue
		}
		flush()
		i, seen := index[tok.text]
		if !seen {
			i = len(t.vars)
			index[tok.text] = i
			t.vars = append(t.vars, variable{name: tok.text, ref: refer(tok.text)})
		}

		t.refs = append(t.refs, Ref{Name: tok.text, Offset: tok.offset, Length: len(tok.text)})
		t.parts = append(t.parts, part{vari: i})
	}

	flush()
	t.limit = valueLimit(len(t.refs))
}

// Message is a rendered template. Show it in addition to the full arguments and the facts of
// the call, never instead of them.
type Message struct {
	Text      string
	Missing   []string // variables that had no value and were left empty, in order of appearance
	Truncated []string // variables whose value was cut; Text has a note at the place
}

// Render renders the template in one pass: values are never expanded again. For an omitted
// template it returns the default message.
func (t *Template) Render(ctx Context, f *Facts) Message {
	if f == nil {
		f = &Facts{}
	}
	if t.Omitted() {
		text, cut := defaultText(ctx, f)
		return Message{Text: text, Truncated: cut}
	}
	var m Message
	values := make([]string, len(t.vars))
	for i := range t.vars {
		v := &t.vars[i]
		text, ok := f.text(ctx, v.ref)
		if !ok {
			m.Missing = append(m.Missing, v.name)
		}
		shown, cut := text.Show(t.limit)
		if cut {
			m.Truncated = append(m.Truncated, v.name)
		}
		values[i] = shown
	}

	m.Text = t.join(values)
	return m
}

// join returns the message with a value for each variable.
func (t *Template) join(values []string) string {
	var b strings.Builder
	for _, p := range t.parts {
		if p.vari < 0 {
			b.WriteString(p.text)
		} else {
			b.WriteString(values[p.vari])
		}
	}

	return b.String()
}
