// Package jsonmsg reads and writes JSON messages. Every protocol, file and body uses it, except
// for the arguments of a call: those use package value, which keeps numbers exact.
//
// Reading refuses everything that two readers could understand differently (Check), keeps
// values byte for byte, and reports the path of an error. The caller decides whether unknown
// members are kept or ignored. Writing adds no HTML escapes and copies raw values unchanged.
package jsonmsg

import (
	"bytes"
	"encoding/json"

	"github.com/assent-dev/assent/value"
)

// whole is a shape without selected paths, so that Scan only checks the text.
var whole = new(value.ShapeBuilder).Build()

// A Checker checks texts. Its zero value is ready to use. Reusing one avoids allocations.
type Checker struct{ scratch value.Scratch }

// Check returns the kind of a text, or an error if two readers could disagree about it: it is
// not JSON, an object has a name twice, it has invalid UTF-8 or a lone surrogate, a number is
// out of the range of a double, or a limit is exceeded. Errors are *value.Error.
func (c *Checker) Check(text []byte, lim value.Limits) (value.Kind, error) {
	if err := whole.Scan(text, lim, &c.scratch); err != nil {
		return value.Absent, err
	}
	return c.scratch.Top, nil
}

// Check checks one text, see Checker.Check.
func Check(text []byte, lim value.Limits) (value.Kind, error) {
	var c Checker
	return c.Check(text, lim)
}

// IsObject reports whether a value's text is an object.
func IsObject[T ~[]byte | ~string](text T) bool { return Describe(text) == "an object" }

// Describe returns a description of the kind of a JSON text, "nothing" if it is empty.
func Describe[T ~[]byte | ~string](text T) string {
	i := skipSpace(text, 0)
	if i == len(text) {
		return "nothing"
	}

	switch text[i] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}

	return "a number"
}

func skipSpace[T ~[]byte | ~string](text T, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

// Trim removes surrounding JSON white space.
func Trim(text []byte) []byte { return bytes.Trim(text, " \t\r\n") }

// Marshal is like json.Marshal without HTML escapes, which would change texts that were signed
// or bound.
func Marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
