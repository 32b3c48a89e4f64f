// Package settings changes one table in the settings file of another program and nothing else:
// comments, order, spacing, line endings and a byte order mark stay as they are. A file that
// can't be understood with certainty is refused with the position, and stays unchanged.
//
// A change is verified before it is returned: the new text is parsed again and must have the
// same content as the old one, except for the change.
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

// Form is the format of a file.
type Form uint8

// The formats. JSON may have comments and trailing commas.
const (
	JSON Form = iota
	TOML
	YAML
)

// Limits of files that are read.
const (
	maxBytes = 64 << 20
	maxDepth = 1000
)

// Error describes what is wrong with a file, and where.
type Error struct {
	File   string
	Line   int // from 1
	Column int // from 1, in characters
	Text   string
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Text) }

// Object is a value with ordered fields. A field's value is a string, a []string, a bool or an
// Object; in JSON it may also be an int or an []Object.
type Object []Field

// Field is a name and its value.
type Field struct {
	Name  string
	Value any
}

// Member is an entry of the table.
type Member struct {
	Name string
	// Value is the decoded value: nil, bool, json.Number, string, []any or map[string]any; TOML
	// has further types.
	Value any
	// Text is the source of the entry, including its name.
	Text string
	Line int // first line; 0 for an entry that is not in a file
}

// Table is a table of a file. It is immutable.
type Table struct {
	form    Form
	file    string
	path    []string
	bom     string
	text    []byte // after the byte order mark
	eol     string
	root    any
	there   bool
	members []Member
	leaves  []leaf
	starts  []int // of the lines, in YAML
	edit    editor
}

// editor makes changes in one format.
type editor interface {
	// change removes members and inserts texts at the position of the first of them, or after
	// the last member.
	change(remove []int, add []string) ([]byte, error)
	// write returns the text of a new member.
	write(name string, value Object) string
}

// leaf is a scalar value and its position.
type leaf struct {
	path []string // names only: items of a list share the list's
	span span
}

// span is a stretch of bytes.
type span struct{ start, end int }

// Parse parses a text and finds the table at a path of names. It is not an error if there is
// none. file is used in errors. An empty text is an empty document.
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

	return t.checkDepth()
}

// checkDepth refuses deeply nested texts before a recursive parser reads them. It also counts
// brackets in strings.
func (t *Table) checkDepth() error {
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

// wrong returns an error at a byte of the text.
func (t *Table) wrong(at int, text string) error {
	before := t.text[:min(at, len(t.text))]
	line := bytes.LastIndexByte(before, '\n') + 1

	return t.wrongAt(bytes.Count(before, []byte{'\n'})+1, utf8.RuneCount(before[line:])+1, text)
}

// wrongAt returns an error at a line and column.
func (t *Table) wrongAt(line, column int, text string) error {
	return &Error{File: t.file, Line: line, Column: column, Text: text}
}

func (t *Table) line(at int) int { return bytes.Count(t.text[:at], []byte{'\n'}) + 1 }

// Members returns the entries of the table, in order.
func (t *Table) Members() []Member { return slices.Clone(t.members) }

// Member returns the entry with a name, or nil.
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

// New returns an entry that the table does not have, written in the style of the others.
func (t *Table) New(name string, value Object) Member {
	m := Member{Name: name, Value: value.plain()}
	if t.edit != nil {
		m.Text = t.edit.write(name, value)
	}

	return m
}

// plain returns the value in the form of Member.Value.
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

// scalar writes a value other than an object, in a form valid in JSON, YAML and TOML.
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

// Change returns the text without some members and with others, which are inserted at the
// position of the first removed one, or at the end.
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

// verify checks that a new text has the expected content.
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

// without returns a document without the value at a path.
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

// Masked returns the text with "***" in place of the values for whose path hide returns true.
// Items of a list have the path of the list.
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

// cut removes spans, which are in order, and inserts a text at an offset. The offset must not
// be inside of a span, but may be the start of one.
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

// lineStart returns the start of the line that contains an offset.
func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}

	return len(text)
}

func blank(text []byte) bool { return len(bytes.TrimSpace(text)) == 0 }
