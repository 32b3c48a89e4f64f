// Package template renders the message that asks a person to approve a call (Agent Format,
// HITL, "Message templates").
//
// A template is text with {{variables}}, without logic, partials or a second pass. Parse
// reports all other mustache syntax with its position, and it is printed unchanged. Values come
// from the agent, so they are escaped by Escape: nothing in them can start a line, reorder text
// or be invisible.
//
// cbroglie/mustache does the interpolation in isolation: it gets a generated text whose only
// tags are {{{v0}}}, {{{v1}}}…, and a flat map of strings that are ready to show. It never gets
// names, paths and values of the author or the agent.
package template

import (
	"io"
	"strconv"
	"strings"

	"github.com/cbroglie/mustache"

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
	engine  engine
}

// part is a part of the message: the author's text, which is safe to show, or one variable.
type part struct {
	text string
	key  string // its name for mustache; empty for text that is written into the generated template
	vari int    // index into Template.vars; -1 for text
}

// variable is one distinct name of a template.
type variable struct {
	name string
	key  string
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

// engine is the part of *mustache.Template that Render uses.
type engine interface {
	FRender(out io.Writer, context ...any) error
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
	t.engine = compile(t.source())
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
			t.addText(safetext.Author(text.String()))
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
			t.vars = append(t.vars, variable{
				name: tok.text,
				key:  "v" + strconv.Itoa(i),
				ref:  refer(tok.text),
			})
		}

		t.refs = append(t.refs, Ref{Name: tok.text, Offset: tok.offset, Length: len(tok.text)})
		t.parts = append(t.parts, part{key: t.vars[i].key, vari: i})
	}

	flush()
	t.limit = valueLimit(len(t.refs))
}

// addText adds the author's text. Text with a brace could join an adjacent tag, so mustache
// gets it as a value.
func (t *Template) addText(s string) {
	p := part{text: s, vari: -1}
	if strings.ContainsAny(s, "{}") {
		p.key = "t" + strconv.Itoa(len(t.parts))
	}
	t.parts = append(t.parts, p)
}

// source returns the template that mustache compiles, which has only brace-free text and
// generated names.
func (t *Template) source() string {
	var b strings.Builder
	for _, p := range t.parts {
		if p.key == "" {
			b.WriteString(p.text)
			continue
		}
		b.WriteString("{{{" + p.key + "}}}")
	}

	return b.String()
}

// compile compiles a generated template with mustache: without escaping, and with partials from
// an empty map instead of the disk. It returns nil if mustache refuses the text, which never
// happens for generated ones; Render then joins the parts itself.
func compile(source string) engine {
	tmpl, err := mustache.ParseStringPartialsRaw(source, &mustache.StaticProvider{}, true)
	if err != nil {
		return nil
	}
	return tmpl
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
	values := t.fixed()
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
		values[v.key] = shown
	}

	m.Text = t.interpolate(values)
	return m
}

// fixed returns the values for the author's texts that mustache must not parse.
func (t *Template) fixed() map[string]string {
	values := make(map[string]string, len(t.vars))
	for _, p := range t.parts {
		if p.vari < 0 && p.key != "" {
			values[p.key] = p.text
		}
	}
	return values
}

// interpolate lets mustache insert the values. If that fails for any reason, the approver still
// gets the message.
func (t *Template) interpolate(values map[string]string) (text string) {
	defer func() {
		if recover() != nil {
			text = t.join(values)
		}
	}()
	if t.engine == nil { // calling it would panic, with the same result
		return t.join(values)
	}
	var b strings.Builder
	if err := t.engine.FRender(&b, values); err != nil {
		return t.join(values)
	}
	return b.String()
}

// join does the same as interpolate without mustache.
func (t *Template) join(values map[string]string) string {
	var b strings.Builder
	for _, p := range t.parts {
		if p.key == "" {
			b.WriteString(p.text)
		} else {
			b.WriteString(values[p.key])
		}
	}

	return b.String()
}
