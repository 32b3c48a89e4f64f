package settings

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// List returns an entry of a JSON table with items appended, or a new entry if there is none.
// Existing items stay as they are written.
func (t *Table) List(name string, more ...Object) (Member, error) {
	m := t.Member(name)
	if m == nil {
		return t.newList(name, more), nil
	}
	l, err := t.listOf(m)
	if err != nil {
		return Member{}, err
	}
	for _, o := range more {
		l.add(o)
	}

	return l.member(), nil
}

// Without returns an entry of a JSON table without the items that are equal to one of items.
// none is true if no item is left.
func (t *Table) Without(name string, items []any) (m Member, none bool, err error) {
	l, err := t.listOf(t.Member(name))
	if err != nil {
		return m, false, err
	}
	for i := len(l.values) - 1; i >= 0; i-- {
		says := func(item any) bool { return reflect.DeepEqual(item, l.values[i]) }
		if slices.ContainsFunc(items, says) {
			l.remove(i)
		}
	}

	return l.member(), len(l.values) == 0, nil
}

// list is an entry whose items are being changed.
type list struct {
	name   string
	value  hujson.Value // an object with only this entry
	items  *hujson.Array
	values []any
	// close means that the items share a line.
	close  bool
	eol    string
	indent string // of the entry
	unit   string
}

// newList returns an entry that the table doesn't have yet.
func (t *Table) newList(name string, items []Object) Member {
	e := &jsonEditor{Table: t, object: &hujson.Object{}}
	if own, ok := t.edit.(*jsonEditor); ok {
		e = own
	}
	eol := t.eol
	if e.oneLine() {
		eol = ""
	}

	return Member{
		Name:  name,
		Value: plain(items),
		Text:  quote(name) + ": " + writeJSONList(items, eol, e.memberIndent(), e.unit()),
	}
}

func (t *Table) listOf(m *Member) (*list, error) {
	values, ok := m.Value.([]any)
	if !ok {
		path := append(slices.Clone(t.path), m.Name)
		return nil, t.wrongAt(m.Line, 1, strings.Join(path, ".")+": expected a list, […]")
	}
	e := t.edit.(*jsonEditor)
	l := &list{
		name:   m.Name,
		values: slices.Clone(values),
		eol:    t.eol,
		indent: e.memberIndent(),
		unit:   e.unit(),
	}
	var err error
	if l.value, err = hujson.Parse([]byte("{" + m.Text + "}")); err != nil {
		return nil, t.unsafe() // impossible: it was parsed before
	}
	l.items = l.value.Value.(*hujson.Object).Members[0].Value.Value.(*hujson.Array)
	l.close = len(l.items.Elements) > 0 && !bytes.ContainsRune(l.items.Elements[0].BeforeExtra, '\n')

	return l, nil
}

func (l *list) member() Member {
	text := strings.TrimSuffix(strings.TrimPrefix(l.value.String(), "{"), "}")

	return Member{Name: l.name, Value: l.values, Text: text}
}

// add appends an item. A comment after the last item stays there.
func (l *list) add(o Object) {
	comment := l.items.AfterExtra
	if n := len(l.items.Elements); n > 0 {
		last := &l.items.Elements[n-1]
		comment = append(last.AfterExtra, comment...)
		last.AfterExtra = nil
	}
	comment = bytes.TrimRight(comment, " \t\r\n")
	eol := l.eol
	after := eol + l.indent
	before := after + l.unit
	if l.close && len(comment) == 0 {
		before, after = " ", ""
		eol = ""
	}

	item, _ := hujson.Parse([]byte(writeJSON(o, eol, l.indent+l.unit, l.unit))) // can't fail: the text was just written
	item.BeforeExtra = append(slices.Clone(comment), before...)
	l.items.Elements = append(l.items.Elements, item)
	l.items.AfterExtra = hujson.Extra(after)
	l.values = append(l.values, o.plain())
}

// remove removes an item. A comment before it stays.
func (l *list) remove(i int) {
	comment := bytes.TrimRight(l.items.Elements[i].BeforeExtra, " \t\r\n")
	next := &l.items.AfterExtra
	if i < len(l.items.Elements)-1 {
		next = &l.items.Elements[i+1].BeforeExtra
	}
	*next = append(slices.Clone(comment), *next...)
	l.items.Elements = slices.Delete(l.items.Elements, i, i+1)
	l.values = slices.Delete(l.values, i, i+1)
}

// Document returns a JSON text with one object.
func Document(value Object) []byte { return []byte(writeJSON(value, "\n", "", "  ") + "\n") }
