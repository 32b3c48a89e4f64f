package settings

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/assent-dev/assent/internal/pattern"
)

// jsonEditor changes an object of a JSON text.
type jsonEditor struct {
	*Table

	object *hujson.Object
	span   span // of the object, including braces
}

var jsonPlace = pattern.Of(`^hujson: line (\d+), column (\d+): (.*)$`)

func readJSON(t *Table) error {
	v, err := hujson.Parse(t.text)
	if err != nil {
		return t.jsonError(err)
	}
	if err := t.checkDuplicates(&v); err != nil {
		return err
	}
	t.jsonLeaves(&v, nil)
	plain := v.Clone()
	plain.Standardize()
	d := json.NewDecoder(bytes.NewReader(plain.Pack()))
	d.UseNumber()
	if err := d.Decode(&t.root); err != nil {
		return t.wrong(0, "this is no JSON: "+err.Error())
	}

	return t.jsonTable(&v)
}

// jsonError extracts the position from the library's message.
func (t *Table) jsonError(err error) error {
	m := jsonPlace().FindStringSubmatch(err.Error())
	if m == nil {
		return t.wrong(0, "this is no JSON: "+err.Error())
	}
	line, _ := strconv.Atoi(m[1])
	column, _ := strconv.Atoi(m[2])

	return t.wrongAt(line, column, "this is no JSON: "+m[3]+"; mend it, or give another file")
}

// checkDuplicates refuses duplicate names in an object, because programs differ in which one
// they use.
func (t *Table) checkDuplicates(v *hujson.Value) error {
	switch x := v.Value.(type) {
	case *hujson.Object:
		seen := map[string]bool{}
		for i := range x.Members {
			m := &x.Members[i]
			name := m.Name.Value.(hujson.Literal).String()
			if seen[name] {
				return t.wrong(m.Name.StartOffset, strconv.Quote(name)+" stands here twice: remove one of them")
			}

			seen[name] = true
			if err := t.checkDuplicates(&m.Value); err != nil {
				return err
			}
		}
	case *hujson.Array:
		for i := range x.Elements {
			if err := t.checkDuplicates(&x.Elements[i]); err != nil {
				return err
			}
		}
	}

	return nil
}

func (t *Table) jsonLeaves(v *hujson.Value, path []string) {
	switch x := v.Value.(type) {
	case *hujson.Object:
		for i := range x.Members {
			name := x.Members[i].Name.Value.(hujson.Literal).String()
			t.jsonLeaves(&x.Members[i].Value, append(slices.Clone(path), name))
		}
	case *hujson.Array:
		for i := range x.Elements {
			t.jsonLeaves(&x.Elements[i], path)
		}
	default:
		t.leaves = append(t.leaves, leaf{path, span{v.StartOffset, v.EndOffset}})
	}
}

// jsonTable finds the object at the table's path.
func (t *Table) jsonTable(v *hujson.Value) error {
	decoded := t.root
	for i := 0; ; i++ {
		object, ok := v.Value.(*hujson.Object)
		if !ok {
			return t.wrong(v.StartOffset, strings.Join(append([]string{"the file"}, t.path[:i]...), ".")+
				": expected an object, {…}")
		}

		if i == len(t.path) {
			t.there = true
			t.edit = &jsonEditor{t, object, span{v.StartOffset, v.EndOffset}}
			t.jsonMembers(object, decoded.(map[string]any))
			return nil
		}

		at := slices.IndexFunc(object.Members, func(m hujson.ObjectMember) bool {
			return m.Name.Value.(hujson.Literal).String() == t.path[i]
		})
		if at < 0 {
			return nil
		}
		decoded = decoded.(map[string]any)[t.path[i]]
		v = &object.Members[at].Value
	}
}

func (t *Table) jsonMembers(object *hujson.Object, values map[string]any) {
	for i := range object.Members {
		m := &object.Members[i]
		name := m.Name.Value.(hujson.Literal).String()
		t.members = append(t.members, Member{
			Name:  name,
			Value: values[name],
			Text:  string(t.text[m.Name.StartOffset:m.Value.EndOffset]),
			Line:  t.line(m.Name.StartOffset),
		})
	}
}

// comma returns the offset of the comma after a member, or -1 if there is none.
func (e *jsonEditor) comma(i int) int {
	v := &e.object.Members[i].Value
	at := v.EndOffset + len(v.AfterExtra)
	if e.text[at] == ',' {
		return at
	}

	return -1
}

func (e *jsonEditor) change(remove []int, add []string) ([]byte, error) {
	if len(remove) == 0 {
		return e.appendMembers(add), nil
	}
	first := remove[0]
	if len(add) > 0 {
		remove = remove[1:] // the first one is replaced
	}
	spans := e.cuts(remove)
	at := e.object.Members[first].Name.StartOffset
	if len(add) == 0 {
		return cut(e.text, spans, 0, ""), nil
	}
	spans = append(spans, span{at, e.object.Members[first].Value.EndOffset})
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })

	return cut(e.text, spans, at, strings.Join(add, e.between())), nil
}

