// Package settings changes one table in the settings file of another
// program, and nothing else of it: comments, order, spacing, line ends
// and a byte order mark of the rest stay as they are. A file that can't
// be read beyond doubt is refused with the place, and stays untouched.
//
// A change is verified before it is returned: the new text is read
// again, and must say what the old one said, but for what was to change.
package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Form is the language that a file is written in.
type Form uint8

// The forms. JSON may have comments and trailing commas.
const (
	JSON Form = iota
	TOML
	YAML
)

// maxBytes and maxDepth bound what is read.
const (
	maxBytes = 64 << 20
	maxDepth = 1000
)

// Error is what is wrong with a file, and where.
type Error struct {
	File   string
	Line   int // from 1
	Column int // from 1, in characters
	Text   string
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Text) }

// Object is a value with fields in order. A field's value is a text, a
// list of texts, a bool or an Object; in JSON it may be an int or a list
// of Objects, too.
type Object []Field

// Field is a name and its value.
type Field struct {
	Name  string
	Value any
}

// Member is an entry of the table.
type Member struct {
	Name string
	// Value is what the entry says: nil, bool, json.Number, string,
	// []any or map[string]any; TOML has further types.
	Value any
	// Text is how the entry is written, name included.
	Text string
	Line int // where it begins; 0 for one that is in no file
}

// Table is a table of a file. It is immutable.
type Table struct {
	form    Form
	file    string
	path    []string
	bom     string
	text    []byte // behind the byte order mark
	eol     string
	root    any
	there   bool
	members []Member
	leaves  []leaf
	starts  []int // of the lines, in YAML
	edit    editor
}

// editor makes changes in one form.
type editor interface {
	// change removes members and puts texts where the first of them
	// was, or behind the last member.
	change(remove []int, add []string) ([]byte, error)
	// write writes a new member.
	write(name string, value Object) string
}

// leaf is a value without parts, and where it stands.
type leaf struct {
	path []string // names only: items of a list share the list's
	span span
}

// span is a stretch of bytes.
type span struct{ start, end int }

// Parse reads a text, whose file is named in errors, and finds the
// table to which a path of names leads. There need be none. An empty
// text is an empty document.
func Parse(form Form, file string, text []byte, path ...string) (*Table, error) {
	t := &Table{
		form: form,
		file: file,
		path: path,
		text: text,
		eol:  "\n",
	}
	if rest, marked := bytes.CutPrefix(text, []byte("\ufeff")); marked {
		t.bom, t.text = "\ufeff", rest
	}
	if err := t.readable(); err != nil {
		return nil, err
	}
	if i := bytes.IndexByte(t.text, '\n'); i > 0 && t.text[i-1] == '\r' {
		t.eol = "\r\n"
	}
	if len(bytes.TrimSpace(t.text)) == 0 {
		return t, nil
	}
	read := map[Form]func(*Table) error{JSON: readJSON, TOML: readTOML, YAML: readYAML}[form]
	if err := read(t); err != nil {
		return nil, err
	}

	return t, nil
}

func (t *Table) readable() error {
	if len(t.text) > maxBytes {
		return t.wrong(0, fmt.Sprintf("this file has more than %d MiB", maxBytes>>20))
	}
	for at := 0; at < len(t.text); {
		r, size := utf8.DecodeRune(t.text[at:])
		if r == utf8.RuneError && size == 1 || r == 0 {
			return t.wrong(at, "this is no text in UTF-8: save the file as UTF-8")
		}
		at += size
	}

	return t.shallow()
}

// shallow refuses deep texts before anything that calls itself reads
// them. Brackets in texts count, too.
func (t *Table) shallow() error {
	depth := 0
	for at, c := range t.text {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}

		if depth > maxDepth {
			return t.wrong(at, fmt.Sprintf("this is nested more than %d deep", maxDepth))
		}
	}

	return nil
}

// wrong is an error at a byte of the text.
func (t *Table) wrong(at int, text string) error {
	before := t.text[:min(at, len(t.text))]
	line := bytes.LastIndexByte(before, '\n') + 1

	return t.wrongAt(bytes.Count(before, []byte{'\n'})+1, utf8.RuneCount(before[line:])+1, text)
}

// wrongAt is an error at a place.
func (t *Table) wrongAt(line, column int, text string) error {
	return &Error{File: t.file, Line: line, Column: column, Text: text}
}

func (t *Table) line(at int) int { return bytes.Count(t.text[:at], []byte{'\n'}) + 1 }

// Members are the entries of the table, in order.
func (t *Table) Members() []Member { return slices.Clone(t.members) }

// Member is the entry of a name; nil when there is none.
func (t *Table) Member(name string) *Member {
	i := t.index(name)
	if i < 0 {
		return nil
	}
	m := t.members[i]

	return &m
}

