package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/safetext"
)

// Safe is a text of a server that is safe for clients.
type Safe struct {
	// Text is the received text in which only unsafe titles and descriptions were changed.
	Text     []byte
	Findings []Finding
	// Problem is the reason why no safe text could be made: an unsafe character is in a string that
	// the server reads, which can't be changed. It is empty if there is none.
	Problem string

	shown []string     // titles and descriptions, made safe
	name  jsonmsg.Span // of the name in Text
}

// Sanitise makes the definition of a tool, a prompt or a resource safe for clients. raw must be
// valid JSON. Titles and descriptions, including those of schemas, their choices and arguments,
// lose invisible characters, terminal controls, characters that reorder text, and everything beyond
// 4,096 characters.
func Sanitise(raw []byte) Safe {
	w := newWalk(raw)
	w.value(thing)
	return w.done()
}

// Instructions makes a text safe for clients that is no part of a definition, such as the
// instructions of a server.
func Instructions(text string) (safe string, findings []Finding) {
	w := &walk{path: []string{"instructions"}}
	return w.mend(text), w.findings
}

// Message makes a JSON value safe for clients all of whose strings are for readers, such as a log
// message of a server.
func Message(raw []byte) Safe {
	w := newWalk(raw)
	w.value(said)
	return w.done()
}

// role is the purpose of the strings in a value.
type role uint8

const (
	thing   role = iota // an object whose titles and descriptions are texts for readers
	table               // an object that names things, such as properties
	data                // read by programs: enum, const, default, examples
	foreign             // _meta: its meaning is unknown here
	said                // for readers as a whole
)

// walk is one pass through a definition.
type walk struct {
	src      []byte
	text     string // the same
	cursor   *jsonmsg.Cursor
	name     jsonmsg.Span // of the definition's name
	path     []string
	edits    []edit
	shown    []string
	findings []Finding
	problem  string
}

func newWalk(raw []byte) *walk {
	text := string(raw)
	return &walk{src: raw, text: text, cursor: jsonmsg.NewCursor(raw, text)}
}

// edit is a replacement of a string.
type edit struct {
	at   jsonmsg.Span
	text string
}

// value walks a value with a role. Texts that are shown are made safe, and others are only checked.
func (w *walk) value(r role) {
	switch w.src[w.cursor.Next()] {
	case '{':
		for name := range w.cursor.Members() {
			w.path = append(w.path, name)
			w.member(r, name)
			w.path = w.path[:len(w.path)-1]
		}
	case '[':
		for i := range w.cursor.Elements() {
			w.path = append(w.path, strconv.Itoa(i))
			w.value(r)
			w.path = w.path[:len(w.path)-1]
		}
	case '"':
		if r == said {
			w.mendHere()
			return
		}
		at := w.cursor.Pass()
		w.unmendable(jsonmsg.String(w.text[at.From:at.To]))
	default:
		w.cursor.Pass()
	}
}

// member walks the value of a member.
func (w *walk) member(r role, name string) {
	w.unmendable(name)
	isText := w.src[w.cursor.Next()] == '"'
	switch {
	case r == thing && isText && readable(name):
		w.mendHere()
	case r != said && isText && name == "name" && len(w.path) == 1:
		w.name = w.cursor.Pass()
		w.unmendable(jsonmsg.String(w.text[w.name.From:w.name.To]))
	case r == said:
		w.value(said)
	case r == thing:
		w.value(roleOf(name))
	case r == table:
		w.value(thing)
	default:
		w.value(r)
	}
}

// readable reports whether a member of that name is a text for readers.
func readable(name string) bool {
	return slices.Contains([]string{"title", "description", "$comment", "markdownDescription"}, name)
}

// roleOf returns the role of a member's value in a thing.
func roleOf(name string) role {
	switch name {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return table
	case "enum", "const", "default", "examples", "required", "dependentRequired":
		return data
	case "_meta":
		return foreign
	}

	return thing
}

