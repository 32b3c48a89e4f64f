// Package form reads the questions whose answer is more than a choice: a free text, or a form with
// a few fields.
//
// A question is described by a JSON Schema, as flat as in MCP's form mode (2025-11-25): an object
// whose properties are texts, numbers, booleans and lists of options, or for a free text the schema
// of one text. Everything else is refused with its path and what is expected, so that every channel
// can show a control for every field. The server validates the answer against the same schema,
// whatever the channel has checked.
//
// Forms must not ask for secrets: a field that asks for a password or a key is refused because of
// its name, title or format.
package form

import (
	"fmt"

	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/value"
)

// The size limits of a form and of its answer.
const (
	MaxSchema  = 128 << 10 // bytes of the schema
	MaxAnswer  = 256 << 10 // bytes of the answer
	MaxText    = 64 << 10  // characters of one text, if the schema allows more
	MaxFields  = 100
	MaxOptions = 1_000 // number of options of one field
)

// Type is the type of a field.
type Type string

// The types of fields.
const (
	Text    Type = "string"
	Number  Type = "number"
	Integer Type = "integer"
	Boolean Type = "boolean"
	Select  Type = "select"      // one of the options
	Several Type = "multiselect" // any number of the options
)

// Form is a parsed schema. It is immutable and safe for concurrent use.
type Form struct {
	Title  string
	Help   string
	Fields []Field // in the schema's order; the one field of a free text has no name
	text   bool
}

// FreeText reports whether the answer is one text, not an object.
func (f *Form) FreeText() bool { return f.text }

// Field is one field of a form.
type Field struct {
	Name     string
	Title    string // the schema's title, or the name if it has none
	Help     string // the schema's description
	Type     Type
	Required bool
	Format   string // of a text: email, uri, date, date-time; may be empty
	// Least and Most limit the number of characters of a text, or the number of picked options.
	// Most is 0 if the schema sets no limit.
	Least, Most int
	Minimum     *value.Num // for numbers
	Maximum     *value.Num
	Options     []Option
	Default     value.Value // Absent if there is none
	pattern     *pattern.Foreign
}

// Option is one value that may be picked.
type Option struct {
	Value string
	Title string // shown text; the value if the schema has no title
}

// SchemaError reports what in a schema can't be asked in a form.
type SchemaError struct {
	Path string // such as properties.seat.enum.3; empty for the schema itself
	Want string // what is expected
}

// Error returns the path followed by what is expected.
func (e *SchemaError) Error() string {
	if e.Path == "" {
		return "schema: expected " + e.Want
	}

	return fmt.Sprintf("schema, at %s: expected %s", e.Path, e.Want)
}

// Problem reports what is wrong with one field of an answer.
type Problem struct {
	Field string // name of the field; empty for a free text and for the answer as a whole
	Want  string // what the field accepts
}

// Problems are the reasons why an answer is refused: every wrong field, in the order of the form.
type Problems []Problem

// Error names every wrong field.
func (p Problems) Error() string {
	text := "answer: "
	for i, one := range p {
		if i > 0 {
			text += "; "
		}
		if one.Field != "" {
			text += one.Field + ": "
		}
		text += "expected " + one.Want
	}

	return text
}
