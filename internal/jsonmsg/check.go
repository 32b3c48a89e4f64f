// Package jsonmsg reads and writes JSON messages: one reader and one
// writer for every protocol, file and body that is not the arguments of
// a call. Those are package value's, which is exact about numbers.
//
// Reading is strict about what two readers could read differently
// (Check), keeps values byte for byte, and says where in a message
// something is wrong. Whether unknown members are kept or passed over
// is the choice of the caller. Writing adds no escapes for HTML and
// puts raw values in as they are.
package jsonmsg

import (
	"bytes"
	"encoding/json"

	"github.com/assent-dev/assent/value"
)

// whole is a shape that reads no place and checks every one.
var whole = new(value.ShapeBuilder).Build()

// A Checker checks texts. Its zero value is ready; one that is kept
// allocates nothing.
type Checker struct{ scratch value.Scratch }

// Check reports what a text is, or why two readers could disagree about
// it: it is no JSON, a name stands twice in an object, bytes are no
// UTF-8, half of a surrogate pair stands alone, a number is beyond a
// double, or a limit is exceeded. Errors are *value.Error.
func (c *Checker) Check(text []byte, lim value.Limits) (value.Kind, error) {
	if err := whole.Scan(text, lim, &c.scratch); err != nil {
		return value.Absent, err
	}
	return c.scratch.Top, nil
}

// Check is Checker.Check for one text.
func Check(text []byte, lim value.Limits) (value.Kind, error) {
	var c Checker
	return c.Check(text, lim)
}

// IsObject reports whether the text of a value is that of an object.
func IsObject[T ~[]byte | ~string](text T) bool { return Describe(text) == "an object" }

// Describe names the kind of a JSON text in words, "nothing" when there
// is none.
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

// Trim cuts the white space around a text.
func Trim(text []byte) []byte { return bytes.Trim(text, " \t\r\n") }

// Marshal is json.Marshal without the escapes for HTML, which would
// change texts that were signed or bound.
func Marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
