package form

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/value"
)

// schemaLimits limit the parsing of a schema. A flat schema is never deep.
var schemaLimits = value.Limits{MaxBytes: MaxSchema, MaxDepth: 16}

// Parse reads the schema of a question that a peer asks. The error is a *SchemaError.
func Parse(schema []byte) (*Form, error) { return read(schema, false) }

// ParseKept reads a schema that Parse accepted before it was stored. It neither compiles patterns
// nor matches defaults again, so its cost depends only on the length of the schema. Answers are
// still validated against the whole schema.
func ParseKept(schema []byte) (*Form, error) { return read(schema, true) }

func read(schema []byte, kept bool) (*Form, error) {
	doc, err := value.Parse(schema, schemaLimits)
	if err != nil {
		return nil, &SchemaError{Want: "a JSON Schema: " + err.Error()}
	}
	r := reader{kept: kept, work: pattern.Work{Left: mostWork}}
	f := r.form(doc)
	if r.err != nil {
		return nil, r.err
	}

	return f, nil
}

// reader stores the first error.
type reader struct {
	err   *SchemaError
	kept  bool         // the schema was accepted before
	bytes int          // total bytes of the patterns so far
	sizes int          // total steps of the patterns so far
	work  pattern.Work // remaining work for matching defaults
}

func (r *reader) refuse(path, want string, args ...any) {
	if r.err == nil {
		r.err = &SchemaError{path, fmt.Sprintf(want, args...)}
	}
}

func (r *reader) form(doc value.Value) *Form {
	if doc.Kind != value.Object {
		r.refuse("", "an object, the schema of a form or of a text")

		return nil
	}
	switch kind, _ := doc.Get("type"); kind.Text {
	case "string":
		field := r.field("", doc, true)

		return &Form{Title: field.Title, Help: field.Help, Fields: []Field{field}, text: true}
	case "object":
		return r.object(doc)
	}

	r.refuse("type", `"object" with properties, or "string" for a free text`)

	return nil
}

// object reads the schema of a form with fields.
func (r *reader) object(doc value.Value) *Form {
	f := &Form{}
	var properties, required value.Value
	for _, m := range doc.Members {
		switch m.Key {
		case "type", "$schema":
		case "additionalProperties":
			if m.Value.Kind != value.Bool {
				r.refuse(m.Key, "true or false; an answer never has other fields")
			}
		case "title":
			f.Title = r.words(m.Key, m.Value)
		case "description":
			f.Help = r.words(m.Key, m.Value)
		case "properties":
			properties = m.Value
		case "required":
			required = m.Value
		default:
			r.unknown(m.Key, "title, description, properties, required")
		}
	}

	n := len(properties.Members)
	if properties.Kind != value.Object || n > MaxFields { // a form without fields asks for a plain yes
		r.refuse("properties", "an object with at most %d fields", MaxFields)

		return nil
	}
	names := r.texts("required", required)
	for _, m := range properties.Members {
		path := "properties." + m.Key
		if m.Key == "" || !visible(m.Key) {
			r.refuse("properties", "names of visible characters, not %q", m.Key)
		}
		field := r.field(path, m.Value, slices.Contains(names, m.Key))
		field.Name = m.Key
		if field.Title == "" {
			field.Title = m.Key
		}
		f.Fields = append(f.Fields, field)
	}

	for i, name := range names {
		if _, ok := properties.Get(name); !ok {
			r.refuse(fmt.Sprintf("required.%d", i), "the name of a property")
		}
	}

	return f
}
