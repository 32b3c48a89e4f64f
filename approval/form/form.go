// Package form reads the questions that take more than a choice for an
// answer: a free text, or a form with a few fields.
//
// What is asked is a JSON Schema, as flat as MCP's form mode has it
// (2025-11-25): an object whose properties are texts, numbers, booleans
// and lists of options; or, for a free text, the schema of one text.
// Everything else is refused with its place and what would be right, so
// that every channel can show a control for every field. The answer is
// held to the same schema, on the server, whatever the channel checked.
//
// A form is no vault: a field that asks for a password or a key is
// refused by its name, title or format.
package form

import (
	"fmt"

	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/value"
)

// The bounds of a form and of its answer.
const (
	MaxSchema  = 128 << 10 // bytes of the schema
	MaxAnswer  = 256 << 10 // bytes of the answer
	MaxText    = 64 << 10  // characters of one text, where the schema allows more
	MaxFields  = 100
	MaxOptions = 1_000 // of one field
)

// Type is what a field takes.
type Type string

// What a field may take.
const (
	Text    Type = "string"
	Number  Type = "number"
	Integer Type = "integer"
	Boolean Type = "boolean"
	Select  Type = "select"      // one of the options
	Several Type = "multiselect" // any of the options
)

// Form is a schema that was read. It is immutable and safe for
// concurrent use.
type Form struct {
	Title  string
	Help   string
	Fields []Field // in the schema's order; the one field of a free text has no name
	text   bool
}

// FreeText reports whether the answer is one text, not an object.
func (f *Form) FreeText() bool { return f.text }

// Field is one thing that is asked.
type Field struct {
	Name     string
	Title    string // what to call it: the schema's title, else the name
	Help     string // the schema's description
	Type     Type
	Required bool
	Format   string // of a text: email, uri, date, date-time, or ""
	// Least and Most bound what is given: the characters of a text, the
	// number of options picked. Most is 0 where nothing was said.
	Least, Most int
	Minimum     *value.Num // of a number
	Maximum     *value.Num
	Options     []Option
	Default     value.Value // Absent where there is none
	pattern     *pattern.Foreign
}

// Option is one value that may be picked.
type Option struct {
	Value string
	Title string // what is shown; the value where the schema has no title
}

// SchemaError says what of a schema can't be asked in a form.
type SchemaError struct {
	Path string // such as properties.seat.enum.3; "" for the schema itself
	Want string // what would be right
}

// Error puts the place before the sentence.
func (e *SchemaError) Error() string {
	if e.Path == "" {
		return "schema: expected " + e.Want
	}

	return fmt.Sprintf("schema, at %s: expected %s", e.Path, e.Want)
}

// Problem says what is wrong with one field of an answer.
type Problem struct {
	Field string // its name; "" for a free text and for the answer as a whole
	Want  string // what it takes
}

// Problems are why an answer is refused: every field that is wrong, in
// the order of the form.
type Problems []Problem

// Error names every field.
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
