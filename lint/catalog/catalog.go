// Package catalog reads lists of tools, as MCP servers and the programs
// of models have them: the result of tools/list, and the arrays of
// tools of OpenAI and of Anthropic. It says what each tool takes, and
// what calls of it can't hold.
//
// A list is read strictly: what two readers could read differently, a
// list that goes on elsewhere and a name that stands twice are errors,
// with their places. Of a tool's JSON Schema what is not understood
// widens the arguments that it takes, so that a claim about all of them
// is true.
package catalog

import (
	"errors"
	"fmt"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// Catalog is what one server, or one program, offers.
type Catalog struct {
	File   string
	Server string // alias of the MCP server; "" when neither the file nor who gave it says
	MCP    bool   // a list of MCP, not the tools of a model
	Pins   bool   // one of the lists of a file of pins
	Tools  []Tool
	Text   []byte // as it was read
}

// Tool is one tool of a catalogue.
type Tool struct {
	Name, Description string

	Hints Hints
	Args  Type
	File  string
	Range diag.Range // of its entry's first character
}

// Hints are the annotations of MCP, nil where the tool says nothing.
type Hints struct{ ReadOnly, Destructive *bool }

// The limits of a list.
const (
	maxBytes = 4 << 20
	maxTools = 10_000
	maxName  = 1_000 // bytes
)

// Parse reads a list of tools. The error begins with the place.
func Parse(file string, src []byte) (*Catalog, error) {
	doc, err := value.Parse(src, value.Limits{MaxBytes: maxBytes})
	if err != nil {
		var unsound *value.Error
		if errors.As(err, &unsound) && unsound.Line > 0 {
			return nil, fmt.Errorf(
				"%s:%d:%d: no list of tools: %s", file, unsound.Line, unsound.Column, unsound.Detail)
		}
		return nil, fmt.Errorf("%s: no list of tools: %w", file, err)
	}

	r := &reader{file: file, src: src}
	c, err := r.list(doc)
	return c, r.at(err)
}

// at puts the place before what is wrong.
func (r *reader) at(err error) error {
	var wrong *mistake
	if !errors.As(err, &wrong) {
		return err
	}
	at := r.place(wrong.path)
	return fmt.Errorf("%s:%d:%d: %s%s", r.file, at.Line, at.Column, where(wrong.path), wrong.text)
}

// mistake is something wrong at a path.
type mistake struct {
	path []string
	text string
}

// Error says what is wrong without its place.
func (m *mistake) Error() string { return m.text }

func wrong(path []string, format string, args ...any) error {
	return &mistake{path, fmt.Sprintf(format, args...)}
}

// where words a path: `tools[2].name: `.
func where(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return jsonmsg.Path(path) + ": "
}

// below is a longer path.
func below(path []string, more ...string) []string {
	return append(path[:len(path):len(path)], more...)
}

type reader struct {
	file  string
	src   []byte
	parts int // of all schemas so far
}

// place is where a value stands.
func (r *reader) place(path []string) diag.Position {
	line, column := jsonmsg.Place(r.src, path)
	return diag.Position{Line: line, Column: column}
}

// list finds the array of tools.
func (r *reader) list(doc value.Value) (*Catalog, error) {
	var path []string
	server := serverOf(doc)
	if failure, ok := doc.Get("error"); ok && doc.Kind == value.Object && failure.Kind == value.Object {
		return nil, wrong([]string{"error"}, "the server answered with an error, which lists no tools")
	}
	if result, ok := doc.Get("result"); ok && doc.Kind == value.Object {
		doc, path = result, []string{"result"}
		if server == "" {
			server = serverOf(doc)
		}
	}

	if doc.Kind == value.Object {
		if more, ok := doc.Get("nextCursor"); ok && more.Kind != value.Null {
			return nil, wrong(below(path, "nextCursor"), "the list goes on: put the tools of all pages into one list")
		}
		tools, ok := doc.Get("tools")
		if !ok {
			return nil, wrong(path, "expected the result of tools/list, or an array of tools; found no tools in it")
		}
		doc, path = tools, below(path, "tools")
	}

	if doc.Kind != value.Array {
		return nil, wrong(path, "expected an array of tools, found %s", kind(doc))
	}
	if len(doc.Items) > maxTools {
		return nil, wrong(path, "%d tools are more than the %d that are read", len(doc.Items), maxTools)
	}

	c := &Catalog{File: r.file, Server: server, MCP: true, Text: r.src}
	return c, r.tools(c, doc, path)
}

// serverOf is the alias that a list names itself.
func serverOf(doc value.Value) string {
	if name, ok := doc.Get("server"); ok && name.Kind == value.String {
		return name.Text
	}
	name, _ := doc.Get("serverInfo", "name")
	return name.Text
}

func kind(v value.Value) string { return jsonmsg.Describe(v.AppendJSON(nil)) }
