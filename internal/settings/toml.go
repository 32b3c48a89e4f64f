package settings

import (
	"errors"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/assent-dev/assent/internal/pattern"
)

// plainName matches names that need no quotes in TOML and YAML, apart from YAML keywords.
var plainName = pattern.Of(`^[A-Za-z][A-Za-z0-9_-]*$`)

// tomlEditor changes the tables and lines below one name of a TOML text.
type tomlEditor struct {
	*Table

	parts [][]part // of each member
	end   int      // after the last of them
}

// part is a span of lines that belongs to one member.
type part struct {
	span   span
	prefix string // the part of its key before the member's name, if the member is a line
	table  bool
}

// expression is the head of a table, or a key with its value.
type expression struct {
	key   []string
	span  span // whole lines
	table bool
	own   int // number of key parts on the line itself
}

// readTOML finds the table in a TOML file, and the positions of its members.
func readTOML(t *Table) error {
	values := map[string]any{}
	if err := toml.Unmarshal(t.text, &values); err != nil {
		return t.tomlError(err)
	}
	t.root = values
	all, err := t.expressions()
	if err != nil {
		return err
	}
	table, err := t.tomlTable(values)
	if table == nil {
		return err
	}
	t.there = true
	t.tomlMembers(table, all)

	return nil
}

func (t *Table) tomlError(err error) error {
	var wrong *toml.DecodeError
	if !errors.As(err, &wrong) {
		return t.wrong(0, "this is no TOML: "+err.Error())
	}
	line, column := wrong.Position()

	return t.wrongAt(line, column, "this is no TOML: "+strings.TrimPrefix(wrong.Error(), "toml: ")+
		"; mend it, or give another file")
}

func (t *Table) tomlTable(values map[string]any) (map[string]any, error) {
	for i, name := range t.path {
		next, there := values[name]
		if !there {
			return nil, nil
		}
		table, ok := next.(map[string]any)
		if !ok {
			return nil, t.wrong(0, strings.Join(t.path[:i+1], ".")+": expected a table")
		}
		values = table
	}

	return values, nil
}

// expressions returns all heads and keys, in order.
func (t *Table) expressions() ([]expression, error) {
	var p unstable.Parser
	p.Reset(t.text)
	var all []expression
	var table []string
	for p.NextExpression() {
		n := p.Expression()
		key, keys := names(n)
		e := expression{key: key, own: len(key)}
		start := int(keys.start)
		end := keys.end
		if n.Kind == unstable.KeyValue {
			start, end = int(n.Raw.Offset), int(n.Raw.Offset+n.Raw.Length)
			e.key = append(slices.Clone(table), key...)
			t.tomlLeaves(&p, n, table)
		} else {
			table, e.table = key, true
		}

		e.span = span{lineStart(t.text, start), lineEnd(t.text, end)}
		all = append(all, e)
	}

	if err := p.Error(); err != nil {
		return nil, t.wrong(0, "this is no TOML: "+err.Error())
	}

	return all, nil
}

// names returns the parts of an expression's key, and its position.
func names(n *unstable.Node) (key []string, at span) {
	var parts []unstable.Range
	for it := n.Key(); it.Next(); {
		parts = append(parts, it.Node().Raw)
		key = append(key, string(it.Node().Data))
	}
	last := parts[len(parts)-1]

	return key, span{int(parts[0].Offset), int(last.Offset + last.Length)}
}

// tomlLeaves records the values of a line; a list is one value.
func (t *Table) tomlLeaves(p *unstable.Parser, n *unstable.Node, above []string) {
	key, at := names(n)
	path := append(slices.Clone(above), key...)
	if n.Value().Kind == unstable.InlineTable {
		for it := n.Value().Children(); it.Next(); {
			t.tomlLeaves(p, it.Node(), path)
		}
		return
	}

	end := int(n.Raw.Offset + n.Raw.Length)
	start := at.end
	for start < end && strings.ContainsRune(" \t=", rune(t.text[start])) {
		start++
	}
	t.leaves = append(t.leaves, leaf{path, span{start, end}})
}

// tomlMembers assigns the parts to members.
func (t *Table) tomlMembers(table map[string]any, all []expression) {
	e := &tomlEditor{Table: t}
	t.edit = e
	depth := len(t.path)
	inside := -1
	for _, x := range all {
		if len(x.key) <= depth || !slices.Equal(x.key[:depth], t.path) {
			inside = -1
			continue
		}
		name := x.key[depth]
		i := t.index(name)
		if i < 0 {
			i = len(t.members)
			t.members = append(t.members, Member{Name: name, Value: table[name], Line: t.line(x.span.start)})
			e.parts = append(e.parts, nil)
		}

		if inside == i {
			e.parts[i][len(e.parts[i])-1].span.end = x.span.end
		} else {
			e.parts[i] = append(e.parts[i], partOf(x, depth))
		}
		inside, e.end = i, x.span.end
	}

	e.texts(table)
}

// texts stores the source of the members. A member without a line of its own is inside of
// braces, and can't be changed.
func (e *tomlEditor) texts(table map[string]any) {
	for i, parts := range e.parts {
		for _, p := range parts {
			text := string(e.text[p.span.start:p.span.end])
			if !strings.HasSuffix(text, "\n") {
				text += e.eol
			}
			e.members[i].Text += text
		}
	}

	for name := range table {
		if e.index(name) < 0 {
			e.members = append(e.members, Member{Name: name, Value: table[name], Line: 1})
		}
	}
}

func partOf(x expression, depth int) part {
	p := part{span: x.span, table: x.table}
	if above := len(x.key) - x.own; !x.table && above < depth {
		for _, name := range x.key[above:depth] {
			p.prefix += quoteUnless(name) + "."
		}
	}

	return p
}

// change removes TOML tables with their content, and inserts others.
func (e *tomlEditor) change(remove []int, add []string) ([]byte, error) {
	at := e.end
	var spans []span
	for _, i := range remove {
		if i >= len(e.parts) {
			return nil, e.unsafe()
		}
		for _, p := range e.parts[i] {
			spans = append(spans, p.span)
		}
		at = e.parts[remove[0]][0].span.start
	}

	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })
	put := strings.Join(add, "")
	if strings.HasPrefix(put, "[") && e.lines(remove) {
		at = len(e.text) // tables must come after lines
	}
	if at > 0 && e.text[at-1] != '\n' && put != "" {
		put = e.eol + put
	}

	return cut(e.text, spans, at, put), nil
}

// lines reports whether new members are inserted among the lines of a table rather than among
// tables.
func (e *tomlEditor) lines(remove []int) bool {
	i := len(e.parts) - 1
	if len(remove) > 0 {
		i = remove[0]
	}

	return i >= 0 && !e.parts[i][0].table
}

func (e *tomlEditor) write(name string, value Object) string {
	if len(e.parts) > 0 && !e.parts[0][0].table {
		return e.parts[0][0].prefix + quoteUnless(name) + " = " + inline(value) + e.eol
	}
	head := ""
	for _, part := range e.path {
		head += quoteUnless(part) + "."
	}
	text := "[" + head + quoteUnless(name) + "]" + e.eol
	for _, f := range value {
		text += quoteUnless(f.Name) + " = " + tomlValue(f.Value) + e.eol
	}

	return text
}

func inline(value Object) string {
	var fields []string
	for _, f := range value {
		fields = append(fields, quoteUnless(f.Name)+" = "+tomlValue(f.Value))
	}

	return "{ " + strings.Join(fields, ", ") + " }"
}

func tomlValue(value any) string {
	if object, ok := value.(Object); ok {
		return inline(object)
	}

	return scalar(value)
}