// mendHere makes the string before the cursor safe.
func (w *walk) mendHere() {
	at := w.cursor.Pass()
	text := jsonmsg.String(w.text[at.From:at.To])
	safe := w.mend(text)
	w.shown = append(w.shown, safe)
	if safe != text {
		w.edits = append(w.edits, edit{at, safe})
	}
}

// mend returns a safe version of a text, and adds findings about the removed characters.
func (w *walk) mend(text string) string {
	safe := safetext.Strip(text)
	if safe.Any() {
		w.find(RuleHidden, safe.Words()+" taken out of "+quoted(text))
	}
	if len(safe.Text) <= maxText || utf8.RuneCountInString(safe.Text) <= maxText {
		return safe.Text
	}
	head, _ := safetext.Head(safe.Text, maxText-utf8.RuneCountInString(cutNote))
	w.find(RuleLong, fmt.Sprintf(
		"%s characters, of which the first %s are shown to a client",
		safetext.Count(utf8.RuneCountInString(safe.Text)),
		safetext.Count(utf8.RuneCountInString(head)),
	))
	return safetext.Strip(head + cutNote).Text
}

// cutNote is appended to a shortened text.
const cutNote = " … [cut]"

// unmendable checks a string that can't be changed. Line breaks are allowed because they are part
// of what programs read.
func (w *walk) unmendable(text string) {
	for _, r := range text {
		if r < 0x7f && r >= ' ' || r == '\n' || r == '\t' || r == '\r' {
			continue
		}
		class := safetext.Classify(r)
		if !class.Hidden() || class == safetext.Space {
			continue
		}
		w.find(RuleNotMended, fmt.Sprintf("%U in %s, which can't be changed", r, quoted(text)))
		if w.problem == "" {
			w.problem = fmt.Sprintf(
				"its definition holds a character that isn't shown, %U, where nothing can be taken out: %s",
				r,
				safetext.Escape(jsonmsg.Path(w.path)),
			)
		}

		return
	}
}

func (w *walk) find(rule, message string) {
	w.findings = append(w.findings, Finding{
		Rule:    rule,
		Place:   jsonmsg.Path(w.path),
		Message: message,
	})
}

// edited returns the text with its edits, and the position of the name in it.
func (w *walk) edited() ([]byte, jsonmsg.Span) {
	if len(w.edits) == 0 {
		return w.src, w.name
	}
	var out []byte
	name, from := w.name, int32(0)
	for _, e := range w.edits {
		out = append(out, w.src[from:e.at.From]...)
		out = jsonmsg.AppendString(out, e.text)
		from = e.at.To
		if from <= w.name.From {
			longer := int32(len(out)) - from
			name = jsonmsg.Span{From: w.name.From + longer, To: w.name.To + longer}
		}
	}

	return append(out, w.src[from:]...), name
}

func (w *walk) done() Safe {
	text, name := w.edited()
	return Safe{
		Text:     text,
		Findings: w.findings,
		Problem:  w.problem,
		shown:    w.shown,
		name:     name,
	}
}

// quoted returns a server's text for a finding: escaped, on one line, and shortened.
func quoted(text string) string {
	const most = 80
	shown, _ := safetext.Value{Text: text}.Show(most)
	return "“" + shown + "”"
}

// sanitise makes the tool's texts safe.
func (t *Tool) sanitise() {
	safe := Sanitise(t.Raw)
	for _, f := range safe.Findings {
		f.Tool = t.Name
		t.Findings = append(t.Findings, f)
	}
	if safe.Problem != "" {
		t.refuse(RuleNotMended, safe.Problem)
	}
	if len(safe.Text) > maxView {
		t.refuse(RuleLarge, fmt.Sprintf(
			"its definition has %s bytes, at most %s are shown to a client",
			safetext.Count(len(safe.Text)),
			safetext.Count(maxView),
		))
	}

	t.clean, t.name = safe.Text, safe.name
	t.texts = safe.shown
	t.warnAlone()
}
