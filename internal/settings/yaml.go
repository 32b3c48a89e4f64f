package settings

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// yamlEditor changes a mapping of a YAML text whose members are on lines of their own.
type yamlEditor struct {
	*Table

	spans  []span // of the members, whole lines
	indent string // of the members
	flow   bool   // written in braces
	at     int    // offset of the mapping
}

// strangeEnd matches line ends of YAML that other programs don't recognize.
var strangeEnd = pattern.Of("\r(?:[^\n]|$)|[\u0085\u2028\u2029]")

// readYAML finds the table in a YAML file, and the positions of its members.
func readYAML(t *Table) error {
	if found := strangeEnd().FindIndex(t.text); found != nil {
		return t.wrong(found[0], "programs differ in whether a line ends here: use line feeds")
	}
	doc, findings := yamldoc.Parse(t.file, t.text, yamldoc.Limits{MaxBytes: maxBytes})
	if stops := yamldoc.Stopping(findings); len(stops) > 0 {
		at := stops[0].Range.Start
		return t.wrongAt(at.Line, at.Column, stops[0].Message+"; mend it, or give another file")
	}

	t.root = doc.Root.Any()
	t.starts = starts(t.text)
	t.yamlLeaves(doc.Root, nil)

	return t.yamlTable(doc.Root)
}

// starts returns the offsets of the lines of a text.
func starts(text []byte) []int {
	out := []int{0}
	for at, c := range text {
		if c == '\n' {
			out = append(out, at+1)
		}
	}

	return out
}

// offset returns the offset of a position.
func (t *Table) offset(p diag.Position) int {
	at := t.starts[p.Line-1]
	for range p.Column - 1 {
		_, size := utf8.DecodeRune(t.text[at:])
		at += size
	}

	return at
}

func (t *Table) yamlLeaves(n *yamldoc.Node, path []string) {
	switch n.Kind {
	case yamldoc.Mapping:
		for _, f := range n.Fields {
			t.yamlLeaves(f.Value, append(slices.Clone(path), f.Key.Text))
		}
	case yamldoc.Sequence:
		for _, item := range n.Items {
			t.yamlLeaves(item, path)
		}
	case yamldoc.Null:
	default:
		t.leaves = append(t.leaves, leaf{path, span{t.offset(n.Range.Start), t.offset(n.Range.End)}})
	}
}

func (t *Table) yamlTable(n *yamldoc.Node) error {
	for i := 0; ; i++ {
		if n.Kind == yamldoc.Null {
			return nil
		}
		if n.Kind != yamldoc.Mapping {
			return t.wrong(t.offset(n.Range.Start), "expected names with values: NAME: VALUE")
		}
		if i == len(t.path) {
			break
		}
		next := n.Get(t.path[i])
		if next == nil {
			return nil
		}
		n = next
	}

	t.there = true
	t.yamlMembers(n)

	return nil
}

func (t *Table) yamlMembers(n *yamldoc.Node) {
	at := t.offset(n.Range.Start)
	e := &yamlEditor{Table: t, at: at, flow: t.text[at] == '{'}
	for _, f := range n.Fields {
		start := t.offset(f.Key.Range.Start)
		s := span{lineStart(t.text, start), 0}
		if e.flow {
			s.end = s.start
		} else {
			e.indent = string(t.text[s.start:start])
			s.end = t.yamlEnd(start)
		}

		e.spans = append(e.spans, s)
		t.members = append(t.members, Member{
			Name:  f.Key.Text,
			Value: f.Value.Any(),
			Text:  string(t.text[s.start:s.end]),
			Line:  t.line(start),
		})
	}

	t.edit = e
}

// yamlEnd returns the end of a member's lines: before the next line that is not indented
// deeper. Comments and empty lines before that line belong to what follows.
func (t *Table) yamlEnd(key int) int {
	own := key - lineStart(t.text, key)
	end := lineEnd(t.text, key)
	for at := end; at < len(t.text); {
		next := lineEnd(t.text, at)
		line := t.text[at:next]
		at = next
		if blank(line) {
			continue
		}
		rest := bytes.TrimLeft(line, " ")
		depth := len(line) - len(rest)
		deep := depth > own || depth == own && rest[0] == '-' // list items may have the indentation of their name
		switch {
		case rest[0] == '#' && !deep:
		case deep:
			end = next
		default:
			return end
		}
	}

	return end
}

// change removes members of a YAML block, and inserts others at the position of the first of
// them, or at its end.
func (e *yamlEditor) change(remove []int, add []string) ([]byte, error) {
	if e.flow {
		return nil, e.wrong(
			e.at,
			"this is written in braces: write each entry on lines of its own, NAME: and below it "+
				"its fields",
		)
	}

	last := e.spans[len(e.spans)-1]
	at := last.end
	var spans []span
	for _, i := range remove {
		spans = append(spans, e.spans[i])
		at = e.spans[remove[0]].start
	}
	put := ""
	for _, text := range add {
		if !strings.HasSuffix(text, "\n") {
			text += e.eol
		}
		put += text
	}

	if at > 0 && e.text[at-1] != '\n' {
		put = e.eol + put // the last line has no line end
	}

	return cut(e.text, spans, at, put), nil
}

func (e *yamlEditor) write(name string, value Object) string {
	return e.indent + quoteUnless(name) + ":" + e.eol + e.fields(value, e.indent+"  ")
}

func (e *yamlEditor) fields(value Object, indent string) string {
	text := ""
	for _, f := range value {
		text += indent + quoteUnless(f.Name) + ":"
		if object, ok := f.Value.(Object); ok {
			text += e.eol + e.fields(object, indent+"  ")
		} else {
			text += " " + scalar(f.Value) + e.eol
		}
	}

	return text
}

// quoteUnless writes a name, with quotes unless every parser reads it as a string without them.
func quoteUnless(name string) string {
	words := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	if !plainName().MatchString(name) || slices.Contains(words, strings.ToLower(name)) {
		return quote(name)
	}

	return name
}
