package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// limits limits a message. The caller should limit the size of a body to less.
var limits = value.Limits{MaxBytes: 16 << 20, MaxDepth: 128}

// object is an object of a message. Reading a member that is missing or has the wrong type
// returns the zero value and records an error for the message.
type object struct{ jsonmsg.Fields }

// document checks a message as a whole. If it is not valid, an error is recorded, and members
// that can be identified are still readable.
func document(body []byte, known ...string) object {
	return object{jsonmsg.Salvage(body, limits, known...)}
}

// in returns an object inside of a message, for its known members.
func (o object) in(path string, raw []byte, known ...string) object {
	return object{o.Reader.Fields(path, raw, known...)}
}

// err returns the first error of the message, or nil.
func (o object) err() error {
	problem := jsonmsg.Problem(o.Err())
	if problem == nil {
		return nil
	}
	expected := problem.Expected + reason(problem.Err)
	if problem.Found != "" {
		expected += ", found " + listWord(problem.Found)
	}
	return &Error{Field: problem.Path, Expected: expected}
}

// read returns the message, or the zero value and the error if any part is not valid.
func read[T any](o object, message T) (T, error) {
	err := o.err()
	if err != nil {
		var none T
		message = none
	}
	return message, err
}

// listWord replaces "array" by "list", the word that RAP uses.
func listWord(kind string) string { return strings.Replace(kind, "an array", "a list", 1) }

// reason returns the kind and the position of a JSON error, without quoting the text.
func reason(err error) string {
	var bad *value.Error
	if !errors.As(err, &bad) {
		return ""
	}
	return fmt.Sprintf(" (%s, byte %d)", bad.Code, bad.Offset)
}

// list iterates over the elements of a member with their paths, up to a limit.
func (o object) list(name string, most int) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		if raw := o.Raw(name); jsonmsg.Describe(raw) != "an array" {
			o.Fail(&jsonmsg.Error{
				Path:     o.At(name),
				Expected: "a list",
				Found:    jsonmsg.Describe(raw),
			})
			return
		}

		o.Elements(name, most)(yield)
	}
}

// rawObject returns the unchanged text of a required object, or nil if it is not valid.
func (o object) rawObject(name string) json.RawMessage {
	raw := o.Raw(name)
	if !jsonmsg.IsObject(raw) {
		o.Fail(&jsonmsg.Error{
			Path:     o.At(name),
			Expected: "an object",
			Found:    jsonmsg.Describe(raw),
		})
		return nil
	}

	return json.RawMessage(string(raw))
}
