package editor

import (
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
)

// document is one open file.
type document struct {
	uri     string
	version int
	src     []byte
	lines   []string
	content lint.Content
	foreign bool          // neither its name nor its content is that of our files
	tree    *yamldoc.Node // see root
	found   []diag.Finding
	around  workspace
}

func newDocument(it item) *document {
	d := &document{
		uri:     it.URI,
		version: it.Version,
		src:     []byte(it.Text),
		lines:   splitLines(it.Text),
	}
	switch name := strings.ToLower(d.uri); {
	case strings.Contains(name, ".agf."):
		d.content = lint.AgentContent
	case strings.Contains(name, ".policy."):
		d.content = lint.PolicyContent
	default:
		content, known := lint.Recognise(d.src)
		d.content, d.foreign = content, !known
	}

	return d
}

// root returns the top node of the document, which it parses on first use. It returns nil if the
// text is not valid YAML.
func (d *document) root() *yamldoc.Node {
	if d.tree == nil {
		if doc, _ := yamldoc.Parse(d.uri, d.src, yamldoc.Limits{}); doc != nil {
			d.tree = doc.Root
		}
	}
	return d.tree
}

// splitLines splits lines as YAML and the protocol do: at \n, \r\n and \r.
func splitLines(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Split(strings.ReplaceAll(text, "\r", "\n"), "\n")
}

// path returns the path of the file, or an empty string if it has not been saved yet.
func (d *document) path() string { return pathOf(d.uri) }

func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	return filepath.FromSlash(u.Path)
}

func uriOf(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String()
}

// has reports whether the line of a position exists.
func (d *document) has(p position) bool {
	return p.Line >= 0 && p.Line < len(d.lines) && p.Character >= 0
}

// line returns one line of the text, or an empty string beyond its end.
func (d *document) line(i int) string {
	if i < 0 || i >= len(d.lines) {
		return ""
	}
	return d.lines[i]
}

// span converts a range of findings to a range of the protocol.
func (d *document) span(r diag.Range) span {
	return span{Start: d.position(r.Start), End: d.position(r.End)}
}

func (d *document) position(p diag.Position) position {
	if p.Line == 0 {
		return position{}
	}
	units, left := 0, p.Column-1
	for _, c := range d.line(p.Line - 1) {
		if left == 0 {
			break
		}
		units += utf16.RuneLen(max(c, 0))
		left--
	}

	return position{Line: p.Line - 1, Character: units}
}

// place converts a position of the protocol to a position in findings.
func (d *document) place(p position) diag.Position {
	return diag.Position{Line: p.Line + 1, Column: utf8.RuneCountInString(d.before(p)) + 1}
}

// before returns the part of a line before a position.
func (d *document) before(p position) string {
	line, units := d.line(p.Line), 0
	for i, c := range line {
		if units >= p.Character {
			return line[:i]
		}
		units += utf16.RuneLen(max(c, 0))
	}

	return line
}

// offset converts a byte offset in the text to a position of the protocol.
func (d *document) offset(at int) position {
	text := string(d.src[:at])
	lines := splitLines(text)
	last := lines[len(lines)-1]
	return position{Line: len(lines) - 1, Character: len(utf16.Encode([]rune(last)))}
}

// within reports whether a position is in a range, including its end.
func within(r diag.Range, p diag.Position) bool {
	after := p.Line > r.Start.Line || p.Line == r.Start.Line && p.Column >= r.Start.Column
	before := p.Line < r.End.Line || p.Line == r.End.Line && p.Column <= r.End.Column
	return after && before
}

// spot is a scalar of a document, with its path.
type spot struct {
	node  *yamldoc.Node // a scalar
	key   bool          // it names a field
	field string        // the field that it names or is the value of
	path  []string      // the fields that lead to it, its own one last; items of lists leave no trace
}

// spot returns the scalar at a position.
func (d *document) spot(at diag.Position) (found spot, ok bool) {
	eachScalar(d.root(), nil, func(s spot) bool {
		if within(s.node.Range, at) {
			found, ok = s, true
		}
		return !ok
	})
	return found, ok
}

// eachScalar visits every name and every scalar until visit returns true.
func eachScalar(n *yamldoc.Node, path []string, visit func(spot) bool) bool {
	if n == nil {
		return true
	}
	for _, f := range n.Fields {
		below := append(path[:len(path):len(path)], f.Key.Text)
		name := spot{node: f.Key, key: true, field: f.Key.Text, path: below}
		if !visit(name) || !eachScalar(f.Value, below, visit) {
			return false
		}
	}

	for _, item := range n.Items {
		if !eachScalar(item, path, visit) {
			return false
		}
	}

	if n.Kind == yamldoc.Mapping || n.Kind == yamldoc.Sequence {
		return true
	}
	s := spot{node: n, path: path}
	if len(path) > 0 {
		s.field = path[len(path)-1]
	}
	return visit(s)
}