// cuts returns the spans to remove, in order: members with their commas, and lines that would
// become empty.
func (e *jsonEditor) cuts(remove []int) []span {
	var spans []span
	last := len(e.object.Members) - 1
	for _, i := range remove {
		m := &e.object.Members[i]
		s := span{m.Name.StartOffset, m.Value.EndOffset}
		after := s.end
		if comma := e.comma(i); comma >= 0 {
			if comma == s.end {
				s.end++
			} else {
				spans = append(spans, span{comma, comma + 1})
			}
			after = comma + 1
		}

		spans = append(spans, e.wholeLine(s, after))
	}

	if keep := e.lastKept(remove); keep >= 0 && keep != last && e.comma(last) < 0 {
		spans = append(spans, span{e.comma(keep), e.comma(keep) + 1})
	}
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })

	return spans
}

func (e *jsonEditor) lastKept(remove []int) int {
	for i := len(e.object.Members) - 1; i >= 0; i-- {
		if !slices.Contains(remove, i) {
			return i
		}
	}

	return -1
}

// wholeLine extends a span to whole lines if nothing else is on them, and otherwise over
// adjacent blanks.
func (e *jsonEditor) wholeLine(s span, after int) span {
	start, end := lineStart(e.text, s.start), lineEnd(e.text, after)
	if after == s.end && start > e.span.start && end <= e.span.end-1 &&
		blank(e.text[start:s.start]) && blank(e.text[after:end]) {
		return span{start, end}
	}

	return e.blanks(s, after)
}

// blanks extends a span within a line over the blanks after it and, if no comma follows, over
// those before it.
func (e *jsonEditor) blanks(s span, after int) span {
	for after == s.end && e.text[s.end] == ' ' {
		s.end++
	}
	before := bytes.TrimRight(e.text[:s.start], " ")
	if e.text[after-1] != ',' && before[len(before)-1] != '\n' {
		s.start = len(before)
	}

	return s
}

// appendMembers adds members after the last one.
func (e *jsonEditor) appendMembers(add []string) []byte {
	put := strings.Join(add, e.between())
	last := len(e.object.Members) - 1
	if last < 0 {
		own := e.indent(e.span.start)
		return cut(e.text, nil, e.span.start+1, e.eol+own+e.unit()+put+e.eol+own)
	}
	if comma := e.comma(last); comma >= 0 {
		return cut(e.text, nil, comma+1, strings.TrimPrefix(e.between(), ",")+put+",")
	}

	return cut(e.text, nil, e.object.Members[last].Value.EndOffset, e.between()+put)
}

// between returns the separator of two members.
func (e *jsonEditor) between() string {
	if e.oneLine() {
		return ", "
	}

	return "," + e.eol + e.memberIndent()
}

// oneLine reports whether the members share a line.
func (e *jsonEditor) oneLine() bool {
	if len(e.object.Members) == 0 {
		return false
	}
	start := e.object.Members[0].Name.StartOffset

	return !bytes.ContainsRune(e.text[e.span.start:start], '\n')
}

// indent returns the white space at the beginning of an offset's line.
func (e *jsonEditor) indent(at int) string {
	line := e.text[lineStart(e.text, at):]

	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

func (e *jsonEditor) memberIndent() string {
	if len(e.object.Members) == 0 {
		return e.indent(e.span.start) + e.unit()
	}

	return e.indent(e.object.Members[0].Name.StartOffset)
}

// unit returns one step of indentation.
func (e *jsonEditor) unit() string {
	if len(e.object.Members) == 0 || e.oneLine() {
		return "  "
	}
	own := e.indent(e.span.start)
	if unit, deeper := strings.CutPrefix(e.indent(e.object.Members[0].Name.StartOffset), own); deeper &&
		unit != "" {
		return unit
	}

	return "  "
}

func (e *jsonEditor) write(name string, value Object) string {
	if e.oneLine() {
		return quote(name) + ": " + writeJSON(value, "", "", "")
	}

	return quote(name) + ": " + writeJSON(value, e.eol, e.memberIndent(), e.unit())
}

// writeJSON writes an object. It uses several lines unless eol is empty.
func writeJSON(value Object, eol, indent, unit string) string {
	var fields []string
	for _, f := range value {
		text := scalar(f.Value)
		switch v := f.Value.(type) {
		case Object:
			text = writeJSON(v, eol, indent+unit, unit)
		case []Object:
			text = writeJSONList(v, eol, indent+unit, unit)
		}

		fields = append(fields, quote(f.Name)+": "+text)
	}

	return "{" + lines(fields, eol, indent, unit) + "}"
}

func writeJSONList(list []Object, eol, indent, unit string) string {
	var items []string
	for _, o := range list {
		items = append(items, writeJSON(o, eol, indent+unit, unit))
	}

	return "[" + lines(items, eol, indent, unit) + "]"
}

// lines puts each part on a line of its own, unless eol is empty.
func lines(parts []string, eol, indent, unit string) string {
	if eol == "" || len(parts) == 0 {
		return strings.Join(parts, ", ")
	}
	inner := eol + indent + unit

	return inner + strings.Join(parts, ","+inner) + eol + indent
}

func quoteList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quote(s)
	}

	return "[" + strings.Join(quoted, ", ") + "]"
}

// quote writes a string as JSON, which is also valid in YAML and TOML.
func quote(s string) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // can't fail for a string

	return strings.ReplaceAll(strings.TrimSuffix(out.String(), "\n"), "\x7f", `\u007f`)
}
