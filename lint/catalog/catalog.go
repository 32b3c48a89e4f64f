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
	"strconv"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// Catalog is what one server, or one program, offers.
type Catalog struct {
	File   string
	Server string // alias of the MCP server; "" when neither the file nor who gave it says
	MCP    bool   // a list of MCP, not the tools of a model
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
	var wrong *mistake
	if errors.As(err, &wrong) {
		at := r.place(wrong.path)
		return nil, fmt.Errorf(
			"%s:%d:%d: %s%s",
			file,
			at.Line,
			at.Column,
			where(wrong.path),
			wrong.text,
		)
	}

	return c, err
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
	text := ""
	for _, s := range path {
		if strings.Trim(s, "0123456789") == "" && s != "" {
			text += "[" + s + "]"
		} else {
			text += "." + s
		}
	}

	if text == "" {
		return ""
	}
	return strings.TrimPrefix(text, ".") + ": "
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
	c := jsonmsg.NewCursor(r.src, string(r.src))
	at := r.follow(c, path)
	before := string(r.src[:at])
	line := strings.LastIndexByte(before, '\n') + 1
	return diag.Position{
		Line:   strings.Count(before, "\n") + 1,
		Column: len([]rune(before[line:])) + 1,
	}
}

// follow returns the offset of the value at a path below the cursor; of
// the last that is there when the path leads on.
func (r *reader) follow(c *jsonmsg.Cursor, path []string) int {
	at := c.Next()
	if len(path) == 0 {
		return at
	}
	if r.src[at] == '[' {
		for i := range c.Elements() {
			if strconv.Itoa(i) == path[0] {
				return r.follow(c, path[1:])
			}
		}
	} else if r.src[at] == '{' {
		for name := range c.Members() {
			if name == path[0] {
				return r.follow(c, path[1:])
			}
		}
	}

	return at
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
		return nil, wrong(
			path,
			"%d tools are more than the %d that are read",
			len(doc.Items),
			maxTools,
		)
	}

	c := &Catalog{
		File:   r.file,
		Server: server,
		MCP:    true,
		Text:   r.src,
	}
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
