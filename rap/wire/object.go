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

// limits bounds a message. How large a body may be is the caller's to
// say; this only ends it all.
var limits = value.Limits{MaxBytes: 16 << 20, MaxDepth: 128}

// object is an object of a message. Who asks for a member that is
// missing or is something else gets nothing of it, and the message an
// error.
type object struct{ jsonmsg.Fields }

// document checks a message as a whole. What is not sound gives an
// error and still what can be told apart of it.
func document(body []byte, known ...string) object {
	return object{jsonmsg.Salvage(body, limits, known...)}
}

// in reads the known members of an object inside of a message.
func (o object) in(path string, raw []byte, known ...string) object {
	return object{o.Reader.Fields(path, raw, known...)}
}

// err is what is wrong with the message.
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

// read is what was read of a message where all of it is valid.
func read[T any](o object, message T) (T, error) {
	err := o.err()
	if err != nil {
		var none T
		message = none
	}
	return message, err
}

// listWord says list for array, as RAP does.
func listWord(kind string) string { return strings.Replace(kind, "an array", "a list", 1) }

// reason says what is wrong with a text, and where, in words that hold
// nothing of it.
func reason(err error) string {
	var bad *value.Error
	if !errors.As(err, &bad) {
		return ""
	}
	return fmt.Sprintf(" (%s, byte %d)", bad.Code, bad.Offset)
}

// list walks over the elements of a member with their paths, at most so many.
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

// rawObject is the untouched text of an object that must be there. Nil
// when it is not.
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
