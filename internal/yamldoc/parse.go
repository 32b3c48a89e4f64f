package yamldoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	yaml "gopkg.in/yaml.v3"

	"github.com/assent-dev/assent/diag"
)

// Limits configures what Parse accepts. A zero field has the documented default.
type Limits struct {
	MaxBytes      int // size of the file; default 4 MiB
	MaxDepth      int // levels of nested collections; default 64
	MaxNodes      int // values and keys, with aliases expanded; default 500,000
	MaxAliasNodes int // values and keys added by aliases; default 10,000
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *int
		value int
	}{{&l.MaxBytes, 4 << 20}, {&l.MaxDepth, 64}, {&l.MaxNodes, 500_000}, {&l.MaxAliasNodes, 10_000}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}

	return l
}

// Parse reads one YAML or JSON document. If there is an Error, the Document is nil; every Error
// stops the load. The document does not share memory with src.
func Parse(file string, src []byte, lim Limits) (*Document, []diag.Finding) {
	root, comments, list := parse(file, src, lim.withDefaults())
	diag.Stamp(list, file)
	for i := range list {
		for j := range list[i].Related {
			list[i].Related[j].File = file
		}
		if list[i].Severity == diag.Error {
			root = nil
		}
	}

	diag.Sort(list)
	if root == nil {
		return nil, list
	}
	return &Document{File: file, Root: root, Comments: comments}, list
}

func parse(file string, text []byte, lim Limits) (*Node, []Comment, []diag.Finding) {
	var f findings
	if len(text) > lim.MaxBytes {
		f.fail(ruleTooLarge, start(), fmt.Sprintf("the file has %d bytes", len(text)),
			fmt.Sprintf("at most %d bytes", lim.MaxBytes))
		return nil, nil, f.list
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	s := newSource(bytes.Clone(text))
	s.check(&f)
	if f.errors > 0 {
		return nil, nil, f.list
	}
	if isJSON(file, s.text) {
		root := parseJSON(file, s, lim, &f)
		return root, nil, f.list
	}
	b := builder{src: s, lim: lim, findings: f, comments: newComments(s)}
	root := b.document()
	return root, b.comments.list, b.list
}

// start returns the range of findings about a whole file.
func start() diag.Range {
	one := diag.Position{Line: 1, Column: 1}
	return diag.Range{Start: one, End: one}
}

// isJSON reports whether a text is read as JSON: if the file name ends in .json or the text is
// valid JSON. The difference matters for escapes such as \ud83d\ude00, which YAML lacks.
func isJSON(file string, text []byte) bool {
	if strings.HasSuffix(strings.ToLower(file), ".json") {
		return true
	}
	head := bytes.TrimLeft(text, " \t\r\n")
	return len(head) > 0 && (head[0] == '{' || head[0] == '[') && json.Valid(text)
}

// document reads the only document of the file. The root is nil after an Error.
func (b *builder) document() *Node {
	y, err := b.decode(b.withoutVersion())
	switch {
	case err == io.EOF:
		b.fail(ruleEmpty, start(), "the file holds no document", "a YAML mapping")
		return nil
	case err != nil:
		b.syntax(err)
		return nil
	}

	root, _ := b.node(y.Content[0], 0)
	if !b.failed {
		b.comments.gap(b.src, len(b.src.text))
	}
	return root
}

// decode runs yaml.v3 over the text and refuses a second document.
func (b *builder) decode(text []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	y, err := next(d)
	if err != nil {
		return nil, err
	}
	second, err := next(d)
	switch {
	case err == nil:
		at := b.src.offset(second.Line, second.Column)
		b.fail(ruleDocuments, b.src.span(at, b.src.lineEnd(at)), "a second document in one file",
			"one document: readers differ in which one counts")
	case err != io.EOF:
		return nil, err
	}

	return y, nil
}

// next decodes one document. It returns an error if yaml.v3 panics, which some unusual input
// causes.
func next(d *yaml.Decoder) (y *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	y = new(yaml.Node)
	if err := d.Decode(y); err != nil {
		return nil, err
	}
	if y.Kind != yaml.DocumentNode || len(y.Content) != 1 {
		return nil, errors.New("yaml: no document")
	}
	return y, nil
}

// withoutVersion returns the text with its %YAML line, if any, replaced by a comment of the
// same length, because yaml.v3 accepts only version 1.1. It warns if the line names another
// version than 1.2.
func (b *builder) withoutVersion() []byte {
	at, ok := b.version()
	if !ok {
		return b.src.text
	}
	end := b.src.lineEnd(at)
	if words := strings.Fields(string(b.src.text[at+len("%YAML") : end])); len(words) == 0 || words[0] != "1.2" {
		b.warn(
			ruleVersion,
			b.src.span(at, end),
			"the file asks for another YAML version, but is read as YAML 1.2",
			"%YAML 1.2, or no such line",
		)
	}

	text := bytes.Clone(b.src.text)
	text[at] = '#'
	return text
}

// version finds the %YAML line among the directives and comments at the beginning of a file.
func (b *builder) version() (at int, ok bool) {
	for _, at := range b.src.lines {
		switch {
		case bytes.HasPrefix(b.src.text[at:], []byte("%YAML ")):
			return at, true
		case b.src.lineEnd(at) > at && b.src.text[at] != '#' && b.src.text[at] != '%':
			return 0, false
		}
	}

	return 0, false
}