func (t *Table) index(name string) int {
	return slices.IndexFunc(t.members, func(m Member) bool { return m.Name == name })
}

// New is an entry that the table does not have, written as the others
// are.
func (t *Table) New(name string, value Object) Member {
	m := Member{Name: name, Value: value.plain()}
	if t.edit != nil {
		m.Text = t.edit.write(name, value)
	}

	return m
}

// plain is the value as Member.Value has it.
func (o Object) plain() map[string]any {
	out := map[string]any{}
	for _, f := range o {
		out[f.Name] = plain(f.Value)
	}

	return out
}

func plain(value any) any {
	var out []any
	switch v := value.(type) {
	case Object:
		return v.plain()
	case int:
		return json.Number(strconv.Itoa(v))
	case []string:
		for _, s := range v {
			out = append(out, s)
		}
	case []Object:
		for _, o := range v {
			out = append(out, o.plain())
		}
	default:
		return value
	}

	return out
}

// scalar writes what is no object, as JSON, YAML and TOML all read it.
func scalar(value any) string {
	switch v := value.(type) {
	case []string:
		return quoteList(v)
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	}

	text, _ := value.(string)

	return quote(text)
}

// Change returns the text without some members and with others, which
// stand where the first of the removed ones stood, else at the end.
func (t *Table) Change(remove []string, add ...Member) ([]byte, error) {
	if !t.there {
		return nil, t.wrong(0, "there is no "+strings.Join(t.path, ".")+" to change")
	}
	var gone []int
	for i, m := range t.members {
		if slices.Contains(remove, m.Name) {
			gone = append(gone, i)
		}
	}
	text, err := t.edit.change(gone, textsOf(add))
	if err != nil {
		return nil, err
	}
	text = append([]byte(t.bom), text...)
	if err := t.verify(text, remove, add); err != nil {
		return nil, err
	}

	return text, nil
}

func textsOf(members []Member) []string {
	texts := make([]string, len(members))
	for i, m := range members {
		texts[i] = m.Text
	}

	return texts
}

// verify holds a new text to what it shall say.
func (t *Table) verify(text []byte, remove []string, add []Member) error {
	after, err := Parse(t.form, t.file, text, t.path...)
	if err != nil {
		return t.unsafe()
	}
	want := valuesOf(
		slices.DeleteFunc(t.Members(), func(m Member) bool { return slices.Contains(remove, m.Name) }),
	)
	maps.Copy(want, valuesOf(add))
	got := valuesOf(after.members)
	if len(want) != len(t.members)-len(remove)+len(add) || !reflect.DeepEqual(got, want) {
		return t.unsafe()
	}
	if !reflect.DeepEqual(without(t.root, t.path), without(after.root, t.path)) {
		return t.unsafe()
	}

	return nil
}

func valuesOf(members []Member) map[string]any {
	values := map[string]any{}
	for _, m := range members {
		values[m.Name] = m.Value
	}

	return values
}

func (t *Table) unsafe() error {
	line := 1
	if len(t.members) > 0 {
		line = t.members[0].Line
	}

	return t.wrongAt(line, 1, strings.Join(t.path, ".")+
		" is written in a way that can't be changed without changing more: change it by hand")
}

// without is a document without what stands at a path.
func without(v any, path []string) any {
	object, ok := v.(map[string]any)
	switch {
	case len(path) == 0:
		return nil
	case !ok:
		return v
	}

	out := map[string]any{}
	for name, value := range object {
		switch {
		case name != path[0]:
			out[name] = value
		case len(path) > 1:
			out[name] = without(value, path[1:])
		}
	}

	return out
}

// Masked is the text with stars for the values that hide names by their
// path; items of a list have the path of the list.
func (t *Table) Masked(hide func(path []string) bool) []byte {
	out := []byte(t.bom)
	at := 0
	for _, l := range t.leaves {
		if hide(l.path) && l.span.start >= at {
			out = append(out, t.text[at:l.span.start]...)
			out = append(out, `"***"`...)
			at = l.span.end
		}
	}

	return append(out, t.text[at:]...)
}

// cut removes stretches, which are in order, and puts a text at an
// offset, which is in none of them but may be where one begins.
func cut(text []byte, spans []span, at int, put string) []byte {
	var out []byte
	from, done := 0, false
	for _, s := range spans {
		if !done && at <= s.start {
			out = append(append(out, text[from:at]...), put...)
			from, done = at, true
		}
		out = append(out, text[from:max(from, s.start)]...)
		from = max(from, s.end)
	}

	if !done {
		out = append(append(out, text[from:at]...), put...)
		from = at
	}

	return append(out, text[from:]...)
}

// lineStart and lineEnd are where the line of an offset begins, and
// where the next one does.
func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}

	return len(text)
}

func blank(text []byte) bool { return len(bytes.TrimSpace(text)) == 0 }
