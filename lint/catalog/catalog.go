// Package catalog reads lists of tools in the forms that MCP servers and LLM programs use: the
// result of tools/list, and the tools arrays of OpenAI and of Anthropic. It says which
// arguments each tool takes, and which arguments no call of the tool can have.
//
// A list is read strictly. It is an error, reported with its position, if two readers could
// read something differently, if a list has further pages, or if a name occurs twice. JSON
// Schema that this package doesn't understand only widens the set of arguments that a tool
// takes. So a claim about all arguments of a tool is always true.
package catalog

import (
	"errors"
	"fmt"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// Catalog is the list of tools of one server or one program.
type Catalog struct {
	File   string
	Server string // alias of the MCP server, or "" if neither the file nor the caller names it
	MCP    bool   // the list is from MCP, not the tools of an LLM request
	Pins   bool   // one of the lists of a file of pins
	Tools  []Tool
	Text   []byte // the text of the list
}

// Tool is one tool of a catalogue.
type Tool struct {
	Name, Description string

	Hints Hints
	Args  Type
	File  string
	Range diag.Range // the first character of its entry
}

// Hints are the annotations of MCP. A hint that the tool doesn't have is nil.
type Hints struct{ ReadOnly, Destructive *bool }

// The limits of a list.
const (
	maxBytes = 4 << 20
	maxTools = 10_000
	maxName  = 1_000 // bytes
)

// Parse reads a list of tools. An error begins with the position in the file.
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

// at adds the position to the message of a mistake.
func (r *reader) at(err error) error {
	var wrong *mistake
	if !errors.As(err, &wrong) {
		return err
	}
	at := r.place(wrong.path)
	return fmt.Errorf("%s:%d:%d: %s%s", r.file, at.Line, at.Column, where(wrong.path), wrong.text)
}

// mistake is an error at a path in the list.
type mistake struct {
	path []string
	text string
}

// Error returns the message without the position.
func (m *mistake) Error() string { return m.text }

func wrong(path []string, format string, args ...any) error {
	return &mistake{path, fmt.Sprintf(format, args...)}
}

// where writes a path as the beginning of a message: `tools[2].name: `.
func where(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return jsonmsg.Path(path) + ": "
}

// below returns a path with more elements.
func below(path []string, more ...string) []string {
	return append(path[:len(path):len(path)], more...)
}

type reader struct {
	file  string
	src   []byte
	parts int // schema parts of all schemas so far
}

// place returns the position of the value at a path.
func (r *reader) place(path []string) diag.Position {
	line, column := jsonmsg.Place(r.src, path)
	return diag.Position{Line: line, Column: column}
}

// list finds the array of tools in the document and reads it.
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

// serverOf returns the server alias that a list states, if any.
func serverOf(doc value.Value) string {
	if name, ok := doc.Get("server"); ok && name.Kind == value.String {
		return name.Text
	}
	name, _ := doc.Get("serverInfo", "name")
	return name.Text
}

func kind(v value.Value) string { return jsonmsg.Describe(v.AppendJSON(nil)) }
