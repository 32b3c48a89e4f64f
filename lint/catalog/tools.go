package catalog

import (
	"strconv"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// shape is one of the forms that lists use for their tools.
type shape struct {
	name   string
	schema string // the member with the JSON Schema of the arguments
	inside string // the member that holds name and schema, or "" for the tool itself
	needed bool   // the schema is required
}

// shapeOf returns the form of a tool. It returns false for a tool that the LLM provider runs
// itself and that no program calls.
func shapeOf(tool value.Value) (shape, bool) {
	has := func(path ...string) bool { _, ok := tool.Get(path...); return ok }
	sort, _ := tool.Get("type")
	switch {
	case has("inputSchema"):
		return shape{name: "MCP", schema: "inputSchema"}, true
	case has("input_schema"):
		return shape{name: "Anthropic", schema: "input_schema"}, true
	case has("function"):
		return shape{name: "OpenAI", schema: "parameters", inside: "function"}, true
	case sort.Text == "function" || has("parameters"):
		return shape{name: "OpenAI", schema: "parameters"}, true
	case sort.Kind == value.String && has("name"):
		return shape{name: "Anthropic", schema: "input_schema"}, true
	case sort.Kind == value.String:
		return shape{name: "OpenAI"}, false
	}

	return shape{name: "MCP", schema: "inputSchema", needed: true}, true
}

// tools reads the array. All tools in it must have the same form.
func (r *reader) tools(c *Catalog, list value.Value, path []string) error {
	places, form := r.elements(path), ""
	names := map[string]diag.Range{}
	for i, item := range list.Items {
		at := below(path, strconv.Itoa(i))
		if item.Kind != value.Object {
			return wrong(at, "expected a tool, an object; found %s", kind(item))
		}
		s, called := shapeOf(item)
		if form == "" {
			form = s.name
		}
		if s.name != form {
			return wrong(at, "a tool as %s has it, in a list as %s has it", s.name, form)
		}

		if !called {
			continue
		}
		tool, err := r.tool(s, item, at)
		if err != nil {
			return err
		}
		tool.Range = places[i]
		if first, twice := names[tool.Name]; twice {
			return wrong(
				below(at, nameOf(s)...),
				"the tool %q stands in line %d already, so nobody knows which one is meant",
				tool.Name,
				first.Start.Line,
			)
		}

		names[tool.Name] = tool.Range
		c.Tools = append(c.Tools, tool)
	}

	c.MCP = form == "MCP" || form == ""
	return nil
}

func nameOf(s shape) []string {
	if s.inside == "" {
		return []string{"name"}
	}
	return []string{s.inside, "name"}
}

// tool reads one tool.
func (r *reader) tool(s shape, item value.Value, path []string) (Tool, error) {
	t := Tool{File: r.file}
	var err error
	if t.Hints, err = hints(item, path); err != nil {
		return t, err
	}
	if s.inside != "" {
		path = below(path, s.inside)
		if item, _ = item.Get(s.inside); item.Kind != value.Object {
			return t, wrong(path, "expected an object, found %s", kind(item))
		}
	}

	name, given := item.Get("name")
	switch {
	case !given:
		return t, wrong(path, "a tool without a name")
	case name.Kind != value.String || name.Text == "":
		return t, wrong(below(path, "name"), "expected the name of the tool, a string; found %s", kind(name))
	case len(name.Text) > maxName:
		return t, wrong(below(path, "name"), "a name of %d bytes is no name of a tool", len(name.Text))
	}

	t.Name = name.Text
	description, _ := item.Get("description")
	t.Description = description.Text

	schema, given := item.Get(s.schema)
	switch {
	case given && schema.Kind == value.Object:
		t.Args, err = r.arguments(schema, below(path, s.schema))
		return t, err
	case given && (schema.Kind != value.Null || s.schema != "parameters"):
		return t, wrong(below(path, s.schema), "expected a JSON Schema, an object; found %s", kind(schema))
	case s.needed:
		return t, wrong(path, "the tool %q has no %s, which says what it takes", t.Name, s.schema)
	case s.name == "Anthropic": // one of Anthropic's own tools, whose arguments are only in its documentation
		t.Args = anything()
	default:
		t.Args = Type{Values: objects(), Closed: true}
	}

	return t, nil
}

// hints reads the annotations of MCP.
func hints(tool value.Value, path []string) (Hints, error) {
	var h Hints
	all, given := tool.Get("annotations")
	if !given || all.Kind == value.Null {
		return h, nil
	}
	path = below(path, "annotations")
	if all.Kind != value.Object {
		return h, wrong(path, "expected an object, found %s", kind(all))
	}
	for _, hint := range []struct {
		name string
		to   **bool
	}{{"readOnlyHint", &h.ReadOnly}, {"destructiveHint", &h.Destructive}} {
		switch v, given := all.Get(hint.name); {
		case !given || v.Kind == value.Null:
		case v.Kind != value.Bool:
			return h, wrong(below(path, hint.name), "expected true or false, found %s", kind(v))
		default:
			*hint.to = &v.Bool
		}
	}

	return h, nil
}

// elements returns the positions of the elements of the array at a path.
func (r *reader) elements(path []string) []diag.Range {
	c := jsonmsg.NewCursor(r.src, string(r.src))
	c.Start(jsonmsg.Offset(r.src, path))
	var all []diag.Range
	line, column := 1, 1
	read := 0
	for range c.Elements() {
		for _, char := range string(r.src[read:c.Next()]) {
			column++
			if char == '\n' {
				line, column = line+1, 1
			}
		}

		read = c.Next()
		start := diag.Position{Line: line, Column: column}
		all = append(all, diag.Range{Start: start, End: diag.Position{Line: line, Column: column + 1}})
	}

	return all
}
